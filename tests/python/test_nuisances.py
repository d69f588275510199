"""Calibration finds nuisances beside the knobs, judges them by all measurements they concern,
and keeps them out of profiles."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from warp_ssd import Experiment, WarpError, run
from warp_ssd.calibrate import Calibration, Measurement, Nuisance, calibrate, read_nuisances
from warp_ssd.calibrate.__main__ import main
from warp_ssd.calibrate.knobs import Knob, label
from warp_ssd.calibrate.nuisances import parse_nuisance
from warp_ssd.calibrate.objective import Evaluation, Settings
from warp_ssd.calibrate.search import recombine, refine
from warp_ssd.sweep import sweep

OP = "geometry.over_provisioning"
SMALL = {"geometry.physical_bytes": "32GiB", "handles.count": 3}
SPLITS: list[object] = [
    {"name": "small", "workload:random.size": "20%", "workload:sequential.size": "70%"},
    {"name": "large", "workload:random.size": "27%", "workload:sequential.size": "60%"},
]
HIDDEN: dict[str, object] = {"change:split": SPLITS[1], "run:precondition_drive_writes": 1}
"""Undocumented conditions of the measurement."""


def cells(experiment: str, metric: str, **hidden: object) -> list[Measurement]:
    """Runs an experiment under hidden conditions on a drive with a known over-provisioning."""
    grid = {path: [value] for path, value in {"run:drive_writes": 2.0, **hidden}.items()}
    options: dict[str, Any] = {"devices": ["warp_default"], "scale": "1/128", "overrides": SMALL | {OP: 0.17}}
    rows = sweep(experiment, grid, seeds=[1], progress=False, **options).points().to_pylist()
    names = [name for name in ("variant", "overwrite") if name in rows[0]]
    return [
        Measurement(
            waf=row[metric],
            experiment=experiment,
            at={name: row[name] for name in names if row[name]} | {"run:drive_writes": 2.0},
        )
        for row in rows
    ]


NUISANCES = [
    Nuisance("change:split", [None, *SPLITS], of=["workload:three_stream"]),
    Nuisance("run:precondition_drive_writes", [0, 1], of=["three_stream_uniform", "one_stream"]),
    Nuisance("metric", ["write_amplification", "tail_write_amplification"], of=["one_stream"]),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    split = {"change:split": HIDDEN["change:split"]}
    measured = [
        *cells("three_stream", "write_amplification", **split)[::3],
        *cells("three_stream_uniform", "write_amplification", **HIDDEN),
        *cells("one_stream", "tail_write_amplification", **{"run:precondition_drive_writes": 1}),
    ]
    store = tmp_path_factory.mktemp("store")
    options: dict[str, Any] = {"scales": ["1/128"], "trials": 32, "seeds": [1], "progress": False}
    return calibrate(measured, {OP: (0.08, 0.3)}, known=SMALL, nuisances=NUISANCES, store=store, **options)


def test_unknowns_of_the_workload_and_of_the_reading_are_found(found: Calibration) -> None:
    values = {one.path: label(one.value) for one in found.nuisances}
    assert values == {
        "change:split@workload:three_stream": "large",
        "run:precondition_drive_writes@three_stream_uniform,one_stream": "1",
        "metric@one_stream": "tail_write_amplification",
    }
    assert abs(found.settings[OP] - 0.17) < 0.006  # type: ignore[operator]
    assert found.mean_absolute_error < 0.02
    assert list(found.settings) == [OP]
    assert found.residuals["metric"].to_pylist()[-1] == "tail_write_amplification", "as it was read"


def test_they_are_in_no_profile(found: Calibration) -> None:
    profile = tomllib.loads(found.toml)
    assert "- change:split@workload:three_stream = large: " in profile.pop("notes")
    assert "split" not in str(profile)
    assert {path for member in profile["ensemble"] for path in member["settings"]} == {OP}


def test_a_nuisance_is_about_experiments_or_workloads() -> None:
    one = Nuisance("run:precondition_drive_writes", [0, 1], of=["two_stream", "workload:three_stream"])
    assert one.path == "run:precondition_drive_writes@two_stream,workload:three_stream"
    assert one.is_about("two_stream", "two_sequential")
    assert one.is_about("three_stream_uniform", "three_stream")
    assert not one.is_about("three_stream", "one_stream"), "the name of an experiment is not that of a workload"
    assert Nuisance("metric", ["a", "b"]).is_about("anything", "at all")
    assert Nuisance("workload:a.rate", (1, 9)).knob.whole
    assert not Nuisance("workload:a.share", (0.0, 1)).knob.whole


def test_nuisances_are_read_from_text_and_files(tmp_path: Path) -> None:
    assert parse_nuisance("metric@f2fs, cachelib", ["a", "b"]) == Nuisance("metric", ["a", "b"], ("f2fs", "cachelib"))
    file = tmp_path / "unknown.toml"
    file.write_text(
        '[[nuisance]]\nkey = "run:precondition_drive_writes"\nof = ["two_stream"]\nvalues = [0, 1]\n'
        '[[nuisance]]\nkey = "workload:random.rate"\nrange = [100000, 900000]\n'
        '[[nuisance]]\nkey = "change:split"\nof = "three_stream"\nvalues = ["", { name = "half", "workload:a.size" = "50%" }]\n'
    )
    first, second, third = read_nuisances(file)
    assert (first.path, list(first.values)) == ("run:precondition_drive_writes@two_stream", [0, 1])
    assert second == Nuisance("workload:random.rate", (100000, 900000))
    assert third.values[0] is None
    assert [label(value) for value in third.values] == ["unchanged", "half"]
    for text, problem in {
        "nuisance = 1": r"unknown\.toml: the file has other entries",
        "[[nuisance]]\nkey = 'metric'": r"unknown\.toml, nuisance 1: the keys are wrong",
        "[[nuisance]]\nkey = 'gc.policy'\nvalues = [1, 2]": "nuisance 1: nuisance gc.policy is unknown. Give workload:PATH",
        "[[nuisance]]\nkey = 'change:a'\nvalues = [1, 2]": "nuisance 1: nuisance change:a has a value",
        "[[nuisance": r"unknown\.toml: ",
    }.items():
        file.write_text(text)
        with pytest.raises(WarpError, match=problem):
            read_nuisances(file)


UNKNOWN = Path(__file__).parents[2] / "experiments/nuisances.toml"


def test_the_papers_unknowns_say_where_their_ranges_come_from() -> None:
    entries = tomllib.loads(UNKNOWN.read_text())["nuisance"]
    assert all(len(entry["source"]) > 40 for entry in entries)
    nuisances = read_nuisances(UNKNOWN)
    assert len({one.path for one in nuisances}) == len(entries)
    for nuisance in nuisances:
        for name in nuisance.of:
            if not name.startswith("workload:"):
                assert Experiment(name).published().to_pyarrow().num_rows > 0
    # A change of the three streams without one of the options would leave a gap or an overlap.
    regions = next(one for one in nuisances if one.key == "change:regions")
    for value in regions.values:
        assert isinstance(value, dict)
        first, second = (int(part) for part in str(value["name"]).split(":"))
        assert first + second == 100
        assert {value[f"workload:{job}.size"] for job in ("fill_sequential", "sequential", "overwrite")} == {f"{first}%"}
        assert {value[f"workload:{job}.offset"] for job in ("fill_random", "random")} == {f"{first}%"}
        assert {value[f"workload:{job}.size"] for job in ("fill_random", "random")} == {f"{second}%"}
        assert value["workload:fill_sequential.rate"] == f"{first}0m"
        assert value["workload:fill_random.rate"] == f"{second}0m"


@dataclass
class Separable:
    """Objective of two measurements with a nuisance each, which counts its evaluations."""

    parts: list[tuple[set[str], list[int]]] = field(default_factory=lambda: [({"a"}, [0]), ({"b"}, [1])])
    counted: Sequence[int] = (0, 1)
    seen: dict[str, Evaluation] = field(default_factory=dict)

    def evaluate(self, candidates: Sequence[Settings]) -> list[Evaluation]:
        for one in candidates:
            losses = [abs(one["op"] - 5) + abs("xyz".index(str(one[path]))) for path in "ab"]  # type: ignore[operator]
            loss = float(sum(losses[index] for index in self.counted))
            self.seen[repr(sorted(one.items()))] = Evaluation(one, (1.0, 1.0), (0.0, 0.0), loss)
        return [self.seen[repr(sorted(one.items()))] for one in candidates]

    def subset(self, indices: Sequence[int]) -> Separable:
        part = Separable(counted=indices)
        part.evaluate([one.settings for one in self.seen.values()])
        return part


SEPARABLE = [Knob("op", low=0, high=10), *(Knob(path, ("y", "z", "x"), nuisance=True) for path in "ab")]


def test_a_good_value_of_a_nuisance_is_tried_with_the_best_drives() -> None:
    objective: Any = Separable()
    objective.evaluate([{"op": 5, "a": "y", "b": "z"}, {"op": 9, "a": "x", "b": "z"}, {"op": 1, "a": "z", "b": "x"}])
    assert min(one.loss for one in objective.seen.values()) == 3
    recombine(objective, SEPARABLE, lambda count: None)
    best = min(objective.seen.values(), key=lambda one: one.loss)
    assert (best.settings, best.loss) == ({"op": 5, "a": "x", "b": "x"}, 0), "as the second best of either figure has it"


def test_nuisances_of_different_figures_move_together() -> None:
    objective: Any = Separable()
    (begin,) = objective.evaluate([{"op": 5, "a": "z", "b": "z"}])
    told: list[int] = []
    best = refine(objective, SEPARABLE, begin, told.append)
    assert best.settings == {"op": 5, "a": "x", "b": "x"}
    steps = [count for count in told if count]
    assert steps[0] == 6, "two neighbours of the spare, and two other choices of either nuisance"
    assert len(steps) == 1 + 5, "after one step only the spare is refined"


def test_what_cannot_be_a_nuisance_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cell = Measurement(waf=2.0, experiment="one_stream")
    options: dict[str, Any] = {"scales": ["1/1024"], "trials": 8, "progress": False}
    with pytest.raises(
        WarpError, match="concerns no measurement. Give one of one_stream, workload:one_stream"
    ):
        calibrate([cell], {OP: (0.1, 0.2)}, nuisances=[Nuisance("metric", ["a", "b"], ["f2fs"])], **options)
    with pytest.raises(WarpError, match="as nuisances"):
        calibrate([cell], {"run:precondition_drive_writes": [0, 1]}, **options)
    with pytest.raises(WarpError, match="neither a rising"):
        Nuisance("metric", ["a"]).knob  # noqa: B018
    lines = tmp_path / "cells.csv"
    lines.write_text("experiment,waf\none_stream,2.0\n")
    arguments = [str(lines), "--free", f"{OP}=0.1:0.2", "--nuisance"]
    assert main([*arguments, "metric"]) == 1
    assert "calibrate: nuisance metric has no values. Give metric=LOW:HIGH or metric=[JSON list]" in capsys.readouterr().err


def test_several_settings_can_be_varied_together() -> None:
    result = sweep(
        "three_stream_uniform",
        {"change:split": SPLITS, "run:precondition_drive_writes": [0, 1]},
        devices=["warp_default"],
        variants=["FDP"],
        scale="1/1024",
        drive_writes=0.1,
        progress=False,
    )
    rows = result.points().to_pylist()
    assert [row["change:split"] for row in rows] == ["small", "small", "large", "large"]
    assert len({row["hash"] for row in rows}) == 4
    with pytest.raises(WarpError, match=r'change:split = "?.*Give \{"name"'):
        sweep("three_stream_uniform", {"change:split": [{"workload:random.size": "1%"}]}, progress=False)


def test_the_ensemble_of_an_experiment_has_them_in_it(tmp_path: Path) -> None:
    """One number determines neither the spare nor the split. Members of the experiment vary in
    both."""
    file = tmp_path / "mine.toml"
    file.write_text(
        '# mine\ntitle = "mine"\ndevices = ["warp_default"]\nworkload = "three_stream"\n'
        '[change.device]\n"geometry.physical_bytes" = "32GiB"\n"handles.count" = 3\n'
        '[run]\nscale = "1/128"\ndrive_writes = 2.0\n'
        '[[published]]\nat = { device = "warp_default" }\ndrive = [1.5]\nfitted = true\nsource = "somebody"\n'
    )
    options: dict[str, Any] = {"scales": ["1/128"], "trials": 24, "seeds": [1], "progress": False, "noise": 0.1}
    measured = [Measurement(waf=1.5, experiment=str(file), at={})]
    split = [Nuisance("change:split", [None, *SPLITS])]
    free = {OP: (0.08, 0.3)}
    found = calibrate(measured, free, nuisances=split, ensemble_of="experiment", members=4, **options)
    found.write(file)
    assert file.read_text().startswith("# mine\n"), "all else is as it was"
    written = tomllib.loads(file.read_text())
    members = [member["settings"] for member in written["ensemble"]]
    assert members == [dict(one.settings) for one in found.members]
    assert {member.get("workload.random.size") for member in members} >= {"20%", "27%"}
    best = {path: value for path, value in members[0].items() if path != OP}
    assert {f"workload.{path}": value for path, value in written["change"].get("settings", {}).items()} == best
    assert written["change"]["device"] == {"geometry.physical_bytes": "32GiB", "handles.count": 3, OP: members[0][OP]}
    result = run(str(file), uncertainty=True)
    (row,) = result.published().to_pyarrow().to_pylist()
    assert row["fitted"] and row["not_comparable"] is None and row["hit"] is not None
    assert row["low"] <= row["ours"] <= row["high"]
    assert row["low"] < row["high"], "the members differ"
    with pytest.raises(WarpError, match="is of an experiment"):
        _ = found.profile
    wrong = [Nuisance("metric", ["write_amplification", "tail_write_amplification"])]
    with pytest.raises(WarpError, match="nuisance metric is not a setting, but an experiment's ensemble has only settings"):
        calibrate(measured, free, nuisances=wrong, ensemble_of="experiment", **options)
    both = [*measured, Measurement(waf=1.5, experiment="one_stream")]
    with pytest.raises(WarpError, match="measurements of one experiment"):
        calibrate(both, free, ensemble_of="experiment", **options)
    with pytest.raises(WarpError, match="ensemble_of = 'drive'"):
        calibrate(measured, free, ensemble_of="drive", **options)
