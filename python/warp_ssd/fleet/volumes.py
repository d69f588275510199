"""Volumes of a fleet: measured ones from a folder of block traces, or a population with published distributions.

A volume has live data, a rate of host writes, and a workload that says which of its blocks the host overwrites. Workloads are
tables with a `kind`, as in an experiment. Volumes grow exponentially, in data and in writes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .._engine import Experiment, WarpError
from ..store import Store
from ..sweep import run_jobs
from ..workers import Job, make_workers
from .drives import SCALE_MAX
from .limits import BYTES_PER_DAY_MAX, COUNT_MAX, FOOTPRINT_BYTES_MAX, GROWTH_PER_YEAR, number, whole

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Numbers = NDArray[np.float64]

UNIT_BYTES = 4096
"""Unit of the published working sets, of traces and of all profiles' mapping."""

PROBABILITIES = (0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99)
"""Probabilities of the quantiles below."""

WORKING_SETS_GIB = {
    "alibaba": (0.0111, 0.174, 0.2502, 0.6471, 2.023, 8.1627, 88.593, 126.09, 418.99),
    "tencent": (10.136, 10.336, 10.772, 14.605, 23.349, 45.405, 146.49, 274.57, 1114.3),
    "cloudphysics": (0.321, 0.608, 1.206, 2.453, 5.753, 18.358, 91.211, 172.31, 289.17),
}
"""Quantiles of the written working set of a volume, GiB.

`alibaba` has 1000 volumes over January 2020, and `tencent` 271 selected ones with at least 10 GiB. Both are computed from the lists
of written 4 KiB blocks in fallfish/sepbit (`trace_replay/etc/ali_property.txt`, `tencent_property.txt`), the code of SepBIT
(Wang et al., FAST '22). `cloudphysics` has 106 volumes over one week, from `cloudphysics/block.csv` of
pbhandar2/BlockTraceFeatures.
"""

REWRITES_PER_DAY = (0.2486, 0.3041, 0.3853, 0.7291, 1.5137, 3.8074, 7.8326, 15.685, 27.359)
"""Quantiles of the written bytes of a day in multiples of the written working set, from the same 106 CloudPhysics volumes."""

TOP_FIFTH = (0.274, 0.433, 0.478, 0.581, 0.730, 0.847, 0.900, 0.928, 0.950)
"""Quantiles of the share of writes that hit the most written fifth of the working set, from the same 106 volumes."""

RANK_CORRELATIONS = ((1.0, -0.674, -0.626), (-0.674, 1.0, 0.738), (-0.626, 0.738, 1.0))
"""Spearman's rank correlations of working set, rewrites per day and top fifth in the same 106 volumes."""

_RANGES = (
    ("footprint_bytes", 1.0, FOOTPRINT_BYTES_MAX),
    ("bytes_per_day", 0.0, BYTES_PER_DAY_MAX),
    ("growth_per_year", *GROWTH_PER_YEAR),
)
"""Columns of numbers, with their least and largest value."""


@dataclass(frozen=True)
class Volumes:
    """Volumes as columns.

    Parameters
    ----------
    names
        A name for each volume.
    footprint_bytes
        Live data, one number or one for each volume.
    bytes_per_day
        Host writes.
    workloads
        A workload table, or one for each volume. Each sees a drive of the volume's size.
    growth_per_year
        Yearly growth of data and writes: 0.2 is 20 %.
    """

    names: Sequence[str]
    footprint_bytes: Numbers
    bytes_per_day: Numbers
    workloads: Sequence[Mapping[str, Any]]
    growth_per_year: Numbers = field(default_factory=lambda: np.zeros(1))

    def __post_init__(self) -> None:
        count = len(self.names)
        if count == 0:
            raise WarpError("volumes: there are none. Give at least one volume")
        if len(set(self.names)) < count:
            raise WarpError("volumes: a name occurs twice. Give each volume its own name")
        for name, least, most in _RANGES:
            column = _column(name, getattr(self, name), count)
            bad = np.flatnonzero(~((column >= least) & (column <= most)))
            if len(bad):
                number(f"volume {self.names[bad[0]]}: {name}", float(column[bad[0]]), least, most)
            object.__setattr__(self, name, column)
        workloads = [self.workloads] * count if isinstance(self.workloads, Mapping) else list(self.workloads)
        if len(workloads) != count:
            raise WarpError(f"workloads: {len(workloads)} for {count} volumes. Give one table, or one for each volume")
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "workloads", tuple(workloads))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def lifetime_days(self) -> Numbers:
        """Mean rewrite interval: the days in which the host writes as many bytes as the volume has. Infinite without writes."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.footprint_bytes / self.bytes_per_day)

    def at(self, years: float) -> Volumes:
        """The volumes after some years of growth."""
        growth = (1.0 + self.growth_per_year) ** years
        return replace(self, footprint_bytes=self.footprint_bytes * growth, bytes_per_day=self.bytes_per_day * growth)

    def take(self, indices: ArrayLike) -> Volumes:
        """Some of the volumes."""
        at = np.asarray(indices, dtype=np.intp)
        return Volumes(
            [self.names[index] for index in at],
            self.footprint_bytes[at],
            self.bytes_per_day[at],
            [self.workloads[index] for index in at],
            self.growth_per_year[at],
        )

    def table(self) -> pa.Table:
        """The columns as an Arrow table, without workloads."""
        columns = {name: getattr(self, name) for name in ("footprint_bytes", "bytes_per_day", "lifetime_days", "growth_per_year")}
        return pa.table({"name": pa.array(self.names), **columns})


def _column(name: str, values: ArrayLike, count: int) -> Numbers:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise WarpError(f"{name} has a value that is no number. Give one number, or one for each volume") from None
    if column.size not in (1, count):
        raise WarpError(f"{name}: {column.size} numbers for {count} volumes. Give one number, or one for each volume")
    return np.array(np.broadcast_to(column.reshape(-1), (count,)))


def population(
    count: int,
    *,
    working_sets: str = "alibaba",
    seed: int = 1,
    mean_footprint_bytes: float | None = None,
    footprint_bytes_max: float | None = None,
    data_per_working_set: float = 1.0,
    growth_per_year: float = 0.0,
) -> Volumes:
    """Draws volumes from published distributions.

    Each volume overwrites blocks at random. The skew is the zipf exponent that gives the drawn share of the most written fifth.
    The three quantities are drawn together, with the measured rank correlations (a Gaussian copula).

    Parameters
    ----------
    count
        Number of volumes.
    working_sets
        Source of the written working sets: `alibaba`, `tencent` or `cloudphysics`. All else is CloudPhysics.
    seed
        The same seed gives the same volumes.
    mean_footprint_bytes
        Scales all volumes, so that this is their mean after the cut. Default: the measured sizes.
    footprint_bytes_max
        Largest volume. Larger ones are cut to this size.
    data_per_working_set
        Live data as a multiple of the written working set, because a host never rewrites some of its data. An assumption.
    growth_per_year
        Yearly growth of all volumes.
    """
    from scipy.stats import norm  # type: ignore[import-untyped]

    if not isinstance(working_sets, str) or working_sets not in WORKING_SETS_GIB:
        raise WarpError(f"working_sets = {working_sets!r} is unknown. Give one of {', '.join(WORKING_SETS_GIB)}")
    whole("count", count, 1, COUNT_MAX)
    whole("seed", seed, 0, 2**63 - 1)
    number("data_per_working_set", data_per_working_set, 1.0, 1e6)
    number("growth_per_year", growth_per_year, *GROWTH_PER_YEAR)
    for name, bytes_ in (("mean_footprint_bytes", mean_footprint_bytes), ("footprint_bytes_max", footprint_bytes_max)):
        if bytes_ is not None:
            number(name, bytes_, UNIT_BYTES, FOOTPRINT_BYTES_MAX)
    correlations = 2.0 * np.sin(np.pi * np.asarray(RANK_CORRELATIONS) / 6.0)
    normal = np.random.default_rng(seed).standard_normal((count, 3)) @ np.linalg.cholesky(correlations).T
    at = norm.cdf(normal)
    sets = np.exp(np.interp(at[:, 0], PROBABILITIES, np.log(WORKING_SETS_GIB[working_sets]))) * 2**30
    rewrites = np.exp(np.interp(at[:, 1], PROBABILITIES, np.log(REWRITES_PER_DAY)))
    top = np.interp(at[:, 2], PROBABILITIES, TOP_FIFTH)
    footprint = sets * data_per_working_set
    most = FOOTPRINT_BYTES_MAX if footprint_bytes_max is None else footprint_bytes_max
    footprint = _scaled(footprint, mean_footprint_bytes, most)
    # The most written fifth of a continuous zipf distribution gets 0.2^(1 - exponent) of the writes.
    exponents = 1.0 - np.log(top) / np.log(0.2)
    hot = {} if data_per_working_set == 1.0 else {"hot_blocks_percent": 100.0 / data_per_working_set, "hot_writes_percent": 100.0}
    return Volumes(
        [f"v{index}" for index in range(count)],
        footprint,
        footprint / data_per_working_set * rewrites,
        [{"kind": "random_writes", "zipf_exponent": round(float(max(exponent, 0.0)), 2), **hot} for exponent in exponents],
        np.full(count, growth_per_year),
    )


def _scaled(sizes: Numbers, mean: float | None, most: float) -> Numbers:
    """Sizes with an upper limit and a mean, if one is given."""
    if mean is None:
        return np.asarray(np.clip(sizes, UNIT_BYTES, most))
    if not UNIT_BYTES < mean < most:
        raise WarpError(f"mean_footprint_bytes = {mean:g} is out of range. Give more than {UNIT_BYTES} and less than {most:g}")
    low, high = 0.0, mean / sizes.min()
    for _ in range(100):  # halves the range until no bit changes
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(sizes * middle, UNIT_BYTES, most).mean() < mean else (low, middle)
    return np.asarray(np.clip(sizes * high, UNIT_BYTES, most))


def from_folder(
    folder: str | os.PathLike[str],
    *,
    pattern: str = "*",
    trace: Mapping[str, Any] | None = None,
    growth_per_year: float = 0.0,
    sample: int = 16,
    engine: str = "local",
    workers: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Volumes:
    """Reads a folder of block traces, with a volume for each file or folder in it.

    A first pass over each trace measures its touched units, written bytes and duration. In the fleet, each volume then repeats its
    trace.

    Parameters
    ----------
    folder
        The folder.
    pattern
        Names of the entries that are volumes.
    trace
        More settings of the kind `trace`, such as `format`.
    growth_per_year
        Yearly growth of all volumes. A larger volume has more data that its trace never touches.
    sample
        The first pass reads one of this many units of the address space.
    engine, workers, store, progress
        As in `simulate`, for the first pass.
    """
    import tempfile

    if not isinstance(pattern, str) or not isinstance(trace, Mapping | None):
        raise WarpError(f"pattern = {pattern!r}, trace = {trace!r}. Give a text such as *.csv, and a table of settings")
    whole("sample", sample, 1, SCALE_MAX)
    number("growth_per_year", growth_per_year, *GROWTH_PER_YEAR)
    paths = sorted(Path(folder).glob(pattern))
    if not paths:
        raise WarpError(f"{folder} has no entry {pattern}. Give a folder with a trace for each volume")
    tables = []
    for path in paths:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        tables.append({"kind": "trace", **(trace or {}), "files": [str(file.resolve()) for file in files]})
    points = [_trace_point(table, sample) for table in tables]
    with tempfile.TemporaryDirectory(prefix="warp-fleet-") as scratch:
        results, pool = Store(store if store is not None else scratch), make_workers(engine, workers, None)
        try:
            run_jobs((Job(point.hash, point) for point in points), results, pool, retry_failed=False, progress=progress)
        finally:
            pool.close()
        rows = [results.cell(point.hash).to_pylist()[0] for point in points]
    for path, row in zip(paths, rows, strict=True):
        if row["status"] != "done":
            raise WarpError(f"volume {path.name}: {row['error']}")
        if not row["trace.seconds"] > 0.0:
            raise WarpError(f"volume {path.name}: its trace has no duration. Give a trace with times")
    return Volumes(
        [path.name for path in paths],
        np.array([max(row["trace.touched_units"], 1.0) * UNIT_BYTES * row["scale_denominator"] for row in rows]),
        np.array([row["trace.bytes_written"] * row["scale_denominator"] / row["trace.seconds"] * 86400.0 for row in rows]),
        tables,
        np.full(len(paths), growth_per_year),
    )


def _trace_point(table: Mapping[str, Any], sample: int) -> Any:
    experiment = Experiment({"title": "trace", "devices": ["warp_default"], "workload": table, "run": {"timed": False}})
    # The pass only counts, so the drive is large enough for every volume. Its untouched memory costs nothing.
    return experiment.points(scale=sample, capacity_bytes="4TB")[0]
