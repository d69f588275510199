"""Plots of results in one style: print-ready, colour-blind safe, the same colour for the same name in every figure.

    results or their tables -> Arrow -> matplotlib Axes

Functions draw into `ax`, or into a new figure of a column's width, and return the Axes. `.figure.savefig` writes the figure. The
functions set no global state, choose no backend and need no display. Several seeds become their mean, with a band from the least
to the greatest.

The data is a `Result`, `PointResult` or `SweepResult`, or one of their tables. Any other Arrow, pandas or Polars table with these
columns works too (docs/reference/results.md has them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from .._engine import WarpError
from .style import (
    COLOURS,
    COLUMN_INCHES,
    INK,
    MARKERS,
    PAGE_INCHES,
    STYLE,
    colour_of,
    drawing,
    finish,
    legend_columns,
    logarithmic,
    new_figure,
    owner_colour,
    paper_last,
    placed,
    share_text,
    stroke,
    style,
    tick_text,
)
from .tables import (
    ArrowStream,
    Source,
    first_run,
    groups,
    last_by_owner,
    numbers,
    one_owner,
    recent_waf,
    rising,
    table_of,
    words,
    written_capacities,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from .._engine import Result

__all__ = [
    "COLOURS",
    "COLUMN_INCHES",
    "PAGE_INCHES",
    "STYLE",
    "ArrowStream",
    "Source",
    "bars",
    "collections",
    "crossings",
    "latency_cdf",
    "legend_columns",
    "logarithmic",
    "mark",
    "new_figure",
    "nines",
    "occupancy",
    "overview",
    "paper_last",
    "ruh_breakdown",
    "stroke",
    "style",
    "tradeoff",
    "waf_over_time",
]


MOST_PANELS = 12
"""Maximum number of panels of a figure, because more would be unreadable."""

MOST_STEPS = 300
"""Maximum number of steps of a plot."""


@drawing
def waf_over_time(
    ax: Axes, source: Source, *, by: str | Sequence[str] = "variant", window: float | None = None, legend: bool = True
) -> None:
    """Write amplification over written bytes, since the start or in a window.

    Parameters
    ----------
    source
        A result, or its `samples`.
    by
        Columns whose values are a line each.
    window
        Length of the window in multiples of the capacity. `None` reaches back to the start.
    legend
        True to name the lines.
    """
    table = one_owner(table_of(source, "samples"))
    for label, place, lines in placed(groups(table, by)):
        runs = [(written_capacities(run), recent_waf(run, window)) for _, run in groups(lines, "seed")]
        _line(ax, runs, label, place)
    ax.set_xlabel("host writes (× capacity)")
    ax.set_ylabel("write amplification")
    ax.set_xlim(left=0)
    finish(ax, legend)


def overview(result: Result) -> Figure:
    """Overview of a result, with a panel for each device and grid value.

    It shows the latencies of timed runs, else write amplification over written bytes. `Result.plot` calls this function. It draws
    only the first `MOST_PANELS` panels.
    """
    is_timed = result.latencies().num_rows > 0
    table = table_of(result, "latencies" if is_timed else "samples")
    if table.num_rows == 0:
        raise WarpError("there is nothing to draw, because the runs ended before their first sample")
    coordinates = table.column_names[: table.column_names.index("seed")]
    variants = pc.count_distinct(table["variant"]).as_py() > 1
    lines = "variant" if variants else (coordinates[2] if len(coordinates) > 2 else "device")
    shared = [name for name in coordinates if name != lines and pc.count_distinct(table[name]).as_py() > 1]
    panels = list(groups(table, shared))[:MOST_PANELS] if shared else [("", table)]
    columns = min(len(panels), 3)
    width = COLUMN_INCHES if columns == 1 else PAGE_INCHES
    figure, axes = new_figure(columns, -(-len(panels) // columns), width_inches=width, row_inches=2.2)
    for index, ax in enumerate(axes.flat):
        if index >= len(panels):
            ax.set_visible(False)
            continue
        title, rows = panels[index]
        draw = latency_cdf if is_timed else waf_over_time
        draw(rows, ax=ax, by=lines, legend=index == 0)
        with style():
            ax.set_title(title)
    return figure


@drawing
def ruh_breakdown(
    ax: Axes, source: Source, *, of: str = "copied", by: str | Sequence[str] = "variant", legend: bool = True
) -> None:
    """Bytes that each reclaim unit handle wrote, or that garbage collection copied out of its reclaim units. Each run is a
    stacked bar.

    Parameters
    ----------
    source
        A result, or its `samples`. The plot shows the last sample of each run, as the mean over seeds.
    of
        `host` or `copied`, in multiples of the capacity.
    by
        Columns whose values are a bar each.
    """
    if of not in ("host", "copied"):
        raise WarpError(f"of = {of!r} is unknown. Give host or copied")
    table = table_of(source, "samples")
    owners = [name for name, rows in groups(table, "owner") if max(numbers(rows, f"owner_{of}_bytes"), default=0) > 0]
    bars = [(label, last_by_owner(rows, f"owner_{of}_bytes")) for label, rows in groups(table, by)]
    base = np.zeros(len(bars))
    for owner in owners:
        heights = np.array([values.get(owner, 0.0) for _, values in bars])
        ax.bar(
            range(len(bars)),
            heights,
            0.6,
            base,
            color=owner_colour(owner),
            edgecolor="white",
            linewidth=0.5,
            label=owner,
        )
        base += heights
    ax.set_xticks(range(len(bars)), [tick_text(label, len(bars), ax) for label, _ in bars])
    ax.tick_params(axis="x", length=0)
    ax.set_ylabel(f"{'written by host' if of == 'host' else 'copied by GC'} (× capacity)")
    finish(ax, legend, above=True)


@drawing
def tradeoff(
    ax: Axes,
    source: Source,
    *,
    x: str = "geometry.over_provisioning",
    by: str | Sequence[str] = "handles.isolation",
    y: str = "write_amplification",
    bands: Sequence[tuple[float, float]] = (),
    legend: bool = True,
) -> None:
    """A measure over a setting, with a line for each kind of drive and the first crossing of the first two lines.

    Parameters
    ----------
    source
        A sweep, or its `points`.
    x
        Column of the setting. Shares up to 1 appear in percent.
    by
        Columns whose values are a line each, such as initially against persistently isolated handles.
    y
        Column of the measure.
    bands
        Ranges of `x` to shade, for example the published crossing.
    """
    table = table_of(source, "points")
    table = table.filter(pc.is_valid(table[y]))
    percent = 100.0 if max(numbers(table, x), default=0.0) <= 1.0 else 1.0
    lines = []
    for label, place, rows in placed(groups(table, by)):
        runs = [(numbers(run, x) * percent, numbers(run, y)) for _, run in groups(rows, "seed")]
        lines.append(_line(ax, runs, label, place, marker=MARKERS[place % len(MARKERS)]))
    for low, high in bands:
        ax.axvspan(low * percent, high * percent, color="#e6e6e6", zorder=0, label="crossing in the paper")
    if len(lines) > 1:
        for at, height in crossings(*lines[0], lines[1][1])[:1]:
            ax.plot([at], [height], "o", ms=8, mfc="none", mec=INK, mew=0.8, zorder=5)
            text = f"{at:.1f}{' %' if percent > 1 else ''}"
            ax.annotate(text, (at, height), (3, 12), textcoords="offset points", color=INK)
    ax.set_xlabel(f"{words(x)}{' (%)' if percent > 1 else ''}")
    ax.set_ylabel(words(y))
    finish(ax, legend)


@drawing
def latency_cdf(
    ax: Axes,
    source: Source,
    *,
    by: str | Sequence[str] = "variant",
    job: str | None = None,
    direction: str | None = None,
    legend: bool = True,
) -> None:
    """The share of requests within a latency, on an axis of nines.

    Parameters
    ----------
    source
        A result of timed runs, or its `latencies`.
    by
        Columns whose values are a line each. Several jobs and directions give separate lines. Each seed is a line in the same
        colour.
    job, direction
        Selected requests: a section of the job file, and `read`, `write` or `trim`. Default: all of them.
    """
    table = table_of(source, "latencies")
    for name, value in (("job", job), ("direction", direction)):
        if value is not None:
            table = table.filter(pc.equal(table[name], value))
    if table.num_rows == 0:
        raise WarpError(f"there are no latencies of job {job!r}, direction {direction!r}. Use a timed run")
    names = [by] if isinstance(by, str) else list(by)
    names += [name for name in ("job", "direction") if name not in names and pc.count_distinct(table[name]).as_py() > 1]
    highest = 1.0
    ends = []
    for label, place, rows in placed(groups(table, names)):
        for first, (_, run) in enumerate(groups(rows, "seed")):
            # The slowest requests stand at the share of all faster ones, because the axis has no place for 100 %.
            heights = nines(np.concatenate([[0.0], numbers(run, "share")[:-1]]))
            highest = max(highest, float(heights[-1]))
            named = "_" if first else label
            places = numbers(run, "latency_ns") / 1e3
            ax.step(places, heights, where="post", label=named, **stroke(place))
            ends.append((places[-1], heights[-1], place))
    top = int(np.ceil(highest))
    # 100 % lies beyond every nine, so a line goes up at its slowest request.
    for at, height, place in ends:
        ax.plot([at, at], [height, top], label="_", **stroke(place))
    logarithmic(ax)
    ax.set_xlabel("latency (µs)")
    ax.set_ylabel("share of requests")
    ax.set_yticks(range(top + 1), [share_text(tick) for tick in range(top + 1)])
    ax.set_ylim(0, top)
    finish(ax, legend)


@drawing
def occupancy(ax: Axes, source: Source, *, legend: bool = True) -> None:
    """Reclaim units held by each handle and the shared pool over written bytes, of one run.

    Parameters
    ----------
    source
        A `PointResult`, or `samples` of one point. Of several points, the plot shows the first.
    """
    table = first_run(table_of(source, "samples"))
    names = [name for name, rows in groups(table, "owner") if max(numbers(rows, "owner_units"), default=0) > 0]
    written = written_capacities(one_owner(table))
    heights = [numbers(table.filter(pc.equal(table["owner"], name)), "owner_units") for name in names]
    colours = [owner_colour(name) for name in names]
    ax.stackplot(written, heights, labels=names, colors=colours, edgecolor="white", linewidth=0.3)
    ax.set_xlim(0, max(written, default=1.0))
    ax.set_xlabel("host writes (× capacity)")
    ax.set_ylabel("reclaim units")
    finish(ax, legend, above=True)


@drawing
def collections(ax: Axes, source: Source, *, legend: bool = True) -> None:
    """Pages copied by each garbage collection, by owner of the data, with the readings of the event log.

    The plot shows one run with placement feedback. If there were more than some hundred collections, a step is the mean of
    several in a row.

    Parameters
    ----------
    source
        A `PointResult`, or `collections` of one point. Of several points, the plot shows the first.
    """
    table = first_run(table_of(source, "collections"))
    if table.num_rows == 0:
        raise WarpError("there are no collections with owners. Use a run with feedback")
    owners = {name: numbers(rows, "pages_copied") for name, rows in groups(table, "owner")}
    count = len(next(iter(owners.values())))
    starts = np.arange(0, count, -(-count // MOST_STEPS))
    sizes = np.diff([*starts, count])
    means = {name: np.add.reduceat(pages, starts) / sizes for name, pages in owners.items()}
    shown = [(name, place, heights) for name, place, heights in placed(means.items()) if heights.any()]
    base = np.zeros(len(starts))
    for name, place, heights in shown:
        colour = owner_colour("") if name == "nobody" else colour_of(place)
        top = base + heights
        ax.stairs(top, [*starts, count], baseline=base, fill=True, color=colour, label=name.replace("_", " "))
        base = top
    before = numbers(one_owner(table), "readings")
    for reading in np.flatnonzero(np.diff(before, prepend=0)):
        ax.axvline(float(reading), color=INK, linestyle="--", linewidth=0.7)
    ax.set_xlim(0, count)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("collection")
    ax.set_ylabel("pages copied")
    finish(ax, legend, above=True)


@drawing
def bars(
    ax: Axes,
    values: Mapping[str, Mapping[str, float]],
    *,
    marks: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None,
    label: str = "write amplification",
    legend: bool = True,
) -> None:
    """Groups of bars, with published numbers as marks upon them.

    Parameters
    ----------
    values
        For each series (a colour) a number for each group (a place on the horizontal axis).
    marks
        For each kind, `drive` or `emulator`, published numbers like `values`.
    """
    groups = list(dict.fromkeys(group for series in values.values() for group in series))
    width = 0.8 / len(values)
    for index, (name, place, series) in enumerate(placed(values.items())):
        places = {group: middle + (index - (len(values) - 1) / 2) * width for middle, group in enumerate(groups)}
        ax.bar(
            [places[group] for group in series], list(series.values()), width * 0.92, color=colour_of(place), label=name
        )
        for kind, published in (marks or {}).items():
            for group, value in published.get(name, {}).items():
                mark(ax, places[group], value, kind)
    ax.set_xticks(range(len(groups)), [tick_text(group, len(groups), ax) for group in groups])
    ax.tick_params(axis="x", length=0)
    ax.set_ylabel(label)
    finish(ax, legend, above=True)


def mark(ax: Axes, x: float, y: float, kind: str = "drive", *, of: str = "", label: str | None = None) -> None:
    """Marks a published number.

    Parameters
    ----------
    kind
        `drive` for a number measured on a drive, `emulator` for one of a published emulator.
    of
        Label of the line or bars of `ax` to which the number belongs. The mark takes their colour.
    label
        Its name in the legend. The default says that it is the paper's.
    """
    shapes = {"drive": ("D", "paper's drive"), "emulator": ("o", "paper's emulator")}
    if kind not in shapes:
        raise WarpError(f"kind = {kind!r} is unknown. Give drive or emulator")
    shape, usual = shapes[kind]
    label = label or usual
    handles, labels = ax.get_legend_handles_labels()
    found = [handle for handle, name in zip(handles, labels, strict=True) if name == of]
    colour = _colour_of_handle(found[0]) if found else INK
    filled = kind == "drive"
    options: dict[str, Any] = {"ms": 4.5, "mew": 0.8, "ls": "none", "zorder": 6}
    ax.plot(
        [x],
        [y],
        shape,
        mfc=colour if filled else "white",
        mec=("black" if found else "white") if filled else colour,
        clip_on=False,
        **options,
    )
    if label not in labels:
        ax.plot([], [], shape, mfc=INK if filled else "white", mec=INK, label=label, **options)


def _colour_of_handle(handle: Any) -> Any:
    """Colour of a line, or of bars."""
    return handle.get_color() if hasattr(handle, "get_color") else handle[0].get_facecolor()


def nines(share: Any) -> Any:
    """Place of a share of the requests (a number or an array, below 1) on the axis of `latency_cdf`. 3 is 99.9 %."""
    return -np.log10(1 - np.asarray(share, dtype=np.float64))


def crossings(
    x: NDArray[np.float64], one: NDArray[np.float64], other: NDArray[np.float64]
) -> list[tuple[float, float]]:
    """Places and heights at which two lines over the same places cross, by linear interpolation."""
    gap = one - other
    found = []
    for left in np.flatnonzero(np.sign(gap[:-1]) * np.sign(gap[1:]) < 0):
        share = gap[left] / (gap[left] - gap[left + 1])
        found.append(
            (float(x[left] + share * (x[left + 1] - x[left])), float(one[left] + share * (one[left + 1] - one[left])))
        )
    return found


def _line(
    ax: Axes, runs: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]], label: str, index: int, **options: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draws the mean of runs and a band from the least to the greatest, and returns the mean."""
    places = np.unique(np.concatenate([x for x, _ in runs]))
    heights = np.array([np.interp(places, x, y) for x, y in (rising(*run) for run in runs)])
    if len(runs) > 1:
        ax.fill_between(places, heights.min(0), heights.max(0), color=colour_of(index), alpha=0.18, linewidth=0)
    ax.plot(places, heights.mean(0), label=label, **stroke(index), **options)
    return places, heights.mean(0)
