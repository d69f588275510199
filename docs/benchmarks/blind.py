#!/usr/bin/env python3
"""Blind test of `warp characterize`: drives with hidden settings are measured over NVMe/TCP and predicted.

Usage: blind.py WARP [--drives N] [--first N] [--folder FOLDER] [--fit ARGUMENTS] [--without-counters]
       blind.py --page          writes the page again

Each drive has settings that a seed draws. `warp serve` serves it, and `warp characterize` measures it and fits a profile.
The fitted profile then predicts workloads that no probe contains, and the hidden profile gives the true numbers. Results join
blind.json, and blind.md is the page. The Python package must be installed for the interpreter in WARP_PYTHON.
"""

import argparse
import json
import pathlib
import random
import re
import shlex
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
CAPACITY = 512 << 20
# Drives without counters are slow, because a rate shows the work of the flash only if the flash limits it.
SLOW_CAPACITY, SLOW_PROGRAMS = 128 << 20, 30
SEEDS = (11, 12)

# Workloads that are in no probe.
UNSEEN = {
    "skewed": "[skewed]\nrw=randwrite\nbs=8k\nnorandommap\nsize=90%\nrandom_distribution=zipf:1.1\n",
    "log and tables": "[log]\nrw=write\nbs=64k\nsize=20%\nrate=300m\n\n"
    "[tables]\nrw=randwrite\nbs=16k\nnorandommap\noffset=20%\nsize=75%\nrate=700m\nrandom_distribution=zoned:70/20:30/80\n",
    "three streams": "[global]\nioengine=io_uring_cmd\ncmd_type=nvme\ndataplacement=fdp\n\n"
    "[hot]\nrw=randwrite\nbs=4k\nnorandommap\nsize=15%\nrate=500m\nplids=1\n\n"
    "[warm]\nrw=randwrite\nbs=16k\nnorandommap\noffset=15%\nsize=35%\nrate=300m\nplids=2\n\n"
    "[cold]\nrw=write\nbs=128k\noffset=50%\nsize=50%\nrate=200m\nplids=0\n",
}

FAMILIES = {"greedy": "greedy", "fifo": "fifo", "benefit_cost": "age-aware", "d_choices": "random choices"}


def draw(number: int, capacity: int) -> dict[str, object]:
    """The hidden settings of a drive, by path."""
    rng = random.Random(f"blind {number}")
    kind = ["greedy", "d_choices", "benefit_cost", "fifo"][number % 4]
    copies = rng.choice(["apart", "apart", "with_host"])
    settings: dict[str, object] = {
        "geometry.capacity_bytes": capacity,
        "geometry.over_provisioning": round(rng.uniform(0.07, 0.45), 3),
        "geometry.reclaim_unit_bytes": rng.choice([256, 512, 1024, 2048]) << 10,
        "geometry.media_overhead_share": round(rng.choice([0.0, rng.uniform(0, 0.10)]), 3),
        "handles.count": rng.choice([4, 8]),
        "handles.isolation": rng.choice(["initially_isolated", "persistently_isolated"]),
        # The blocks of a small drive have few pages. A drive's blocks are too large to stay fully valid.
        "gc.block_remapping": False,
        "gc.copies": copies,
        "gc.victim_policy": {"d_choices": rng.choice([3, 5, 10, 20])} if kind == "d_choices" else kind,
    }
    # A drive whose copies share the host's unit has no times.
    if copies == "apart":
        settings |= {
            "timing.write_buffer_bytes": rng.choice([4, 16, 64]) * MIB,
            "timing.nand.page_bytes": 4096,
            "timing.nand.bits_per_cell": 1,
            "timing.nand.read_ns": [rng.randrange(20_000, 60_000)],
            "timing.nand.program_ns": rng.randrange(40_000, 80_000),
            # A block of these small units has a few pages, so its erase takes as little.
            "timing.nand.erase_ns": 50_000,
            "timing.channel.bytes_per_second": 2_000_000_000,
            "timing.controller.cores": 8,
            "timing.controller.read_ns": 4000,
            "timing.controller.write_ns": 4000,
            "timing.link.generation": 4,
            "timing.link.lanes": 4,
        }
    return settings


def profile(settings: dict[str, object]) -> str:
    """The settings as a device profile."""
    plain = lambda value: f"{{ {', '.join(f'{k} = {v}' for k, v in value.items())} }}" if isinstance(value, dict) else json.dumps(value)
    lines = ['title = "a drive with hidden settings"', 'notes = "Drawn by docs/benchmarks/blind.py."']
    lines += [f'{path} = {{ value = {plain(value)}, source = "drawn" }}' for path, value in settings.items()]
    return "\n".join(lines) + "\n"


def waf(warp: str, job: pathlib.Path, device: pathlib.Path, *options: str) -> dict:
    """The JSON of a run of an unseen workload."""
    command = [warp, "run", str(job), "--device", str(device), "--untimed", "--precondition", "1", "--drive-writes", "4", "--json",
               "--no-keep", *options, *(f"--seed={seed}" for seed in SEEDS)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def mean_tail(result: dict) -> float:
    return sum(cell["tail_waf"] for cell in result["cells"]) / len(result["cells"])


def has_times(number: int) -> bool:
    return "timing.nand.program_ns" in draw(number, CAPACITY)


def measure(
    warp: str, number: int, folder: pathlib.Path, fit: list[str], capacity: int = CAPACITY, has_counters: bool = True
) -> dict:
    """Characterizes a hidden drive and predicts the unseen workloads."""
    settings = draw(number, capacity)
    if not has_counters:
        settings["timing.nand.program_ns"] *= SLOW_PROGRAMS
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / "hidden.toml"
    hidden.write_text(profile(settings))
    begun = time.monotonic()
    serve = [warp, "serve", "--device", str(hidden), "--tcp", "127.0.0.1:0"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = None
            for line in server.stdout:
                found = re.search(r"-a (\S+) -s (\d+)", line)
                address = f"{found[1]}:{found[2]}" if found else address
                if "Ctrl-C" in line:
                    break
            command = [warp, "characterize", f"tcp:{address}", "--yes", "--no-fit", "--load-seconds", "0.5", "--out",
                       str(folder / "drive"), *([] if has_counters else ["--without-counters"])]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        finally:
            server.terminate()
    measured = time.monotonic()
    command = [warp, "characterize", str(folder / "drive"), *(["--", *fit] if fit else [])]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    fitted = time.monotonic()
    found = json.loads((folder / "drive" / "fit.json").read_text())
    answers = []
    for name, text in UNSEEN.items():
        job = folder / f"{name.replace(' ', '_')}.fio"
        job.write_text(text)
        true = mean_tail(waf(warp, job, hidden))
        predicted = waf(warp, job, folder / "drive" / "profile.toml", "--uncertainty")
        intervals = [one["tail_waf"] for one in predicted["intervals"]]
        low, high = (sum(one[key] for one in intervals) / len(intervals) for key in ("low", "high"))
        answers.append({"workload": name, "true": true, "predicted": mean_tail(predicted), "low": low, "high": high})
    kind = settings["gc.victim_policy"]
    return {
        "drive": number,
        "has_counters": has_counters,
        "hidden": settings,
        "family": FAMILIES[kind if isinstance(kind, str) else "d_choices"],
        "named": found["policy_family"]["named"],
        "also_fit": found["policy_family"]["also_fit"],
        "found": found["settings"],
        "answers": answers,
        "seconds_measured": round(measured - begun),
        "seconds_fitted": round(fitted - measured),
    }


def rows(results: list[dict]) -> list[str]:
    """Table and totals of some drives."""
    error = lambda answer: answer["predicted"] / answer["true"] - 1
    within = lambda answer: abs(error(answer)) <= 0.05
    inside = lambda answer: answer["low"] <= answer["true"] <= answer["high"]
    families = sum(result["family"] in (result["named"], *result["also_fit"]) for result in results)
    named = sum(result["named"] == result["family"] for result in results)
    out = ["| drive | spare | policy | named | " + " | ".join(UNSEEN) + " |", "|---" * (4 + len(UNSEEN)) + "|"]
    for result in sorted(results, key=lambda result: result["drive"]):
        cells = []
        for answer in result["answers"]:
            text = f"{answer['predicted']:.3f} ({answer['low']:.2f}-{answer['high']:.2f}), {answer['true']:.3f}"
            cells.append((text if within(answer) else f"**{text}**") + ("" if inside(answer) else " \\*"))
        spare = result["hidden"]["geometry.over_provisioning"]
        out.append(f"| {result['drive']} | {spare:.1%} | {result['family']} | {result['named']} | {' | '.join(cells)} |")
    answers = [answer for result in results for answer in result["answers"]]
    mean = lambda key: sum(result[key] for result in results) / len(results)
    out += [
        "",
        f"- Within 5 %: {sum(map(within, answers))} of {len(answers)} predictions. The mean error is "
        f"{sum(abs(error(a)) for a in answers) / len(answers):.1%}.",
        f"- Drives with all {len(UNSEEN)} predictions within 5 %: {sum(all(map(within, r['answers'])) for r in results)} of {len(results)}.",
        f"- True WAF inside the interval: {sum(map(inside, answers))} of {len(answers)}.",
        f"- Policy family named right: {named} of {len(results)}. It was named or among the others that fit in {families}.",
        f"- A drive took {mean('seconds_measured'):.0f} s to measure and {mean('seconds_fitted'):.0f} s to fit, on two processors with other work.",
    ]
    return out


def page(results: list[dict]) -> str:
    counted = [result for result in results if result.get("has_counters", True)]
    uncounted = [result for result in results if result not in counted]
    out = [
        "# Blind test of `warp characterize`", "",
        "This page is for readers who ask how well a characterized drive predicts a workload that was not",
        f"measured. {len(counted)} served drives of 512 MiB have settings that a seed drew. Their spare is 7 to 45 %, and",
        "their reclaim units have 256 KiB to 2 MiB. They also differ in policy, copies, isolation, overhead",
        "and times. `warp characterize` measures each over NVMe/TCP and fits a profile with `--quick`. The",
        "command is:", "",
        "```sh", "docs/benchmarks/blind.py target/release/warp --fit=--quick", "```", "",
        "Each cell has the predicted WAF, its interval and the true WAF of the hidden profile. Bold means",
        "more than 5 % off. A star marks a true WAF outside the interval. Both numbers are means over the",
        "same two seeds of the model.", "",
        *rows(counted),
    ]
    if uncounted:
        out += [
            "", "## Drives without counters", "",
            f"These drives have {SLOW_CAPACITY >> 20} MiB, and their pages take {SLOW_PROGRAMS} times as long to program, so that the flash",
            "limits the rate. `--without-counters` measures them by the host's rates alone. The command is:", "",
            "```sh", "docs/benchmarks/blind.py target/release/warp --fit=--quick --without-counters", "```", "",
            *rows(uncounted),
        ]
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("warp", nargs="?")
    parser.add_argument("--drives", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first drive")
    parser.add_argument("--folder", type=pathlib.Path, help="folder for the measurements (default: a temporary one)")
    parser.add_argument("--store", type=pathlib.Path, default=HERE / "blind.json")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--without-counters", action="store_true", help="measure slow drives by the host's rates alone")
    parser.add_argument("--fit", default="", help="arguments of the fit, such as --fit=--quick")
    arguments = parser.parse_args()
    results = json.loads(arguments.store.read_text()) if arguments.store.exists() else []
    if not arguments.page:
        if arguments.warp is None:
            parser.error("name the program to test")
        with tempfile.TemporaryDirectory() as temporary:
            base = arguments.folder or pathlib.Path(temporary)
            for number in range(arguments.first, arguments.first + arguments.drives):
                has_counters, fit = not arguments.without_counters, shlex.split(arguments.fit)
                done = {(result["drive"], result.get("has_counters", True)) for result in results}
                if (number, has_counters) in done or not (has_counters or has_times(number)):
                    continue
                capacity = CAPACITY if has_counters else SLOW_CAPACITY
                folder = base / f"{number}{'' if has_counters else '_slow'}"
                results.append(measure(arguments.warp, number, folder, fit, capacity, has_counters))
                arguments.store.write_text(json.dumps(results, indent=1) + "\n")
                print(json.dumps(results[-1]["answers"]), flush=True)
    (arguments.store.with_suffix(".md")).write_text(page(results))


if __name__ == "__main__":
    main()
