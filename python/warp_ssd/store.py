"""The store: results of points, each in one file under the hash of its complete input.

    PointResult -> done() | failure() -> bytes of a Parquet file with one row -> Store.put -> points/<hash>.parquet
    points/<hash>.parquet -> Store.cell, Store.series -> pyarrow tables;  Store.sql -> DuckDB on all of them

A row has the columns of `RECORD` and the point's counters and measures (those of `cells()`). Tables with many rows (owners, time
series, GC log, jobs, latencies, placement feedback) are lists of rows. A row has no names of devices, variants or axes, because
the same input may be a point of several experiments. A sweep joins its own names to the rows that it reads.

The engine writes each file atomically (`crates/analysis/src/store.rs`). Any number of processes may therefore share a store, and
any of them may be killed. This module deletes no file. A deleted folder costs time, not correctness. Runs of the `warp` command
are in a store too: `warp_ssd.runs`, `warp_ssd.compare`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ._engine import StoreFolder, WarpError

if TYPE_CHECKING:
    from ._engine import Point, PointResult

SERIES = ("owners", "samples", "gc_log", "latencies", "jobs", "readings", "moves", "collections")
"""Columns that hold a table each, as a list of its rows. Each name is a method of `PointResult`."""

RECORD = pa.schema(
    [
        ("hash", pa.string()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("input", pa.string()),
        ("run_seconds", pa.float64()),
        ("policy_seconds", pa.float64()),
        ("policy_calls", pa.int64()),
    ]
)
"""First columns of every row. `status` is `done` or `failed`, `error` a sentence, and `input` the complete input as JSON."""


def done(key: str, point: Point, result: PointResult, run_seconds: float, series: Iterable[str]) -> bytes:
    """The file of a finished point.

    Parameters
    ----------
    key
        Name in the store: the hash of the point's input, and of its policies.
    run_seconds
        Duration of the run.
    series
        Names among `SERIES` to keep. The file has no columns for the other series.
    """
    cell = _without_names(result.cells().to_pyarrow(), point)
    columns = dict(zip(cell.column_names, cell.columns, strict=True))
    for name in series:
        columns[name] = _as_one_row(_without_names(getattr(result, name)().to_pyarrow(), point))
    record = _record(key, point, "done", None, run_seconds, result.policy_seconds, result.policy_calls)
    return _to_bytes(_beside(record, columns))


def failure(key: str, point: Point, error: str) -> bytes:
    """The file of a failed point, with the error message."""
    return _to_bytes(_record(key, point, "failed", error, 0.0, 0.0, 0))


class Store:
    """A folder of results.

    Parameters
    ----------
    path
        The folder. It is created if it does not exist.

    Raises
    ------
    WarpError
        The folder holds a store of another version.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._folder = StoreFolder(self.path)

    def put(self, key: str, content: bytes) -> None:
        """Stores the file of a point (see `done`, `failure`) and replaces an existing one."""
        self._folder.put_point(key, content)

    def status(self, key: str, series: Iterable[str] = ()) -> str | None:
        """`"done"` or `"failed"`, or `None` if the point is not stored, or lacks one of these `SERIES`."""
        if not self._folder.point(key).exists():
            return None
        with self._open(key) as file:
            status: str = file.read(["status"], use_threads=False).column("status")[0].as_py()
            lacks = status == "done" and not set(series).issubset(file.schema_arrow.names)
        return None if lacks else status

    def cell(self, key: str, names: Iterable[str] | None = None) -> pa.Table:
        """A point's row without its series: the columns of `RECORD`, counters and measures, or a selection of these columns."""
        with self._open(key) as file:
            known = [name for name in file.schema_arrow.names if name not in SERIES]
            wanted = known if names is None else [name for name in names if name in known]
            return file.read(wanted, use_threads=False)

    def series(self, key: str, name: str) -> pa.Table | None:
        """One of a point's `SERIES`, or `None` if the point failed or did not keep it."""
        with self._open(key) as file:
            if name not in file.schema_arrow.names:
                return None
            column = file.read([name]).column(name).combine_chunks()
        return pa.Table.from_struct_array(column.flatten())

    def sql(self, query: str) -> pa.Table:
        """Answers a query with DuckDB. The table `points` has all rows of the store.

        A series is a list: `select hash, unnest(samples, recursive := true) from points`.

        Returns
        -------
        pyarrow.Table
            The answer. It has all columns of all points, null if a point lacks one.
        """
        files = str(self._folder.point("*"))
        return query_tables(query, {}, views={"points": f"read_parquet('{_quoted(files)}', union_by_name = true)"})

    def _open(self, key: str) -> Any:
        return pq.ParquetFile(self._folder.point(key))


def query_tables(query: str, tables: Mapping[str, pa.Table], views: Mapping[str, str] | None = None) -> pa.Table:
    """Answers a query with DuckDB over tables, and over views given by their selections."""
    import duckdb

    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        for name, source in (views or {}).items():
            connection.execute(f'create view "{name}" as select * from {source}')
        try:
            return connection.sql(query).to_arrow_table()
        except duckdb.Error as error:
            raise WarpError(f"SQL: {error}") from error


def concatenate(tables: Iterable[pa.Table]) -> pa.Table:
    """Tables one below the other. A missing column is null. Without tables, the result is an empty table."""
    parts = list(tables)
    return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})


def _without_names(table: pa.Table, point: Point) -> pa.Table:
    """Leaves out the columns that name a point, and keeps its measurements."""
    return table.drop_columns([name for name in (*point.key, "seed") if name in table.column_names])


def _as_one_row(table: pa.Table) -> pa.Array:
    """A table as an array of one list of rows."""
    rows = pa.concat_arrays([batch.to_struct_array() for batch in table.to_batches()] or [_no_rows(table.schema)])
    return pa.LargeListArray.from_arrays(pa.array([0, len(rows)], pa.int64()), rows)


def _no_rows(schema: pa.Schema) -> pa.StructArray:
    return pa.array([], pa.struct(list(schema)))


def _record(
    key: str, point: Point, status: str, error: str | None, run_seconds: float, policy_seconds: float, policy_calls: int
) -> pa.Table:
    input_text = json.dumps(point.input, sort_keys=True)
    values = (key, status, error, input_text, run_seconds, policy_seconds, policy_calls)
    return pa.table([[value] for value in values], schema=RECORD)


def _beside(record: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    for name, column in columns.items():
        if name in record.column_names:
            raise AssertionError(f"the measure {name} has the name of a column of the store. Rename it")
        record = record.append_column(name, column)
    return record


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _quoted(text: str) -> str:
    return text.replace("'", "''")
