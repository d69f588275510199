"""Measurements of a drive: write amplification, and the work that the drive did for it.

CSV | an experiment's published numbers | `nvme fdp stats` before and after a fio job -> [Measurement]
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._engine import Experiment, WarpError
from .knobs import label


USES = ("fit", "holdout")
"""Uses of a measurement."""


@dataclass(frozen=True)
class Measurement:
    """A measured write amplification.

    Attributes
    ----------
    waf
        Media bytes written / host bytes written.
    experiment
        Name or path of the experiment that ran. It is `None` if `workload` is given.
    workload
        Name or path of the workload that ran, for instance a fio job file.
    at
        Coordinates in the experiment, with the keys of a sweep's grid (`variant`, axes, `run:drive_writes`, `workload:PATH`,
        settings of the device).
    sigma
        Standard deviation of `waf`, or `None` for a share of it (`calibrate(noise=...)`).
    metric
        `write_amplification` (of the whole run), `tail_write_amplification` (at its end), or another column of `cells`.
    drive_writes, precondition_drive_writes
        For a `workload`: the amount written during the measurement, and the amount written sequentially before it. Both are
        multiples of the drive's capacity.
    source
        Origin of the number, such as a figure of a paper.
    tail_drive_writes
        For a `workload`: the window of `tail_write_amplification`, as a multiple of the capacity. Default: 1.
    relative_to
        The measurement whose write amplification divides this one. `waf` is then the ratio. Its own `waf` does not count.
    probe
        Name of the measurement, if it has one.
    use
        `fit`, or `holdout` for a number that a fit must not see.
    """

    waf: float
    experiment: str | None = None
    workload: str | None = None
    at: Mapping[str, object] = field(default_factory=dict)
    sigma: float | None = None
    metric: str = "write_amplification"
    drive_writes: float | None = None
    precondition_drive_writes: float = 0.0
    source: str | None = None
    tail_drive_writes: float | None = None
    relative_to: Measurement | None = None
    probe: str | None = None
    use: str = USES[0]

    def __post_init__(self) -> None:
        if (self.experiment is None) == (self.workload is None):
            raise WarpError("a measurement needs either an experiment or a workload")
        for name in ("waf", "sigma", "drive_writes", "tail_drive_writes"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise WarpError(f"{name} = {value} of a measurement is not above 0 and finite")
        if not 0 <= self.precondition_drive_writes < math.inf:
            raise WarpError(f"precondition_drive_writes = {self.precondition_drive_writes} is not 0 or more and finite")
        if self.use not in USES:
            raise WarpError(f"use = {self.use!r} is unknown. Give one of {', '.join(USES)}")

    @property
    def name(self) -> str:
        """The measurement in a line."""
        if self.probe is not None:
            return self.probe
        parts = [
            self.subject,
            *(label(value) if isinstance(value, Mapping) else str(value) for value in self.at.values()),
        ]
        return " | ".join(part for part in parts if part)

    @property
    def subject(self) -> str:
        """The name of its experiment, or of its workload if it has no experiment."""
        path = Path(self.experiment or self.workload or "")
        return path.parent.name if path.name == "experiment.toml" else path.stem

    def figure(self, by_source: bool) -> str:
        """The figure to which it belongs: its experiment. By source, a figure of a paper (the source up to a comma) within the
        experiment.
        """
        place = (self.source or "").partition(",")[0] if by_source else ""
        return f"{self.subject}, {place}" if place else self.subject

    def load(self, device: str) -> Experiment:
        """The experiment to run for this measurement, on this device."""
        if self.experiment is not None:
            return Experiment(self.experiment)
        run: dict[str, object] = {"scale": "1/1", "precondition_drive_writes": self.precondition_drive_writes}
        if self.drive_writes is not None:
            run["drive_writes"] = self.drive_writes
        if self.tail_drive_writes is not None:
            # The window ends at samples, so they have to be closer than it is long.
            tail = self.tail_drive_writes
            run |= {"tail_drive_writes": tail, "sample_drive_writes": min(0.05, tail / 10)}
        return Experiment(
            {
                "title": self.name,
                "source": "measured",
                "devices": [device],
                "workload": self.workload,
                "run": run,
                "quick": run,
            }
        )


_NUMBERS = ("waf", "sigma", "drive_writes", "precondition_drive_writes", "tail_drive_writes")
_WORDS = ("experiment", "workload", "metric", "source", "probe", "use")
_UNUSED = ("steady", "precondition_bytes_share")
"""Columns of a characterization that a model does not need."""


def read_csv(path: str | os.PathLike[str]) -> list[Measurement]:
    """Reads measurements, one per line.

    The columns are the attributes of `Measurement`. `waf` and one of `experiment` and `workload` are required. Every other column
    is a coordinate, and an empty value leaves the coordinate out. A workload may be a file beside the CSV. `relative_to` is the
    `probe` of another line. A probe without `waf` is no measurement, but others may be relative to it.

    Raises
    ------
    WarpError
        A line is invalid. The message names file and line.
    """
    lines = {f"{os.fspath(path)}, line {number}": line for number, line in read_lines(path)}
    probes = {line["probe"]: place for place, line in lines.items() if "probe" in line}
    found = []
    for place, line in lines.items():
        if "probe" in line and "waf" not in line:
            continue
        other = line.pop("relative_to", None)
        if other is not None and other not in probes:
            raise WarpError(f"{place}: relative_to = {other} is not the probe of another line")
        reference = None if other is None else _measurement(probes[other], lines[probes[other]] | {"waf": "1"}, path, None)
        found.append(_measurement(place, line, path, reference))
    return found


def read_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of a CSV with their numbers: the values that are not empty, by column.

    Raises
    ------
    WarpError
        The file is not a CSV, or a line has another number of columns than the first.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            for number, line in enumerate(csv.DictReader(file, strict=True), 2):
                if None in line or None in line.values():
                    problem = "does not have the columns of the first line. Complete or remove it"
                    raise WarpError(f"{os.fspath(path)}, line {number}: the line {problem}")
                values = {name.strip(): value.strip() for name, value in line.items()}
                yield number, {name: value for name, value in values.items() if value}
    except (UnicodeDecodeError, csv.Error) as error:
        raise WarpError(f"{os.fspath(path)}: not a CSV in UTF-8 ({error})") from None


def _measurement(
    place: str, line: Mapping[str, str], path: str | os.PathLike[str], reference: Measurement | None
) -> Measurement:
    given = {name: value for name, value in line.items() if name not in _UNUSED and name != "relative_to"}
    fields: dict[str, Any] = {name: given.pop(name) for name in _WORDS if name in given}
    beside = Path(path).parent / fields.get("workload", "")
    if "workload" in fields and beside.is_file():
        fields["workload"] = os.fspath(beside)
    if "tail_drive_writes" in given:
        fields.setdefault("metric", "tail_write_amplification")
    for name in [name for name in _NUMBERS if name in given]:
        text = given.pop(name)
        try:
            fields[name] = float(text)
        except ValueError:
            raise WarpError(f"{place}: {name} = {text!r} is not a number") from None
    if "waf" not in fields:
        raise WarpError(f"{place}: the column waf is missing. Give waf, and experiment or workload")
    try:
        at = {name: _value(name, value) for name, value in given.items()}
        return Measurement(**fields, at=at, relative_to=reference)
    except WarpError as error:
        raise WarpError(f"{place}: {error}") from None


def _value(name: str, text: str) -> object:
    """Names stay text. Settings become numbers, booleans or JSON if they parse as such."""
    if "." not in name and ":" not in name:
        return text
    return parse_value(text)


def parse_value(text: str) -> object:
    """A value of a command line or a CSV: JSON, or else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def published(experiment: str, device: str, *, sigma: float | None = None) -> list[Measurement]:
    """The write amplifications that an experiment lists as measured on the drive.

    Parameters
    ----------
    device
        Name of the drive's profile in the experiment.
    sigma
        Standard deviation for all of them.

    Raises
    ------
    WarpError
        The experiment has no such numbers.
    """
    found = Experiment(experiment)
    rows = found.published().to_pyarrow().to_pylist()
    names = ("variant", *found.axes)
    measurements = [
        Measurement(
            waf=row["drive"],
            experiment=experiment,
            at={name: row[name] for name in names if row.get(name)},
            metric=row["column"],
            sigma=sigma,
            source=row["source"],
        )
        for row in rows
        if row["device"] in (device, None)
        and row["drive"] is not None
        and row["column"] in ("write_amplification", "tail_write_amplification")
    ]
    if not measurements:
        raise WarpError(f"experiment {experiment} publishes no write amplification of {device}")
    return measurements


def fdp_stats(
    before: str | os.PathLike[str],
    after: str | os.PathLike[str],
    job: str | os.PathLike[str],
    capacity_bytes: int,
    *,
    precondition_drive_writes: float = 0.0,
    sigma: float | None = None,
) -> Measurement:
    """A fio job on a real drive, between two readings of its FDP statistics.

    Parameters
    ----------
    before, after
        Output of `nvme fdp stats DEVICE -e GROUP -o json` before and after the job.
    job
        The fio job file that ran.
    capacity_bytes
        Capacity of the drive, as `nvme id-ctrl` prints it (`tnvmcap`). The written amount is a multiple of it.
    precondition_drive_writes
        Amount of data written sequentially to the drive before the first reading.

    Raises
    ------
    WarpError
        A file is not such an output, or the job wrote no data between the readings.
    """
    first, last = _statistics(before), _statistics(after)
    host_bytes, media_bytes = last["hbmw"] - first["hbmw"], last["mbmw"] - first["mbmw"]
    if host_bytes <= 0 or media_bytes <= 0:
        raise WarpError(f"{os.fspath(after)}: nothing was written since {os.fspath(before)}. Check if the files are swapped")
    return Measurement(
        waf=media_bytes / host_bytes,
        workload=os.fspath(job),
        drive_writes=host_bytes / capacity_bytes,
        precondition_drive_writes=precondition_drive_writes,
        sigma=sigma,
    )


def _statistics(path: str | os.PathLike[str]) -> dict[str, int]:
    """`hbmw` and `mbmw`. They are 128-bit numbers, which some versions of nvme-cli print as text with separators."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        return {name: int(str(found[name]).replace(",", "")) for name in ("hbmw", "mbmw")}
    except (ValueError, KeyError, TypeError) as error:
        problem = f"not the JSON of `nvme fdp stats -o json` ({type(error).__name__}: {error})"
        raise WarpError(f"{os.fspath(path)}: {problem}") from error


def as_measurements(given: str | os.PathLike[str] | Sequence[Measurement]) -> list[Measurement]:
    """Measurements as they are, or read from a CSV file, without those that a fit must not see."""
    found = read_csv(given) if isinstance(given, str | os.PathLike) else list(given)
    found = [one for one in found if one.use == USES[0]]
    if not found:
        raise WarpError("there are no measurements. Give at least one")
    return found
