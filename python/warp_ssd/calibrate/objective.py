"""The objective: the distance between the measurements and a drive with certain knobs.

    settings of the knobs -> points of all measurements -> store and workers of a sweep -> WAFs -> loss

The store keeps every evaluation, so a killed or repeated calibration finds its earlier ones.
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
"""A value for each knob, by path, including nuisances."""

LOSSES = ("squared", "absolute")

_UNKNOWN = re.compile(r"unknown (?:field|variant) `(?P<name>[^`]*)`|'(?P<path>[^']*)' cannot be varied")
"""Pattern of the engine's message about an unknown name."""


@dataclass(frozen=True)
class Evaluation:
    """Evaluation of one combination of settings.

    Attributes
    ----------
    wafs
        For each measurement, the mean over the seeds. Empty if the engine rejects the settings, or a run failed.
    variances
        For each measurement, the variance between the seeds, or 0 with one seed.
    loss
        `squared` is the sum of ((model - measured) / sigma)^2. `absolute` uses 2 sqrt(2) |model - measured| / sigma, which gives
        an outlier less weight. Both are twice a negative log likelihood. Infinite without `wafs`.
    error
        The reason for missing `wafs`.
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
        Scale of the models.
    noise
        Standard deviation of measurements without one, as a share of the measurement.
    loss
        One of `LOSSES`.
    nuisances
        Unknowns beside the drive among the settings.

    Attributes
    ----------
    sigmas
        Standard deviation of each measurement from the model's mean over the seeds. It includes that of the measurement, and
        after `learn_noise` that of the model.
    seen
        All evaluations so far.
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
            raise WarpError(f"loss = {loss!r} is unknown. Give one of {', '.join(LOSSES)}")
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
        # By hash of the point and column. Objectives derived from this one share it.
        self._known: dict[tuple[str, str], float | str | None] = {}
        self._beside = {one.path for one in nuisances}
        self._about = self._about_each(nuisances)

    @property
    def expected_loss(self) -> float:
        """Mean loss from noise alone."""
        return (1.0 if self._loss == "squared" else 2.0) * len(self.measurements)

    @property
    def nuisances(self) -> set[str]:
        """Paths of the nuisances that concern any of the measurements."""
        return {nuisance.path for about in self._about for nuisance in about}

    @property
    def parts(self) -> list[tuple[set[str], list[int]]]:
        """Measurements that share nuisances: the paths of the nuisances and the indices of the measurements. No nuisance is in
        two parts, so the values of one part do not change the model's WAFs of another.
        """
        found: list[tuple[set[str], list[int]]] = []
        for index, about in enumerate(self._about):
            paths, indices = {nuisance.path for nuisance in about}, [index]
            for joined in [part for part in found if part[0] & paths]:
                found.remove(joined)
                paths, indices = paths | joined[0], joined[1] + indices
            if paths:
                found.append((paths, indices))
        return found

    def other(self, *, scale: str | None = None, seeds: Sequence[int] | None = None) -> Objective:
        """The same at another scale, or with other seeds, without evaluations."""
        other = object.__new__(Objective)
        other.__dict__.update(self.__dict__, scale=scale or self.scale, seen={})
        if seeds is not None:
            other._seeds = list(seeds)
        return other

    def subset(self, indices: Sequence[int]) -> Objective:
        """Some of the measurements, with their part of the evaluations."""
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
        """Adds the model's variation between seeds to the noise of the measurements, estimated from the evaluations so far.

        Without this, differences between seeds would decide which settings are preferred or excluded. With one seed, the
        variation is unknown, so this method adds no noise.
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
        """Rejects knobs of the drive that no profile has, and names among their values that the engine does not know.

        An impossible drive is not a mistake of this kind, because other knobs may make it possible.

        Raises
        ------
        WarpError
            A name is unknown. The text is the engine's message, with the nearest name.
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
        """Evaluates settings in parallel."""
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

    def _points(self, settings: Settings) -> list[list[list[Row]]] | str:
        """The points of each measurement, and of the one to which it is relative, or the reason why they cannot exist."""
        try:
            return [self._points_of(index, settings) for index in range(len(self.measurements))]
        except WarpError as error:
            return str(error)

    def _points_of(self, index: int, settings: Settings) -> list[list[Row]]:
        one = self.measurements[index]
        given = {path: value for path, value in settings.items() if path not in self._beside}
        for nuisance in self._about[index]:
            value = settings.get(nuisance.path)
            if nuisance.key != METRIC and value is not None:
                given[nuisance.key] = value
        both = [one] if one.relative_to is None else [one, one.relative_to]
        return [self._rows(each, given | dict(each.at)) for each in both]

    def metrics(self, settings: Settings) -> list[str]:
        """The column of `cells` to which each measurement is compared."""
        return [self._metric(index, settings) for index in range(len(self.measurements))]

    def _metric(self, index: int, settings: Settings) -> str:
        readings = [settings.get(one.path) for one in self._about[index] if one.key == METRIC]
        return next(
            (str(reading) for reading in reversed(readings) if reading is not None), self.measurements[index].metric
        )

    def _about_each(self, nuisances: Sequence[Nuisance]) -> list[list[Nuisance]]:
        """The nuisances that concern each measurement."""
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
                    f"nuisance {nuisance.path} concerns no measurement. Give one of {', '.join(known)}"
                )
        return [[nuisance for nuisance in nuisances if nuisance.is_about(*pair)] for pair in pairs]

    def _rows(self, one: Measurement, at: Mapping[str, object]) -> list[Row]:
        key = (one.experiment, one.workload, one.drive_writes, one.precondition_drive_writes, one.tail_drive_writes)
        if key not in self._experiments:
            self._experiments[key] = one.load(self._device)
        common = {"devices": [self._device], "scale": self.scale, "seeds": self._seeds}
        return rows(self._experiments[key], [at], **common)

    def _evaluation(self, settings: Settings, points: list[list[list[Row]]] | str) -> Evaluation:
        if isinstance(points, str):
            return Evaluation(settings, (), (), math.inf, points)
        wafs, variances = [], []
        for index, (one, found) in enumerate(zip(self.measurements, points, strict=True)):
            metrics = [self._metric(index, settings), one.relative_to.metric if one.relative_to else ""]
            read = [self._by_seed(one, rows, metric) for rows, metric in zip(found, metrics)]
            error = next((values for values in read if isinstance(values, str)), None)
            if error is not None:
                return Evaluation(settings, (), (), math.inf, error)
            numerators, *others = (values for values in read if not isinstance(values, str))
            of_seeds = [
                fmean(values) / fmean(others[0][seed]) if others else fmean(values)
                for seed, values in numerators.items()
            ]
            wafs.append(fmean(of_seeds))
            variances.append(variance(of_seeds) if len(of_seeds) > 1 else 0.0)
        return Evaluation(settings, tuple(wafs), tuple(variances), self.loss_of(wafs))

    def _by_seed(self, one: Measurement, rows: Sequence[Row], metric: str) -> dict[int, list[float]] | str:
        """The values of a metric by seed, or the error of a point that failed."""
        by_seed: dict[int, list[float]] = {}
        for point in (row.point for row in rows if row.point is not None):
            value = self._read(point.hash, metric)
            if isinstance(value, str):
                return value
            if value is None:
                raise WarpError(f"the runs of measurement {one.name} do not measure {metric!r}")
            by_seed.setdefault(point.seed, []).append(value)
        return by_seed

    def _read(self, key: str, metric: str) -> float | str | None:
        """A point's value of a metric, its error message if it failed, or `None` if the point does not measure this metric."""
        if (key, metric) not in self._known:
            (cell,) = self._store.cell(key, ("status", "error", metric)).to_pylist()
            self._known[key, metric] = cell.get(metric) if cell["status"] == "done" else cell["error"]
        return self._known[key, metric]


def _picked(values: Sequence[Any], indices: Sequence[int]) -> list[Any]:
    return [values[index] for index in indices] if values else []


def _flat(points: list[list[list[Row]]] | str) -> list[Row]:
    return [] if isinstance(points, str) else [row for found in points for part in found for row in part]


def _key(settings: Settings) -> str:
    return repr(sorted(settings.items()))
