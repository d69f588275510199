"""The page of a fleet: totals, four figures, and the volumes that use most drive lives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._engine import __version__
from ..page import document, image_of, text_of
from ..plot import COLOURS, stroke
from ..plot.style import finish
from ..plot.tables import groups, numbers, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from . import FleetResult

_ROWS_MAX = 10


def page(result: FleetResult) -> str:
    """The page."""
    quarters, volumes, totals = result.quarters(), result.volumes(), result.totals().to_pylist()
    title = f"A fleet of {len(volumes) // len(result.placements)} volumes over {len(quarters) // len(result.placements)} quarters"
    factors = result.factors
    figures = [
        image_of(_deaths, quarters),
        image_of(_waf, quarters),
        image_of(_bought, quarters),
        image_of(_lives, volumes),
    ]
    parts = [
        f"<h1>{text_of(title)}</h1>",
        "<h2>Totals</h2>",
        _table(
            ("placement", "drives", "worn out", "failed", "bought", "WAF", "dollars", "kg CO2e", "mixes", "not steady"),
            (
                (
                    words(row["placement"]),
                    f"{row['drives']:,}",
                    *(f"{row[name]:,.1f} ({row[name + '_low']:,.0f}-{row[name + '_high']:,.0f})" for name in ("worn", "failed", "bought")),
                    f"{row['write_amplification']:.3f}",
                    f"{row['dollars']:,.0f}",
                    f"{row['carbon_kg']:,.0f}",
                    f"{row['mixes']:,}",
                    f"{row['not_steady']:,}",
                )
                for row in totals
            ),
        ),
        "<p class=about>Means over the seeds, with the interval from 5 to 95 % in brackets.</p>",
        "<h2>Over the years</h2>",
        f"<div class=figures>{''.join(f'<figure>{figure}</figure>' for figure in figures)}</div>",
        "<h2>Volumes that use most drive lives</h2>",
        *(_volumes(name, table) for name, table in groups(volumes, "placement")),
        f"<p class=about>WARP {text_of(__version__)}. Capacity costs {factors.dollars_per_terabyte:g} dollars per terabyte, flash embodies "
        f"{factors.embodied_kg_per_gigabyte:g} kg CO2e per gigabyte, and {factors.annual_failure_rate:.2%} of the drives fail in a year.</p>",
    ]
    return document(title, parts)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{text_of(one)}" for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{text_of(cell)}" for cell in row) for row in rows)
    return f"<div class=scroll><table><tr>{head}{body}</table></div>"


def _volumes(name: str, table: pa.Table) -> str:
    most = table.take(pc.sort_indices(table, [("drive_lives", "descending")])[:_ROWS_MAX]).to_pylist()
    rows = (
        (
            row["name"],
            f"{row['footprint_bytes'] / 1e9:,.1f}",
            f"{row['bytes_per_day'] / 1e9:,.1f}",
            f"{row['write_amplification']:.3f}",
            f"{row['drive_lives']:.4f}",
            f"{row['dollars']:,.2f}",
            f"{row['carbon_kg']:,.2f}",
        )
        for row in most
    )
    heads = ("volume", "GB", "GB a day", "WAF", "drive lives", "dollars", "kg CO2e")
    return f"<p class=about>Placement {text_of(words(name))}</p>{_table(heads, rows)}"


def _placements(table: pa.Table) -> Iterator[tuple[int, str, pa.Table]]:
    for place, (name, rows) in enumerate(groups(table, "placement")):
        yield place, f"placement {words(name)}", rows


def _deaths(ax: Axes, quarters: pa.Table) -> None:
    """Replaced drives of each quarter, with the interval over the seeds."""
    for place, name, rows in _placements(quarters):
        at = numbers(rows, "quarter")
        ax.fill_between(at, numbers(rows, "replaced_low"), numbers(rows, "replaced_high"), color=COLOURS[place], alpha=0.2, lw=0)
        ax.plot(at, numbers(rows, "replaced"), label=name, **stroke(place))
    _over_quarters(ax, "drives dying")


def _waf(ax: Axes, quarters: pa.Table) -> None:
    for place, name, rows in _placements(quarters):
        ax.plot(numbers(rows, "quarter"), numbers(rows, "write_amplification"), label=name, **stroke(place))
    _over_quarters(ax, "write amplification", 1.0)


def _bought(ax: Axes, quarters: pa.Table) -> None:
    for place, name, rows in _placements(quarters):
        bought = numbers(rows, "drives") + np.cumsum(numbers(rows, "replaced"))
        ax.plot(numbers(rows, "quarter"), bought, label=name, **stroke(place))
    _over_quarters(ax, "drives bought so far")


def _lives(ax: Axes, volumes: pa.Table) -> None:
    """Share of the used drive lives that the volumes with most of them use."""
    for place, name, rows in _placements(volumes):
        lives = np.sort(numbers(rows, "drive_lives"))[::-1]
        share = np.cumsum(lives) / lives.sum() if lives.sum() > 0 else np.zeros(len(lives))
        ax.plot(np.arange(1, len(lives) + 1) / len(lives), share, label=name, **stroke(place))
    ax.set_xlabel("volumes, most wear first (share)")
    ax.set_ylabel("used drive lives (share)")
    finish(ax, True)


def _over_quarters(ax: Axes, label: str, low: float = 0.0) -> None:
    ax.set_xlabel("quarter")
    ax.set_ylabel(label)
    ax.set_xlim(left=1)
    ax.set_ylim(bottom=low)
    finish(ax, True)
