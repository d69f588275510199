"""Short form of the blind test of `warp characterize` (docs/benchmarks/blind.py), with two hidden drives.

Each takes minutes, so only the deep form (`WARP_DEEP=1`) has them.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs/benchmarks/blind.py"


@pytest.mark.deep
@pytest.mark.parametrize("number", [0, 1])
def test_a_hidden_drive_is_predicted(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("blind", SCRIPT)
    assert spec is not None and spec.loader is not None
    blind = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(blind)
    monkeypatch.setenv("WARP_PYTHON", sys.executable)
    warp = os.environ.get("WARP", "warp")
    result = blind.measure(warp, number, tmp_path, ["--quick", "--trials", "16", "--workers", "1"], capacity=128 << 20)
    for answer in result["answers"]:
        error = answer["predicted"] / answer["true"] - 1
        assert abs(error) < 0.05 or answer["low"] <= answer["true"] <= answer["high"], result
    assert result["family"] in (result["named"], *result["also_fit"]), result
