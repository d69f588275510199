"""Years of a fleet: wear, replacement and failures of each drive, from the write amplification of its mixes.

A drive wears by the flash bytes that its mix writes. It is replaced when its flash reaches the rated erases on average, at that
moment of the quarter. It also fails at random, with a constant rate. The new drive first receives the live data of the old one, and
continues with the same mix. All seeds are computed side by side, as arrays of seeds and drives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .drives import DriveModel
from .mixes import MixRuns
from .plan import DAYS_PER_QUARTER, Plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Years:
    """What happened to a fleet. Deaths are `[seed, quarter, drive]`, bytes of volumes are `[quarter, volume]`, means of the seeds."""

    worn: NDArray[np.int64]
    failed: NDArray[np.int64]
    life_used: Numbers
    """Share of the rated life of the installed drives at the end, `[seed, drive]`."""
    host_bytes: Numbers
    """Writes of the volumes' hosts."""
    media_bytes: Numbers
    """Flash writes for these, with copies."""
    rebuilt_bytes: Numbers
    """Bytes written to new drives in place of old ones, `[seed, quarter]`."""
    moved_bytes: Numbers
    """First data and moved volumes, `[quarter]`."""
    flash_bytes: Numbers
    """All bytes that flash received, `[seed, quarter]`."""


def live(plan: Plan, models: Sequence[DriveModel], runs: MixRuns, *, annual_failure_rate: float, seeds: Sequence[int]) -> Years:
    """Integrates the plan over its quarters."""
    quarters, drives = plan.epoch_of.shape
    rated = np.array([models[kind].rated_bytes for kind in plan.kinds])
    hazard_per_day = -np.log1p(-annual_failure_rate) / 365.25
    generators = [np.random.default_rng([seed, 4711]) for seed in seeds]
    wafs = np.array([[result.drive[index % len(result.drive)] for result in runs.results] for index in range(len(seeds))])
    mix_of = np.asarray(runs.mix_of, dtype=np.intp)

    wear, retired = np.zeros((len(seeds), drives)), np.zeros(len(seeds))
    worn = np.zeros((len(seeds), quarters, drives), dtype=np.int64)
    failed = np.zeros_like(worn)
    rebuilt, flash = np.zeros((len(seeds), quarters)), np.zeros((len(seeds), quarters))
    host, media = np.zeros((quarters, len(plan.volumes[0]))), np.zeros((quarters, len(plan.volumes[0])))
    for quarter, volumes in enumerate(plan.volumes):
        on = plan.drive_of[quarter]
        data = np.bincount(on, volumes.footprint_bytes, drives).astype(np.float64)
        host_rate = np.bincount(on, volumes.bytes_per_day, drives)
        epochs = plan.epoch_of[quarter]
        is_busy = epochs >= 0
        wear += plan.moved_bytes[quarter]
        for seed, generator in enumerate(generators):
            waf = np.ones(drives)
            waf[is_busy] = wafs[seed, mix_of[epochs[is_busy]]]
            exists = np.arange(drives) < plan.drives[quarter]
            happened = _quarter(wear[seed], rated, host_rate * waf, data, exists, hazard_per_day, generator)
            worn[seed, quarter], failed[seed, quarter] = happened.worn, happened.failed
            retired[seed] += happened.retired_bytes
            rebuilt[seed, quarter] = ((happened.worn + happened.failed) * data).sum()
            flash[seed, quarter] = plan.moved_bytes[quarter].sum() + rebuilt[seed, quarter] + (host_rate * waf).sum() * DAYS_PER_QUARTER
        host[quarter] = volumes.bytes_per_day * DAYS_PER_QUARTER
        media[quarter] = host[quarter] * _volume_wafs(plan, runs, quarter)
    years = Years(worn, failed, wear / rated, host, media, rebuilt, plan.moved_bytes.sum(axis=1), flash)
    expected = sum(volumes.bytes_per_day.sum() for volumes in plan.volumes) * DAYS_PER_QUARTER
    assert np.isclose(host.sum(), expected), "host bytes got lost"
    assert np.allclose(wear.sum(axis=1) + retired, flash.sum(axis=1)), "flash bytes of drives and of causes differ"
    return years


@dataclass(frozen=True)
class _Quarter:
    """Deaths of each drive, and the flash bytes that the dead drives had received."""

    worn: NDArray[np.int64]
    failed: NDArray[np.int64]
    retired_bytes: float


def _quarter(
    wear: Numbers,
    rated: Numbers,
    rate: Numbers,
    data: Numbers,
    exists: NDArray[np.bool_],
    hazard_per_day: float,
    generator: np.random.Generator,
) -> _Quarter:
    """Wears all drives for a quarter. `wear` changes in place."""
    left = np.where(exists, DAYS_PER_QUARTER, 0.0)
    worn, failed, retired = np.zeros(len(wear), dtype=np.int64), np.zeros(len(wear), dtype=np.int64), 0.0
    while np.any(left > 0.0):
        with np.errstate(divide="ignore", invalid="ignore"):
            until_worn = np.where(rate > 0.0, np.maximum(rated - wear, 0.0) / rate, np.inf)
        until_failed = np.full(len(wear), np.inf)
        if hazard_per_day > 0.0:
            # A constant rate has no memory, so a new draw after each event has the same law.
            until_failed = generator.standard_exponential(len(wear)) / hazard_per_day
        step = np.minimum(np.minimum(until_worn, until_failed), left)
        wear += rate * step
        left -= step
        dies = left > 0.0
        worn += dies & (until_worn <= until_failed)
        failed += dies & (until_worn > until_failed)
        retired += float(wear[dies].sum())
        wear[dies] = data[dies]
        assert np.all(wear[dies] < rated[dies]), "a new drive wears out from its first data"
    assert np.all(wear <= np.maximum(rated, data) * (1 + 1e-9)), "an installed drive is beyond its rated life"
    return _Quarter(worn, failed, retired)


def _volume_wafs(plan: Plan, runs: MixRuns, quarter: int) -> Numbers:
    """Write amplification of each volume in a quarter, the mean of the mixes' seeds."""
    wafs = np.ones(len(plan.volumes[quarter]))
    for index in plan.epoch_of[quarter]:
        if index >= 0:
            tenants = runs.results[runs.mix_of[index]].tenants.mean(axis=0)
            wafs[plan.epochs[index].members] = tenants[runs.tenant_of[index]]
    return wafs
