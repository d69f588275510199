#!/usr/bin/env python3
"""Makes folders of a characterization from published measurements of two drives.

    docs/benchmarks/characterization.py FOLDER
    python -m warp_ssd.characterize fit FOLDER/micron_7450_max
    python -m warp_ssd.characterize fit FOLDER/solidigm_p5520

The measurements are those of experiments/predictions (SSD-iq, PVLDB 18(11), 2025, raw data). FIT has
the probes that the fit may see, chosen before the first fit. They are those that `warp
characterize` measures too. All others are holdouts.
"""

import csv
import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DRIVES = {
    "micron_7450_max": ("Micron 7450 MAX", 800166076416),
    "solidigm_p5520": ("Solidigm D7-P5520", 1920383410176),
}
FIT = {
    "micron_7450_max": ["in order, empty", "uniform", "uniform, 50 %", "20:80", "read-only 20 %", "zones 1 GiB, 1 open", "zones 2 GiB, 1 open"],
    "solidigm_p5520": ["in order, empty", "uniform", "zipf 0.8", "read-only 20 %"],
}
NAMES = {"in order, empty": "fill", "uniform": "uniform"}
# Standard deviations as shares. A counter drifts by up to 0.5 %. A number that follows from the rate
# of host writes is uncertain by 10 % on the P5520, as its file says. This is taken as two standard
# deviations.
BY_COUNTER, BY_RATE = 0.005, {"micron_7450_max": 0.01, "solidigm_p5520": 0.05}


def main(target: Path) -> None:
    experiment = tomllib.loads((ROOT / "experiments/predictions/experiment.toml").read_text())
    variants = {variant["name"]: variant for variant in experiment["variants"]}
    run = experiment["run"]
    for drive, (model, capacity) in DRIVES.items():
        folder = target / drive
        for name in ("jobs", "samples"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        lines = []
        for row in experiment["published"]:
            name = row["at"]["variant"]
            if row["at"]["device"] != drive or "relative_to" in row:
                continue
            variant, (waf,) = variants[name], row["drive"]
            probe = NAMES.get(name) or re.sub(r"[^a-z0-9.]+", "_", name.lower()).strip("_").replace(".", "")
            workload = variant.get("workload") or experiment["workload"] | variant.get("settings", {})
            job = folder / "jobs" / f"{probe}.toml"
            job.write_text("".join(f"{key} = {toml(value)}\n" for key, value in workload.items()))
            is_rate = "by_rate" in row["source"]
            lines.append(
                {
                    "probe": probe,
                    "workload": f"jobs/{probe}.toml",
                    "waf": waf,
                    "sigma": round(waf * (BY_RATE[drive] if is_rate else BY_COUNTER), 4),
                    "relative_to": "",
                    "drive_writes": round(run["drive_writes"] * variant["write_share"], 4),
                    "precondition_drive_writes": variant.get("precondition_drive_writes", run["precondition_drive_writes"]),
                    "tail_drive_writes": row["metric"]["last_write_amplification"],
                    "precondition_bytes_share": "",
                    "steady": "true",
                    "use": "fit" if name in FIT[drive] else "holdout",
                    "source": row["source"],
                }
            )
        with open(folder / "measurements.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, lines[0])
            writer.writeheader()
            writer.writerows(lines)
        (folder / "times.csv").write_text("probe,what,unit,value,block_bytes,queue_depth\n")
        (folder / "journal.jsonl").write_text("")
        about = {"format": "warp-characterization", "version": 1, "date": "2025", "target": None, "model": model, "serial": None, "firmware": None}
        sizes = {"capacity_bytes": capacity, "block_bytes": 4096, "write_granularity_bytes": 4096}
        (folder / "drive.json").write_text(json.dumps({**about, **sizes, "counter": "ocp", "fdp": None, "missing": []}))


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
