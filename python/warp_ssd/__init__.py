"""WARP: an open, programmable SSD with NVMe Flexible Data Placement, in-process.

The device model and the lab of the ``warp`` command, as a library:

- `whatif`: what placement would do for your workload, in a sentence; `oracle`: the best there is;
- `run` and `Experiment`: the published experiments, or your own;
- `lifetimes`: how long what a workload writes lives, and how far two workloads are apart in that;
- `Device`: a drive that you write to;
- `VictimPolicy` and `PlacementPolicy`: decisions of the drive and of the host, in Python;
- `generators`: workloads in Python;
- `sweep`: a design space, over all cores or a cluster, stored as it goes;
- `calibrate`: the hidden knobs of a drive that you measured;
- `plot`: the figures;
- `studio`: drives at work, live, in a notebook.

The same seed gives the same bytes as the command. Mistakes are `WarpError`, with the engine's sentence.
"""

from warp_ssd import generators, plot
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
