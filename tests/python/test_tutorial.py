"""The tutorial runs from top to bottom and prints the promised results."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from warp_ssd import Experiment, WarpError

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "tutorial.ipynb"

WITHOUT_EXTRAS = """
import sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "polars"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
"""
"""`pip install .` installs neither of them."""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the output of all cells."""
    notebook = nbformat.read(TUTORIAL, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(WITHOUT_EXTRAS))
    folder = tmp_path_factory.mktemp("notebook")
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert "Warning" not in "".join(output["text"] for output in outputs if output.get("name") == "stderr")
    assert len([output for output in outputs if "image/png" in output.get("data", {})]) == 3
    assert len([output for output in outputs if "application/vnd.jupyter.widget-view+json" in output.get("data", {})]) == 1
    return "".join(output["text"] for output in outputs if output.get("name") == "stdout")


def test_the_tutorial_runs_and_finds_the_secret(printed: str) -> None:
    assert "after the fill: write amplification 1.00" in printed
    assert "mean absolute error" in printed
    assert "gc.victim_policy = fifo" in printed
    assert "0 failed" in printed


def test_the_last_cell_says_what_it_needs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    last = [cell.source for cell in nbformat.read(TUTORIAL, as_version=4).cells if cell.cell_type == "code"][-1]
    exec(last, {})
    assert 'pip install ".[notebook]"' in capsys.readouterr().out


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_names_the_library_that_it_needs(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    table = Experiment("three_stream").published()
    with pytest.raises(WarpError, match=rf'to_{library} needs {library}. Run pip install "warp_ssd\[frames\]"'):
        getattr(table, f"to_{library}")()
