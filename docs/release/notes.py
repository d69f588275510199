#!/usr/bin/env python3
"""Prints the notes of a release, which are the section of its version in CHANGELOG.md.

The version stands in the workspace's Cargo.toml. The tag, CITATION.cff and the heading of the section must agree with it.

    docs/release/notes.py TAG [ROOT]      a tag such as v0.1.0
"""

import re
import sys
import tomllib
from pathlib import Path


def notes(tag, root):
    """Returns the notes, or raises ValueError with the problem."""
    version = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, but Cargo.toml has version {version}. Tag the commit v{version}")
    cited = re.search(r"^version: *(\S+)$", (root / "CITATION.cff").read_text(), re.MULTILINE)
    if not cited or cited[1] != version:
        raise ValueError(f"CITATION.cff does not have version {version}. Correct it")
    sections = re.split(r"^## ", (root / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    found = [section for section in sections if section.split(None, 1)[0] == version]
    if len(found) != 1:
        raise ValueError(f"CHANGELOG.md has {len(found)} sections of version {version}. It needs one")
    heading, _, text = found[0].partition("\n")
    if not re.fullmatch(re.escape(version) + r" \(\d{4}-\d\d-\d\d\)", heading.strip()):
        raise ValueError(f'CHANGELOG.md has the heading "{heading}". Write the day, such as {version} (2026-12-01)')
    if not text.strip():
        raise ValueError(f"the section of {version} in CHANGELOG.md is empty. Say what changed")
    return text.strip()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        print(notes(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) == 3 else Path(__file__).resolve().parents[2]))
    except ValueError as problem:
        sys.exit(f"notes.py: {problem}")
