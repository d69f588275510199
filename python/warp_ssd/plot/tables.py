"""Tables for plots: results of any origin as Arrow, grouped, in multiples of the capacity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._engine import WarpError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ArrowStream(Protocol):
    """A table of any library that speaks Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Source = ArrowStream | Any
"""A result, or one of its tables."""


def table_of(source: Source, method: str) -> pa.Table:
    """A table as it is, or the table that this method of a result returns."""
    found = getattr(source, method, None)
    if found is None and method == "points":
        found = getattr(source, "cells", None)
    table = pa.table(found() if callable(found) else source)
    # Polars uses a text type that some functions of Arrow do not support.
    plain = [field.with_type(pa.string()) if field.type == pa.string_view() else field for field in table.schema]
    return table.cast(pa.schema(plain))


def groups(table: pa.Table, by: str | Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """The rows for each value of columns, in the order of first occurrence."""
    names = [by] if isinstance(by, str) else list(by)
    for name in names:
        if name not in table.column_names:
            raise WarpError(f"there is no column {name!r}. Use one of {', '.join(table.column_names)}")
    columns = [table[name].to_pylist() for name in names]
    places: dict[tuple[object, ...], list[int]] = {}
    for place, values in enumerate(zip(*columns, strict=True)):
        places.setdefault(values, []).append(place)
    for values, found in places.items():
        yield ", ".join(label_of(value) for value in values if value not in (None, "")), table.take(found)


def label_of(value: object) -> str:
    """Label of a value in a plot: words for names of settings, else the value as it is."""
    if isinstance(value, float):
        return f"{value:g}"
    return value.replace("_", " ") if isinstance(value, str) and value.endswith("_isolated") else str(value)


def words(name: str) -> str:
    return name.rsplit(".", 1)[-1].replace("over_provisioning", "over-provisioning").replace("_", " ")


def numbers(table: pa.Table, column: str) -> NDArray[np.float64]:
    return np.asarray(table[column].to_numpy(), dtype=np.float64)


def written_capacities(table: pa.Table) -> NDArray[np.float64]:
    return numbers(table, "host_bytes") / numbers(table, "capacity_bytes")


def recent_waf(run: pa.Table, window: float | None) -> NDArray[np.float64]:
    host, media = numbers(run, "host_bytes"), numbers(run, "media_bytes")
    if window is None:
        return np.asarray(media / host)
    # The last sample at least one window back. Before the first sample, the host had written no bytes.
    back = np.searchsorted(host, host - window * numbers(run, "capacity_bytes"), side="right")
    host_then, media_then = (np.concatenate([[0.0], values])[back] for values in (host, media))
    return np.asarray((media - media_then) / (host - host_then))


def one_owner(samples: pa.Table) -> pa.Table:
    """One row per sample, that of the first owner. Use it for columns that are the same for all owners."""
    return samples.filter(pc.equal(samples["owner"], samples["owner"][0])) if samples.num_rows else samples


def first_run(samples: pa.Table) -> pa.Table:
    """The samples up to the point at which written bytes fall back, because the next run begins there."""
    falls = np.flatnonzero(np.diff(numbers(samples, "host_bytes")) < 0)
    return samples.slice(0, int(falls[0]) + 1) if len(falls) else samples


def last_by_owner(samples: pa.Table, column: str) -> dict[str, float]:
    """A counter of each owner at the end of a run, in multiples of the capacity, as the mean over seeds."""
    found: dict[str, list[float]] = {}
    for _, run in groups(samples, ("owner", "seed")):
        share = numbers(run, column) / numbers(run, "capacity_bytes")
        found.setdefault(run["owner"][0].as_py(), []).append(float(share[-1]))
    return {owner: float(np.mean(values)) for owner, values in found.items()}


def rising(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    order = np.argsort(x, kind="stable")
    return x[order], y[order]
