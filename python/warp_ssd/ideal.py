"""The oracle: the write amplification of a placement that knows the lifetime of each page, beside the placements of a host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .fingerprint import workload_label
from .running import run

if TYPE_CHECKING:
    import pyarrow as pa

    from .generators import Workload


def oracle(
    workload: str | os.PathLike[str] | Workload,
    device: str | os.PathLike[str] = "warp_default",
    *,
    scale: int | str | None = None,
    drive_writes: float | None = None,
    precondition_drive_writes: float | None = None,
    overrides: Mapping[str, object] | None = None,
    seed: int = 1,
) -> pa.Table:
    """Run a workload without placement, with the placement that it asks for, and with the oracle's (docs/explanation/placement.md).

    Parameters
    ----------
    workload
        Name or path of a job file, a workload or a block trace, or a function that makes requests (`warp_ssd.generators`).
    device
        Name or path of a device profile.
    scale, drive_writes, precondition_drive_writes, overrides
        See `Experiment.points`. An endless workload needs `drive_writes`.
    seed
        Seed of device and workload.

    Returns
    -------
    pyarrow.Table
        One row for each of `none`, `its own` and `oracle`. The columns are `placement`, `write_amplification`,
        `tail_write_amplification` (at the end of the run), `above_oracle` (a share of the oracle's write amplification) and
        `warnings`. The oracle's value is its result, not a bound.

    Raises
    ------
    WarpError
        The workload or device does not exist, or the workload cannot run on the device.
    """
    import pyarrow as pa

    kinds = {"none": {"classifier.kind": "none"}, "its own": {}, "oracle": {"classifier.kind": "oracle"}}
    experiment = {
        "title": f"{workload_label(workload) if callable(workload) else workload} on {device}: the oracle",
        "source": "",
        "devices": [os.fspath(device)],
        "workload": workload if callable(workload) else os.fspath(workload),
        "variants": [{"name": name, "settings": settings} for name, settings in kinds.items()],
    }
    result = run(
        experiment,
        scale=scale,
        drive_writes=drive_writes,
        precondition_drive_writes=precondition_drive_writes,
        overrides=overrides,
        seeds=[seed],
    )
    rows = result.cells().to_pyarrow().to_pylist()
    best = next(row["write_amplification"] for row in rows if row["variant"] == "oracle")
    return pa.Table.from_pylist(
        [
            {
                "placement": row["variant"],
                "write_amplification": row["write_amplification"],
                "tail_write_amplification": row["tail_write_amplification"],
                "above_oracle": row["write_amplification"] / best - 1,
                "warnings": row["warnings"],
            }
            for row in rows
        ]
    )
