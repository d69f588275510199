"""The tutorial: a newcomer's ten minutes run from top to bottom, and say what they promise."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.ipynb"


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What all cells print, one after the other."""
    notebook = nbformat.read(TUTORIAL, as_version=4)
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
    assert "gc.unit_selection = fifo" in printed
    assert "0 failed" in printed
