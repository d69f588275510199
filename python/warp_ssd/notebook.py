"""HTML of results for notebooks: plain tables without styles, so that they look like the notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._engine import Answer, Result, Table

ROWS = 20
"""Maximum number of rows shown of a table."""


def table(table: Table) -> str:
    """The first rows of a table and the number of its rows."""
    head = table.to_pyarrow().slice(0, ROWS)
    more = table.num_rows - head.num_rows
    html = _table(head.column_names, (list(row.values()) for row in head.to_pylist()))
    return html + (f"<p>and {more} more rows</p>" if more > 0 else "")


def result(result: Result) -> str:
    """The write amplification of each point and the verdicts on claims."""
    cells = result.cells().to_pyarrow()
    coordinates = cells.column_names[: cells.column_names.index("seed") + 1]
    shown = [*coordinates, "write_amplification", "tail_write_amplification", "warnings"]
    names = [name for name in shown if name in cells.column_names and any(cells[name].to_pylist())]
    html = _table(names, (list(row.values()) for row in cells.select(names).slice(0, ROWS).to_pylist()))
    more = f"<p>and {len(result) - ROWS} more points</p>" if len(result) > ROWS else ""
    claims = [row for row in result.claims().to_pyarrow().to_pylist() if row["holds"] is not None]
    held = sum(row["holds"] for row in claims)
    judged = f"<p>{held} of {len(claims)} claims hold</p>" if claims else ""
    return f"<p><b>{escape(repr(result))}</b></p>{html}{more}{judged}"


def answer(answer: Answer) -> str:
    """The headline, the placements, and a way for a host to carry out the best one."""
    how = "".join(f"<li>{escape(line)}</li>" for line in answer.how)
    heading = f"<p>How ({escape(answer.best or answer.classifier or '')}):</p><ul>{how}</ul>" if how else ""
    return f"<p><b>{escape(answer.headline)}</b></p>{table(answer.placements())}{heading}"


def _table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, float):
        return f'<td style="text-align: right">{value:.4g}</td>'
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="text-align: right">{value}</td>'
    return f'<td style="text-align: left">{escape(str(value))}</td>'
