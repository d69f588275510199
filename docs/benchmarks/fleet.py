#!/usr/bin/env python3
"""Measures a fleet of 10,000 volumes on 1,000 drives over three years, and writes fleet.md beside this file.

Usage: fleet.py [--volumes N] [--drives N] [--page FILE]

The package warp_ssd has to be installed with a release engine. The fleet runs with one worker and with two, each with an empty
store. Then parts of it run on larger scaled models and with smaller tolerances, which shows the error of the defaults.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
YEARS, GROWTH, SEED = 3.0, 0.10, 1
SAMPLE = 10
"""Drives of the comparisons of scale and tolerance."""


def fleet_of(volumes, drives, **options):
    from warp_ssd import fleet

    found = fleet.population(
        volumes, seed=SEED, mean_footprint_bytes=200e9, footprint_bytes_max=1e12, data_per_working_set=2.0, growth_per_year=GROWTH
    )
    more = {name: options.pop(name) for name in ("scale",) if name in options}
    return fleet.simulate(found, fleet.Drives("ssd_b", count=drives, **more), years=YEARS, progress=False, **options)


def measure(arguments):
    """Runs in a process of its own, so that the processor time of the workers counts."""
    volumes, drives, workers = (int(value) for value in arguments)
    started = time.perf_counter()
    found = fleet_of(volumes, drives, workers=workers)
    wall = time.perf_counter() - started
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own, children = (one.ru_utime + one.ru_stime for one in used)
    print(json.dumps({"wall": wall, "own": own, "children": children, "ran": found.ran, "totals": found.totals().to_pylist()}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--volumes", type=int, default=10_000)
    parser.add_argument("--drives", type=int, default=1_000)
    parser.add_argument("--page", type=pathlib.Path, default=HERE / "fleet.md")
    options = parser.parse_args()
    rows = []
    for workers in (1, 2):
        load = os.getloadavg()[0]
        command = [sys.executable, __file__, "--measure", *map(str, (options.volumes, options.drives, workers))]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        rows.append({"workers": workers, "load": load, **found})
        print(rows[-1], flush=True)
    assert rows[0]["totals"] == rows[1]["totals"], "the number of workers changed the result"
    few = options.volumes * SAMPLE // options.drives
    base = fleet_of(few, SAMPLE)
    compared = [("the defaults", base)]
    scale = base._models[0].scale
    compared += [(f"scale 1/{scale // factor} instead of 1/{scale}", fleet_of(few, SAMPLE, scale=scale // factor)) for factor in (2, 4)]
    compared += [(f"tolerance {tolerance} instead of 0.2", fleet_of(few, SAMPLE, tolerance=tolerance)) for tolerance in (0.1, 0.0)]
    options.page.write_text(page(options, rows, compared), encoding="utf-8")


def page(options, rows, compared):
    lines = [
        "# Fleets",
        "",
        "This page is for users of `warp_ssd.fleet`. It shows how long a large fleet takes, and the error",
        "of the default scale and tolerance. The command measures both and writes this page:",
        "",
        "```text",
        "docs/benchmarks/fleet.py",
        "```",
        "",
        f"The fleet has {options.volumes:,} volumes of `population` on {options.drives:,} drives of the profile `ssd_b` for three years,",
        f"with a growth of {GROWTH:.0%} a year. It runs without placement and with `by_lifetime`.",
        "",
        "## Time",
        "",
        "| workers | time | runs | processor time of the workers | of the main process | load of the machine before |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row['workers']} | {row['wall']:.0f} s | {row['ran']:,} | {row['children']:.0f} s | {row['own']:.0f} s | {row['load']:.1f} |"
            for row in rows
        ),
        "",
        f"Two workers take {rows[1]['wall'] / rows[0]['wall']:.2f} of the time of one. Their results are equal to the last digit.",
        "",
        "## Result",
        "",
        "| placement | drives at the end | worn out | failed | WAF | dollars | kg CO2e | mixes | not steady |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            f"| `{row['placement']}` | {row['drives']:,} | {row['worn']:.1f} | {row['failed']:.1f} ({row['failed_low']:.0f}-"
            f"{row['failed_high']:.0f}) | {row['write_amplification']:.3f} | {row['dollars']:,.0f} | {row['carbon_kg']:,.0f} | "
            f"{row['mixes']:,} | {row['not_steady']} |"
            for row in rows[1]["totals"]
        ),
        "",
        "## Error of the defaults",
        "",
        f"The same population on {SAMPLE} drives. Each row changes one argument.",
        "",
        "| argument | runs | WAF `none` | WAF `by_lifetime` |",
        "|---|---|---|---|",
    ]
    base = [row["write_amplification"] for row in compared[0][1].totals().to_pylist()]
    for name, found in compared:
        wafs = [row["write_amplification"] for row in found.totals().to_pylist()]
        shown = (f"{waf:.4f} ({waf / ours - 1:+.2%})" for waf, ours in zip(wafs, base, strict=True))
        lines.append(f"| {name} | {found.ran} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2:])
    else:
        main()
