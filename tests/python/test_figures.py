"""Each figure of the papers can be drawn from its experiment's quick form, with the paper's
marks."""

from __future__ import annotations

from pathlib import Path

import pytest
from warp_ssd import figures

FAST = ("one_stream", "three_stream", "per_handle", "bandwidth", "latency", "reclaim_unit_size", "event_feedback")
"""One or two figures of each kind. All figures would take minutes."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> figures.Runs:
    return figures.Runs(tmp_path_factory.mktemp("store"), quick=True)


@pytest.mark.parametrize("name", FAST)
def test_a_figure_is_drawn(runs: figures.Runs, name: str, tmp_path: Path) -> None:
    figure = next(figure for figure in figures.FIGURES if figure.name == name)
    (file,) = figures.draw(figure, runs, tmp_path)
    assert file.read_bytes().startswith(b"\x89PNG")
    assert file.stat().st_size > 10_000


def test_the_same_results_are_the_same_file(runs: figures.Runs, tmp_path: Path) -> None:
    figure = next(figure for figure in figures.FIGURES if figure.name == "one_stream")
    formats = ("png", "pdf")
    first = [file.read_bytes() for file in figures.draw(figure, runs, tmp_path / "a", formats)]
    assert first == [file.read_bytes() for file in figures.draw(figure, runs, tmp_path / "b", formats)]


def test_the_papers_numbers_are_marks(runs: figures.Runs) -> None:
    drawn = figures.curves(runs, "three_stream", panels="overwrite", rows="device")
    assert len(drawn.axes) == 6
    marks = [line for line in drawn.axes[0].lines if line.get_marker() == "D" and len(line.get_xdata())]
    assert sorted(float(line.get_ydata()[0]) for line in marks) == [1.03, 1.03, 1.60]
    labels = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert labels == ["FDP", "Mixed", "NoFDP", "paper's drive", "paper's emulator"]


def test_names_are_unique_and_a_wrong_one_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    names = [figure.name for figure in figures.FIGURES]
    assert len(names) == len(set(names))
    with pytest.raises(SystemExit):
        figures.main(["nothing"])
    assert "no figure 'nothing'" in capsys.readouterr().err
