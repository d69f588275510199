#!/usr/bin/env python3
"""Prints docs/benchmarks/whatif.md from stored runs of `warp whatif`.

Usage: whatif.py FOLDER >whatif.md, where FOLDER is the one that WARP_RUNS named while the runs were made.
"""

import json
import pathlib
import sys
import textwrap

HEAD = """# `warp whatif` on thirteen workloads and four drives

This page is for readers who want to know what placement gives typical workloads. Each cell has an
answer of `warp whatif WORKLOAD --drive SIZE`. `docs/benchmarks/whatif.py` wrote this page from the
stored runs.

A cell gives the WAF without placement, with the best placement that a host can do, and with the
oracle. `-` means that the run did not end within 190 seconds on one core. `rocksdb` had 50 minutes
on a slower one.

"""


def answers(folder: str) -> list[dict]:
    runs = [json.loads(path.read_text()) for path in sorted(pathlib.Path(folder).glob("**/runs/*.json"))]
    return [run["result"]["answer"] for run in runs if run["result"].get("answer")]


def cell(answer: dict | None) -> str:
    if answer is None:
        return "-"
    placements = answer["placements"]
    waf = {known: [p["write_amplification"] for p in placements if p["knowledge"] == known] for known in ("none", "host", "future")}
    return " / ".join(f"{min(values):.2f}" if values else "none" for values in waf.values())


def contradictions(answer: dict) -> list[str]:
    """Placements that know more and reach less, beyond the change at the end of the run."""
    oracle = next(p for p in answer["placements"] if p["knowledge"] == "future")
    slack = lambda p: 1 + max(p["end_difference"] or 0, oracle["end_difference"] or 0, 0.02)
    return [p["name"] for p in answer["placements"] if oracle["write_amplification"] > p["write_amplification"] * slack(p)]


def main() -> None:
    table: dict[str, dict[int, dict]] = {}
    for answer in answers(sys.argv[1]):
        table.setdefault(pathlib.Path(answer["workload"]).name, {})[answer["drive_bytes"]] = answer
    drives = sorted({drive for row in table.values() for drive in row})
    print(HEAD, end="")
    print("| workload | " + " | ".join(f"{drive / 1e12:.2f} TB" for drive in drives) + " |")
    print("|---" * (len(drives) + 1) + "|")
    for name, row in sorted(table.items()):
        print(f"| `{name}` | " + " | ".join(cell(row.get(drive)) for drive in drives) + " |")
    worse = [(name, drive, c) for name, row in table.items() for drive, answer in row.items() for c in contradictions(answer)]
    print(f"\nCells in which the oracle is worse than another placement by more than chance: {len(worse)}.")
    for name, drive, placement in worse:
        print(f"- `{name}`, {drive / 1e12:.2f} TB: {placement}")
    print("\n## The sentences\n")
    for name, row in sorted(table.items()):
        print(f"\n### `{name}`\n")
        for drive, answer in sorted(row.items()):
            text = f"- **{drive / 1e12:.2f} TB.** {answer['headline']}"
            print(textwrap.fill(text, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))


main()
