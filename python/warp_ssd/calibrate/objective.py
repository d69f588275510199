"""The objective: how far a drive with certain knobs is from what was measured.

    settings of the knobs -> points of all measurements -> store and workers of a sweep -> WAFs -> loss

Every evaluation is in the store, so a calibration that was killed, or is repeated, finds what it had.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance
from typing import Any

from .._engine import Experiment, WarpError
from ..grid import Row, rows
from ..store import Store
from ..sweep import run_jobs
from ..workers import Job, Workers
from .knobs import Knob, did_you_mean
from .measurement import Measurement
from .nuisances import METRIC, Nuisance

Settings = Mapping[str, object]
"""A value for each knob, by path; nuisances are among them."""

LOSSES = ("squared", "absolute")

_UNKNOWN = re.compile(r"unknown (?:field|variant) `(?P<name>[^`]*)`|'(?P<path>[^']*)' cannot be varied")
"""What the engine says of a name that it does not know."""


@dataclass(frozen=True)
class Evaluation:
    """What settings come to.

    Attributes
    ----------
    wafs
        For each measurement, the mean over the seeds; empty if the engine refuses the settings, or a run failed.
    variances
        For each measurement, the variance between the seeds; 0 with one seed.
    loss
        `squared`: sum of ((model - measured) / sigma)^2. `absolute`: the same with 2 sqrt(2) |model - measured| / sigma, which an
        outlier rules less. Both are twice a negative log likelihood. Infinite without `wafs`.
    error
        Why there are no `wafs`.
    """

    settings: Settings
    wafs: tuple[float, ...]
    variances: tuple[float, ...]
    loss: float
    error: str | None = None


class Objective:
    """Evaluates settings at one scale.

    Parameters
    ----------
    device
        Path of the profile that the settings change.
    scale
        Of the twins.
    noise
        Standard deviation of measurements that have none, as a share of them.
    loss
        One of `LOSSES`.
    nuisances
        Those of the settings that are unknowns beside the drive.

    Attributes
    ----------
    sigmas
        Standard deviation of each measurement from the model's mean over the seeds: the measurement's, and after `learn_noise` the
        model's own.
    seen
        Everything evaluated so far.
    """

    def __init__(
        self,
        measurements: Sequence[Measurement],
        device: str,
        *,
        scale: str,
        seeds: Sequence[int],
        noise: float,
        loss: str,
        store: Store,
        workers: Workers,
        nuisances: Sequence[Nuisance] = (),
    ) -> None:
        if loss not in LOSSES:
            raise WarpError(f"loss = {loss!r}: must be one of {', '.join(LOSSES)}")
        self.measurements = list(measurements)
        self.measured_sigmas = [one.sigma if one.sigma is not None else noise * one.waf for one in measurements]
        self.sigmas = list(self.measured_sigmas)
        self.scale = scale
        self.seen: dict[str, Evaluation] = {}
        self._device = device
        self._seeds = list(seeds)
        self._loss = loss
        self._store = store
        self._workers = workers
        self._experiments: dict[tuple[object, ...], Experiment] = {}
        # By hash of the point and column; objectives that were made of this one share it.
        self._known: dict[tuple[str, str], float | str | None] = {}
        self._beside = {one.path for one in nuisances}
        self._about = self._about_each(nuisances)

    @property
    def expected_loss(self) -> float:
        """What noise alone comes to, on average."""
        return (1.0 if self._loss == "squared" else 2.0) * len(self.measurements)

    @property
    def nuisances(self) -> set[str]:
        """Paths of those that are about any of the measurements."""
        return {nuisance.path for about in self._about for nuisance in about}

    def other(self, *, scale: str | None = None, seeds: Sequence[int] | None = None) -> Objective:
        """The same on other twins, or with other seeds; nothing seen yet."""
        other = object.__new__(Objective)
        other.__dict__.update(self.__dict__, scale=scale or self.scale, seen={})
        if seeds is not None:
            other._seeds = list(seeds)
        return other

    def subset(self, indices: Sequence[int]) -> Objective:
        """Some of the measurements; what was seen of all of them is seen of these."""
        other = object.__new__(Objective)
        other.__dict__.update(self.__dict__)
        for name in ("measurements", "measured_sigmas", "sigmas", "_about"):
            setattr(other, name, _picked(getattr(self, name), indices))
        other.seen = {}
        for key, one in self.seen.items():
            wafs, variances = _picked(one.wafs, indices), _picked(one.variances, indices)
            loss = other.loss_of(wafs) if one.wafs else one.loss
            other.seen[key] = replace(one, wafs=tuple(wafs), variances=tuple(variances), loss=loss)
        return other

    def learn_noise(self) -> None:
        """Adds what the model varies between seeds to the noise of the measurements, as what was evaluated so far shows it.

        Otherwise settings would be preferred, and others excluded, for differences that are those of seeds. With one seed nothing is
        known of it, and nothing added.
        """
        columns = zip(*(one.variances for one in self.seen.values() if one.wafs), strict=True)
        of_means = [fmean(column) / len(self._seeds) for column in columns]
        if of_means:
            self.sigmas = [
                math.sqrt(sigma**2 + of_mean) for sigma, of_mean in zip(self.measured_sigmas, of_means, strict=True)
            ]
        self.seen = {
            key: replace(one, loss=self.loss_of(one.wafs)) if one.wafs else one for key, one in self.seen.items()
        }

    def check_names(self, knobs: Sequence[Knob]) -> None:
        """Refuses knobs of the drive that no profile has, and names among their values that the engine does not know.

        A drive that cannot be is no mistake of this kind: other knobs may make it possible.

        Raises
        ------
        WarpError
            A name is not known: the engine's sentence, with the nearest one.
        """
        for knob in (knob for knob in knobs if not knob.nuisance):
            for value in knob.choices or (knob.low,):
                error = self._points({knob.path: value})
                if not isinstance(error, str):
                    continue
                found = _UNKNOWN.search(error)
                if found is not None:
                    near = did_you_mean(found["name"] or "", re.findall(r"`([^`]+)`", error[found.end() :]))
                    raise WarpError(f"knob {knob.path}{near}: {error}")

    def evaluate(self, candidates: Sequence[Settings]) -> list[Evaluation]:
        """Evaluates settings, side by side."""
        fresh = {_key(one): one for one in candidates if _key(one) not in self.seen}
        found = {key: self._points(settings) for key, settings in fresh.items()}
        jobs = {
            row.point.hash: Job(row.point.hash, row.point)
            for points in found.values()
            for row in _flat(points)
            if row.point is not None
        }
        known = {key for key, _ in self._known}
        wanted = [job for key, job in jobs.items() if key not in known]
        run_jobs(wanted, self._store, self._workers, retry_failed=False, progress=False)
        for key, settings in fresh.items():
            self.seen[key] = self._evaluation(settings, found[key])
        return [self.seen[_key(one)] for one in candidates]

    def loss_of(self, wafs: Sequence[float]) -> float:
        """The loss of these model WAFs."""
        shares = [(waf - one.waf) / sigma for waf, one, sigma in zip(wafs, self.measurements, self.sigmas, strict=True)]
        if self._loss == "squared":
            return sum(share**2 for share in shares)
        return sum(2 * math.sqrt(2) * abs(share) for share in shares)

    def _points(self, settings: Settings) -> list[list[Row]] | str:
        """The points of each measurement, or why there are none."""
        try:
            return [self._points_of(index, settings) for index in range(len(self.measurements))]
        except WarpError as error:
            return str(error)

    def _points_of(self, index: int, settings: Settings) -> list[Row]:
        one = self.measurements[index]
        given = {path: value for path, value in settings.items() if path not in self._beside}
        for nuisance in self._about[index]:
            value = settings.get(nuisance.path)
            if nuisance.key != METRIC and value is not None:
                given[nuisance.key] = value
        return self._rows(one, given | dict(one.at))

    def metrics(self, settings: Settings) -> list[str]:
        """The column of `cells` that each measurement is compared with."""
        return [self._metric(index, settings) for index in range(len(self.measurements))]

    def _metric(self, index: int, settings: Settings) -> str:
        readings = [settings.get(one.path) for one in self._about[index] if one.key == METRIC]
        return next(
            (str(reading) for reading in reversed(readings) if reading is not None), self.measurements[index].metric
        )

    def _about_each(self, nuisances: Sequence[Nuisance]) -> list[list[Nuisance]]:
        """For each measurement the nuisances that are about it."""
        if not nuisances:
            return [[] for _ in self.measurements]
        workloads = [
            next(row.point for row in self._rows(one, one.at) if row.point).workload for one in self.measurements
        ]
        pairs = list(zip((one.subject for one in self.measurements), workloads, strict=True))
        for nuisance in nuisances:
            if not any(nuisance.is_about(*pair) for pair in pairs):
                known = dict.fromkeys([*(pair[0] for pair in pairs), *(f"workload:{pair[1]}" for pair in pairs)])
                raise WarpError(
                    f"nuisance {nuisance.path}: nothing that was measured is of it; there are {', '.join(known)}"
                )
        return [[nuisance for nuisance in nuisances if nuisance.is_about(*pair)] for pair in pairs]

    def _rows(self, one: Measurement, at: Mapping[str, object]) -> list[Row]:
        key = (one.experiment, one.workload, one.write_capacities, one.prefill_capacities)
        if key not in self._experiments:
            self._experiments[key] = one.load(self._device)
        common = {"devices": [self._device], "scale": self.scale, "seeds": self._seeds}
        return rows(self._experiments[key], [at], **common)

    def _evaluation(self, settings: Settings, points: list[list[Row]] | str) -> Evaluation:
        if isinstance(points, str):
            return Evaluation(settings, (), (), math.inf, points)
        wafs, variances = [], []
        for index, (one, found) in enumerate(zip(self.measurements, points, strict=True)):
            metric = self._metric(index, settings)
            by_seed: dict[int, list[float]] = {}
            for point in (row.point for row in found if row.point is not None):
                value = self._read(point.hash, metric)
                if isinstance(value, str):
                    return Evaluation(settings, (), (), math.inf, value)
                if value is None:
                    raise WarpError(f"measurement {one.name}: its runs do not measure {metric!r}")
                by_seed.setdefault(point.seed, []).append(value)
            of_seeds = [fmean(values) for values in by_seed.values()]
            wafs.append(fmean(of_seeds))
            variances.append(variance(of_seeds) if len(of_seeds) > 1 else 0.0)
        return Evaluation(settings, tuple(wafs), tuple(variances), self.loss_of(wafs))

    def _read(self, key: str, metric: str) -> float | str | None:
        """What a point measured; the sentence with which it failed; nothing if it does not measure that."""
        if (key, metric) not in self._known:
            (cell,) = self._store.cell(key, ("status", "error", metric)).to_pylist()
            self._known[key, metric] = cell.get(metric) if cell["status"] == "done" else cell["error"]
        return self._known[key, metric]


def _picked(values: Sequence[Any], indices: Sequence[int]) -> list[Any]:
    return [values[index] for index in indices] if values else []


def _flat(points: list[list[Row]] | str) -> list[Row]:
    return [] if isinstance(points, str) else [row for found in points for row in found]


def _key(settings: Settings) -> str:
    return repr(sorted(settings.items()))
