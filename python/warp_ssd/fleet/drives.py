"""Drives of a fleet: profiles with a capacity, and the scaled model that runs a mix of volumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._engine import Experiment, WarpError
from .limits import COUNT_MAX, whole

STEADY_DRIVE_WRITES = 5.0
"""Window of the engine's rule for the steady state."""

UNIT_PAGES = 512
"""Mapping units of a reclaim unit in the default scaled model, half of the least without a warning of the engine.

`docs/benchmarks/fleet.md` has the error."""

SCALE_MAX = 65536
"""Denominator of the smallest scaled model of the engine."""


@dataclass(frozen=True)
class Drives:
    """Drives of one kind.

    Parameters
    ----------
    profile
        Name or path of a device profile.
    count
        Drives at the start. `None` buys as many as the data needs.
    capacity_bytes
        Logical capacity, a number or a text such as `"1.92TB"`. Default: the profile's.
    overrides
        Settings of the profile by their dotted paths, such as `{"endurance.rated_erases": 3000}`.
    scale
        Denominator of the scaled model. Default: reclaim units of `UNIT_PAGES` mapping units.
    """

    profile: str = "ssd_b"
    count: int | None = None
    capacity_bytes: int | str | None = None
    overrides: Mapping[str, object] = field(default_factory=dict)
    scale: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.profile, str):
            raise WarpError(f"drives: profile = {self.profile!r}. Give the name or the path of a device profile")
        if not isinstance(self.overrides, Mapping):
            raise WarpError(f"drives {self.profile}: overrides = {self.overrides!r}. Give a table of settings by their paths")
        for name, most in (("count", COUNT_MAX), ("scale", SCALE_MAX)):
            if getattr(self, name) is not None:
                whole(f"drives {self.profile}: {name}", getattr(self, name), 1, most)


@dataclass(frozen=True)
class DriveModel:
    """The numbers of a kind of drives, resolved by the engine."""

    drives: Drives
    capacity_bytes: float
    physical_bytes: float
    rated_erases: float
    handles: int
    scale: int
    capacity_setting: str
    """The capacity of the two that the profile states."""
    units: Mapping[str, object]
    """Sizes that a change of the capacity must not change."""

    @property
    def rated_bytes(self) -> float:
        """Flash bytes until the drive reaches its rated erases on average."""
        return self.physical_bytes * self.rated_erases

    def logical_bytes(self, live_bytes: float) -> float:
        """Logical capacity of the model: the live data, but at least half of the flash, because `over_provisioning` is at most 1.

        The rest of that half is never written, so it is spare too.
        """
        return max(live_bytes, self.physical_bytes / 2)

    def point(self, workload: Mapping[str, object], live_bytes: float, seed: int, drive_writes: float) -> Any:
        """The run of a workload on this drive, which begins with `live_bytes` of data and ends in the steady state."""
        logical = self.logical_bytes(live_bytes)
        capacity = logical if self.capacity_setting == "geometry.capacity_bytes" else self.physical_bytes
        overrides = {
            **self.drives.overrides,
            **self.units,
            self.capacity_setting: int(capacity),
            "geometry.over_provisioning": self.physical_bytes / logical - 1.0,
        }
        experiment = Experiment(
            {"title": "mix", "devices": [self.drives.profile], "workload": workload, "run": {"timed": False, "steady_state": True}}
        )
        return experiment.points(
            scale=self.scale,
            overrides=overrides,
            seeds=[seed],
            drive_writes=drive_writes,
            tail_drive_writes=STEADY_DRIVE_WRITES,
            precondition_drive_writes=live_bytes / logical,
        )[0]


def resolve(drives: Drives) -> DriveModel:
    """Resolves a kind of drives."""
    probe = Experiment({"title": "drive", "devices": [drives.profile], "workload": {"kind": "random_writes"}, "run": {"timed": False}})
    options: dict[str, Any] = {"overrides": dict(drives.overrides) or None, "capacity_bytes": drives.capacity_bytes}
    device = probe.points(drive_writes=1.0, **options)[0].input["device"]
    geometry, endurance = device["geometry"], device["endurance"]
    if endurance is None:
        raise WarpError(
            f"drives {drives.profile}: the profile has no [endurance], so no drive wears out. "
            'Give overrides={"endurance.rated_erases": ...} or another profile'
        )
    spare, stated = geometry["over_provisioning"], geometry["capacity_bytes"]
    capacity = stated if stated is not None else geometry["physical_bytes"] / (1.0 + spare)
    unit, page = geometry["reclaim_unit_bytes"], geometry["mapping_unit_bytes"]
    return DriveModel(
        drives,
        float(capacity),
        float(capacity * (1.0 + spare)),
        float(endurance["rated_erases"]),
        device["handles"]["count"],
        drives.scale or _scale(unit // page, geometry["channels"] * geometry["dies_per_channel"] * geometry["planes_per_die"]),
        "geometry.physical_bytes" if stated is None else "geometry.capacity_bytes",
        {f"geometry.{name}": geometry[name] for name in ("reclaim_unit_bytes", "program_unit_bytes") if geometry[name] is not None},
    )


def _scale(unit_pages: int, blocks: int) -> int:
    """The smallest model with reclaim units of `UNIT_PAGES` or more, whose blocks have a whole number of pages."""
    block_pages = max(1, unit_pages // blocks)
    return next(scale for scale in range(max(1, unit_pages // UNIT_PAGES), 0, -1) if block_pages % scale == 0)
