"""The plan of a fleet: which volume is on which drive in each quarter, and which mixes of volumes have to run.

    volumes + drives -> assignment -> for each quarter: growth, moves from full drives, new drives -> epochs

An epoch is a time in which a drive keeps its mix. It ends when the volumes of the drive change, or when its spare space, its write
shares or its data shares have changed by more than the tolerance. The mix of its middle quarter stands for the epoch. Failures do
not change the plan, because a new drive gets the volumes of the old one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._engine import WarpError
from .assign import Assignment, indices
from .drives import DriveModel
from .volumes import Volumes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.intp]
    Numbers = NDArray[np.float64]

QUARTERS_PER_YEAR = 4
DAYS_PER_QUARTER = 365.25 / QUARTERS_PER_YEAR


@dataclass(frozen=True)
class Epoch:
    """A mix on a drive, from a quarter on."""

    drive: int
    quarter: int
    members: Indices
    """The volumes, in the order of their numbers."""


@dataclass(frozen=True)
class Plan:
    """The plan. Arrays begin with the quarter."""

    volumes: Sequence[Volumes]
    """The volumes at the start of each quarter."""
    kinds: Indices
    """Kind of each drive, as an index of the models."""
    drive_of: Indices
    """Drive of each volume."""
    drives: Indices
    """Number of drives."""
    moved_bytes: Numbers
    """Bytes that each drive receives at the start of a quarter, beside the host's own writes: first data and moved volumes."""
    epochs: Sequence[Epoch]
    epoch_of: Indices
    """Epoch of each drive, -1 for a drive that does not exist yet or has no volume."""

    def middle_quarters(self) -> Indices:
        """Middle quarter of each epoch. The earlier one of an even number of quarters."""
        first = np.array([epoch.quarter for epoch in self.epochs], dtype=np.intp)
        lengths = np.bincount(self.epoch_of[self.epoch_of >= 0], minlength=len(first))
        return first + (lengths - 1) // 2


class _Fleet:
    """Drives while the plan is made."""

    def __init__(self, models: Sequence[DriveModel], fill_limit: float, needed_bytes: float, drives_max: int) -> None:
        self._models = models
        self._limit = fill_limit
        self._drives_max = drives_max
        self.kinds: list[int] = []
        for kind, model in enumerate(models):
            count = model.drives.count
            if count is None:
                rest = needed_bytes - sum(self._room(one) for one in self.kinds)
                count = max(0 if self.kinds else 1, int(np.ceil(rest / self._room(kind))))
            self._check(len(self.kinds) + count)
            self.kinds += [kind] * count

    def _check(self, count: int) -> None:
        if count > self._drives_max:
            raise WarpError(
                f"the fleet has {count:,} drives or more, and at most {self._drives_max:,} fit these years and seeds. "
                "Give fewer drives or less data, or fewer years or seeds"
            )

    def _room(self, kind: int) -> float:
        return self._limit * self._models[kind].capacity_bytes

    @property
    def room_bytes(self) -> Numbers:
        return np.array([self._room(kind) for kind in self.kinds])

    def relocate(self, volumes: Volumes, drive_of: Indices) -> Indices:
        """Moves the smallest volumes off full drives, each to the emptiest drive with room for it, or to a new drive."""
        drive_of = drive_of.copy()
        room = self.room_bytes
        data = np.bincount(drive_of, volumes.footprint_bytes, len(room))
        for drive in np.flatnonzero(data > room):
            inside = np.flatnonzero(drive_of == drive)
            for volume in inside[np.argsort(volumes.footprint_bytes[inside], kind="stable")]:
                if data[drive] <= room[drive]:
                    break
                size = volumes.footprint_bytes[volume]
                free = room - data
                target = int(np.argmax(free))
                if free[target] < size:
                    target = len(room)
                    self._check(target + 1)
                    self.kinds.append(len(self._models) - 1)
                    room, data = np.append(room, self._room(self.kinds[-1])), np.append(data, 0.0)
                    if size > room[-1]:
                        raise WarpError(
                            f"volume {volumes.names[volume]} has {size / 1e9:.0f} GB, and a drive takes {room[-1] / 1e9:.0f} GB. "
                            "Give larger drives or a smaller volume"
                        )
                data[drive] -= size
                data[target] += size
                drive_of[volume] = target
        return drive_of


def make_plan(
    volumes: Volumes,
    models: Sequence[DriveModel],
    assignment: Assignment,
    *,
    quarters: int,
    drives_max: int,
    fill_limit: float,
    tolerance: float,
) -> Plan:
    """Makes the plan."""
    fleet = _Fleet(models, fill_limit, float(volumes.footprint_bytes.sum()), drives_max)
    first = indices("the assignment", assignment(volumes, fleet.room_bytes), len(volumes), len(fleet.kinds), "drive")
    grown = [volumes.at(quarter / QUARTERS_PER_YEAR) for quarter in range(quarters)]
    drive_of = [fleet.relocate(grown[0], first)]
    counts = [len(fleet.kinds)]
    for now in grown[1:]:
        drive_of.append(fleet.relocate(now, drive_of[-1]))
        counts.append(len(fleet.kinds))
    kinds = np.array(fleet.kinds, dtype=np.intp)
    physical = np.array([models[kind].physical_bytes for kind in kinds])
    moved = np.zeros((quarters, len(kinds)))
    epochs: list[Epoch] = []
    epoch_of = np.full((quarters, len(kinds)), -1, dtype=np.intp)
    for quarter, (now, drive) in enumerate(zip(grown, drive_of, strict=True)):
        arrives = np.ones(len(volumes), dtype=bool) if quarter == 0 else drive != drive_of[quarter - 1]
        moved[quarter] = np.bincount(drive[arrives], now.footprint_bytes[arrives], len(kinds))
        order = np.argsort(drive, kind="stable")
        for one, members in enumerate(np.split(order, np.searchsorted(drive[order], np.arange(1, len(kinds))))):
            before = epoch_of[quarter - 1, one] if quarter else -1
            if not len(members):
                continue
            if before < 0 or _change(epochs[before], members, grown, quarter, physical[one]) > tolerance:
                before = len(epochs)
                epochs.append(Epoch(one, quarter, members))
            epoch_of[quarter, one] = before
    plan = Plan(grown, kinds, np.array(drive_of), np.array(counts), moved, epochs, epoch_of)
    _check(plan, models, fill_limit)
    return plan


def _change(epoch: Epoch, members: Indices, grown: Sequence[Volumes], quarter: int, physical_bytes: float) -> float:
    """Greatest relative change of a drive's mix since its epoch began."""
    if not np.array_equal(epoch.members, members):
        return np.inf
    then, now = grown[epoch.quarter], grown[quarter]
    spares = [physical_bytes - volumes.footprint_bytes[members].sum() for volumes in (then, now)]
    shares = (_shares(volumes[members]) for volumes in (then.footprint_bytes, then.bytes_per_day, now.footprint_bytes, now.bytes_per_day))
    data_then, writes_then, data_now, writes_now = shares
    moved = [np.abs(data_now - data_then).sum() / 2, np.abs(writes_now - writes_then).sum() / 2]
    return float(max(max(spares) / min(spares) - 1.0, *moved))


def _shares(values: Numbers) -> Numbers:
    total = values.sum()
    return np.asarray(values / total if total > 0 else values)


def _check(plan: Plan, models: Sequence[DriveModel], fill_limit: float) -> None:
    """Every volume is on one drive that exists and has room."""
    for now, drive, count in zip(plan.volumes, plan.drive_of, plan.drives, strict=True):
        assert drive.max() < count, "a volume is on a drive that was not bought yet"
        data = np.bincount(drive, now.footprint_bytes, len(plan.kinds))
        room = np.array([fill_limit * models[kind].capacity_bytes for kind in plan.kinds])
        assert np.all(data <= room * (1 + 1e-9)), "a drive has more data than its room"
        assert np.isclose(data.sum(), now.footprint_bytes.sum()), "data got lost between the drives"
