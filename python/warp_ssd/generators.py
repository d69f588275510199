"""Workloads in Python: what the host reads, writes and deallocates, instead of a job file or a trace.

A workload is a function of a `Target`, the drive that it is made for. It yields requests, or returns an iterable of them. It serves
`warp_ssd.run`, `warp_ssd.Experiment`, `warp_ssd.sweep`, `warp_ssd.whatif`, `warp_ssd.lifetimes` and `warp_ssd.oracle`, wherever they
take the name of a workload.

A request is a tuple ``(operation, offset, bytes)``, with a placement and a time behind them if it has any:

========= =================================================================================================
operation ``"read"``, ``"write"`` or ``"deallocate"``; in arrays `READ`, `WRITE` or `DEALLOCATE`
offset    first byte, below ``target.capacity_bytes``
bytes     length, 1 to 4294967295
placement index into the drive's list of placements; None or `NO_PLACEMENT` for none
time      nanoseconds since the workload began, which do not fall; None for as soon as possible
========= =================================================================================================

Each of these may be an array (or a list) instead, and the tuple is then a block of as many requests. A block may also be a dictionary with
these keys, or a structured array of the type `REQUEST`. With blocks of some thousand requests Python costs next to nothing.

The function is called once for each point, and more often where the lab looks ahead. It has to give the same requests each time, so
draw random numbers from a generator that is made from ``target.seed``. Arrays are read until the next block is asked for.

Results are kept under a hash of the function: of its code, defaults and closure, of the constants and functions of its module that it
names, and of attributes where it is an object with ``__call__``. What it reads beside these (files, other modules) is told apart by an
attribute ``version`` of the function, which is changed by hand.

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
"""Type of structured arrays of requests; one without ``placement`` or ``time`` will do as well."""

#: A request, or many.
Block: TypeAlias = tuple[Any, ...] | Mapping[str, int | str | Sequence[int] | NDArray[np.integer]] | NDArray[np.void]

#: Makes the requests for a drive.
Workload: TypeAlias = Callable[[Target], Iterable[Block]]
