"""A garbage collection policy in Python, beside the drive's own policy. `victim_policy.rs` is the
same program in Rust and prints the same numbers.

    $ python examples/victim_policy.py
    greedy       2.6901
    cost-benefit 1.9483

The tutorial `docs/tutorials/gc-policy.md` explains the policy.
"""

import tomllib
from pathlib import Path

import numpy as np
from warp_ssd import Device, VictimPolicy

DRIVE = tomllib.loads(Path(__file__).with_name("drive.toml").read_text())


class CostBenefit(VictimPolicy):
    """Prefers units that gain much space for few copies and have not been written for long."""

    def select(self, candidates):
        valid = candidates.valid_pages / candidates.pages
        return np.argmax((1 - valid) * candidates.age / (1 + valid))


def random(count):
    """Returns the first numbers of a random sequence that is the same in Rust."""
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed ^ (mixed >> 32)) * np.uint64(0xD6E8FEB86659FD93)) >> 32


def write_amplification(policy=None):
    """Fills a drive and overwrites it eight times. Nine of ten writes go to a tenth of the pages."""
    device = Device(DRIVE, victim_policy=policy)
    pages = device.logical_pages
    device.write(0, pages)
    numbers = random(8 * pages)
    below = np.where(numbers % 10 < 9, pages // 10, pages).astype(np.uint64)
    device.write(numbers // 10 % below)
    return device.stats.write_amplification


if __name__ == "__main__":
    print(f"greedy       {write_amplification():.4f}")
    print(f"cost-benefit {write_amplification(CostBenefit()):.4f}")
