"""Kept runs, and comparisons of two results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import warp_ssd
from warp_ssd import WarpError


def result(path: Path, scale: str, seeds: list[int]) -> str:
    measured = warp_ssd.run(
        "one_stream", devices=["warp_default"], scale=scale, drive_writes=1.5, seeds=seeds, progress=lambda *_: None
    )
    path.write_text(measured.to_json())
    return str(path)


def test_two_results_are_compared(tmp_path: Path) -> None:
    one = result(tmp_path / "one.json", "1/1024", [1, 2])
    other = result(tmp_path / "other.json", "1/512", [1, 2])
    table = warp_ssd.compare(one, other).to_pyarrow()
    rows = {row["metric"]: row for row in table.to_pylist()}
    waf = rows["WAF"]
    assert waf["low"] <= waf["difference"] <= waf["high"]
    assert waf["seeds_a"] == waf["seeds_b"] == 2
    cells = json.loads(Path(one).read_text())["cells"]
    assert waf["a"] == pytest.approx(sum(cell["waf"] for cell in cells) / 2)
    same = warp_ssd.compare(one, Path(one)).to_pyarrow()
    assert set(same["verdict"].to_pylist()) == {"the same"}
    with pytest.raises(WarpError, match="this is not a result"):
        (tmp_path / "text").write_text("hello")
        warp_ssd.compare(tmp_path / "text", one)


def test_runs_that_were_kept_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARP_RUNS", str(tmp_path))
    assert warp_ssd.runs().num_rows == 0
    kept = {"format": "warp-run", "version": 1, "target": "x", "at": "2026-01-01T00:00:00Z", "title": "t", "engine": "e"}
    kept["result"] = {"format": "warp-results", "cells": [{"device": "ssd_a", "waf": 1.5}]}  # type: ignore[assignment]
    for index in range(3):
        (tmp_path / "runs" / f"2026010{index}T000000Z-abc{index}.json").write_text(json.dumps(kept))
    assert warp_ssd.runs(limit=2).to_pyarrow()["id"].to_pylist() == ["abc2", "abc1"]
    assert warp_ssd.runs().to_pyarrow()["write_amplification"].to_pylist() == [1.5] * 3
    assert set(warp_ssd.compare("abc0", "abc2").to_pyarrow()["verdict"].to_pylist()) == {"the same"}
