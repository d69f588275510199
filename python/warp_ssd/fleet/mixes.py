"""Mixes of volumes on scaled models: each different mix runs once to its steady state.

    epochs + placement -> tenants of a drive -> points -> workers -> store -> write amplification of each mix and volume

The tenants of a mix are sorted by their settings, and their numbers have six digits. Drives with equal volumes therefore have equal
mixes, whatever the order and the names of the volumes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .._engine import WarpError
from ..store import Store
from ..sweep import run_jobs
from ..workers import Job, Workers
from .assign import Placement, indices
from .drives import DriveModel
from .plan import Epoch, Plan
from .volumes import UNIT_BYTES, Volumes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

MODEL_UNITS_MIN = 16
"""Least size of a volume on a scaled model, in mapping units. A smaller volume is modelled with this size."""


@dataclass(frozen=True)
class Mix:
    """Tenants of a drive as the engine reads them. Equal mixes are equal as values."""

    kind: int
    live_bytes: float
    tenants: tuple[tuple[str, float, float, int | None], ...]
    """Workload as JSON, bytes, share of the host writes, and handle (`None`: no directive) of each tenant."""

    def workload(self, model: DriveModel) -> dict[str, Any]:
        """The workload of the drive."""
        logical = model.logical_bytes(self.live_bytes)
        tenants = {
            f"t{index}": {
                "share_percent": 100.0 * bytes_ / logical,
                "rate": rate,
                "placement_indices": [] if handle is None else [handle],
                "workload": json.loads(workload),
            }
            for index, (workload, bytes_, rate, handle) in enumerate(self.tenants)
        }
        return {"kind": "tenants", "tenants": tenants}


@dataclass(frozen=True)
class MixResult:
    """Write amplification of a mix: a row for each seed, a column for each tenant."""

    drive: Numbers
    tenants: Numbers
    is_steady: NDArray[np.bool_]


@dataclass(frozen=True)
class MixRuns:
    """Results of the epochs of a plan with one placement."""

    mix_of: Sequence[int]
    """Mix of each epoch."""
    tenant_of: Sequence[NDArray[np.intp]]
    """Tenant of each member of an epoch."""
    results: Sequence[MixResult]
    """Of each mix."""
    ran: int
    """Points that the store did not have."""
    table: pa.Table


def make_mix(
    epoch: Epoch, volumes: Volumes, kind: int, model: DriveModel, placement: Placement | None, handles: int
) -> tuple[Mix, NDArray[np.intp]]:
    """The mix of an epoch, and the tenant of each of its members."""
    inside = volumes.take(epoch.members)
    chosen: list[int | None] = [None] * len(inside)
    if placement is not None:
        found = indices("the placement", placement(inside, handles), len(inside), handles, "handle")
        chosen = [int(handle) for handle in found]
    total = inside.bytes_per_day.sum()
    # A drive without writes has a steady state too. Its volumes write at equal rates, and nothing is counted.
    rates = inside.bytes_per_day / total if total > 0 else np.full(len(inside), 1.0 / len(inside))
    entries = [
        (json.dumps(workload, sort_keys=True), _digits(_model_bytes(workload, size, model)), _digits(rate), handle)
        for workload, size, rate, handle in zip(inside.workloads, inside.footprint_bytes, rates, chosen, strict=True)
    ]
    order = sorted(range(len(entries)), key=lambda index: (*entries[index][:3], -1 if entries[index][3] is None else entries[index][3]))
    tenant_of = np.empty(len(entries), dtype=np.intp)
    tenant_of[order] = np.arange(len(entries))
    live = sum(entry[1] for entry in entries)
    if live > model.physical_bytes / 1.01:
        raise WarpError(
            f"the volumes of a drive take {live / 1e9:.0f} GB with the least sizes of a scaled model, and the drive has "
            f"{model.physical_bytes / 1e9:.0f} GB of flash. Give a smaller scale than 1/{model.scale} or a lower fill_limit"
        )
    return Mix(kind, live, tuple(entries[index] for index in order)), tenant_of


def _model_bytes(workload: Mapping[str, Any], size: float, model: DriveModel) -> float:
    """Bytes of a volume in its mix. A trace is sampled by address, so its touched units vary by the root of their number."""
    units = size / (UNIT_BYTES * model.scale)
    if workload.get("kind") == "trace":
        units += 5.0 * np.sqrt(units) + 1.0
    return max(units, MODEL_UNITS_MIN) * UNIT_BYTES * model.scale


def _digits(value: float) -> float:
    return float(f"{value:.6g}")


def run_mixes(
    plan: Plan,
    models: Sequence[DriveModel],
    placement: Placement | None,
    *,
    handles: int | None,
    seeds: Sequence[int],
    drive_writes: float,
    store: Store,
    workers: Workers,
    retry_failed: bool,
    progress: bool,
) -> MixRuns:
    """Runs the mixes of all epochs and reads their results."""
    mixes: dict[Mix, int] = {}
    mix_of, tenant_of = [], []
    for epoch, middle in zip(plan.epochs, plan.middle_quarters(), strict=True):
        kind = int(plan.kinds[epoch.drive])
        count = handles or models[kind].handles
        mix, tenants = make_mix(epoch, plan.volumes[middle], kind, models[kind], placement, count)
        mix_of.append(mixes.setdefault(mix, len(mixes)))
        tenant_of.append(tenants)
    points = [
        [models[mix.kind].point(mix.workload(models[mix.kind]), mix.live_bytes, seed, drive_writes) for seed in seeds] for mix in mixes
    ]
    jobs = {point.hash: Job(point.hash, point) for row in points for point in row}
    ran = run_jobs(jobs.values(), store, workers, retry_failed=retry_failed, progress=progress)
    results = [_read(store, [point.hash for point in row], len(mix.tenants)) for mix, row in zip(mixes, points, strict=True)]
    table = pa.table(
        {
            "mix": np.repeat(np.arange(len(mixes)), len(seeds)),
            "seed": np.tile(np.asarray(seeds), len(mixes)),
            "hash": pa.array([point.hash for row in points for point in row], pa.string()),
            "profile": pa.array([models[mix.kind].drives.profile for mix in mixes for _ in seeds], pa.string()),
            "live_bytes": np.repeat([mix.live_bytes for mix in mixes], len(seeds)),
            "volumes": np.repeat([len(mix.tenants) for mix in mixes], len(seeds)),
            "write_amplification": np.concatenate([result.drive for result in results]),
            "is_steady": np.concatenate([result.is_steady for result in results]),
        }
    )
    return MixRuns(mix_of, tenant_of, results, ran, table)


def _read(store: Store, keys: Sequence[str], tenants: int) -> MixResult:
    """Reads the runs of a mix.

    The engine counts the copies of each tenant over the whole run, and those of the drive in the steady state too. The tenants'
    copies for each written byte are scaled by one factor, so that their mean is that of the drive in the steady state.
    """
    drive, shares, is_steady = [], [], []
    for key in keys:
        row = store.cell(key).to_pylist()[0]
        if row["status"] != "done":
            raise WarpError(f"a mix of {tenants} volumes failed: {row['error']}")
        waf = row["tail_write_amplification"]
        copied = np.array([row[f"t{tenant}.bytes_copied"] for tenant in range(tenants)])
        written = np.array([row[f"t{tenant}.bytes_written"] for tenant in range(tenants)])
        copies = np.divide(copied, written, out=np.zeros(tenants), where=written > 0)
        mean = copied.sum() / max(written.sum(), 1.0)
        shares.append(1.0 + copies * ((waf - 1.0) / mean if mean > 0 else 0.0))
        drive.append(waf)
        is_steady.append("steady_state_not_reached" not in row["warnings"].split(", "))
    return MixResult(np.array(drive), np.array(shares), np.array(is_steady))
