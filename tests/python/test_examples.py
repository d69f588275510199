"""Each program of examples/ prints the output in its header, and both victim policies print
equal numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import dropwhile, takewhile
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.rs")])
BUILT = Path(os.environ.get("WARP", "target/debug/warp")).absolute().parent / "examples"
"""Folder of the Rust examples, which `cargo test` builds beside the command."""


def shown(program: Path) -> list[str]:
    """Returns the output in the header of a program, the lines below its command line."""
    lines = [line.removeprefix("//!").strip() for line in program.read_text(encoding="utf-8").splitlines()]
    below = list(dropwhile(lambda line: not line.startswith("$ "), lines))[1:]
    return list(takewhile(lambda line: line not in ("", "```"), below))


def command(program: Path) -> list[str | Path]:
    """Returns the command line of a program, without a build."""
    return [sys.executable, program] if program.suffix == ".py" else [BUILT / program.stem]


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_an_example_prints_what_its_header_shows(program: Path, tmp_path: Path) -> None:
    if program.suffix == ".rs" and not (BUILT / program.stem).exists():
        pytest.skip(f"cargo test has not built {BUILT / program.stem}")
    done = subprocess.run(command(program), check=True, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert shown(program), "a header without output"
    assert [line.split() for line in printed] == [line.split() for line in shown(program)]


def test_the_same_policy_gives_the_same_write_amplification_in_both_languages() -> None:
    assert shown(EXAMPLES / "victim_policy.py") == shown(EXAMPLES / "victim_policy.rs")


def test_the_readme_lists_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [program.name for program in PROGRAMS if f"({program.name})" not in text] == []
