"""An ensemble keeps all calibrations that explain the data."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from warp_ssd import Device, Experiment, WarpError, run
from warp_ssd.calibrate import Calibration, Measurement, calibrate
from warp_ssd.calibrate.ensemble import residual, spread
from warp_ssd.calibrate.knobs import Knob
from warp_ssd.calibrate.objective import Evaluation

OP, ISOLATION = "geometry.over_provisioning", "handles.isolation"
OPTIONS: dict[str, Any] = {"scales": ["1/1024"], "trials": 24, "seeds": [1], "progress": False}
CELL = Measurement(waf=2.4, experiment="one_stream", at={"run:drive_writes": 2.0})


@pytest.fixture(scope="module")
def found() -> Calibration:
    """One plateau determines the over-provisioning and not the isolation."""
    return calibrate([CELL], {OP: (0.05, 0.3), ISOLATION: None}, members=6, **OPTIONS)


def test_what_the_data_leave_open_is_what_the_members_differ_in(found: Calibration) -> None:
    assert 2 <= len(found.members) <= 6
    assert found.members[0].settings == found.settings
    assert {one.settings[ISOLATION] for one in found.members} == {"initially_isolated", "persistently_isolated"}
    spare = next(knob for knob in found.knobs if knob.path == OP)
    assert spare.low is not None
    assert spare.high is not None
    over_provisionings = [float(one.settings[OP]) for one in found.members]  # type: ignore[arg-type]
    assert spare.low <= min(over_provisionings) <= found.settings[OP] <= max(over_provisionings) <= spare.high  # type: ignore[operator]
    best = min(one.loss for one in found.members)
    assert found.members[0].loss == best
    assert all(one.loss <= best + 3.84 * max(1.0, best) for one in found.members)


def test_the_profile_has_the_ensemble_and_can_be_a_start_again(found: Calibration, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    found.write(file)
    profile = tomllib.loads(file.read_text())
    assert profile["ensemble_residual"] == pytest.approx(found.widening, rel=0.01)
    assert [member["settings"] for member in profile["ensemble"]] == [dict(one.settings) for one in found.members]
    assert "ensemble" not in found.profile
    Device(str(file), scale="1/1024").write(0)
    again = calibrate([CELL], {OP: (0.05, 0.3)}, str(file), **OPTIONS | {"trials": 8})
    assert {path for member in again.members for path in member.settings} == {OP}
    assert len(tomllib.loads(again.toml)["ensemble"]) == len(again.members)
    file.write_text(file.read_text().replace('"initially_isolated"', '"hardly_isolated"'))
    with pytest.raises(WarpError, match=r"mine\.toml.*hardly_isolated"):
        Device(str(file))


def test_members_are_sizes_with_units() -> None:
    sizes = {"handles.hot_window_bytes": [0, 1 << 24, 1 << 26]}
    found = calibrate([CELL], sizes, members=3, **OPTIONS | {"trials": 8})
    members = tomllib.loads(found.toml)["ensemble"]
    assert {member["settings"]["handles.hot_window_bytes"] for member in members} <= {0, "0", "16MiB", "64MiB"}
    with pytest.raises(WarpError, match="members = 0"):
        calibrate([CELL], sizes, members=0, **OPTIONS)


def evaluation(loss: float, **settings: object) -> Evaluation:
    return Evaluation(settings, (loss,), (0.0,), loss)


def test_the_ends_of_every_knob_are_kept_and_then_the_farthest() -> None:
    knobs = [Knob("a", low=0.0, high=1.0), Knob("b", ("x", "y", "z"))]
    best = evaluation(1.0, a=0.5, b="x")
    others = [evaluation(2.0, a=0.1, b="x"), evaluation(2.0, a=0.9, b="y"), evaluation(2.0, a=0.6, b="x")]
    seen = [best, *others, evaluation(2.5, a=0.31, b="x"), evaluation(3.1, a=0.0, b="z")]
    objective: Any = SimpleNamespace(seen={str(index): one for index, one in enumerate([evaluation(9.9), *seen])})
    chosen = spread(objective, knobs, best, 3.0, 4)
    # 0.9 is an end with another name, and 0.1 is the other end. 0.31 is closer to both than 0.6.
    assert [one.settings["a"] for one in chosen] == [0.5, 0.9, 0.1, 0.31]
    assert spread(objective, knobs, best, 3.0, 99)[-1].settings["a"] == 0.6
    assert spread(objective, knobs, best, 1.0, 4) == [best]


def test_the_residual_is_what_even_the_best_is_off_by() -> None:
    measurements = [Measurement(waf=2.0, experiment="one_stream")] * 8
    objective: Any = SimpleNamespace(measurements=measurements)
    best = Evaluation({}, (2.1, 1.9) * 4, (0.0,) * 8, 1.0)
    assert residual(objective, best, 0) == pytest.approx(1.64 * 0.05)
    assert residual(objective, best, 6) == pytest.approx(1.64 * 0.05 * 2**0.5), "half of them are left at least"
    assert residual(objective, Evaluation({}, (9.0,) * 8, (0.0,) * 8, 1.0), 0) == 1.0


def test_a_run_with_an_interval_says_what_the_members_say(found: Calibration, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    found.write(file)
    choice: dict[str, Any] = {"devices": [str(file)], "scale": "1/1024", "drive_writes": 2.0, "seeds": [1, 2]}
    result = run("one_stream", uncertainty=True, **choice)
    own = run("one_stream", **choice)
    assert result.cells().to_pandas().equals(own.cells().to_pandas()), "all else is of the profile itself"
    rows = {row["metric"]: row for row in result.intervals().to_pyarrow().to_pylist()}
    row = rows["write_amplification"]
    assert row["value"] == pytest.approx(own.cells().to_pandas()["write_amplification"].mean())
    assert 1.0 <= row["low"] < row["value"] < row["high"]
    assert 1 <= row["members"] < len(found.members) <= 6, "the first is the profile itself"
    assert f"{row['value']:.2f} ({row['low']:.2f}-{row['high']:.2f})" in result.summary()
    published = result.published().to_pyarrow().to_pylist()
    assert all(row["low"] is None for row in published), "the paper's numbers are about other devices"
    assert own.intervals().to_pyarrow().num_rows == 0
    # A point of a member can run alone, also on another machine.
    points = Experiment("one_stream").points(uncertainty=True, **choice)
    assert len(points) == 2 * (row["members"] + 1)
    assert points[-1].run().cells().to_pyarrow().num_rows == 1
    with pytest.raises(WarpError, match=r"has no ensemble.*calibrate"):
        run("one_stream", devices=["warp_a"], uncertainty=True, quick=True)
    old: dict[str, Any] = {"interval": True}
    with pytest.raises(WarpError, match="interval was renamed. Use uncertainty"):
        run("one_stream", **old)
