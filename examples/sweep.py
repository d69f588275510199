"""A sweep: two amounts of spare flash times two victim policies, on all cores.

    $ python examples/sweep.py
    geometry.over_provisioning = 0.07  gc.victim_policy = greedy  1.928
    geometry.over_provisioning = 0.07  gc.victim_policy = fifo    2.425
    geometry.over_provisioning = 0.28  gc.victim_policy = greedy  1.066
    geometry.over_provisioning = 0.28  gc.victim_policy = fifo    1.187

The tutorial `docs/tutorials/first-sweep.md` explains grids, stores and queries.
"""

from warp_ssd import sweep

GRID = {
    "geometry.over_provisioning": [0.07, 0.28],
    "gc.victim_policy": ["greedy", "fifo"],
}

if __name__ == "__main__":
    # The experiment has more variants, devices and sizes. The arguments select one of each.
    result = sweep(
        "three_stream", GRID, variants=["NoFDP", "80/20"], devices=["warp_default"], scale="1/1024", drive_writes=2
    )
    for point in result.points().to_pylist():
        settings = "  ".join(f"{name} = {point[name]}" for name in GRID)
        print(f"{settings:61} {point['write_amplification']:.3f}")
