"""Sweeps: an experiment at many points of device and workload settings, on all cores or a cluster.

    experiment + grid | sampler -> rows (grid.py) -> those not in the store -> workers (workers.py) -> store (store.py)
    rows + store -> SweepResult -> tables, SQL

A sweep runs each point at most once. It stores a result under the hash of the complete input before it handles the next one. A
killed sweep therefore continues from its last result, and a repeated sweep only reads. Tables are in the order of the grid,
whatever the order and the place of the runs.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from ._engine import Experiment, frames
from .fingerprint import fingerprint
from .grid import Row, combinations, latin_hypercube, plain_column, random_samples, rows
from .store import RECORD, SERIES, Store, concatenate, query_tables
from .workers import Job, Workers, make_workers

if TYPE_CHECKING:
    from ._engine import PointOptions
    from .policies import PlacementPolicy, VictimPolicy

__all__ = ["SweepResult", "latin_hypercube", "random_samples", "sweep"]

_COSTS = ("run_seconds", "policy_seconds", "policy_calls")


def sweep(
    experiment: Experiment | str | Mapping[str, object],
    grid: Mapping[str, Sequence[object]] | None = None,
    *,
    sampler: Iterable[Mapping[str, object]] | None = None,
    engine: str = "local",
    workers: int | None = None,
    memory_budget_bytes: int | None = None,
    store: str | os.PathLike[str] | None = None,
    retry_failed: bool = False,
    gc_log: bool = False,
    victim_policy: VictimPolicy | None = None,
    placement_policy: PlacementPolicy | None = None,
    progress: bool = True,
    **options: Unpack[PointOptions],
) -> SweepResult:
    """Runs an experiment at every point of a grid or a sampler.

    Parameters
    ----------
    experiment
        A name, the path of an `experiment.toml`, its content as a dict, or an `Experiment`.
    grid
        Values for each varied key, the last key fastest. A key is the dotted path of a device setting
        (`"geometry.over_provisioning"`), `device`, `variant`, an axis of the experiment, `workload:PATH`, `run:scale`,
        `run:drive_writes` or `run:precondition_drive_writes`. `workload` takes a name, a table, or a function that makes requests
        (`warp_ssd.generators`). `change:NAME` sets several keys together (`{"name": ..., "workload:a.size": ...}`). Without a
        grid, all points of the experiment itself run.
    sampler
        Any iterable of dicts with the same keys, such as `latin_hypercube(...)`. It replaces `grid` or applies to each of its
        combinations.
    engine
        `local` uses processes of this machine. `ray` uses a Ray cluster. The results are the same.
    workers
        Number of processes with `engine = "local"`. Default: one for each processor.
    memory_budget_bytes
        Memory for the maps of all points that run at the same time. Default: nine tenths of the available memory. A point that
        needs more on its own fails. With Ray, the budget of a node is its memory.
    store
        Folder of the results. Several sweeps may share it. Default: a folder that is deleted with the result.
    retry_failed
        True to run points again that failed in an earlier sweep. By default the sweep keeps their errors.
    gc_log
        True to keep a row for each garbage collection.
    victim_policy, placement_policy
        Policies in Python for all points. Their code and attributes are part of the hash of a point.
    progress
        True to show a progress bar, on a terminal or in a notebook.
    **options
        Options for all points, as in `Experiment.points`.

    Returns
    -------
    SweepResult
        The result, including failed points. Check its `failed`.

    Raises
    ------
    WarpError
        The grid names an unknown key or value, or no combination of it can run.
    KeyboardInterrupt
        Ctrl-C. Finished points are in the store.
    """
    if not isinstance(experiment, Experiment):
        experiment = Experiment(experiment)
    found = rows(experiment, _coordinates(grid, sampler), **options)
    folder = None if store is not None else tempfile.TemporaryDirectory(prefix="warp-sweep-")
    results = Store(store if store is not None else folder.name)  # type: ignore[union-attr]
    policies = fingerprint(victim_policy, placement_policy)
    series = tuple(name for name in SERIES if gc_log or name != "gc_log")
    jobs = {
        key: Job(key, row.point, series, victim_policy, placement_policy)
        for row in found
        if row.point is not None and (key := store_key(row.point.hash, policies))
    }
    pool = make_workers(engine, workers, memory_budget_bytes)
    try:
        ran = run_jobs(jobs.values(), results, pool, retry_failed=retry_failed, progress=progress)
    finally:
        pool.close()
    return SweepResult(found, results, policies, ran, folder)


def _coordinates(
    grid: Mapping[str, Sequence[object]] | None, sampler: Iterable[Mapping[str, object]] | None
) -> Iterable[Mapping[str, object]]:
    samples = [{}] if sampler is None else [dict(sample) for sample in sampler]
    return [at | sample for at in combinations(grid or {}) for sample in samples]


def store_key(point_hash: str, policies: str) -> str:
    """Name of a result in the store: the hash of the point's input (with a workload in Python) and of the policies."""
    return hashlib.sha256((point_hash + policies).encode()).hexdigest()[: len(point_hash)] if policies else point_hash


def run_jobs(jobs: Iterable[Job], store: Store, workers: Workers, *, retry_failed: bool, progress: bool) -> int:
    """Runs the jobs that the store lacks, stores each result as it arrives, and returns their number."""
    from tqdm import tqdm

    jobs = list(jobs)
    wanted = ("done",) if retry_failed else ("done", "failed")
    missing = [job for job in jobs if store.status(job.key, job.series) not in wanted]
    shown = progress and (sys.stderr.isatty() or "ipykernel" in sys.modules)
    with tqdm(total=len(jobs), initial=len(jobs) - len(missing), unit="point", disable=not shown) as bar:

        def finished(key: str, content: bytes) -> None:
            store.put(key, content)
            bar.update()

        if missing:
            workers.run(missing, finished)
    return len(missing)


class SweepResult:
    """Results of a sweep.

    Tables are `pyarrow.Table`, in the order of the grid. Their first columns name the point. These are the varied keys (a path is
    a column of that name), `device`, `variant`, the axes of the experiment and `seed`. Values of different kinds are JSON.

    Attributes
    ----------
    ran
        Points that ran for this sweep. All others were in the store.
    store
        The store with the results.
    """

    def __init__(
        self,
        found: Sequence[Row],
        store: Store,
        policies: str,
        ran: int,
        folder: tempfile.TemporaryDirectory[str] | None,
    ) -> None:
        self._rows = list(found)
        self._policies = policies
        self._folder = folder
        self.store = store
        self.ran = ran

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{self.summary().splitlines()[0]}>"

    @property
    def failed(self) -> pa.Table:
        """Names and errors of the points that failed or could not be made."""
        table = self.points()
        return table.filter(pa.compute.equal(table["status"], "failed")).select([*self._names(), "error"])

    def summary(self) -> str:
        """Number of points and of failures, then each error with its count and its first point."""
        failed = self.failed
        places: dict[str, list[str]] = {}
        for row in failed.to_pylist():
            error = row.pop("error")
            named = ", ".join(f"{name} {value}" for name, value in row.items() if value not in (None, ""))
            places.setdefault(error, []).append(named)
        lines = [f"sweep of {len(self)} points: {self.ran} run, {failed.num_rows} failed"]
        for error, at in places.items():
            more = f" and {len(at) - 1} more" if len(at) > 1 else ""
            lines.append(f"{at[0]}{more}: {error}")
        return "\n".join(lines)

    def points(self) -> pa.Table:
        """A row for each point: its names, `hash`, `status` (`done`, `failed`), `error`, counters and measures (as in
        `Result.cells`). Counters and measures of a failed point are null.
        """
        shown = ("hash", "status", "error")

        def cell(index: int, key: str | None) -> pa.Table:
            if key is None:
                refused = [[None], ["failed"], [self._rows[index].error]]
                return pa.table(refused, schema=pa.schema([RECORD.field(name) for name in shown]))
            table = self.store.cell(key)
            return table.select([*shown, *(name for name in table.column_names if name not in RECORD.names)])

        return self._named(cell)

    def costs(self) -> pa.Table:
        """Costs of each point: `run_seconds`, including `policy_seconds` in `policy_calls` calls of Python policies. Unlike all
        other tables, it differs from run to run.
        """
        return self._named(lambda _, key: None if key is None else self.store.cell(key).select(list(_COSTS)))

    def owners(self) -> pa.Table:
        """Counters of each reclaim unit handle and of the shared pool of each point."""
        return self._series("owners")

    def samples(self) -> pa.Table:
        """The time series, with a row for each sample and owner of each point."""
        return self._series("samples")

    def gc_log(self) -> pa.Table:
        """A row for each garbage collection of each point. Empty unless the sweep kept it."""
        return self._series("gc_log")

    def latencies(self) -> pa.Table:
        """Latency histograms of timed points. Empty if no point is timed."""
        return self._series("latencies")

    def jobs(self) -> pa.Table:
        """Work and speed of each job of timed points. Empty if no point is timed."""
        return self._series("jobs")

    def readings(self) -> pa.Table:
        """New events at each reading of the event log, by owner, of points with feedback."""
        return self._series("readings")

    def moves(self) -> pa.Table:
        """A row for each move that placement feedback made."""
        return self._series("moves")

    def collections(self) -> pa.Table:
        """Pages copied by each collection, by owner of the data, of points with feedback."""
        return self._series("collections")

    def sql(self, query: str) -> pa.Table:
        """Answers a query with DuckDB. Its tables are `points`, `costs`, `owners`, `samples`, `gc_log`, `latencies`, `jobs`,
        `readings`, `moves` and `collections`.

        Quote columns that are named by a path:
        `select "geometry.over_provisioning", avg(write_amplification) from points group by 1`.
        """
        names = ("points", "costs", *SERIES)
        wanted = [name for name in names if re.search(rf"\b{name}\b", query)]
        return query_tables(query, {name: getattr(self, name)() for name in wanted})

    def to_pandas(self) -> Any:
        """`points` as a `pandas.DataFrame`."""
        frames("pandas")
        return self.points().to_pandas()

    def to_polars(self) -> Any:
        """`points` as a `polars.DataFrame`."""
        return frames("polars").from_arrow(self.points())

    def _series(self, name: str) -> pa.Table:
        return self._named(lambda _, key: None if key is None else self.store.series(key, name))

    def _named(self, table_of: Any) -> pa.Table:
        """Tables of all points below each other, with their names in front."""
        names = self._names()
        parts = []
        for index, row in enumerate(self._rows):
            key = None if row.point is None else store_key(row.point.hash, self._policies)
            table = table_of(index, key)
            if table is None:
                continue
            columns = [pa.repeat(column[index], table.num_rows) for column in names.values()]
            parts.append(pa.table([*columns, *table.columns], names=[*names, *table.column_names]))
        return concatenate(parts)

    def _names(self) -> dict[str, pa.Array]:
        """Columns that name the points: coordinates that are no key columns, key columns, the seed."""
        keys = dict.fromkeys(name for row in self._rows if row.point is not None for name in row.point.key)
        paths = dict.fromkeys(path for row in self._rows for path in row.coordinates if path not in keys)
        columns = {path: pa.array(plain_column([row.coordinates.get(path) for row in self._rows])) for path in paths}
        for name in keys:
            columns[name] = pa.array([_name(row, name) for row in self._rows], pa.string())
        seeds = [None if row.point is None else row.point.seed for row in self._rows]
        return columns | {"seed": pa.array(seeds, pa.uint64())}


def _name(row: Row, name: str) -> str | None:
    if row.point is not None:
        return row.point.key.get(name)
    value = row.coordinates.get(name)
    return None if value is None else str(value)
