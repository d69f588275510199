#!/usr/bin/env python3
"""Compares arrays of the model with Linux md and the device mapper, and writes arrays.json and arrays.md beside this file.

Usage: arrays.py WARP [--only NAME]     measures what arrays.json does not have
       arrays.py --page                 writes the page again

`warp guest --drives` boots Linux with served drives. The guest makes an array of them and runs a job file, or RocksDB under
`warp capture`. `warp run --array` runs the same job file or the captured requests. Both count the bytes of each drive.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
DRIVE_MIB = 64
DEVICE = ["--device", "warp_default", "--capacity", f"{DRIVE_MIB}M"]

RANDOM = """[global]
direct=1
ioengine=libaio
filename=/dev/array

[fill]
rw=write
bs=1536k
size={size}m

[random]
stonewall
rw=randwrite
bs=16k
norandommap
size={size}m
io_size={io}m
"""
SEQUENTIAL = """[sequential]
direct=1
ioengine=libaio
filename=/dev/array
rw=write
bs=128k
iodepth=16
size={size}m
"""

# Name, level, drives, job with sizes in MiB. A job leaves room for the metadata of md.
CASES = {
    "RAID-0, random": ("raid0", 4, RANDOM.format(size=216, io=432)),
    "dm-stripe, random": ("stripe", 4, RANDOM.format(size=216, io=432)),
    "RAID-1, random": ("raid1", 2, RANDOM.format(size=54, io=108)),
    "RAID-10, random": ("raid10", 4, RANDOM.format(size=108, io=216)),
    "RAID-5, random": ("raid5", 4, RANDOM.format(size=159, io=318)),
    "RAID-6, random": ("raid6", 4, RANDOM.format(size=105, io=210)),
    "RAID-5, sequential": ("raid5", 4, SEQUENTIAL.format(size=159)),
    "RAID-5, RocksDB": ("raid5", 4, None),
}
ROCKSDB = """mkfs.ext4 -q /dev/array
mount /dev/array /mnt
warp capture $(readlink -f /dev/array) --out /shared/capture.csv -- db_bench --db=/mnt/db --benchmarks=fillrandom,overwrite,overwrite \\
    --num=20000 --value_size=1000 --compression_type=none --write_buffer_size=262144 --target_file_size_base=65536 \\
    --max_bytes_for_level_base=1048576
"""


def assemble(level: str, drives: int) -> str:
    """Lines that make the array /dev/array of the guest's drives."""
    names = " ".join(f"/dev/drive{number}" for number in range(1, drives + 1))
    if level == "stripe":
        sectors = drives * DRIVE_MIB * MIB // 512
        parts = " ".join(f"/dev/drive{number} 0" for number in range(1, drives + 1))
        return (
            f'modprobe dm-mod\ndmsetup create --noudevsync array --table "0 {sectors} striped {drives} 256 {parts}"\n'
            "ln -s /dev/dm-0 /dev/array\n"
        )
    chunk = "" if level == "raid1" else "--chunk=128 "
    bitmap = "" if level == "raid0" else "--assume-clean --bitmap=none "
    module = "raid456" if level in ("raid5", "raid6") else level
    return (
        f"modprobe {module}\n"
        f"mdadm --create /dev/md0 --level={level[4:]} --raid-devices={drives} {chunk}{bitmap}--run {names} >/dev/null 2>&1\n"
        "ln -s /dev/md0 /dev/array\n"
    )


def in_guest(warp: str, folder: pathlib.Path, level: str, drives: int, job: str | None) -> tuple[list[dict], dict]:
    """Counters of the drives after the workload, and properties of the array."""
    script = "set -e\n" + assemble(level, drives)
    script += "cat /sys/block/$(basename $(readlink -f /dev/array))/queue/max_write_streams >streams 2>/dev/null || true\n"
    if job is None:
        script += ROCKSDB
    else:
        (folder / "job.fio").write_text(job)
        script += "fio --output=/dev/null job.fio\n"
    script += "uname -r >kernel\n"
    (folder / "run.sh").write_text(script)
    packages = "mdadm,dmsetup" + ("" if job else ",rocksdb-tools")
    command = [warp, "guest", "--drives", str(drives), *DEVICE, "--timing", "off", "--with", packages, "--format", "json",
               "--share", str(folder), "--timeout", "900", "--", "sh", "run.sh"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"the guest failed:\n{done.stdout}{done.stderr}")
    read = lambda name: (folder / name).read_text().strip() if (folder / name).exists() else ""
    return json.loads(done.stderr.splitlines()[-1])["drives"], {"kernel": read("kernel"), "max_write_streams": read("streams")}


def in_model(warp: str, folder: pathlib.Path, level: str, drives: int, job: str | None) -> list[dict]:
    """Counters of the model's drives after the same workload."""
    workload = folder / ("job.fio" if job else "capture.csv")
    array = f"{'raid0' if level == 'stripe' else level},drives={drives},chunk=128KiB"
    command = [warp, "run", str(workload), *DEVICE, "--untimed", "--precondition", "0", "--array", array, "--json", "--no-keep"]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    out = []
    for drive in result["cells"][0]["array"]["drives"]:
        stats = drive["stats"]
        host = sum(row["host_bytes_written"] for row in stats["handles"])
        pages = sum(row["host_pages_written"] + row["gc_pages_copied"] for row in [*stats["handles"], stats["shared"]])
        out.append({"host_bytes_written": host, "media_bytes_written": pages * stats["page_bytes"]})
    return out


def measure(warp: str, name: str) -> dict:
    level, drives, job = CASES[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        real, properties = in_guest(warp, folder, level, drives, job)
        model = in_model(warp, folder, level, drives, job)
    plain = lambda rows: [{key: row[key] for key in ("host_bytes_written", "media_bytes_written")} for row in rows]
    return {"name": name, "level": level, "drives": drives, **properties, "linux": plain(real), "model": plain(model)}


def page(results: list[dict]) -> str:
    out = [
        "# Arrays beside Linux md", "",
        "This page is for readers who ask how close the model of arrays is to Linux. The same workload ran",
        f"on an array of Linux in a guest, on served drives of {DRIVE_MIB} MiB, and on an array of the model. Chunks",
        "have 128 KiB. The random jobs fill the array in full stripes and then write 16 KiB at random",
        "places, twice as much as the fill. RocksDB is `db_bench` on ext4, captured at the array. The",
        "command is:", "",
        "```sh", "docs/benchmarks/arrays.py target/release/warp", "```", "",
        "Bytes are those that the drives received. *Largest* is the largest difference of a drive. md also",
        "writes its own metadata.", "",
        "| array, workload | Linux | model | largest | WAF of the drives in Linux | in the model | difference |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        total = lambda side, key: sum(row[key] for row in result[side])
        host = {side: total(side, "host_bytes_written") for side in ("linux", "model")}
        waf = {side: total(side, "media_bytes_written") / host[side] for side in ("linux", "model")}
        pairs = zip(result["linux"], result["model"], strict=True)
        largest = max((abs(m["host_bytes_written"] / r["host_bytes_written"] - 1) for r, m in pairs), default=0.0)
        out.append(
            f"| {result['name']} | {host['linux'] / MIB:.1f} MiB | {host['model'] / MIB:.1f} MiB | {largest:.2%} "
            f"| {waf['linux']:.3f} | {waf['model']:.3f} | {waf['model'] / waf['linux'] - 1:+.1%} |"
        )
    kernels = ", ".join(sorted({result["kernel"] for result in results}))
    streams = sorted({result["max_write_streams"] or "none" for result in results})
    out += [
        "", "## Write streams and hints", "",
        f"Linux {kernels} offers {' or '.join(streams)} write streams on these arrays (`max_write_streams` of the block",
        "device) and 8 on each drive. So neither a write stream nor a write hint reaches the drives of an",
        "array, although both reach a drive alone",
        "([Write hints that reach the drive](../explanation/write-hints.md)). Passthrough needs an NVMe",
        "device, not an array. Today, an FDP application on md loses its placement, and only a layer that",
        "addresses the drives itself can keep it. The model has both: `data_placement = \"kept\"` and",
        "`\"dropped\"` ([Arrays](../reference/arrays.md)).",
    ]
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("warp", nargs="?")
    parser.add_argument("--only", help="a case whose name contains this text")
    parser.add_argument("--store", type=pathlib.Path, default=HERE / "arrays.json")
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    results = json.loads(arguments.store.read_text()) if arguments.store.exists() else []
    for name in [] if arguments.page else CASES:
        if any(result["name"] == name for result in results) or (arguments.only or "") not in name:
            continue
        if arguments.warp is None:
            parser.error("name the program to test")
        results.append(measure(arguments.warp, name))
        results.sort(key=lambda result: list(CASES).index(result["name"]))
        arguments.store.write_text(json.dumps(results, indent=1) + "\n")
        print(name, flush=True)
    arguments.store.with_suffix(".md").write_text(page(results))


if __name__ == "__main__":
    main()
