"""Cross-validation: a figure is predicted by a fit that has not seen it."""

from __future__ import annotations

import random
import tomllib
from typing import Any

import pytest
from warp_ssd import WarpError
from warp_ssd.calibrate import Calibration, CrossValidation, FigureError, Measurement, Nuisance, calibrate
from warp_ssd.calibrate.__main__ import main
from warp_ssd.calibrate.cross_validation import _Prediction, _reaching
from warp_ssd.sweep import sweep

OP, POLICY = "geometry.over_provisioning", "gc.victim_policy"
SMALL = {"geometry.physical_bytes": "32GiB", "handles.count": 3}
METRIC = Nuisance("metric", ["write_amplification", "tail_write_amplification"], of=["one_stream"])
FREE: dict[str, object] = {OP: (0.08, 0.3), POLICY: ["greedy", "cost_age", "fifo"]}
OPTIONS: dict[str, Any] = {"known": SMALL, "scales": ["1/128"], "trials": 24, "seeds": [1], "progress": False}


def figures(noise: float) -> list[Measurement]:
    """Five cells of three figures on a known drive."""
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
def found(tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    store = tmp_path_factory.mktemp("store")
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
    # What its own figure alone could tell of the reading is not known without it: it is between the two.
    plateau = validation.figures[2]
    assert plateau.out_of_sample > 2 * plateau.in_sample


def test_it_is_printed_and_kept(found: Calibration) -> None:
    assert found.validation is not None
    assert "in-sample" in found.summary()
    assert found.validation.table() in found.summary()
    assert "each of 3 figures was predicted from the others".capitalize() in tomllib.loads(found.toml)["notes"]
    assert found.widening >= min(1.0, found.validation.widening)


def test_numbers_are_those_of_all_cells() -> None:
    parts = [FigureError("a", 3, 0.1, 0.2, 3), FigureError("b", 1, 0.5, 0.6, 0)]
    validation = CrossValidation(parts, "1/64", 0.1)
    assert validation.total == FigureError("all", 4, pytest.approx(0.2), pytest.approx(0.3), 3)
    assert "mean absolute error of 0.300 (in-sample 0.200), and 3 of 4 cells (75%) are inside" in validation.sentence
    assert validation.table().splitlines()[-1].split() == ["0.200", "0.300", "3", "of", "4", "all"]


def test_intervals_reach_nine_tenths_of_what_was_not_seen() -> None:
    def prediction(measured: float) -> _Prediction:
        return _Prediction(measured, 1.5, 1.25, 2.0)

    assert [prediction(measured).outside for measured in (1.25, 1.7, 1.0, 2.5)] == pytest.approx([0, 0, 0.2, 0.25])
    cells = [prediction(measured) for measured in (1.5,) * 15 + (2.2,) * 3 + (2.5,) * 2]
    assert _reaching(cells) == pytest.approx(0.25)
    assert _reaching(cells[:18]) == pytest.approx(0.1)
    assert _reaching(cells[:10]) == 0


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
