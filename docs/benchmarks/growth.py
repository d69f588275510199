#!/usr/bin/env python3
"""Measures how the cost of a page grows, and writes growth.json, growth.svg and growth.md beside this file.

Usage: growth.py WARP [--label NAME] [--rounds N] [--quick]
       growth.py --page          writes the page and the plot again

WARP is the program to measure. Its numbers join growth.json as the set NAME, by default "today". Points that the set
already has are not measured again. Each point is the
difference of a long and a short run, in processor time for each media page, on one thread.
"""

import argparse
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
GIB = 1 << 30
HEAD = """# Growth of costs

This page is for people who change WARP's hot paths. It shows how the cost of a page grows with the
capacity, the number of reclaim units, the handles, the jobs and the request size.

A point is processor time for each media page (programmed by the host or as a copy), in
nanoseconds. It is the difference of a long and a short run on one thread, and the median of three
pairs unless a table says otherwise. A flat curve means that the time of a run is linear in the
pages. The command measures the points and writes this page:

```sh
docs/benchmarks/growth.py target/release/warp
```

![Cost of a page against capacity, units, handles, jobs and request size](growth.svg)

The last column is the cost of the last point relative to the first one.
"""


def job(block: str, jobs: int = 1, depth: int = 1, more: str = "") -> str:
    return f"[a]\nrw=randwrite\nnorandommap\nbs={block}\nnumjobs={jobs}\niodepth={depth}\ntime_based\nruntime=100d\n{more}"


def drive(profile: str, capacity: int, **settings: object) -> list[str]:
    paths = {name.replace("__", "."): value for name, value in settings.items()}
    return ["--device", profile, "--capacity", f"{capacity // GIB}GiB", *(f"--set={p}={v}" for p, v in paths.items())]


def sized(capacity: int, unit: int, handles: int = 8) -> list[str]:
    """An untimed drive with reclaim units of `unit` bytes, which `--capacity` alone would scale."""
    settings = {"capacity_bytes": capacity, "reclaim_unit_bytes": unit}
    return ["--device", "warp_default", f"--set=handles.count={handles}",
            *(f"--set=geometry.{name}={value}" for name, value in settings.items())]


def curves(quick: bool) -> list[tuple[str, str, str, list[tuple[int, int, str, list[str]]]]]:
    """Name, x axis and series, with points of x, capacity, job and options of `warp run`."""
    capacities = [1, 4, 16] if quick else [1, 4, 16, 64, 256]
    large = capacities if quick else [*capacities, 1024]
    base = 4 * GIB if quick else 76 * GIB
    units = [base // 202, base // 3242, base // 12971, base // 51882, 256 << 10]
    unit_bytes = [max(bytes // (256 << 10), 1) * (256 << 10) for bytes in units]
    handles, jobs, sizes = [1, 4, 16, 64], [1, 4, 16, 64, 256, 1024], ["4k", "16k", "64k", "256k", "1m"]
    timed = drive("pm9d3a", 8 * GIB)
    untimed = ["--untimed"]
    point = lambda c, block: (c, c * GIB, job(block), drive("warp_default", c * GIB) + untimed)
    by_handle = lambda count: job("4k", more=f"fdp=1\nplids=0-{count - 1}\nplid_select=random\n")
    kib = lambda size: int(size[:-1]) * (1024 if size[-1] == "m" else 1)
    return [
        ("capacity", "GiB", "4 KiB", [point(c, "4k") for c in capacities]),
        ("capacity", "GiB", "128 KiB", [point(c, "128k") for c in large]),
        ("reclaim units", "", "4 KiB",
         [(base * 11 // 10 // unit, base, job("4k"), sized(base, unit) + untimed) for unit in dict.fromkeys(unit_bytes)]),
        # The same size of units on larger drives shows the number of units alone.
        ("reclaim units", "", "4 KiB, units of 256 KiB",
         [(c * GIB * 11 // 10 >> 18, c * GIB, job("4k"), sized(c * GIB, 256 << 10) + untimed) for c in capacities[:4]]),
        ("handles", "", "4 KiB", [(h, 16 * GIB, by_handle(h), sized(16 * GIB, 4 << 20, h) + untimed) for h in handles]),
        ("jobs", "", "4 KiB, timed", [(n, 8 * GIB, job("4k", jobs=n), timed) for n in jobs]),
        ("request size", "KiB", "timed", [(kib(s), 8 * GIB, job(s, depth=32), timed) for s in sizes]),
        ("request size", "KiB", "untimed", [(kib(s), 8 * GIB, job(s, depth=32), timed + untimed) for s in sizes]),
        # The full size needs 8 GiB of memory.
        ("capacity", "GiB", "128 KiB", [] if quick else [point(7152, "128k")]),
    ]


def run(warp: str, file: pathlib.Path, options: list[str], writes: float) -> tuple[float, int]:
    """Processor seconds and media pages of a run that writes so many capacities after a fill."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [warp, "run", str(file), *options, "--precondition", "1", "--drive-writes", f"{writes:.6f}", "--no-keep", "--json",
               "--out", str(file.parent / "out")]
    done = subprocess.run(command, env=os.environ | {"RAYON_NUM_THREADS": "1"}, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cell = json.loads(done.stdout)["cells"][0]
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cell["media_bytes_written"] // cell["page_bytes"]


def cost(warp: str, folder: pathlib.Path, capacity: int, text: str, options: list[str], quick: bool, rounds: int) -> float:
    """Nanoseconds for each media page."""
    file = folder / "growth.fio"
    file.write_text(text)
    pages = capacity // 4096
    # Pages of large requests cost little, so more of them are needed beside the fill.
    is_large = "bs=128k" in text
    host_pages = (1 if quick else 2) << (23 if is_large else 20)
    # The fill of a very large drive takes seconds, so its noise needs more pages beside it.
    is_very_large = capacity > 256 * GIB
    more_writes = max(host_pages / pages, 2.0 if is_very_large else 0.5 if is_large else 0.1)
    # A large drive is measured while it collects its first units.
    start = min(1.0, max(0.2, more_writes))
    costs = []
    for _ in range(rounds):
        short, long = (run(warp, file, options, start + more) for more in (0, more_writes))
        costs.append((long[0] - short[0]) * 1e9 / (long[1] - short[1]))
    return statistics.median(costs)


def measure(warp: str, quick: bool, rounds: int, rows: list[dict]):
    """Adds the missing points to the rows, and yields after each."""
    known = {(row["curve"], row["series"], row["x"]) for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        for name, unit, series, points in curves(quick):
            for x, capacity, text, options in points:
                if (name, series, x) in known:
                    continue
                ns = cost(warp, pathlib.Path(folder), capacity, text, options, quick, rounds)
                print(f"{name}, {series}: {x} {unit} {ns:.2f} ns", flush=True)
                rows.append({"curve": name, "unit": unit, "series": series, "x": x, "ns": round(ns, 2)})
                yield


def grouped(rows: list[dict], *keys: str) -> dict[tuple, list[dict]]:
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def svg(sets: dict[str, list[dict]]) -> str:
    """A panel for each curve, both axes logarithmic."""
    width, height, left, top, gap = 250, 190, 46, 30, 28
    panels = grouped([row | {"set": name} for name, rows in sets.items() for row in rows], "curve", "unit")
    colors = ["#1f6feb", "#d29922", "#2da44e", "#8250df"]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {3 * (width + gap)} {2 * (height + top + gap)}" '
           'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>']
    for index, ((curve, unit), rows) in enumerate(panels.items()):
        x0, y0 = (index % 3) * (width + gap) + left, (index // 3) * (height + top + gap) + top
        xs, ys = [row["x"] for row in rows], [max(row["ns"], 0.1) for row in rows]
        low, high = 10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys)))
        scale = lambda value, least, most: math.log(value / least) / max(math.log(most / least), 1e-9)
        place = lambda row: (x0 + scale(row["x"], min(xs), max(xs)) * (width - left),
                             y0 + height - scale(max(row["ns"], 0.1), low, high) * height)
        out.append(f'<text x="{x0}" y="{y0 - 10}" font-weight="bold">{curve}{f" ({unit})" if unit else ""}, ns a page</text>')
        for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
            y = y0 + height - scale(10.0**power, low, high) * height
            out.append(f'<path d="M{x0} {y:.1f}h{width - left}" stroke="#ddd"/><text x="{x0 - 6}" y="{y + 4:.1f}" '
                       f'text-anchor="end">{10.0**power:g}</text>')
        for x in sorted({min(xs), max(xs)}):
            out.append(f'<text x="{place({"x": x, "ns": low})[0]:.1f}" y="{y0 + height + 14}" text-anchor="middle">{x:,}</text>')
        for number, ((name, series), line) in enumerate(grouped(rows, "set", "series").items()):
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, line))
            dash = ' stroke-dasharray="4 3"' if name == "before" else ""
            color = colors[list(dict.fromkeys(row["series"] for row in rows)).index(series)]
            out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.8"{dash}/>')
            out.append(f'<text x="{x0 + 6}" y="{y0 + 12 + 13 * number}" fill="{color}">{series}'
                       f'{f", {name}" if len(sets) > 1 else ""}</text>')
    return "\n".join([*out, "</svg>\n"])


def page(sets: dict[str, list[dict]], reasons: str) -> str:
    out = [HEAD]
    for name, rows in sets.items():
        out += [f"\n## {name.capitalize()}\n", "| curve | points: ns a page | last / first |", "|---|---|---|"]
        for (curve, unit, series), line in grouped(rows, "curve", "unit", "series").items():
            points = ", ".join(f"{row['x']:,}: {row['ns']:g}" for row in line)
            growth = line[-1]["ns"] / line[0]["ns"]
            out.append(f"| {curve}{f' ({unit})' if unit else ''}, {series} | {points} | {growth:.2f} |")
    return "\n".join(out) + "\n" + reasons


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("warp", nargs="?")
    parser.add_argument("--label", default="today")
    parser.add_argument("--rounds", type=int, default=3, help="pairs for each point")
    parser.add_argument("--quick", action="store_true", help="small drives, prints the points and writes no file")
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    stored, text = HERE / "growth.json", HERE / "growth.md"
    sets = json.loads(stored.read_text()) if stored.exists() else {}
    if not arguments.page:
        if arguments.warp is None:
            parser.error("name the program to measure")
        rows = [] if arguments.quick else sets.setdefault(arguments.label, [])
        for _ in measure(arguments.warp, arguments.quick, arguments.rounds, rows):
            if not arguments.quick:
                stored.write_text(json.dumps(sets, indent=1) + "\n")
        if arguments.quick:
            return
    # The reasons are written by hand, below the tables.
    reasons = text.read_text().partition("\n## Reasons")[1:] if text.exists() else ("", "")
    (HERE / "growth.svg").write_text(svg(sets))
    text.write_text(page(sets, "".join(reasons)))


main()
