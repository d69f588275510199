"""Each block of Python code in the book's pages runs and prints the output of the page."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    "tutorials/first-sweep.md",
    "tutorials/gc-policy.md",
    "tutorials/how-many-drives.md",
    "how-to/own-workload.md",
    "how-to/cluster.md",
    "how-to/gc-by-address.md",
]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
"""A block of code, and the block of output that directly follows it, if any."""


def blocks(page: str) -> list[tuple[str, str | None]]:
    """Returns the blocks of code of a page with their outputs, in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [(found[1], found[2]) for found in BLOCK.finditer(text)]


def words(output: str) -> list[str]:
    """Returns the words of an output. Widths of columns depend on the terminal and on the
    library."""
    return output.split()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_shows(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    found = blocks(page)
    assert found, "a page without code"
    for code, expected in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), names)
        if expected is not None:
            assert words(printed.getvalue()) == words(expected), code
