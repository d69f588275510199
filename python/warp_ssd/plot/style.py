"""The look of all plots: sizes, fonts, colours, strokes, axes."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

COLUMN_INCHES = 3.4
"""Width of a column of a two-column paper."""

PAGE_INCHES = 7.0
"""Width of its page."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Okabe and Ito's colours, which all kinds of colour vision tell apart, the darker ones first."""

DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.2, 1.2, 1.2)))
MARKERS = "osv^DPX*"
INK, GREY = "#222222", "#9a9a9a"

PLACES = {
    **{"FDP": 0, "Mixed": 1, "NoFDP": 2},
    **{"initially isolated": 0, "persistently isolated": 1, "II": 0, "PI": 1},
    **{f"RUH {handle}": handle for handle in range(8)},
}
"""Names with a fixed colour, as places in `COLOURS`. The pool that handles share is grey."""

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 7.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.0,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "hatch.linewidth": 0.5,
    "figure.dpi": 150,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
    "savefig.pad_inches": 0.03,
    # Embed fonts as fonts, so that text stays text.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
}
"""Settings of matplotlib for all plots. Use `matplotlib.rc_context(plot.STYLE)` for your own additions."""


_P = ParamSpec("_P")
_T = TypeVar("_T")


def new_figure(
    columns: int = 1, rows: int = 1, *, width_inches: float = COLUMN_INCHES, row_inches: float = 2.1
) -> tuple[Figure, NDArray[Any]]:
    """A figure in this style and its Axes, an array of `rows` x `columns`."""
    import matplotlib
    from matplotlib.figure import Figure as NewFigure

    with matplotlib.rc_context(STYLE):
        figure = NewFigure(figsize=(width_inches, rows * row_inches), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False)


@contextmanager
def style() -> Iterator[None]:
    """The style of these plots, for your own drawing."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        yield


def drawing(function: Callable[Concatenate[Axes, _P], None]) -> Callable[..., Axes]:
    """Wraps a function that draws into an Axes. The wrapper makes the Axes if none is given, and returns it."""

    @wraps(function)
    def draw(*arguments: Any, ax: Axes | None = None, **options: Any) -> Axes:
        import matplotlib

        with matplotlib.rc_context(STYLE):
            axes: Axes = ax if ax is not None else new_figure()[1][0, 0]
            function(axes, *arguments, **options)
        return axes

    return draw


def placed(named: Iterable[tuple[str, _T]]) -> Iterator[tuple[str, int, _T]]:
    """Gives each name its place in `COLOURS`: its own, or the first free one."""
    found = list(named)
    taken = {PLACES[name] for name, _ in found if name in PLACES}
    free = (place for place in itertools.count() if place not in taken)
    for name, what in found:
        yield name, PLACES[name] if name in PLACES else next(free), what


def colour_of(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def owner_colour(owner: str) -> str:
    return colour_of(int(owner.removeprefix("RUH "))) if owner.startswith("RUH ") else GREY


def stroke(place: int) -> dict[str, Any]:
    """Colour and dashes of the line at this place in `COLOURS`."""
    # Dashes change when the colours repeat, so that the ninth line differs from the first.
    return {"color": colour_of(place), "linestyle": DASHES[(place + place // len(COLOURS)) % len(DASHES)]}


def logarithmic(ax: Axes) -> None:
    """A logarithmic horizontal axis with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def share_text(nines: int) -> str:
    """`99.9 %` for three nines."""
    return "0 %" if nines == 0 else f"{100 - 10.0 ** (2 - nines):.{max(0, nines - 2)}f} %"


def finish(ax: Axes, legend: bool, *, above: bool = False) -> None:
    """Draws the legend, above the plot if `above` is set."""
    handles, labels = ax.get_legend_handles_labels()
    if not legend or not labels:
        return
    named = paper_last(dict(zip(labels, handles, strict=True)))
    if not above:
        ax.legend(list(named.values()), list(named))
        return
    columns = legend_columns(labels, _panel_inches(ax))
    ax.legend(list(named.values()), list(named), loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.2, columnspacing=1.0)


def paper_last(named: Mapping[str, _T]) -> dict[str, _T]:
    """Entries of a legend by label, with those of the paper last."""
    return dict(sorted(named.items(), key=lambda entry: "paper" in entry[0]))


def tick_text(label: str, places: int, ax: Axes) -> str:
    """A label in lines that fit one of these places beside each other."""
    letters = int(48 * _panel_inches(ax) / COLUMN_INCHES / max(places, 1))
    return label if len(label) <= letters else textwrap.fill(label.replace("_", " "), max(letters, 4))


def legend_columns(labels: Sequence[str], width_inches: float) -> int:
    """Number of legend columns that fit a width. A column of text has about 52 letters, and a sample is as wide as 5."""
    letters = 52 * width_inches / COLUMN_INCHES
    return max(1, min(len(labels), int(letters / (max(len(label) for label in labels) + 5))))


def _panel_inches(ax: Axes) -> float:
    """Approximate width of a plot."""
    figure, specification = ax.get_figure(root=True), ax.get_subplotspec()
    width = COLUMN_INCHES if figure is None else figure.get_figwidth()
    return width if specification is None else width / specification.get_gridspec().ncols
