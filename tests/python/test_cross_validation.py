"""Cross-validation predicts a figure by a fit without that figure."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path
from typing import Any

import pytest
from warp_ssd import WarpError
from warp_ssd.calibrate import Calibration, CrossValidation, FigureError, Measurement, Nuisance, calibrate
from warp_ssd.calibrate.__main__ import main
from warp_ssd.calibrate.cross_validation import _COMBINATIONS, _combinations, _Prediction, _reaching
from warp_ssd.calibrate.knobs import Knob, knob_of
from warp_ssd.sweep import sweep

OP, POLICY = "geometry.over_provisioning", "gc.victim_policy"
SMALL = {"geometry.physical_bytes": "32GiB", "handles.count": 3}
METRIC = Nuisance("metric", ["write_amplification", "tail_write_amplification"], of=["one_stream"])
SPLIT = Nuisance(
    "change:split",
    [
        None,
        {"name": "half", "workload:random.offset": "50%", "workload:random.size": "50%"},
        {"name": "twentieth", "workload:random.offset": "95%", "workload:random.size": "5%"},
    ],
    of=["workload:three_stream"],
)
"""Place of the random stream of three_stream and three_stream_uniform."""
FREE: dict[str, object] = {OP: (0.08, 0.3), POLICY: ["greedy", "cost_age", "fifo"]}
OPTIONS: dict[str, Any] = {"known": SMALL, "scales": ["1/128"], "trials": 24, "seeds": [1], "progress": False}


def figures(noise: float) -> list[Measurement]:
    """Runs five cells of three figures on a known drive."""
    generator = random.Random(3)
    found = []
    for experiment in ("three_stream", "three_stream_uniform", "one_stream"):
        options: dict[str, Any] = {"devices": ["warp_default"], "overrides": SMALL | {OP: 0.17, POLICY: "cost_age"}}
        run: dict[str, Any] = {"scale": "1/128", "seeds": [7], "progress": False, "drive_writes": 2.0}
        rows = sweep(experiment, **run, **options).points().to_pylist()
        for row in rows[:: len(rows) // 2 or 1]:
            at = {name: row[name] for name in ("variant", "overwrite") if row.get(name)}
            waf = row["write_amplification"] * (1 + generator.gauss(0, noise))
            found.append(Measurement(waf, experiment, at=at | {"run:drive_writes": 2.0}, source="Fig. 1, above"))
    return found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def found(store: Path) -> Calibration:
    return calibrate(figures(0.02), FREE, nuisances=[METRIC], cross_validate=True, store=store, **OPTIONS)


def test_every_figure_is_predicted_from_the_others(found: Calibration) -> None:
    validation = found.validation
    assert validation is not None
    names = [one.figure for one in validation.figures]
    assert names == ["three_stream", "three_stream_uniform", "one_stream"]
    total = validation.total
    assert total.cells == len(found.residuals) == sum(one.cells for one in validation.figures)
    assert total.in_sample == pytest.approx(found.mean_absolute_error)
    assert total.in_sample < total.out_of_sample < 0.3
    assert total.inside >= 0.8 * total.cells
    # Only its own figure determines the reading. Without it the prediction is between both
    # readings.
    plateau = validation.figures[2]
    assert plateau.out_of_sample > 2 * plateau.in_sample
    assert all(one.width > 0 for one in validation.figures)
    assert plateau.width > validation.figures[1].width, "the interval is as wide as the two readings are apart"


@pytest.mark.deep
def test_a_fold_does_not_know_what_only_its_figure_determines(found: Calibration, store: Path) -> None:
    """Two figures determine the split, so the fold of one of them depends on the other alone."""
    unknown = [METRIC, SPLIT]
    again = calibrate(
        figures(0.02), FREE, nuisances=unknown, cross_validate=True, intervals=False, store=store, **OPTIONS
    )
    assert {one.path: one.value for one in again.nuisances}[SPLIT.path] is None, "the truth"
    assert all(one.sentence.endswith(": without an interval") for one in (*again.knobs, *again.nuisances))
    assert found.validation is not None
    assert again.validation is not None
    shared, known = again.validation.figures[0], found.validation.figures[0]
    assert shared.figure == known.figure == "three_stream"
    assert shared.width > known.width
    assert shared.inside == shared.cells


def test_values_of_unknown_nuisances_are_tried_evenly() -> None:
    few = [knob_of("a", (1, 9), whole=True, nuisance=True), knob_of("b", ["x", "y"], nuisance=True)]
    assert _combinations(few) == [(1, "x"), (1, "y"), (5, "x"), (5, "y"), (9, "x"), (9, "y")]
    assert _combinations([]) == [()]
    many = [Knob(str(number), tuple("wxyz"), nuisance=True) for number in range(4)]
    chosen = _combinations(many)
    assert len(chosen) == _COMBINATIONS
    assert _combinations(many) == chosen
    for column in zip(*chosen, strict=True):
        assert {value: column.count(value) for value in "wxyz"} == dict.fromkeys("wxyz", _COMBINATIONS // 4)


def test_it_is_printed_and_kept(found: Calibration) -> None:
    assert found.validation is not None
    assert "in-sample" in found.summary()
    assert found.validation.table() in found.summary()
    assert "each of 3 figures was predicted from the others".capitalize() in tomllib.loads(found.toml)["notes"]
    assert found.widening >= min(1.0, found.validation.widening)


def test_numbers_are_those_of_all_cells() -> None:
    parts = [FigureError("a", 3, 0.1, 0.2, 3, 0.2, 1.0), FigureError("b", 1, 0.5, 0.6, 0, 0.6, 5.0)]
    validation = CrossValidation(parts, "1/64", 0.1)
    means = [pytest.approx(mean) for mean in (0.2, 0.3, 0.3, 2.0)]
    assert validation.total == FigureError("all", 4, *means[:2], 3, *means[2:])
    assert validation.sentence.endswith(
        "mean absolute error of 0.300 (in-sample 0.200), and 3 of 4 cells (75%) are inside intervals of +-30% on average"
    )
    assert validation.table().splitlines()[-1].split() == ["0.200", "0.300", "3", "of", "4", "+-30%", "2.00", "all"]


def test_intervals_reach_nine_tenths_of_what_was_not_seen() -> None:
    def prediction(measured: float) -> _Prediction:
        return _Prediction(measured, 1.5, 1.25, 2.0)

    assert [prediction(measured).outside for measured in (1.25, 1.7, 1.0, 2.5)] == pytest.approx([0, 0, 0.2, 0.25])
    cells = [prediction(measured) for measured in (1.5,) * 15 + (2.2,) * 3 + (2.5,) * 2]
    assert _reaching(cells) == pytest.approx(0.25)
    assert _reaching(cells[:18]) == pytest.approx(0.1)
    assert _reaching(cells[:10]) == 0


def test_a_wide_interval_has_a_width_and_a_miss_has_a_score() -> None:
    within = _Prediction(measured=1.5, model=2.0, low=1.6, high=2.5)
    assert within.interval(0.0) == (1.6, 2.5)
    assert within.width(0.0) == pytest.approx(0.225)
    assert within.score(0.0) == pytest.approx(0.9 + 20 * 0.1)
    assert within.interval(0.1) == pytest.approx((1.44, 2.75))
    assert within.score(0.1) == pytest.approx(1.31), "inside, the score is the length"
    assert within.interval(0.5) == pytest.approx((1.0, 3.75)), "no drive writes less than its host does"
    assert within.score(0.5) > within.score(0.1), "a wide interval costs"
    above = _Prediction(measured=3.0, model=2.0, low=1.6, high=2.5)
    assert above.score(0.0) == pytest.approx(0.9 + 20 * 0.5)


def test_one_figure_is_too_few(capsys: pytest.CaptureFixture[str]) -> None:
    cells = figures(0.0)[:2]
    with pytest.raises(WarpError, match="all measurements are of three_stream. Add others"):
        calibrate(cells, FREE, cross_validate=True, **OPTIONS)
    with pytest.raises(WarpError, match=r"all measurements are of three_stream, Fig\. 1\."):
        calibrate(cells, FREE, cross_validate="source", **OPTIONS)
    with pytest.raises(WarpError, match="cross_validate = 'paper' is unknown. Give one of experiment, source"):
        calibrate(cells, FREE, cross_validate="paper", **OPTIONS)
    assert main(["one_stream", "--device", "ssd_a", "--free", OP, "--leave-one-out"]) == 1
    assert "all measurements are of one_stream" in capsys.readouterr().err
