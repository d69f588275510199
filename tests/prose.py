#!/usr/bin/env python3
"""Checks the prose of the pages and of the doc comments. CONTRIBUTING.md explains the rules.

- A sentence has at most 35 words.
- No sentence has a clause with What, Who, Where or How as its subject. Questions may begin with
  these words.
- Words of our former dialect do not occur. FORBIDDEN has the word of the field beside each.
- A line of prose has at most 100 columns, and a cell of a table at most 200 characters.
- Texts of errors have the same bounds, and few semicolons and colons.

    tests/prose.py           checks everything
    tests/prose.py FILE...   checks these files
"""

import re
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS, COLUMNS, CELL = 35, 100, 200
# Share of the sentences of `#[error]` texts that may have a semicolon or a colon.
ERRORS = 0.15

FORBIDDEN = {
    r"twins?": "scaled model",
    r"whoever|whatever": "a noun, such as any client",
    r"plain commands?": "fast-path I/O",
    r"(?<!--)drive-writes?": "drive write",
    r"settled": "converged",
    r"(?:hears?|heard|tells?|told) of": "a verb such as report or receive",
}
CLAUSE = re.compile(r"(?:What|Who|Whoever|Whatever|Where|How) (?!(?:.*)\?$)")

# Exceptions: file, rules, beginning of the text ("": any), reason.
EXCEPTIONS = [
    ("docs/reference/claims.md", "columns", "", "`warp reproduce --claims` writes titles of experiments as a line each"),
]

ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|vs|Fig|al|cf|approx|No|Sect)\.$")


def sentences(text):
    """Returns the sentences of a paragraph."""
    found, start = [], 0
    for end in re.finditer(r"[.!?][)\"'*]*(?= +[A-Z0-9`*\"(\[])", text):
        if not ABBREVIATION.search(text[start : end.start() + 1]):
            found.append(text[start : end.end()].strip())
            start = end.end()
    return [sentence for sentence in (*found, text[start:].strip()) if sentence]


def plain(text):
    """Returns a text without the targets of links and without the contents of code."""
    text = re.sub(r"\[[\w-]+\.(?:md|ipynb)\]\([^)]*\)", "`c`", text)
    text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?", r"\1", text)
    return re.sub(r"``?[^`]+``?", "`c`", text)


def paragraphs(lines):
    """Yields the number of the first line and the text of each paragraph, list item and table cell of Markdown."""
    block, first, fenced, is_item = [], 0, False, False
    for number, line in enumerate([*lines, ""], 1):
        text = line.strip()
        fence = text.startswith("```")
        item = re.match(r"(?:[-*+]|\d+\.) +(.*)", text)
        skipped = fence or fenced or text.startswith(("#", "|", "<", "!["))
        indented = line.startswith("    ") and not is_item
        if block and (not text or item or skipped or indented):
            yield first, " ".join(block), False
            block = []
        fenced ^= fence
        if text.startswith("|") and not fenced:
            for cell in re.split(r"(?<!\\)\|", text)[1:-1]:
                yield number, cell.strip(), True
        elif text and not skipped and not indented:
            first = first if block else number
            is_item = bool(item) or (is_item and bool(block))
            block.append(item[1] if item else text)


def page_texts(path):
    lines, fenced = path.read_text().split("\n"), False
    for number, line in enumerate(lines, 1):
        fenced ^= line.lstrip().startswith("```")
        is_prose = not fenced and not line.startswith(("|", "    ", "#", "!", "<"))
        if is_prose and len(line) > COLUMNS and " " in line[:COLUMNS].strip():
            yield number, "columns", line
    for number, text, is_cell in paragraphs(lines):
        if is_cell and len(text) > CELL:
            yield number, "cell", text
        yield number, "prose", text


def source_texts(path):
    """Yields the doc comments and the texts of errors of a Rust file."""
    source, block, first = path.read_text(), [], 0
    for number, line in enumerate([*source.split("\n"), ""], 1):
        comment = re.match(r"\s*//[/!] ?(.*)", line)
        if comment:
            first = first if block else number
            block.append(comment[1])
        elif block:
            yield from ((first + at - 1, "prose", text) for at, text, _ in paragraphs(block))
            block = []
    for error in re.finditer(r"#\[error\(\s*\"((?:[^\"\\]|\\.)*)\"", source):
        yield source.count("\n", 0, error.start()) + 1, "error", re.sub(r"\\\n\s*", "", error[1])


def problems(rule, text):
    if rule in ("columns", "cell"):
        yield rule, f"{len(text)} characters: {text[:60]}"
    for sentence in sentences(plain(text)) if rule in ("prose", "error") else ():
        words = len(sentence.split())
        if words > WORDS:
            yield "words", f"{words} words: {sentence[:90]}"
        if CLAUSE.match(sentence):
            yield "clause", f"begins with a clause: {sentence[:90]}"
        for word, better in FORBIDDEN.items():
            if found := re.search(rf"(?<!\w)(?:{word})\b", sentence, re.IGNORECASE):
                yield "word", f'"{found[0]}", say "{better}": {sentence[:90]}'


def main(names):
    pages = [*ROOT.glob("*.md"), ROOT / "examples/README.md", *(ROOT / "docs").rglob("*.md")]
    files = [Path(name).resolve() for name in names] or sorted(pages) + sorted([*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("examples/*.rs")])
    failures, used, errors = 0, Counter(), []
    for path in files:
        name = str(path.relative_to(ROOT))
        for line, rule, text in (page_texts if path.suffix == ".md" else source_texts)(path):
            errors += sentences(text) if rule == "error" else []
            for kind, problem in problems(rule, text):
                excepted = [e for e in EXCEPTIONS if fnmatch(name, e[0]) and kind in e[1].split() and text.startswith(e[2])]
                used.update(excepted[:1])
                if not excepted:
                    failures += 1
                    print(f"{name}:{line}: {problem}")
    for exception in [e for e in EXCEPTIONS if e not in used and not names]:
        failures += 1
        print(f"tests/prose.py: remove the exception {exception[:3]}, nothing needs it")
    divided = [text for text in errors if ";" in text or ": " in text]
    print(f"{len(files)} files, {failures} problems, {sum(used.values())} excepted; ", end="")
    print(f"{len(divided)} of {len(errors)} sentences of errors have a semicolon or a colon, {ERRORS:.0%} allowed")
    return 1 if failures or len(divided) > ERRORS * len(errors) else 0


sys.exit(main(sys.argv[1:]))
