"""A placement classifier in Python. A host uses it to find out which writes belong together.
`placement_classifier.rs` has the same rule in Rust.

    $ python examples/placement_classifier.py
    one handle 2.605
    classified 2.453

The section "Policies" of `docs/reference/python.md` lists the fields of `requests`.
"""

import numpy as np
from warp_ssd import Experiment, PlacementPolicy, run

ISOLATED = {"handles.isolation": "persistently_isolated"}  # copies of garbage collection stay apart too


def hot_and_cold(target):
    """Fills the drive. Then nine of ten writes go to a tenth of it. No write names a placement."""
    random = np.random.default_rng(target.seed)
    unit = target.mapping_unit_bytes
    units = target.capacity_bytes // unit
    yield "write", np.arange(units) * unit, unit
    while True:
        is_hot = random.random(8192) < 0.9
        first = random.integers(np.where(is_hot, units // 10, units))
        yield "write", first * unit, unit


class MoreThanAverage(PlacementPolicy):
    """Places pages with more writes than the average on index 0, and all others on index 1."""

    def __init__(self):
        self.writes = np.zeros(0, dtype=np.int64)

    def place(self, requests):
        # The policy does not know the drive, so the table grows with the largest page.
        missing = requests.first.max() + 1 - len(self.writes)
        self.writes = np.pad(self.writes, (0, max(missing, 0)))
        np.add.at(self.writes, requests.first, 1)
        return np.where(self.writes[requests.first] > self.writes.mean(), 0, 1)


def write_amplification(policy=None):
    """Writes six times the capacity of a small model of a drive."""
    experiment = Experiment.of_workload(hot_and_cold, "warp_default")
    result = run(experiment, scale="1/1024", drive_writes=6, placement_policy=policy, overrides=ISOLATED)
    return result[0].write_amplification


if __name__ == "__main__":
    print(f"one handle {write_amplification():.3f}")
    print(f"classified {write_amplification(MoreThanAverage()):.3f}")
