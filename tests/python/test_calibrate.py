"""Calibration finds the knobs of a known drive and reports those that the data does not
determine."""

from __future__ import annotations

import json
import random
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from warp_ssd import Device, Experiment, WarpError, profile_text
from warp_ssd.calibrate import Calibration, Measurement, calibrate, fdp_stats, published, read_csv, usual_scales
from warp_ssd.calibrate.__main__ import main
from warp_ssd.calibrate.knobs import KNOBS, label, read_knobs
from warp_ssd.calibrate.objective import Objective
from warp_ssd.sweep import sweep

OP, POLICY, ISOLATION = "geometry.over_provisioning", "gc.victim_policy", "handles.isolation"
TRUTH: dict[str, object] = {OP: 0.135, POLICY: "cost_age", ISOLATION: "persistently_isolated"}
SMALL = {"geometry.physical_bytes": "16GiB", "handles.count": 3}
"""A drive of 64 reclaim units. Small scaled models of it still have large units."""
STEP = 1 / 128
"""Over-provisioning of half a reclaim unit."""


def measured(noise: float) -> list[Measurement]:
    """Runs the nine cells of three_stream on a drive with known knobs, and adds noise. The
    scaled models are larger than those of the search."""
    run: dict[str, Any] = {"devices": ["warp_default"], "drive_writes": 2.0, "scale": "1/32", "seeds": [5]}
    points = sweep("three_stream", overrides=TRUTH | SMALL, progress=False, **run).points()
    generator = random.Random(7)
    return [
        Measurement(
            waf=row["write_amplification"] * (1 + generator.gauss(0, noise)),
            experiment="three_stream",
            at={"variant": row["variant"], "overwrite": row["overwrite"], "run:drive_writes": 2.0},
        )
        for row in points.to_pylist()
    ]


@pytest.fixture(scope="module")
def fitted() -> Calibration:
    free = {OP: (0.06, 0.3), POLICY: ["greedy", "cost_age", "benefit_cost", "fifo", "random"], ISOLATION: None}
    return calibrate(measured(0.02), free, known=SMALL, scales=["1/128", "1/64"], trials=48, progress=False)


def test_a_known_drive_is_found_from_nine_noisy_cells(fitted: Calibration) -> None:
    assert abs(fitted.settings[OP] - 0.135) <= 0.01  # type: ignore[operator]
    assert fitted.settings[POLICY] == "cost_age"
    assert fitted.settings[ISOLATION] == "persistently_isolated"
    assert fitted.mean_absolute_error < 0.05 * 2.4, "5 % of what the cells are on average"
    assert fitted.mean_absolute_error_before is not None
    assert fitted.mean_absolute_error < fitted.mean_absolute_error_before


def test_intervals_hold_the_truth_and_say_what_is_determined(fitted: Calibration) -> None:
    knobs = {knob.path: knob for knob in fitted.knobs}
    spare = knobs[OP]
    assert spare.low is not None
    assert spare.high is not None
    assert spare.low - STEP <= 0.135 <= spare.high + STEP
    assert spare.determined
    assert spare.high - spare.low < 0.05
    assert knobs[ISOLATION].determined
    assert "no other choice fits" in knobs[ISOLATION].sentence


def test_the_profile_is_one_and_says_what_was_fitted(fitted: Calibration, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    fitted.write(file)
    profile = tomllib.loads(file.read_text())
    leaf = profile["geometry"]["over_provisioning"]
    assert leaf["fitted"]
    assert leaf["source"] == "fitted to 9 write amplifications (three_stream)"
    assert "fitted" not in profile["geometry"]["channels"]
    assert "source" in profile["geometry"]["channels"], "what was not fitted keeps its source"
    device = Device(str(file), scale="1/1024")
    assert device.write(0) is None
    assert fitted.settings[OP] == pytest.approx(fitted.profile["geometry"]["over_provisioning"])


def test_residuals_are_the_models(fitted: Calibration) -> None:
    rows = fitted.residuals.to_pylist()
    assert len(rows) == 9
    assert all(row["residual"] == pytest.approx(row["model"] - row["measured"]) for row in rows)
    assert "three_stream | FDP | zipf 2.2 | 2.0" in [row["measurement"] for row in rows]
    assert f"mean absolute error {fitted.mean_absolute_error:.3f}" in fitted.summary()


def test_what_the_data_cannot_determine_is_said(tmp_path: Path) -> None:
    """One plateau of uniform writes through one handle does not depend on the isolation of
    handles."""
    options: dict[str, Any] = {"scales": ["1/1024"], "trials": 24, "progress": False, "store": tmp_path}
    cell = Measurement(waf=2.4, experiment="one_stream", at={"run:drive_writes": 2.0})
    found = calibrate([cell], {OP: (0.05, 0.3), ISOLATION: None}, **options)
    isolation = next(knob for knob in found.knobs if knob.path == ISOLATION)
    assert not isolation.determined
    assert "cannot determine it" in isolation.sentence
    assert isolation.sentence in found.toml
    stored = len(list(tmp_path.glob("points/*.parquet")))
    again = calibrate([cell], {OP: (0.05, 0.3), ISOLATION: None}, **options)
    assert len(list(tmp_path.glob("points/*.parquet"))) == stored, "everything was there"
    assert again.toml == found.toml


@pytest.mark.parametrize(
    ("free", "says"),
    [
        ({"geometry.over_provisionin": (0.05, 0.3)}, "did you mean over_provisioning"),
        ({"geometri.over_provisioning": (0.05, 0.3)}, "did you mean geometry"),
        ({POLICY: ["greedy", "cost_aged"]}, "did you mean cost_age"),
        (["geometry.over_provisionin"], r"did you mean geometry\.over_provisioning\?\) has no known range"),
        ({"over_provisioning": (0.05, 0.3)}, "Give the dotted path of a device setting"),
    ],
)
def test_a_misspelt_knob_is_a_misspelt_knob(free: Any, says: str) -> None:
    cell = Measurement(waf=2.4, experiment="one_stream", at={"run:drive_writes": 2.0})
    with pytest.raises(WarpError, match=says):
        calibrate([cell], free, scales=["1/1024"], trials=24, progress=False)


def test_ctrl_c_shows_the_best_so_far_and_keeps_what_was_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cells.csv"
    file.write_text("workload,waf,drive_writes\none_stream,2.4,2\n")
    command = [str(file), "--free", f"{OP}=0.05:0.3", "--scales", "1/1024", "--trials", "24", "--workers", "1"]
    evaluated = Objective.evaluate

    def stopped_at_the_third_batch(objective: Objective, candidates: Any) -> Any:
        if len(objective.seen) >= 16:
            raise KeyboardInterrupt
        return evaluated(objective, candidates)

    monkeypatch.setattr(Objective, "evaluate", stopped_at_the_third_batch)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert main(command) == 130
    printed, said = capsys.readouterr()
    assert "best of 16 settings so far, at scale 1/1024:" in printed
    assert f"{OP} = 0." in printed
    store = re.search(r"--store (\S+) continues from here", said)
    assert store is not None
    assert len(list(Path(store[1]).glob("points/*.parquet"))) == 16


def test_a_csv_is_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "cells.csv"
    file.write_text(
        "experiment,workload,variant,overwrite,waf,sigma,drive_writes,handles.count,metric\n"
        "three_stream,,FDP,80/20,1.7,0.05,,4,\n"
        ",one_stream,,,2.0,,3,,tail_write_amplification\n"
    )
    first, second = read_csv(file)
    assert first.at == {"variant": "FDP", "overwrite": "80/20", "handles.count": 4}
    assert (first.waf, first.sigma, first.metric) == (1.7, 0.05, "write_amplification")
    assert (second.workload, second.drive_writes, second.sigma) == ("one_stream", 3.0, None)
    assert second.load("warp_default").points(scale="1/1024")[0].memory_bytes > 0


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("experiment,waf\nthree_stream,much\n", "line 2: waf = 'much' is not a number"),
        ("experiment,sigma\nthree_stream,1\n", "line 2: the column waf is missing"),
        ("variant,waf\nFDP,1.1\n", "line 2: a measurement needs either an experiment or a workload"),
        ("experiment,waf\none_stream,2\none_stream,-2\n", "line 3: .*above 0"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, lines: str, problem: str) -> None:
    file = tmp_path / "cells.csv"
    file.write_text(lines)
    with pytest.raises(WarpError, match=problem):
        read_csv(file)


def test_statistics_of_a_real_drive_are_read(tmp_path: Path) -> None:
    before, after, job = (tmp_path / name for name in ("before.json", "after.json", "one.fio"))
    before.write_text(json.dumps({"hbmw": 10**12, "mbmw": 2 * 10**12, "mbe": 5}))
    after.write_text('{"hbmw": "3,000,000,000,000", "mbmw": 340282366920938463463374607431768211455, "mbe": 0}')
    huge = fdp_stats(before, after, job, 10**12)
    assert huge.drive_writes == 2.0
    assert huge.waf > 1e26
    after.write_text(json.dumps({"hbmw": 3 * 10**12, "mbmw": 6 * 10**12, "mbe": 5}))
    job.write_text("[one]\nrw=randwrite\nbs=128k\nsize=100%\n")
    found = fdp_stats(before, after, job, 10**12, precondition_drive_writes=1.0)
    assert (found.waf, found.drive_writes, found.precondition_drive_writes) == (2.0, 2.0, 1.0)
    point = found.load("warp_default").points(scale="1/1024")[0]
    cell = point.run().cells().to_pyarrow().to_pylist()[0]
    capacity = 896 * 2**28 / 1.1 / 1024
    assert cell["host_bytes_written"] == pytest.approx(2 * capacity, rel=0.02)
    with pytest.raises(WarpError, match="the files are swapped"):
        fdp_stats(after, before, job, 10**12)
    after.write_text("WAF 2.0")
    with pytest.raises(WarpError, match=r"after\.json: not the JSON of"):
        fdp_stats(before, after, job, 10**12)


def test_published_numbers_are_measurements() -> None:
    cells = published("three_stream", "ssd_b")
    assert len(cells) == 9
    assert cells[0].waf == 1.29
    assert cells[0].at == {"variant": "FDP", "overwrite": "zipf 2.2"}
    assert published("one_stream", "ssd_a")[0].metric == "tail_write_amplification"
    with pytest.raises(WarpError, match="no write amplification of warp_b"):
        published("three_stream", "warp_b")


def test_knobs_have_usual_ranges_or_given_ones() -> None:
    first, second = read_knobs({OP: None, "endurance.spread": (0, 1)})
    assert first is KNOBS[OP]
    assert (second.low, second.high) == (0.0, 1.0)
    assert read_knobs({"handles.count": [8, 4]})[0].choices == (4, 8)
    with pytest.raises(WarpError, match="has no known range"):
        read_knobs(["endurance.spread"])
    with pytest.raises(WarpError, match="neither a rising"):
        read_knobs({OP: (0.3, 0.1)})
    with pytest.raises(WarpError, match="Give at least one knob"):
        read_knobs([])
    assert [label(value) for value in (0.12345, 1 << 28, {"d_choices": 4}, True)] == [
        "0.1235",
        "256MiB",
        '{"d_choices": 4}',
        "true",
    ]


def test_the_usual_scaled_models_have_reclaim_units_of_enough_pages() -> None:
    for device, scales in {"warp_default": ["1/128", "1/32"], "ssd_a": ["1/4096", "1/1024"]}.items():
        assert usual_scales(profile_text(device), read_knobs([OP])) == scales
        assert Experiment("one_stream").points(devices=[device], scale=scales[0])
    sizes = read_knobs({"geometry.reclaim_unit_bytes": [1 << 21, 1 << 30]})
    assert usual_scales(profile_text("ssd_a"), sizes) == ["1/1"]


def test_every_usual_value_is_one_that_a_drive_can_have() -> None:
    experiment = Experiment("one_stream")
    for knob in KNOBS.values():
        for value in knob.choices or (knob.low, knob.high):
            overrides = {knob.path: value, OP: 0.3} | ({OP: value} if knob.path == OP else {})
            if knob.path == "gc.foreground_watermark":
                overrides["gc.background_watermark"] = 0.6
            assert experiment.points(devices=["ssd_a"], overrides=overrides, scale="1/256"), knob.path


def test_the_command_writes_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells, out = tmp_path / "cells.csv", tmp_path / "mine.toml"
    cells.write_text("experiment,waf,run:drive_writes\none_stream,2.0,2\n")
    free = [f"{OP}=0.06:0.3", f'{POLICY}=["greedy", "fifo"]']
    fast = ["--scales", "1/1024", "--trials", "16"]
    assert main([str(cells), "--free", *free, *fast, "--out", str(out), "--title", "Mine"]) == 0
    assert "mean absolute error 0.0" in capsys.readouterr().out
    assert tomllib.loads(out.read_text())["title"] == "Mine"
    assert main([str(cells), "--free", "nothing"]) == 1
    assert "calibrate: nothing has no known range" in capsys.readouterr().err
    assert main([str(tmp_path / "none.csv"), "--free", OP]) == 1
