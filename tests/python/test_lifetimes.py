"""`lifetimes` returns the numbers of `warp lifetimes`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from warp_ssd import Lifetimes, WarpError, lifetimes

WARP = os.environ.get("WARP") or shutil.which("warp")
SHARES = (0.1, 0.25, 0.5, 0.9)


def innodb() -> Lifetimes:
    return lifetimes("innodb", scale="1/1024")


@pytest.mark.skipif(WARP is None, reason="the command was not built")
def test_they_are_the_commands(tmp_path: Path) -> None:
    arguments = ["lifetimes", "innodb", "rocksdb", "--scale", "1/1024", "--drive-writes", "1", "--json"]
    output = subprocess.run([str(WARP), *arguments], check=True, capture_output=True, text=True, cwd=tmp_path)
    printed = json.loads(output.stdout)
    options: dict[str, Any] = {"scale": 1024, "drive_writes": 1.0}
    both = [lifetimes(name, **options) for name in ("innodb", "rocksdb")]
    assert [one.to_dict()["workloads"][0] for one in both] == printed["workloads"]
    for one, workload in zip(both, printed["workloads"], strict=True):
        rows = one.quantiles().to_pyarrow().to_pylist()
        streams = {row["stream"]: row for row in rows}
        assert len(streams) == 1 + len(workload["streams"]), "all of it, and each stream"
        named = {None: workload["lifetimes"]} | {part["name"]: part["lifetimes"] for part in workload["streams"]}
        for name, part in named.items():
            row = streams[name]
            assert row["workload"] == workload["name"]
            assert row["written_bytes"] == part["written_bytes"]
            assert row["there_at_the_end"] == part["there_at_the_end"]
            assert [row[f"end_within_{100 * share:.0f}"] for share in SHARES] == [
                quantile["bytes"] for quantile in part["end_within"]
            ]
    apart = printed["kolmogorov_smirnov"]
    assert both[0].distance(both[1]) == (apart["distance"], apart["at_bytes"])


def test_the_distribution_is_behind_the_quantiles_and_the_distance() -> None:
    one = innodb()
    quantiles = {row["stream"]: row for row in one.quantiles().to_pyarrow().to_pylist()}
    by_stream: dict[str | None, list[tuple[int, float]]] = {}
    for step in one.distribution().to_pyarrow().to_pylist():
        by_stream.setdefault(step["stream"], []).append((step["bytes"], step["ended_share"]))
    assert list(by_stream) == [name for name in quantiles]
    for stream, steps in by_stream.items():
        assert steps == sorted(steps)
        assert 0.0 < steps[0][1] <= steps[-1][1] <= 1.0
        for share in SHARES:
            first = next((distance for distance, ended in steps if ended >= share), None)
            assert quantiles[stream][f"end_within_{100 * share:.0f}"] == first
    assert one.distance(innodb())[0] == 0.0
    other = lifetimes("innodb", scale="1/1024", overrides={"workload.torn_pages": "none"})
    (apart, at_bytes), ended = one.distance(other), dict(by_stream[None])
    without = {
        step["bytes"]: step["ended_share"]
        for step in other.distribution().to_pyarrow().to_pylist()
        if step["stream"] is None
    }

    def share(steps: dict[int, float], distance: int) -> float:
        return max((part for bytes_, part in steps.items() if bytes_ <= distance), default=0.0)

    assert apart > 0.1
    assert abs(share(ended, at_bytes) - share(without, at_bytes)) == pytest.approx(apart)


def test_they_say_what_they_are() -> None:
    one = innodb()
    assert "doublewrite" in str(one)
    assert repr(one).startswith('Lifetimes("innodb": ')


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(WarpError, match="writes nothing"):
        lifetimes("random_read", scale="1/1024")
    with pytest.raises(WarpError, match="there is no workload or file inodb"):
        lifetimes("inodb")
    with pytest.raises(WarpError, match="capacity_bytes"):
        lifetimes("innodb", capacity_bytes=1 << 30, scale=64)
    with pytest.raises(WarpError, match="those of another scale"):
        innodb().distance(lifetimes("innodb", scale="1/512"))
    large_pages = {"geometry.mapping_unit_bytes": "16KiB"}
    short: dict[str, Any] = {"scale": "1/256", "drive_writes": 0.1}
    with pytest.raises(WarpError, match="other mapping units"):
        lifetimes("innodb", **short).distance(lifetimes("innodb", overrides=large_pages, **short))
