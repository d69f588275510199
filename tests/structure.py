#!/usr/bin/env python3
"""Fails when source files of one crate import each other in a circle.

Files without circles can be read and changed from the bottom up. A file imports another file
when one of its paths that begin with `crate`, `super` or `self` ends in the module of the other
file. Test code, comments and literals do not count. The root of a crate does not count either,
because it re-exports what users of the crate need.

    tests/structure.py           checks all crates
    tests/structure.py CRATE...  checks these crates without exceptions, and lists the items that
                                 the imports of a circle name
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

CRATES = Path(__file__).resolve().parent.parent / "crates"

# Circles that are not broken yet, by crate. Delete a circle here when you have broken it.
CIRCLES_LEFT = {}

NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/"""  # comments
    r"""|b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^\n']*|[^\\'\n])'""",  # literals
    re.DOTALL,
)
TEST_ITEM = re.compile(r"#\[cfg\(test\)\]")
IMPORT = re.compile(r"\buse\s+((?:crate|super|self)\b[^;]*);")
PATH = re.compile(r"\b(?:crate|super|self)(?:\s*::\s*\w+)+")


def code(text):
    """Returns a source text without comments, literals and the items that only tests have."""
    text = NO_CODE.sub('""', text)
    while match := TEST_ITEM.search(text):
        text = text[: match.start()] + text[end_of_item(text, match.end()) :]
    return text


def end_of_item(text, start):
    """Returns the end of the item at `start`: its first semicolon or closing brace outside of all brackets."""
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] in "([{") - (text[position] in ")]}")
        if depth < 0:
            return position
        if depth == 0 and text[position] in ";}":
            return position + 1
    return len(text)


def leaves(tree):
    """Returns the paths of a tree of imports such as `super::a::{b, c::{self, d as e}}`, each as a list of names."""
    paths, prefixes, path = [], [[]], []
    for token in re.findall(r"\w+|[{},*]", re.sub(r"\bas\s+\w+", "", tree)):
        if token == "{":
            prefixes.append(prefixes[-1] + path)
            path = []
        elif token in ",}":
            paths += [prefixes[-1] + path] if path else []
            path = []
            if token == "}":
                prefixes.pop()
        else:
            path.append(token)
    return paths + ([prefixes[-1] + path] if path else [])


def from_the_root(path, module):
    """Returns a path as names below the root of the crate. `module` is the module that has the path in it."""
    names = [] if path[0] == "crate" else list(module)
    for name in path:
        if name == "super":
            names = names[:-1]
        elif name not in ("crate", "self"):
            names.append(name)
    return names


def modules(source):
    """Returns the files of a crate by their modules, which are tuples of names. The root is ()."""
    files = {}
    for file in sorted(source.rglob("*.rs")):
        names = file.relative_to(source).with_suffix("").parts
        files.setdefault(names[:-1] if names[-1] == "mod" or names in (("lib",), ("main",)) else names, file)
    return files


def imports(source):
    """Returns for each file of a crate the files that it imports, with the items that it names of them."""
    files = modules(source)
    graph = {file: defaultdict(set) for file in files.values()}
    for module, file in files.items():
        text = code(file.read_text(encoding="utf-8"))
        trees = IMPORT.findall(text) + PATH.findall(IMPORT.sub("", text))
        for names in (from_the_root(path, module) for tree in trees for path in leaves(tree)):
            depth = len(names)
            while depth > 0 and tuple(names[:depth]) not in files:
                depth -= 1
            other = files.get(tuple(names[:depth]))
            if depth > 0 and other != file:
                graph[file][other].add("::".join(names[depth:]) or "the module")
    return graph


def reached_from(graph, start):
    """Returns the files that a file imports, directly and through others."""
    found, waiting = set(), [start]
    while waiting:
        new = set(graph[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


def circles(graph):
    """Returns the largest sets of files that import each other, directly and through others."""
    reached = {file: reached_from(graph, file) for file in graph}
    found = {frozenset(other for other in reached[file] if file in reached[other]) for file in graph}
    return sorted(sorted(circle) for circle in found if len(circle) > 1)


def check(crate, left, lists_items):
    """Prints the circles of a crate that are not in CIRCLES_LEFT. Returns their number."""
    source = CRATES / crate / "src"
    graph = imports(source)
    name = {file: file.relative_to(source).as_posix() for file in graph}
    count = 0
    for circle in circles(graph):
        names = [name[file] for file in circle]
        if any(known.issuperset(names) for known in left):
            continue
        count += 1
        print(f"crates/{crate}/src: {', '.join(names[:-1])} and {names[-1]} import each other in a circle")
        for file in circle if lists_items else ():
            for other in sorted(set(graph[file]) & set(circle)):
                print(f"    {name[file]} imports {name[other]}: {', '.join(sorted(graph[file][other]))}")
    return count


def main(asked):
    if asked:
        return sum(check(crate, [], True) for crate in asked) > 0
    crates = sorted(path.parent.name for path in CRATES.glob("*/src"))
    count = sum(check(crate, CIRCLES_LEFT.get(crate, []), False) for crate in crates)
    if count:
        print(
            "test: no file may import a file that imports it. Move the shared items to the lower file, or to a file of their own. "
            "tests/structure.py CRATE lists the items."
        )
    return count > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
