#!/usr/bin/env python3
"""Writes a made-up block trace for measurements of speed, always the same one.

Usage: trace.py FILE [RECORDS]. The records, by default 1.5 million, are in Alibaba's format: 20 volumes, a quarter reads, 4 to 64
KiB, and four of five requests in a tenth of the addresses. Together the volumes have 16 GB.
"""

import random
import sys

SIZES = [4096] * 6 + [8192, 16384, 32768, 65536]
UNITS = 200_000


def main() -> None:
    records = int(sys.argv[2]) if len(sys.argv) > 2 else 1_500_000
    draw = random.Random(42)
    time_us = 1_577_808_000_000_000
    with open(sys.argv[1], "w", encoding="ascii") as file:
        for _ in range(records):
            time_us += draw.randrange(400)
            unit = draw.randrange(UNITS // 10 if draw.random() < 0.8 else UNITS)
            operation = "R" if draw.random() < 0.25 else "W"
            file.write(f"{draw.randrange(20)},{operation},{unit * 4096},{draw.choice(SIZES)},{time_us}\n")


main()
