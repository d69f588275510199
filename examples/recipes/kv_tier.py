#!/usr/bin/env python3
"""Key-value cache tier on an NVMe drive, through the device layer of LMCache.

The tier has a slot for each chunk. A request that misses evicts the oldest chunk of its class and
writes its own into that slot. Layout, requests and rates are those of the workload file, which
`warp run` reads too. It must have classes of `popular` requests with `zipf_exponent = 0`.

    kv_tier.py /dev/ng0n1 kv_tier.toml none|class DRIVE-WRITES
"""

import heapq
import mmap
import random
import sys
import tomllib
from collections import deque
from pathlib import Path

from lmcache_rust_raw_block_io import RawBlockDevice

PIECE_BYTES = 128 << 10
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}


def size(text: str) -> int:
    """Returns the bytes of a text such as 64KiB."""
    return int(text[:-3]) * UNITS[text[-3:]]


class Tier:
    """Slots of one class, and its requests."""

    def __init__(self, name: str, settings: dict, first_byte: int, room_bytes: int, placement: int | None) -> None:
        requests = settings["requests"]
        if requests["kind"] != "popular" or requests["zipf_exponent"] != 0:
            raise SystemExit(f"kv_tier.py: the class {name} does not have uniform popular requests")
        self.chunk_bytes = size(settings["chunk_bytes"])
        self.placement = placement
        self.piece_seconds = min(PIECE_BYTES, self.chunk_bytes) / requests.get("bytes_per_second", 10**9)
        self.pieces = max(1, self.chunk_bytes // PIECE_BYTES)
        slots = room_bytes // self.chunk_bytes
        self.catalogue = int(slots * requests["catalogue_percent"] / 100)
        self.free = deque(first_byte + slot * self.chunk_bytes for slot in range(slots))
        # Keys in the order of their writes.
        self.slot_of: dict[int, int] = {}
        self.random = random.Random(name)
        self.waiting: deque[int] = deque()

    def request(self) -> None:
        """Draws a request. If it misses, the pieces of its chunk wait."""
        key = self.random.randrange(self.catalogue)
        if key in self.slot_of:
            return
        offset = self.free.popleft() if self.free else self.slot_of.pop(next(iter(self.slot_of)))
        self.slot_of[key] = offset
        self.waiting.extend(range(offset, offset + self.chunk_bytes, PIECE_BYTES))


def main(path: str, workload: str, placement: str, drive_writes: str) -> None:
    settings = tomllib.loads(Path(workload).read_text())
    device = RawBlockDevice(path, True, alignment=4096, io_engine="io_uring", use_uring_cmd=True)
    # LMCache leaves placement identifier 0 to writes without one.
    identifiers = [identifier for identifier, _ in device.fetch_fdp_status() if identifier]
    capacity = device.size_bytes()
    classes = sorted(settings["classes"].items())
    shares = sum(own["share"] for _, own in classes)
    tiers, first_byte = [], 0
    for number, (name, own) in enumerate(classes):
        room = int(capacity * settings["used_percent"] / 100 * own["share"] / shares)
        tiers.append(Tier(name, own, first_byte, room, identifiers[number] if placement == "class" else None))
        first_byte += room // 4096 * 4096
    buffer = memoryview(mmap.mmap(-1, PIECE_BYTES))
    due = [(0.0, number) for number in range(len(tiers))]
    left_bytes = int(float(drive_writes) * capacity)
    while left_bytes > 0:
        now, number = heapq.heappop(due)
        tier = tiers[number]
        if not tier.waiting:
            tier.request()
        if not tier.waiting:
            heapq.heappush(due, (now + tier.pieces * tier.piece_seconds, number))
            continue
        length = min(PIECE_BYTES, tier.chunk_bytes)
        batch = device.batched_write([tier.waiting.popleft()], [buffer[:length]], [length], placement_ids=[tier.placement])
        done, errors = device.wait_iouring(batch)
        if not all(done):
            raise SystemExit(f"kv_tier.py: a write to {path} failed: {errors}")
        left_bytes -= length
        heapq.heappush(due, (now + tier.piece_seconds, number))


if __name__ == "__main__":
    main(*sys.argv[1:])
