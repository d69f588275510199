"""A workload in Python, run on a drive with and without placement. `workload_source.rs` is the
same workload in Rust.

    $ python examples/workload_generator.py
    one handle    1.661
    a handle each 1.318

The guide `docs/how-to/own-workload.md` explains the fields of a request.
"""

import numpy as np
from warp_ssd import Experiment, run


class LogAndTable:
    """A log that goes around on one half of the drive, and a table that is updated at random on
    the other half. `table_placement` is the placement index of the table, and the log has index 0.
    """

    def __init__(self, table_placement):
        self.table_placement = table_placement

    def __call__(self, target):
        random = np.random.default_rng(target.seed)
        unit = target.mapping_unit_bytes
        half = target.capacity_bytes // unit // 2
        head = 0
        while True:
            log = (head + np.arange(4096)) % half
            table = half + random.integers(half, size=4096)
            head = (head + 4096) % half
            first = np.column_stack([log, table]).ravel()  # the log and the table take turns
            placement = np.tile([0, self.table_placement], 4096)
            yield "write", first * unit, unit, placement


def write_amplification(workload):
    """Writes four times the capacity of a small model of a drive."""
    result = run(Experiment.of_workload(workload, "warp_default"), scale="1/1024", drive_writes=4)
    return result[0].write_amplification


if __name__ == "__main__":
    print(f"one handle    {write_amplification(LogAndTable(table_placement=0)):.3f}")
    print(f"a handle each {write_amplification(LogAndTable(table_placement=1)):.3f}")
