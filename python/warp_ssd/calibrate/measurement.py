"""Measurements of a drive: write amplification, and the work that the drive did for it.

CSV | an experiment's published numbers | `nvme fdp stats` before and after a fio job -> [Measurement]
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._engine import Experiment, WarpError
from .knobs import label


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

    def __post_init__(self) -> None:
        if (self.experiment is None) == (self.workload is None):
            raise WarpError("a measurement needs either an experiment or a workload")
        if not self.waf > 0:
            raise WarpError(f"waf = {self.waf} of a measurement is not above 0")
        if self.sigma is not None and not self.sigma > 0:
            raise WarpError(f"sigma = {self.sigma} of a measurement is not above 0")

    @property
    def name(self) -> str:
        """The measurement in a line."""
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


_NUMBERS = ("waf", "sigma", "drive_writes", "precondition_drive_writes")
_WORDS = ("experiment", "workload", "metric", "source")


def read_csv(path: str | os.PathLike[str]) -> list[Measurement]:
    """Reads measurements, one per line.

    The columns are the attributes of `Measurement`. `waf` and one of `experiment` and `workload` are required. Every other column
    is a coordinate, and an empty value leaves the coordinate out.

    Raises
    ------
    WarpError
        A line is invalid. The message names file and line.
    """
    with open(path, newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    return [_measurement(f"{os.fspath(path)}, line {number}", line) for number, line in enumerate(lines, 2)]


def _measurement(place: str, line: Mapping[str, str]) -> Measurement:
    given = {(name or "").strip(): (value or "").strip() for name, value in line.items()}
    given = {name: value for name, value in given.items() if value}
    fields: dict[str, Any] = {name: given.pop(name) for name in _WORDS if name in given}
    for name in [name for name in _NUMBERS if name in given]:
        text = given.pop(name)
        try:
            fields[name] = float(text)
        except ValueError:
            raise WarpError(f"{place}: {name} = {text!r} is not a number") from None
    if "waf" not in fields:
        raise WarpError(f"{place}: the column waf is missing. Give waf, and experiment or workload")
    try:
        return Measurement(**fields, at={name: _value(name, value) for name, value in given.items()})
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
    """Measurements as they are, or read from a CSV file."""
    found = read_csv(given) if isinstance(given, str | os.PathLike) else list(given)
    if not found:
        raise WarpError("there are no measurements. Give at least one")
    return found
