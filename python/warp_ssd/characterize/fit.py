"""The fit of a characterized drive, from the folder to the profile and its files.

    folder -> start profile and knobs (start.py) -> calibrate -> media overhead of the profile and of each member
      -> times (times.py) -> predictions of all probes, of the holdouts too -> profile.toml, fit.json, report.html, SHA256SUMS
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import tomlkit

from .._engine import WarpError
from ..calibrate import Calibration, Measurement, calibrate, usual_scales
from ..calibrate.fit import lookup
from ..calibrate.knobs import Knob, label, plain_value, read_knobs
from ..calibrate.objective import Objective
from ..calibrate.result import set_leaf
from ..store import Store
from ..workers import make_workers
from . import start as begin
from .folder import FIT, PROFILE, REPORT, Characterization, make_anonymous, read_folder, write_checksums
from .times import TimesFit, fit_times

TRIALS, TRIALS_QUICK = 160, 32
"""Numbers of settings that a search evaluates, in normal and in quick form."""

_QUICK_PAGES_MAX, _QUICK_UNIT_PAGES_MIN = 1 << 18, 128
"""Pages of a quick model at most, as far as its reclaim units keep more than the least pages."""

_CHANCE_SEEDS = (1, 2, 3, 4)
"""Seeds that show how much a write amplification depends on chance."""
_NINE_TENTHS = 1.64
"""Number of standard deviations that contain nine tenths of a normal distribution."""

_ABSORBED = 0.98
"""A hot overwrite below this share of the media overhead shows absorption."""


@dataclass(frozen=True)
class Prediction:
    """A probe with the model's write amplification and its interval.

    Attributes
    ----------
    error
        Model / measured - 1.
    """

    measurement: Measurement
    model: float
    low: float
    high: float

    @property
    def probe(self) -> str:
        """Name of the probe."""
        return self.measurement.name

    @property
    def error(self) -> float:
        """Relative error of the model."""
        return self.model / self.measurement.waf - 1

    @property
    def is_inside(self) -> bool:
        """True if the measured number lies in the interval."""
        return self.low <= self.measurement.waf <= self.high


@dataclass(frozen=True)
class Fitted:
    """The result of a fit.

    Attributes
    ----------
    toml
        The profile.
    settings
        Values of the profile that the fit found or took from a probe, by path.
    spans
        The intervals of the over-provisioning and other numbers, by path.
    family, families_alike
        The family of the victim policy, and other families that explain the measurements as well.
    undetermined
        Sentences about facts that the measurements do not give.
    """

    folder: Characterization
    toml: str
    settings: Mapping[str, object]
    spans: Mapping[str, tuple[float, float]]
    family: str
    families_alike: Sequence[str]
    predictions: Sequence[Prediction]
    times: TimesFit | None
    undetermined: Sequence[str]
    scale: str
    evaluations: int

    def value(self, path: str) -> object:
        """A value of the profile, by path."""
        return lookup(tomllib.loads(self.toml), Knob(path))

    @property
    def noise(self) -> float | None:
        """Mean standard deviation of the measured write amplifications, as a share."""
        found = [one.sigma / one.waf for one in self.folder.measurements if one.sigma is not None]
        return fmean(found) if found else None

    def portrait(self) -> list[tuple[str, str]]:
        """The properties of the drive, with their names."""
        drive, fdp = self.folder.drive, self.folder.drive.fdp
        span = self.spans.get(begin.OP)
        spare = f"{self.settings[begin.OP]:.1%}" + (f" ({span[0]:.1%} to {span[1]:.1%})" if span else "")
        policy = self.family + (f", or {', '.join(self.families_alike)}" if self.families_alike else "")
        unit = label(self.value(begin.UNIT))
        is_reported = fdp is not None and fdp.reclaim_unit_bytes is not None
        buffer = self.times.settings.get("timing.write_buffer_bytes") if self.times else None
        absorbed = self.value(begin.ABSORPTION)
        rows = [
            ("drive", f"{drive.model}, {drive.capacity_bytes / 1e9:,.4g} GB"),
            ("firmware", drive.firmware),
            ("date", drive.date),
            ("counter", {"fdp": "FDP statistics", "ocp": "OCP log"}.get(drive.counter or "", "none, from host rates")),
            ("spare", spare),
            ("reclaim unit", f"{unit}, {'reported' if is_reported else 'fitted'}"),
            ("collection", policy),
            ("media overhead", f"{self.value(begin.OVERHEAD):.2%}"),
            ("copies", str(self.value(begin.COPIES) or "apart").replace("_", " ")),
            ("handles", "no FDP" if fdp is None else f"{fdp.handles}, {_isolation(self)}"),
            ("write buffer", "not measured" if buffer is None else label(buffer[0])),
            ("absorption", "none seen" if not absorbed else label(absorbed)),
            ("noise", "not measured" if self.noise is None else f"{self.noise:.2%} of a write amplification"),
        ]
        return [(name, text) for name, text in rows if text]

    def summary(self) -> str:
        """The portrait, the predictions and the open questions, in 80 columns."""
        lines = [part for name, text in self.portrait() for part in _wrapped(f"{name:<16}{text}", 16)]
        lines += ["", f"{'probe':<22}{'use':<9}{'measured':>8} {'model':>8} {'interval':>17} {'error':>8}"]
        for one in self.predictions:
            interval = f"{one.low:.3f} to {one.high:.3f}"
            row = f"{one.probe[:21]:<22}{one.measurement.use:<9}{one.measurement.waf:>8.3f} {one.model:>8.3f}"
            lines.append(f"{row} {interval:>17} {one.error:>+8.1%}")
        for use, text in (("fit", "fitted"), ("holdout", "not fitted")):
            found = [one for one in self.predictions if one.measurement.use == use]
            if found:
                error, inside = fmean(abs(one.error) for one in found), sum(one.is_inside for one in found)
                lines.append(f"{text}: mean error {error:.1%}, {inside} of {len(found)} inside their intervals")
        if self.times is not None:
            lines += ["", f"{'rate or latency':<45}{'measured':>10} {'model':>10}  unit"]
            for time in self.times.numbers:
                load, mark = time.measured, "*" if time.fixed else " "
                lines.append(f"{load.name[:43]:<44}{mark}{number_text(load.value):>10} {number_text(time.model):>10}  {load.unit}")
            lines.append("* fixed a setting")
        if self.undetermined:
            lines += ["", "not determined:"]
            lines += [part for one in self.undetermined for part in _wrapped(f"- {one}", 2)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The contents of fit.json."""
        times = self.times.numbers if self.times else []
        return {
            "settings": dict(self.settings),
            "policy_family": {"named": self.family, "also_fit": list(self.families_alike)},
            "isolation": self.value(begin.ISOLATION) if self.folder.drive.fdp else None,
            "copies": self.value(begin.COPIES) or "apart",
            "probes": [
                {"probe": one.probe, "use": one.measurement.use, "measured": one.measurement.waf}
                | {name: round(getattr(one, name), 6) for name in ("model", "low", "high", "error")}
                for one in self.predictions
            ],
            "times": [
                {"probe": one.measured.probe, "what": one.measured.what, "block_bytes": one.measured.block_bytes}
                | {"queue_depth": one.measured.queue_depth, "unit": one.measured.unit}
                | {"measured": one.measured.value, "model": round(one.model, 6), "fixed": one.fixed}
                for one in times
            ],
            "undetermined": list(self.undetermined),
            "scale": self.scale,
            "evaluations": self.evaluations,
            "profile": PROFILE,
        }


def _isolation(fitted: Fitted) -> str:
    fdp = fitted.folder.drive.fdp
    kinds = fdp.isolation if fdp is not None and fdp.isolation else [fitted.value(begin.ISOLATION)]
    return " and ".join(dict.fromkeys(str(kind).replace("_", " ") for kind in kinds))


def number_text(number: float) -> str:
    """A rate or a latency with four digits, without an exponent."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, 80, subsequent_indent=" " * indent) or [""]


def fit_folder(
    path: str | os.PathLike[str],
    *,
    device: str = "warp_default",
    trials: int | None = None,
    quick: bool = False,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    store: str | os.PathLike[str] | None = None,
    anonymous: bool = False,
    progress: bool = True,
) -> Fitted:
    """Fits a profile to the measurements of a folder, and writes the profile and its report there.

    Parameters
    ----------
    path
        The folder of `warp characterize`.
    device
        Profile of the settings that the measurements do not give.
    trials
        Number of settings that the search evaluates. Default: `TRIALS`, or `TRIALS_QUICK`.
    quick
        True for fewer trials, policies and seeds, and small models only.
    out
        Another file for a copy of the profile.
    workers
        Number of processes. Default: one per processor.
    store
        Folder of the evaluations. A fit that was stopped continues from there. Default: beside the folder, deleted at the end.
    anonymous
        True to replace the serial number and the target in the files of the measurement.

    Raises
    ------
    WarpError
        A file is missing or out of range, or no settings can run.
    """
    folder = read_folder(path)
    if anonymous:
        make_anonymous(folder.path)
        folder = read_folder(path)
    kept = Path(store) if store is not None else folder.path.resolve().with_name(folder.path.resolve().name + ".evaluations")
    fitted = _Fit(folder, device, quick, workers, kept, progress).run(trials)
    from .report import report

    (folder.path / PROFILE).write_text(fitted.toml, encoding="utf-8")
    (folder.path / FIT).write_text(json.dumps(fitted.to_dict(), indent=1) + "\n", encoding="utf-8")
    (folder.path / REPORT).write_text(report(fitted), encoding="utf-8")
    write_checksums(folder.path)
    if out is not None:
        Path(out).write_text(fitted.toml, encoding="utf-8")
    if store is None:
        shutil.rmtree(kept, ignore_errors=True)
    return fitted


class _Fit:
    """The steps of a fit."""

    def __init__(
        self, folder: Characterization, device: str, quick: bool, workers: int | None, store: Path, progress: bool
    ) -> None:
        self._folder = folder
        self._quick = quick
        self._workers = workers
        self._progress = progress
        self._store = Store(store)
        self._device = device
        self._seeds = (1,) if quick else (1, 2)
        self._notes: list[str] = []

    def run(self, trials: int | None) -> Fitted:
        """The whole fit."""
        folder = self._folder
        start = begin.start_profile(folder, self._device)
        free = begin.free_settings(folder, self._quick)
        scales = usual_scales(start, read_knobs(free))
        scales = [self._small(scales[0], begin.least_unit(start, free))] if self._quick else scales
        start = self._with_absorption(start, scales[-1])
        cells = begin.evidence(folder)
        starts = self._starts(cells, free, start, scales[0])
        cells = self._with_chance(cells, starts, start, scales[0])
        found = calibrate(
            cells,
            free,
            self._write("start", start),
            scales=scales,
            trials=len(starts) + 8 + (trials if trials is not None else TRIALS_QUICK if self._quick else TRIALS),
            seeds=self._seeds,
            starts=starts,
            workers=self._workers,
            store=self._store.path,
            progress=self._progress,
        )
        profile = self._profile(found, start)
        times = fit_times(folder.times, folder.drive.mapping_unit_bytes, folder.drive.date, self._store.path)
        predictions = self._predictions(profile, found)
        knobs = {knob.path: knob for knob in found.knobs}
        family = begin.family_of(found.settings[begin.POLICY])
        alike = dict.fromkeys(begin.family_of(policy) for policy in knobs[begin.POLICY].alike)
        if times is not None and found.settings[begin.COPIES] != "apart":
            self._notes.append("The profile has no times, because the model has none for copies beside host data.")
        notes = [*folder.drive.missing, *self._notes, *(times.notes if times else ())]
        notes += [f"{knob.sentence}." for knob in found.knobs if not knob.determined]
        settings = {path: value for path, value in found.settings.items()}
        document = tomllib.loads(profile)
        for path in (begin.OVERHEAD, begin.ABSORPTION, begin.UNIT):
            settings[path] = lookup(document, Knob(path))
        return Fitted(
            folder=folder,
            toml=self._finished(profile, times, found, notes),
            settings=settings,
            spans={path: (knob.low, knob.high) for path, knob in knobs.items() if knob.low is not None and knob.high is not None},
            family=family,
            families_alike=[other for other in alike if other != family],
            predictions=predictions,
            times=times,
            undetermined=notes,
            scale=found.scale,
            evaluations=found.evaluations,
        )

    def _write(self, name: str, text: str) -> str:
        file = self._store.path / f"{name}.toml"
        file.write_text(text, encoding="utf-8")
        return str(file)

    def _small(self, scale: str, unit_bytes: int) -> str:
        """A scale for quick models: as it is, or smaller for a drive of many reclaim units."""
        drive, denominator = self._folder.drive, int(scale.removeprefix("1/"))

        def pages(size_bytes: int) -> int:
            return size_bytes // drive.mapping_unit_bytes // denominator

        while pages(drive.capacity_bytes) > _QUICK_PAGES_MAX and pages(unit_bytes) > _QUICK_UNIT_PAGES_MIN:
            denominator *= 2
        return f"1/{denominator}"

    @contextmanager
    def _objective(self, cells: Sequence[Measurement], profile: str, scale: str) -> Iterator[Objective]:
        """Evaluations of variations of a profile."""
        pool = make_workers("local", self._workers, None)
        file = self._write(f"profile-{hashlib.sha256(profile.encode()).hexdigest()[:12]}", profile)
        common: Any = {"noise": 0.02, "loss": "squared", "store": self._store, "workers": pool}
        try:
            yield Objective(cells, file, scale=scale, seeds=self._seeds, **common)
        finally:
            pool.close()

    def _with_absorption(self, start: str, scale: str) -> str:
        """The start profile with the buffer that absorbs as many hot overwrites as the drive did."""
        reference = begin.overhead_probe(self._folder)
        hot = next((one for one in self._folder.measurements if one.probe == "hot_overwrite"), None)
        if reference is None or hot is None or hot.relative_to is not None:
            return start
        ratio = begin.quotient(hot, reference)
        if ratio.waf >= _ABSORBED:
            return start
        most = self._folder.drive.capacity_bytes // 64
        low, high = 0, 1 << (most.bit_length() - 1)
        with self._objective([ratio], start, scale) as objective:
            # The least power of two that absorbs enough, then its neighbourhood.
            sizes = [1 << power for power in range(16, high.bit_length())]
            wafs = [one.wafs[0] if one.wafs else 0.0 for one in objective.evaluate([{begin.ABSORPTION: size} for size in sizes])]
            high = next((size for size, waf in zip(sizes, wafs, strict=True) if waf <= ratio.waf), 0)
            if not high:
                self._notes.append("The drive absorbs more overwrites of hot data than a write buffer of the model does.")
                return start
            low = high // 2
            while high - low > high // 16:
                middle = (low + high) // 2
                (one,) = objective.evaluate([{begin.ABSORPTION: middle}])
                low, high = (low, middle) if one.wafs and one.wafs[0] <= ratio.waf else (middle, high)
        document = tomlkit.parse(start)
        set_leaf(document, begin.ABSORPTION, high, {"fitted": True, "source": self._source(hot)})
        return document.as_string()

    def _starts(
        self, cells: Sequence[Measurement], free: Mapping[str, object], start: str, scale: str
    ) -> list[dict[str, object]]:
        one = begin.anchor(cells)
        if one is None:
            return []
        with self._objective([one], start, scale) as objective:
            return begin.first_guesses(objective, free, start)

    def _with_chance(
        self, cells: Sequence[Measurement], starts: Sequence[Mapping[str, object]], start: str, scale: str
    ) -> list[Measurement]:
        """Measurements whose noise contains the variation between seeds, of the drive and of the model."""
        if not starts:
            return list(cells)
        with self._objective(cells, start, scale) as objective:
            first = objective.other(seeds=self._seeds[:1])
            best = min(first.evaluate(starts), key=lambda one: one.loss)
            (one,) = objective.other(seeds=_CHANCE_SEEDS).evaluate([best.settings])
        variances = one.variances or (0.0,) * len(cells)
        return [
            replace(cell, sigma=math.hypot(cell.sigma or 0.0, math.sqrt(2 * each)))
            for cell, each in zip(cells, variances, strict=True)
        ]

    def _source(self, one: Measurement) -> str:
        return one.source or f"measured {self._folder.drive.date}, probe {one.probe}"

    def _profile(self, found: Calibration, start: str) -> str:
        """The fitted profile, in which the drive and each member of the ensemble have their media overheads."""
        document = tomlkit.parse(found.toml)
        used = ", ".join(one.name for one in begin.evidence(self._folder))
        for knob in found.knobs:
            source = f"fitted, measured {self._folder.drive.date}, probes {used}"
            set_leaf(document, knob.path, knob.value, {"fitted": True, "source": source})
        reference = begin.overhead_probe(self._folder)
        if reference is None:
            self._notes.append("The media overhead is unknown, because no probe gives it. The profile has none.")
            return document.as_string()
        with self._objective([reference], start, found.scale) as objective:
            drives = objective.evaluate([dict(found.settings), *(dict(member.settings) for member in found.members)])
        # The overhead multiplies the write amplification of the drive without it.
        shares = [round(min(0.5, max(0.0, reference.waf / one.wafs[0] - 1)), 5) if one.wafs else 0.0 for one in drives]
        set_leaf(document, begin.OVERHEAD, shares[0], {"fitted": True, "source": self._source(reference)})
        for member, share in zip(document["ensemble"], shares[1:], strict=True):
            member["settings"][begin.OVERHEAD] = share
        return document.as_string()

    def _predictions(self, profile: str, found: Calibration) -> list[Prediction]:
        """All probes, by the profile and its ensemble."""
        ensemble = [member["settings"] for member in tomllib.loads(profile)["ensemble"]]
        plain = [{path: plain_value(path, value) for path, value in one.items()} for one in ensemble]
        measurements = self._folder.measurements
        with self._objective(measurements, profile, found.scale) as objective:
            (best,) = objective.other(seeds=_CHANCE_SEEDS).evaluate([{}])
            members = [one.wafs for one in objective.evaluate(plain) if one.wafs]
        if not best.wafs:
            raise WarpError("the fitted profile cannot run the probes. Check the capacity and the reclaim units in drive.json")
        residual = max(found.widening, begin.MODEL_ERROR)
        columns = zip(measurements, best.variances, zip(best.wafs, *members, strict=True), strict=True)
        return [
            Prediction(one, wafs[0], min(wafs) * (1 - widening), max(wafs) * (1 + widening))
            for one, variance, wafs in columns
            for widening in [math.hypot(residual, _NINE_TENTHS * math.sqrt(variance) / wafs[0])]
        ]

    def _finished(self, profile: str, times: TimesFit | None, found: Calibration, notes: Sequence[str]) -> str:
        """The profile with its times and its notes."""
        document = tomlkit.parse(profile)
        if times is not None and found.settings[begin.COPIES] == "apart":
            document["timing"] = tomlkit.parse(times.table)["timing"]
        drive = self._folder.drive
        text = f"{drive.model}, firmware {drive.firmware or 'unknown'}, serial number {drive.serial_hash or 'unknown'}.\n"
        text += "The measurements determine the settings as follows.\n"
        text += "".join(f"- {knob.sentence}\n" for knob in found.knobs)
        text += "".join(f"- {note}\n" for note in notes if note not in [f"{knob.sentence}." for knob in found.knobs])
        document["notes"] = tomlkit.string("\n" + text, multiline=True)
        return document.as_string()
