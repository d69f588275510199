"""Checks of the numbers that a user gives to a fleet, before anything is allocated."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable

import numpy as np

from .._engine import WarpError

YEARS_MAX = 100.0
"""Longest simulation."""

COUNT_MAX = 1_000_000
"""Most volumes, and most drives."""

SEEDS_MAX = 10_000
"""Most seeds."""

CELLS_MAX = 200_000_000
"""Most volumes x quarters, and most drives x quarters x seeds. A cell takes 16 bytes or more of memory."""

GROWTH_PER_YEAR = (-0.99, 1000.0)
"""Least and largest growth of a volume in a year."""

FOOTPRINT_BYTES_MAX = 1e18
"""Largest volume."""

BYTES_PER_DAY_MAX = 1e15
"""Most host writes of a volume. They are 12 GB/s, which is more than a drive takes."""


def number(name: str, value: object, low: float, high: float) -> float:
    """A number of a range. NaN, infinities and other types are refused."""
    if isinstance(value, int | float | np.number) and not isinstance(value, bool) and low <= value <= high:
        return float(value)
    raise WarpError(f"{name} = {reprlib.repr(value)}. Give a number from {low:,g} to {high:,g}")


def whole(name: str, value: object, low: int, high: int) -> int:
    """A whole number of a range."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and low <= value <= high:
        return int(value)
    raise WarpError(f"{name} = {reprlib.repr(value)}. Give a whole number from {low:,} to {high:,}")


def seed_list(name: str, values: object) -> list[int]:
    """Seeds of a list or a range."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise WarpError(f"{name} = {reprlib.repr(values)}. Give a list of whole numbers, such as {name} = [1, 2, 3]")
    seeds: list[int] = []
    for value in values:
        seeds.append(whole(name, value, 0, 2**63 - 1))
        if len(seeds) > SEEDS_MAX:
            raise WarpError(f"{name} has more than {SEEDS_MAX:,} seeds. Give fewer")
    return seeds
