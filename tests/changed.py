#!/usr/bin/env python3
"""Prints the packages that changed since the merge base with origin/main. `./test fast` checks
them.

Changes that are not committed count too. Without origin/main the base is HEAD. A package has
changed when a file of its folder differs, or a file that its sources embed, such as an
experiment or a page.

    tests/changed.py --changed  packages that changed
    tests/changed.py --tested   those of them whose library has unit tests
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Sources of the studio's page are no Rust, but what is built of them is embedded.
NOT_COMPILED = re.compile(r"crates/[^/]+/.*\.md$|crates/studio/web/(?!dist/)")
# Paths that a source embeds: rust-embed's begin at the package, include_str's at the file.
FOLDER = re.compile(r'#\[folder = "([^"]+)"\]')
FILE = re.compile(r'include_(?:str|bytes)!\("([^"]+)"\)')


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def changed_files():
    """Returns the files that differ from the merge base, and files that git does not track yet."""
    has_main = subprocess.run(["git", "rev-parse", "--verify", "--quiet", "origin/main"], cwd=ROOT, capture_output=True)
    base = output("git", "merge-base", "HEAD", "origin/main").strip() if has_main.returncode == 0 else "HEAD"
    names = output("git", "diff", "--name-only", "--no-renames", base) + output("git", "ls-files", "--others", "--exclude-standard")
    return [ROOT / name for name in names.splitlines() if not NOT_COMPILED.match(name)]


def embedded(folder):
    """Yields the files and folders outside of a package's folder that its sources embed."""
    for source in folder.glob("src/**/*.rs"):
        text = source.read_text(encoding="utf-8")
        yield from ((folder / path).resolve() for path in FOLDER.findall(text))
        yield from ((source.parent / path).resolve() for path in FILE.findall(text))


def packages():
    """Returns the packages of the workspace by name, as cargo describes them."""
    described = output("cargo", "metadata", "--no-deps", "--format-version", "1")
    return {package["name"]: package for package in json.loads(described)["packages"]}


def changed(known):
    """Returns the names of the packages that changed."""
    files, crates = changed_files(), ROOT / "crates"
    found = set()
    for name, package in known.items():
        folder = Path(package["manifest_path"]).parent
        # One package embeds all sources for a digest, which is no reason to test it.
        places = {folder} | {place for place in embedded(folder) if place != crates and crates not in place.parents}
        if any(place == file or place in file.parents for file in files for place in places):
            found.add(name)
    return found


def has_unit_tests(package):
    """Returns true if the library of a package has unit tests."""
    return any(target["test"] for target in package["targets"] if {"lib", "cdylib"} & set(target["kind"]))


def main(options):
    known = packages()
    found = changed(known)
    match options:
        case ["--changed"]:
            chosen = found
        case ["--tested"]:
            chosen = {name for name in found if has_unit_tests(known[name])}
        case _:
            sys.exit(__doc__)
    for name in sorted(chosen):
        print(name)


main(sys.argv[1:])
