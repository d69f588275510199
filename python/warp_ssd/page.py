"""Parts of pages without scripts and without a network, which a person can read and publish.

A figure is an image in the page, as wide as a column of a paper, so that it is readable on a telephone.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterable
from typing import Any

from .plot import new_figure
from .plot import style as plot_style

_STYLE = """
:root { color-scheme: light; font: 16px/1.45 system-ui, sans-serif; color: #222; background: #fff }
body { max-width: 60rem; margin: 0 auto; padding: 1rem }
h1 { font-size: 1.5rem; margin: .5rem 0 0 } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem }
p.about { color: #555; margin: .25rem 0 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: 1rem 0 }
dt { color: #555 } dd { margin: 0; font-weight: 600 }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); gap: 1rem }
figure { margin: 0 } img { width: 100%; height: auto }
.wide { max-width: 40rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid #ddd; white-space: nowrap }
th { color: #555; font-weight: 600 } th:first-child, td:first-child { text-align: left; padding-left: 0 }
tr.holdout td { background: #f2f7fc } td.out { color: #b3420a; font-weight: 600 }
li { margin: .3rem 0 }
"""


def document(title: str, parts: Iterable[str]) -> str:
    """A page of these parts of its body."""
    head = '<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">'
    return f"{head}<title>{text_of(title)}</title><style>{_STYLE}</style>\n" + "\n".join(parts) + "\n"


def text_of(value: object) -> str:
    """A value as text of a page."""
    return html.escape(str(value))


def image_of(draw: Callable[..., None], *arguments: Any, rows: float = 1.9) -> str:
    """An image of the axes that `draw` fills. `rows` is its height in inches."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "warp"}):
        figure, axes = new_figure(row_inches=rows)
        with plot_style():
            draw(axes[0, 0], *arguments)
        content = io.BytesIO()
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    data = base64.b64encode(content.getvalue()).decode()
    return f'<img alt="" src="data:image/svg+xml;base64,{data}">'
