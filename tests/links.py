#!/usr/bin/env python3
"""Checks the links of the pages.

- Every relative link of README, CHANGELOG, CONTRIBUTING, SECURITY, docs/, examples/ and tests/ names a file that exists.
- Pages of docs/ link to files of docs/ only, because the book contains no others.
- Every anchor names a heading of its page.
- Every page of docs/ is in docs/SUMMARY.md.
- Every question of docs/index.md links to a page.

    tests/links.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
QUESTIONS = 20
PAGES = [path for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY") if (path := ROOT / f"{name}.md").exists()]
PAGES += [ROOT / "examples" / "README.md"] + sorted(DOCS.rglob("*.md")) + sorted(DOCS.rglob("*.ipynb")) + sorted((ROOT / "tests").rglob("*.md"))

LINK = re.compile(r"\]\(([^()\s]+(?:\([^()]*\))?[^()\s]*)\)|\b(?:src|srcset|href)=\"([^\"]+)\"")


def without_blocks(page):
    """Returns a page without blocks of code."""
    return re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """Returns the anchors of a page's headings, as GitHub and mdBook make them."""
    found, counts = set(), {}
    for heading in re.findall(r"^#+ +(.*?) *$", without_blocks(page), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = counts[anchor] = counts.get(anchor, -1) + 1
        found.add(f"{anchor}-{count}" if count else anchor)
    return found


def links(page):
    """Yields the relative links of a page as target and anchor."""
    text = re.sub(r"`[^`\n]*`", lambda span: "c" * len(span[0]), without_blocks(page))
    for match in LINK.finditer(text):
        link = match[1] or match[2]
        if not re.match(r"[a-z]+:", link):
            path, _, anchor = link.partition("#")
            yield link, (page.parent / path).resolve() if path else page, anchor


def problems():
    for page in PAGES:
        name = page.relative_to(ROOT)
        for link, target, anchor in links(page):
            if DOCS in page.parents and DOCS not in target.parents:
                yield f"{name}: the book does not contain {link}"
            elif not target.exists():
                yield f"{name}: no file for the link {link}"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                yield f"{name}: no heading for the link {link}"
    listed = {target for _, target, _ in links(DOCS / "SUMMARY.md")}
    for page in sorted(DOCS.rglob("*.md")):
        if page not in listed and page.name != "SUMMARY.md":
            yield f"docs/SUMMARY.md does not list {page.relative_to(DOCS)}"
    questions = re.findall(r"^- \[[^\]]*\?\]\((\S+)\)", (DOCS / "index.md").read_text(), re.MULTILINE)
    if len(questions) < QUESTIONS:
        yield f"docs/index.md: {len(questions)} questions are links, expected {QUESTIONS}"


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found) or f"{len(PAGES)} pages: every link resolves")
    sys.exit(1 if found else 0)
