"""WARP: an open, programmable SSD with NVMe Flexible Data Placement, in-process.

The package contains the device model and the lab of the ``warp`` command:

- `whatif` predicts the effect of placement on your workload in one sentence. `oracle` gives the best known placement.
- `run` and `Experiment` run the published experiments, or your own.
- `lifetimes` measures the data lifetimes of a workload and compares two workloads.
- `Device` is a drive that you write.
- `VictimPolicy` and `PlacementPolicy` are decisions of the drive and of the host, in Python.
- `generators` are workloads in Python.
- `sweep` runs a design space on all cores or a cluster, and stores each result.
- `fleet` simulates many volumes on many drives for years.
- `calibrate` finds the hidden settings of a drive that you measured.
- `plot` draws the figures.
- `studio` shows live drives in a notebook.

The same seed gives the same bytes as the command. A mistake raises `WarpError` with the message of the engine.
"""

from warp_ssd import fleet, generators, plot
from warp_ssd._engine import (
    Answer,
    Device,
    Experiment,
    Lifetimes,
    Point,
    PointResult,
    Result,
    Stats,
    Table,
    Target,
    WarpError,
    __version__,
    compare,
    devices,
    experiments,
    lifetimes,
    memory_available,
    profile,
    profile_text,
    runs,
    whatif,
    workloads,
)
from warp_ssd.calibrate import Calibration, Measurement, calibrate
from warp_ssd.generators import DEALLOCATE, READ, REQUEST, WRITE
from warp_ssd.ideal import oracle
from warp_ssd.policies import NO_PLACEMENT, Candidates, PlacementPolicy, Requests, VictimPolicy
from warp_ssd.running import run
from warp_ssd.store import Store
from warp_ssd.studio import stop_studio, studio
from warp_ssd.sweep import SweepResult, latin_hypercube, random_samples, sweep

__all__ = [
    "DEALLOCATE",
    "NO_PLACEMENT",
    "READ",
    "REQUEST",
    "WRITE",
    "Answer",
    "Calibration",
    "Candidates",
    "Device",
    "Experiment",
    "Lifetimes",
    "Measurement",
    "PlacementPolicy",
    "Point",
    "PointResult",
    "Requests",
    "Result",
    "Stats",
    "Store",
    "SweepResult",
    "Table",
    "Target",
    "VictimPolicy",
    "WarpError",
    "__version__",
    "calibrate",
    "compare",
    "devices",
    "experiments",
    "fleet",
    "generators",
    "latin_hypercube",
    "lifetimes",
    "memory_available",
    "oracle",
    "plot",
    "profile",
    "profile_text",
    "random_samples",
    "run",
    "runs",
    "stop_studio",
    "studio",
    "sweep",
    "whatif",
    "workloads",
]
