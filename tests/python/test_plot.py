"""Plots show the measured values, in one style, without a display."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.colors import to_hex
from warp_ssd import WarpError, plot, run
from warp_ssd.sweep import SweepResult, sweep

SMALL: dict[str, Any] = {"devices": ["warp_default"], "scale": "1/1024", "progress": False}


@pytest.fixture(scope="module")
def swept() -> SweepResult:
    return sweep(
        "three_stream", {"variant": ["FDP", "NoFDP"]}, variants=["80/20"], seeds=[1, 2], drive_writes=2.0, **SMALL
    )


def line_labels(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_curves_end_at_the_write_amplification_of_the_run(swept: SweepResult) -> None:
    ax = plot.waf_over_time(swept)
    assert line_labels(ax) == ["FDP", "NoFDP"]
    wafs = swept.points()["write_amplification"].to_pylist()
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(np.mean(wafs[:2]), rel=1e-3)
    assert ax.lines[1].get_ydata()[-1] == pytest.approx(np.mean(wafs[2:]), rel=1e-3)
    assert ax.lines[0].get_xdata()[-1] == pytest.approx(2.0, rel=0.01)
    assert len(ax.collections) == 2, "a band for the seeds"


def test_a_window_looks_at_the_last_part(swept: SweepResult) -> None:
    tail = swept.points()["tail_write_amplification"].to_pylist()
    ax = plot.waf_over_time(swept, window=1.0)
    assert ax.lines[1].get_ydata()[-1] == pytest.approx(np.mean(tail[2:]), rel=0.02)


def test_a_name_has_one_colour_in_every_plot(swept: SweepResult) -> None:
    curves = plot.waf_over_time(swept)
    bars = plot.bars({"NoFDP": {"a": 1.0}, "other": {"a": 2.0}, "FDP": {"a": 3.0}})
    assert to_hex(curves.lines[1].get_color()).upper() == "#009E73"
    assert to_hex(bars.patches[0].get_facecolor()).upper() == "#009E73"
    assert to_hex(bars.patches[1].get_facecolor()).upper() == "#D55E00", "the first that no other name here has"


def test_the_breakdown_adds_up(swept: SweepResult) -> None:
    ax = plot.ruh_breakdown(swept, of="host")
    tops = [
        max(patch.get_y() + patch.get_height() for patch in ax.patches if abs(patch.get_x() + 0.3 - place) < 0.1)
        for place in (0, 1)
    ]
    assert tops == pytest.approx([2.0, 2.0], rel=0.01)
    assert {"RUH 0", "RUH 1", "RUH 2"} <= set(line_labels(ax))
    assert "shared" not in line_labels(ax), "the host never writes there"
    assert "shared" in line_labels(plot.ruh_breakdown(swept))
    with pytest.raises(WarpError, match="Give host or copied"):
        plot.ruh_breakdown(swept, of="both")


def test_the_tradeoff_finds_its_crossing() -> None:
    shares = [0.04, 0.06, 0.08, 0.10]
    waf = {"initially_isolated": [2.0, 1.8, 1.6, 1.4], "persistently_isolated": [2.6, 2.0, 1.5, 1.2]}
    rows = [
        {"geometry.over_provisioning": share, "handles.isolation": kind, "write_amplification": value, "seed": 1}
        for kind, values in waf.items()
        for share, value in zip(shares, values, strict=True)
    ]
    ax = plot.tradeoff(pa.Table.from_pylist(rows), bands=[(0.07, 0.09)])
    assert [text.get_text() for text in ax.texts] == ["7.3 %"]
    assert line_labels(ax)[:2] == ["initially isolated", "persistently isolated"]
    x = np.array([0.0, 1.0, 2.0])
    assert plot.crossings(x, np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.5, 1.0])) == [
        (pytest.approx(4 / 3), pytest.approx(4 / 3))
    ]
    assert plot.crossings(x, x, x) == []


def test_latencies_stand_on_nines() -> None:
    table = pa.table(
        {
            "variant": ["FDP"] * 3,
            "job": ["r"] * 3,
            "direction": ["read"] * 3,
            "latency_ns": [70_000, 100_000, 900_000],
            "share": [0.99, 0.999, 1.0],
            "seed": [1] * 3,
        }
    )
    ax = plot.latency_cdf(table, job="r", direction="read")
    x, y = ax.lines[0].get_data()
    assert list(x) == [70.0, 100.0, 900.0]
    assert list(y) == pytest.approx([0, 2, 3])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0 %", "90 %", "99 %", "99.9 %"]
    assert plot.nines(0.999) == pytest.approx(3)
    with pytest.raises(WarpError, match="no latencies of job 'w'"):
        plot.latency_cdf(table, job="w")


def test_occupancy_is_of_one_run(swept: SweepResult) -> None:
    ax = plot.occupancy(swept)
    assert ax.get_xlim()[1] == pytest.approx(2.0, rel=0.01)
    assert 500 < ax.get_ylim()[1] < 1100, "896 reclaim units"
    assert line_labels(ax)[-1] == "shared"


def test_collections_stack_to_what_was_copied() -> None:
    result = run("event_feedback", quick=True, variants=["longest run"])
    table = result.collections().to_pyarrow()
    ax = plot.collections(result)
    copied: dict[int, int] = {}
    for row in table.select(["collection", "pages_copied"]).to_pylist():
        copied[row["collection"]] = copied.get(row["collection"], 0) + row["pages_copied"]
    assert ax.get_xlim() == (0, len(copied))
    top = np.max([patch.get_data().values for patch in ax.patches], axis=0)
    sizes = np.diff(ax.patches[0].get_data().edges)
    assert (top * sizes).sum() == pytest.approx(sum(copied.values())), "the highest of the stack is the sum"
    readings = result.readings().to_pyarrow()
    assert len(ax.lines) == len(set(readings["reading"].to_pylist())) == 3
    assert sum(readings["events"].to_pylist()) <= 3 * 63
    moves = result.moves().to_pyarrow().to_pylist()
    assert {move["owner"] for move in moves} >= {"outlier_2m"}
    assert {move["reason"] for move in moves} == {"reported"}
    with pytest.raises(WarpError, match="no collections with owners"):
        plot.collections(table.slice(0, 0))


def test_frames_of_any_library_will_do(swept: SweepResult) -> None:
    samples = swept.samples()
    for frame in (samples.to_pandas(), __import__("polars").from_arrow(samples)):
        assert len(plot.waf_over_time(frame).lines) == 2
    with pytest.raises(WarpError, match="no column 'colour'"):
        plot.waf_over_time(samples, by="colour")


def test_marks_are_named_once() -> None:
    ax = plot.bars({"FDP": {"a": 1.0, "b": 2.0}}, marks={"drive": {"FDP": {"a": 1.1, "b": 2.1}}})
    assert line_labels(ax) == ["FDP", "paper's drive"]
    with pytest.raises(WarpError, match="Give drive or emulator"):
        plot.mark(ax, 0, 1, "paper")


def test_files_hold_their_fonts_and_nothing_global_changes(swept: SweepResult, tmp_path: Any) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    ax = plot.waf_over_time(swept)
    with plot.style():
        ax.figure.savefig(tmp_path / "a.pdf")
    assert b"/FontFile2" in (tmp_path / "a.pdf").read_bytes()
    assert dict(matplotlib.rcParams) == before
    assert ax.figure.get_figwidth() == plot.COLUMN_INCHES
