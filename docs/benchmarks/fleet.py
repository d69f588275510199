#!/usr/bin/env python3
"""Measures a fleet of 10,000 volumes on 1,000 drives over three years, and writes fleet.json and fleet.md beside this file.

Usage: fleet.py [--quick] [--folder FOLDER]

The package warp_ssd has to be installed with a release engine. The fleet runs with two workers and an empty store. A fiftieth of it
runs with one worker and with two, twice in turn. Then a hundredth runs on larger scaled models and with other tolerances, which shows
the error of the defaults. Parts that fleet.json already has are not measured again.
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
YEARS, GROWTH, SEED = 3.0, 0.05, 1
ROUNDS = 2


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


def timed(volumes, drives, workers):
    load = os.getloadavg()[0]
    command = [sys.executable, __file__, "--measure", *map(str, (volumes, drives, workers))]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return {"volumes": volumes, "drives": drives, "workers": workers, "load": load, "load_after": os.getloadavg()[0], **found}


def scaling(volumes, drives):
    """The fastest runs with one worker and with two, which take turns."""
    rows = [timed(volumes, drives, workers) for _ in range(ROUNDS) for workers in (1, 2)]
    assert all(row["totals"] == rows[0]["totals"] for row in rows), "the number of workers changed the result"
    return [min((row for row in rows if row["workers"] == workers), key=lambda row: row["wall"]) for workers in (1, 2)]


def compared(volumes, drives, **changed):
    found = fleet_of(volumes, drives, **changed)
    return {"ran": found.ran, "wafs": found.totals()["write_amplification"].to_pylist()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the volumes and drives")
    parser.add_argument("--folder", type=pathlib.Path, default=HERE)
    options = parser.parse_args()
    volumes, drives = (1_000, 100) if options.quick else (10_000, 1_000)
    parts = {
        "all": lambda: timed(volumes, drives, 2),
        "scaling": lambda: scaling(volumes // 50, drives // 50),
        "the defaults (scale 1/8192, tolerance 0.1)": lambda: compared(volumes // 100, drives // 100),
        "scale 1/4096": lambda: compared(volumes // 100, drives // 100, scale=4096),
        "scale 1/2048": lambda: compared(volumes // 100, drives // 100, scale=2048),
        "tolerance 0.2": lambda: compared(volumes // 100, drives // 100, tolerance=0.2),
        "tolerance 0 (each quarter runs)": lambda: compared(volumes // 100, drives // 100, tolerance=0.0),
    }
    file = options.folder / "fleet.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    for name, part in parts.items():
        if name not in found:
            found[name] = part()
            file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(name, found[name], flush=True)
    (options.folder / "fleet.md").write_text(page(found), encoding="utf-8")


def page(found):
    whole, (one, two) = found["all"], found["scaling"]
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
        f"The fleet has {whole['volumes']:,} volumes of `population` on {whole['drives']:,} drives of the profile `ssd_b` for",
        f"three years, with a growth of {GROWTH:.0%} a year. It runs without placement and with `by_lifetime`.",
        "",
        "## Time",
        "",
        "| volumes | drives | workers | time | runs | processor time of the workers | of the main process | load before, after |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {row['volumes']:,} | {row['drives']:,} | {row['workers']} | {row['wall']:.0f} s | {row['ran']:,} | {row['children']:.0f} s | "
            f"{row['own']:.0f} s | {row['load']:.1f}, {row['load_after']:.1f} |"
            for row in (whole, one, two)
        ),
        "",
        "The machine had two cores. The load is the mean number of processes that wanted a core. A load",
        "above the number of workers is other work, which made the run wait. The processor time does not",
        "contain the waiting.",
        "",
        f"The smaller fleet ran {ROUNDS} times with one worker and {ROUNDS} times with two, in turn. The table has",
        f"the fastest of each. Two workers took {two['wall'] / one['wall']:.2f} of the time of one. All results are equal to",
        "the last digit.",
        "",
        "## Result",
        "",
        "| placement | drives at the end | worn out | failed | WAF | dollars | kg CO2e | mixes | not steady |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            f"| `{row['placement']}` | {row['drives']:,} | {row['worn']:.1f} | {row['failed']:.1f} ({row['failed_low']:.0f}-"
            f"{row['failed_high']:.0f}) | {row['write_amplification']:.3f} | {row['dollars']:,.0f} | {row['carbon_kg']:,.0f} | "
            f"{row['mixes']:,} | {row['not_steady']} |"
            for row in whole["totals"]
        ),
        "",
        "## Error of the defaults",
        "",
        "A hundredth of the volumes and drives. Each row changes one argument.",
        "",
        "| argument | runs | WAF `none` | WAF `by_lifetime` |",
        "|---|---|---|---|",
    ]
    rows = [(name, row) for name, row in found.items() if "wafs" in row]
    for name, row in rows:
        shown = (f"{waf:.4f} ({waf / ours - 1:+.2%})" for waf, ours in zip(row["wafs"], rows[0][1]["wafs"], strict=True))
        lines.append(f"| {name} | {row['ran']} | {' | '.join(shown)} |")
    lines += [
        "",
        "The last row has no error of the tolerance. The defaults are a little below it, because a mix runs",
        "with the data of the middle of its time, and the write amplification grows faster towards the end.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2:])
    else:
        main()
