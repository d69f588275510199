"""Workloads in Python: requests of the host that a function makes, instead of a job file or a trace.

A workload is a function of a `Target`, which describes the drive. The function yields requests, or returns an iterable of them.
You can pass it to `warp_ssd.run`, `warp_ssd.Experiment`, `warp_ssd.sweep`, `warp_ssd.whatif`, `warp_ssd.lifetimes` and
`warp_ssd.oracle` in place of the name of a workload.

A request is a tuple ``(operation, offset, bytes)``. An optional placement and an optional time follow:

========= =================================================================================================
operation ``"read"``, ``"write"`` or ``"deallocate"``; in arrays `READ`, `WRITE` or `DEALLOCATE`
offset    first byte, below ``target.capacity_bytes``
bytes     length, 1 to 4294967295
placement index into the drive's list of placements; None or `NO_PLACEMENT` for none
time      nanoseconds since the workload began, never decreasing; None for as soon as possible
========= =================================================================================================

If a field is an array or a list, the tuple is a block of requests. A block may also be a dictionary with these keys, or a
structured array of the type `REQUEST`. With blocks of some thousand requests, the cost of Python is negligible.

The engine calls the function once for each point, and again if the lab looks ahead. The function has to yield the same requests
each time, so draw random numbers from a generator seeded with ``target.seed``. Do not change an array before the engine asks for
the next block.

Results are stored under a hash of the function. The hash covers its code, defaults and closure, the constants and functions of
its module that it names, and the attributes of an object with ``__call__``. It does not cover other inputs (files, other
modules). If the function has such inputs, give it an attribute ``version`` and change this attribute by hand.

Examples
--------
Random overwrites, with a placement for the first tenth of the drive:

>>> def hot_and_cold(target):
...     random = np.random.default_rng(target.seed)
...     units = target.capacity_bytes // target.mapping_unit_bytes
...     while True:
...         unit = random.integers(units, size=100_000)
...         unit[::2] //= 10
...         yield WRITE, unit * target.mapping_unit_bytes, target.mapping_unit_bytes, np.where(unit < units // 10, 1, 0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from warp_ssd._engine import NO_PLACEMENT, Target

__all__ = ["DEALLOCATE", "NO_PLACEMENT", "READ", "REQUEST", "WRITE", "Block", "Target", "Workload"]

READ: Final = 0
WRITE: Final = 1
DEALLOCATE: Final = 2

REQUEST: Final[np.dtype[np.void]] = np.dtype(
    [
        ("operation", np.uint8),
        ("offset", np.uint64),
        ("bytes", np.uint32),
        ("placement", np.uint16),
        ("time", np.uint64),
    ]
)
"""Type of structured arrays of requests. The fields ``placement`` and ``time`` are optional."""

#: A request, or a block of requests.
Block: TypeAlias = tuple[Any, ...] | Mapping[str, int | str | Sequence[int] | NDArray[np.integer]] | NDArray[np.void]

#: Function that makes the requests for a drive.
Workload: TypeAlias = Callable[[Target], Iterable[Block]]
