"""Assignments of volumes to drives, and placements of a drive's volumes to its reclaim unit handles.

Both are functions in Python: of the volumes and the room of each drive, or of the volumes on a drive and the number of handles.
They return an index for each volume. These are the ones with a name.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from .._engine import WarpError
from .volumes import Volumes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Indices = NDArray[np.intp]
    Numbers = NDArray[np.float64]

Assignment: TypeAlias = "Callable[[Volumes, NDArray[np.float64]], ArrayLike]"
"""Chooses a drive for each volume, from the volumes and the room of each drive in bytes."""

Placement: TypeAlias = "Callable[[Volumes, int], ArrayLike]"
"""Chooses a handle for each volume of a drive, from these volumes and the number of handles."""


def round_robin(volumes: Volumes, room_bytes: Numbers) -> ArrayLike:
    """The volumes in turn."""
    return np.arange(len(volumes)) % len(room_bytes)


def by_size(volumes: Volumes, room_bytes: Numbers) -> ArrayLike:
    """Equal data: the largest volume first, each to the drive with the least data for its room."""
    return _balanced(volumes.footprint_bytes, room_bytes)


def by_write_rate(volumes: Volumes, room_bytes: Numbers) -> ArrayLike:
    """Equal writes: the busiest volume first, each to the drive with the least writes for its room."""
    return _balanced(volumes.bytes_per_day, room_bytes)


def by_lifetime(volumes: Volumes, room_bytes: Numbers) -> ArrayLike:
    """Volumes of similar lifetimes together: sorted by lifetime, and cut into parts in proportion to the room of the drives."""
    order = np.argsort(volumes.lifetime_days, kind="stable")
    data = volumes.footprint_bytes[order]
    middle = (np.cumsum(data) - data / 2) / data.sum()
    chosen = np.empty(len(volumes), dtype=np.intp)
    chosen[order] = np.searchsorted(np.cumsum(room_bytes)[:-1] / room_bytes.sum(), middle)
    return chosen


def _balanced(weights: Numbers, room_bytes: Numbers) -> Indices:
    loads = [(0.0, drive) for drive in range(len(room_bytes))]
    chosen = np.empty(len(weights), dtype=np.intp)
    for volume in np.argsort(-weights, kind="stable"):
        load, drive = loads[0]
        chosen[volume] = drive
        heapq.heapreplace(loads, (load + weights[volume] / room_bytes[drive], drive))
    return chosen


def handles_by_write_rate(volumes: Volumes, handles: int) -> ArrayLike:
    """Sorted by bytes a day, and divided into groups of equal number."""
    return _groups(volumes.bytes_per_day, handles)


def handles_by_lifetime(volumes: Volumes, handles: int) -> ArrayLike:
    """Sorted by lifetime, and divided into groups of equal number."""
    return _groups(volumes.lifetime_days, handles)


def _groups(values: Numbers, handles: int) -> Indices:
    chosen = np.empty(len(values), dtype=np.intp)
    chosen[np.argsort(values, kind="stable")] = np.arange(len(values)) * min(handles, len(values)) // len(values)
    return chosen


ASSIGNMENTS: Mapping[str, Assignment] = {
    "round_robin": round_robin,
    "by_size": by_size,
    "by_write_rate": by_write_rate,
    "by_lifetime": by_lifetime,
}

PLACEMENTS: Mapping[str, Placement] = {"by_write_rate": handles_by_write_rate, "by_lifetime": handles_by_lifetime}

_Function = TypeVar("_Function")


def named(kind: str, value: str | _Function, known: Mapping[str, _Function]) -> _Function:
    """A function by its name, or the function itself."""
    if callable(value):
        return value
    if not isinstance(value, str) or value not in known:
        raise WarpError(f"{kind} = {value!r} is unknown. Give one of {', '.join(known)}, or a function")
    return known[value]


def indices(kind: str, values: ArrayLike, volumes: int, limit: int, of: str) -> Indices:
    """Checks the answer of an assignment or a placement."""
    found = np.asarray(values)
    if found.shape != (volumes,) or not np.issubdtype(found.dtype, np.integer):
        raise WarpError(f"{kind} returned {found.dtype} of shape {found.shape} for {volumes} volumes. Return an integer for each volume")
    bad = np.flatnonzero((found < 0) | (found >= limit))
    if len(bad):
        raise WarpError(f"{kind} returned {of} {found[bad[0]]} for volume {bad[0]}. Return integers from 0 to {limit - 1}")
    return found.astype(np.intp)
