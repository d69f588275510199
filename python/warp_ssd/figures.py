"""The papers' figures from our own runs, with the papers' numbers as marks: `python -m warp_ssd.figures`.

    experiments/ -> sweep (results stay in a store) -> plot.py -> docs/figures/paper_NAME.png
    published numbers of the experiment -> marks

The notes of each experiment explain the comparison and the choices that a paper leaves open. A figure has no marks if no paper
prints its numbers.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from . import plot
from ._engine import Experiment, WarpError
from .sweep import SweepResult, sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OVER_PROVISIONING = tuple(share / 100 for share in range(3, 13))
"""Over-provisionings of the sweep II against PI."""


@dataclass
class Runs:
    """Runs experiments once and stores their results.

    Attributes
    ----------
    store
        Folder of the results.
    quick
        True to run the quick forms. They prove that the figures can be drawn, but their numbers are meaningless.
    """

    store: str | os.PathLike[str] | None = None
    quick: bool = False
    _swept: dict[str, SweepResult] = field(default_factory=dict)

    def experiment(self, name: str) -> SweepResult:
        """All points of an experiment."""
        if name not in self._swept:
            self._swept[name] = sweep(name, store=self.store, quick=self.quick)
        return self._swept[name]

    def published(self, name: str, column: str | None = "write_amplification") -> list[dict[str, Any]]:
        """Published numbers of an experiment, for one column of `cells` or for no column."""
        rows = Experiment(name).published().to_pyarrow().to_pylist()
        return [row for row in rows if row["column"] == column]


@dataclass(frozen=True)
class PaperFigure:
    """A figure: its file name, its content, its source and the function that draws it."""

    name: str
    shows: str
    draw: Callable[[Runs], Figure]


def _rows(table: pa.Table, at: Mapping[str, str]) -> pa.Table:
    for name, value in at.items():
        table = table.filter(pc.equal(table[name], value))
    return table


def _values(table: pa.Table, name: str) -> list[str]:
    return list(dict.fromkeys(table[name].to_pylist())) if name in table.column_names else []


def _at(row: Mapping[str, Any], at: Mapping[str, str]) -> bool:
    """True if a published number belongs to this place. Coordinates that the number leaves out match any place."""
    return all(row.get(name) in (None, "", value) for name, value in at.items())


def _same_height(panels: Sequence[Axes], bottom: float) -> None:
    top = max(ax.get_ylim()[1] for ax in panels)
    for ax in panels:
        ax.set_ylim(bottom, top)


def _in_words(name: str, value: str) -> str:
    """Text of a column's value, with the column's name if the value alone is unclear."""
    if value == "none":
        return f"no {name}"
    return f"{name} {value}" if value.endswith("%") else value


def _legend(figure: Figure) -> None:
    """Draws one legend above all panels."""
    found: dict[str, Any] = {}
    for ax in figure.axes:
        handles, labels = ax.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    found = plot.paper_last(found)
    with plot.style():
        columns = plot.legend_columns(list(found), figure.get_figwidth())
        figure.legend(found.values(), found.keys(), loc="outside upper center", ncols=columns)


def _end_marks(ax: Axes, published: Sequence[Mapping[str, Any]], at: Mapping[str, str], lines: str) -> None:
    """Marks published numbers at the end of the curves."""
    end = ax.dataLim.x1
    for row in published:
        if not _at(row, at):
            continue
        for kind, place in (("drive", end), ("emulator", end * 1.02)):
            if row[kind] is not None:
                plot.mark(ax, place, row[kind], kind, of=row.get(lines) or row.get("device") or "")


def curves(
    runs: Runs, name: str, *, panels: str = "", rows: str = "", lines: str = "variant", window: float | None = None
) -> Figure:
    """Draws write amplification over written bytes, with a panel per value of one column and a row of panels per value of
    another.
    """
    samples = runs.experiment(name).samples()
    across, down = _values(samples, panels) or [""], _values(samples, rows) or [""]
    width = plot.PAGE_INCHES if len(across) > 1 else plot.COLUMN_INCHES
    figure, axes = plot.new_figure(len(across), len(down), width_inches=width, row_inches=1.9)
    published = runs.published(name, "tail_write_amplification" if window else "write_amplification")
    for row, row_value in enumerate(down):
        for column, column_value in enumerate(across):
            at = {key: value for key, value in ((rows, row_value), (panels, column_value)) if key and value}
            ax = axes[row, column]
            plot.waf_over_time(_rows(samples, at), ax=ax, by=lines, window=window, legend=False)
            _end_marks(ax, published, at, lines)
            with plot.style():
                title = ", ".join(_in_words(name, value) for name, value in at.items())
                ax.set_title(textwrap.fill(title, 72 // len(across)))
            ax.label_outer(remove_inner_ticks=False)
        _same_height(axes[row], bottom=0.9)
    _legend(figure)
    return figure


def grouped_bars(
    runs: Runs,
    name: str,
    *,
    groups: str,
    series: str = "variant",
    metric: str = "write_amplification",
    label: str = "write amplification",
    **where: str,
) -> Figure:
    """Draws a measure of each cell at this place as bars with marks."""
    points = _rows(_done(runs.experiment(name).points()), where)
    published = runs.published(name, metric)
    figure, axes = plot.new_figure()
    values: dict[str, dict[str, float]] = {}
    marks: dict[str, dict[str, dict[str, float]]] = {"drive": {}, "emulator": {}}
    for one in _values(points, series) or [""]:
        for group in _values(points, groups):
            at = {key: value for key, value in ((series, one), (groups, group)) if value}
            cells = _rows(points, at)[metric].to_pylist()
            if not cells:
                continue
            values.setdefault(one, {})[group] = sum(cells) / len(cells)
            for row in published:
                if _at(row, at | where):
                    for kind, found in marks.items():
                        if row[kind] is not None:
                            found.setdefault(one, {})[group] = row[kind]
    plot.bars(values, ax=axes[0, 0], marks=marks, label=label, legend=False)
    axes[0, 0].set_xlabel(groups)
    if len(values) > 1 or any(marks.values()):
        _legend(figure)
    return figure


def _done(points: pa.Table) -> pa.Table:
    return points.filter(pc.equal(points["status"], "done"))


def handles(runs: Runs, name: str, *, by: str, of: Sequence[str] = ("host", "copied"), **at: str) -> Figure:
    """Draws the bytes that each handle wrote and the bytes copied of it. The cells at this place give one bar per value of a
    column.
    """
    samples = _rows(runs.experiment(name).samples(), at)
    width = plot.PAGE_INCHES if len(of) > 1 else plot.COLUMN_INCHES
    figure, axes = plot.new_figure(len(of), width_inches=width, row_inches=2.2)
    for ax, what in zip(axes[0], of, strict=True):
        plot.ruh_breakdown(samples, of=what, by=by, ax=ax, legend=False)
    _legend(figure)
    return figure


def feedback(runs: Runs, variants: Sequence[str]) -> Figure:
    """Draws the pages copied by each collection, with a panel for each kind of feedback."""
    table = runs.experiment("event_feedback").collections()
    figure, axes = plot.new_figure(len(variants), width_inches=plot.PAGE_INCHES, row_inches=2.1)
    for ax, variant in zip(axes[0], variants, strict=True):
        plot.collections(_rows(table, {"variant": variant}), ax=ax, legend=False)
        with plot.style():
            ax.set_title(variant)
        ax.label_outer()
    _same_height(axes[0], bottom=0)
    _legend(figure)
    return figure


def bandwidth(runs: Runs) -> Figure:
    """Draws the mean bandwidth of each whole run over the request size, with the numbers of the drive's data sheet."""
    jobs = runs.experiment("bandwidth").jobs()
    sizes = _values(jobs, "bs")
    kib = {size: float(size.removesuffix(" KiB")) for size in sizes}
    figure, axes = plot.new_figure(row_inches=2.4)
    ax = axes[0, 0]
    for place, variant in enumerate(_values(jobs, "variant")):
        rows = _rows(jobs, {"variant": variant})
        rates = [rate / 1e6 for rate in rows["bytes_per_second"].to_pylist()]
        with plot.style():
            ax.plot([kib[size] for size in rows["bs"].to_pylist()], rates, label=variant, **plot.stroke(place))
    for row in runs.published("bandwidth", None):
        megabytes = kib[row["bs"]] * 1024 / 1e6 if row["metric"].startswith("IOPS") else 1.0
        plot.mark(ax, kib[row["bs"]], row["drive"] * megabytes, of=row["variant"], label="data sheet")
    with plot.style():
        plot.logarithmic(ax)
        ax.set_xticks(list(kib.values()), [size.removesuffix(" KiB") for size in sizes])
        ax.set_ylim(bottom=0)
        ax.set_xlabel("request size (KiB)")
        ax.set_ylabel("MB/s")
    _legend(figure)
    return figure


def isolation(runs: Runs) -> Figure:
    """Draws the sweep of two kinds of isolation, two sizes of reclaim units, ten over-provisionings and three seeds."""
    sizes = {"256MiB": (0.07, 0.09), "128MiB": (0.05, 0.07)}
    figure, axes = plot.new_figure(2, width_inches=plot.PAGE_INCHES, row_inches=2.3)
    published = runs.published("ii_vs_pi")
    points = isolation_sweep(runs)
    for ax, (size, band) in zip(axes[0], sizes.items(), strict=True):
        rows = _rows(points, {"geometry.reclaim_unit_bytes": size})
        plot.tradeoff(rows, bands=[band], ax=ax, legend=False)
        for row in published:
            if row["RU"] == size.replace("MiB", " MiB") and row["emulator"] is not None:
                kind = {"II eager": "initially isolated", "PI eager": "persistently isolated"}[row["variant"]]
                plot.mark(ax, float(row["OP %"]), row["emulator"], "emulator", of=kind)
        with plot.style():
            ax.set_title(f"reclaim units of {size.replace('MiB', ' MiB')}")
        ax.set_ylim(bottom=1)
    _legend(figure)
    return figure


def isolation_sweep(runs: Runs) -> pa.Table:
    """The points of II against PI, on drives that open their reclaim units eagerly, as the published emulator does."""
    grid: dict[str, Sequence[object]] = {
        "handles.isolation": ["initially_isolated", "persistently_isolated"],
        "geometry.reclaim_unit_bytes": ["256MiB", "128MiB"],
        "geometry.over_provisioning": list(OVER_PROVISIONING),
    }
    found = sweep(
        "ii_vs_pi",
        grid,
        variants=["II", "256 MiB", "3"],
        seeds=[1, 2, 3],
        overrides={"handles.opening": "eager"},
        quick=runs.quick,
        store=runs.store,
    )
    return _done(found.points())


def latency(runs: Runs) -> Figure:
    """Draws the latency of random reads, one at a time, with the percentiles of Table 3."""
    figure, axes = plot.new_figure(row_inches=2.4)
    ax = axes[0, 0]
    plot.latency_cdf(_rows(runs.experiment("latency").latencies(), {"depth": "1"}), by="device", ax=ax, legend=False)
    for row in runs.published("latency", None):
        percentile = re.match(r"latency p([\d.]+),", row["metric"])
        if percentile is None:
            continue
        height = float(plot.nines(float(percentile.group(1)) / 100))
        for kind in ("drive", "emulator"):
            if row[kind] is not None:
                plot.mark(ax, row[kind], height, kind)
    _legend(figure)
    return figure


def latency_32k(runs: Runs) -> Figure:
    """Draws the latency of 32 KiB reads and writes."""
    figure, axes = plot.new_figure(2, width_inches=plot.PAGE_INCHES)
    table = runs.experiment("latency_32k").latencies()
    for ax, variant in zip(axes[0], ("read", "write"), strict=True):
        plot.latency_cdf(_rows(table, {"variant": variant}), by="depth", ax=ax, legend=False)
        with plot.style():
            ax.set_title(variant)
            ax.legend(title="queue depth")
    return figure


FIGURES = (
    PaperFigure(
        "one_stream",
        "One stream, over the last full drive write (WARP Fig. 2)",
        lambda runs: curves(runs, "one_stream", lines="device", window=1.0),
    ),
    PaperFigure(
        "three_stream",
        "Three streams (WARP Fig. 3, Table 2)",
        lambda runs: curves(runs, "three_stream", panels="overwrite", rows="device"),
    ),
    PaperFigure("two_stream", "Two streams (WARP Fig. 4)", lambda runs: curves(runs, "two_stream", panels="streams")),
    PaperFigure(
        "three_stream_uniform",
        "Three streams, uniform overwrites (WARP Fig. 5)",
        lambda runs: curves(runs, "three_stream_uniform", panels="device"),
    ),
    PaperFigure("cachelib", "CacheLib (WARP Fig. 6, 13, Table 2)", lambda runs: curves(runs, "cachelib", panels="SOC")),
    PaperFigure(
        "cachelib_benign",
        "Other caches (WARP Fig. 7)",
        lambda runs: grouped_bars(runs, "cachelib_benign", groups="trace"),
    ),
    PaperFigure(
        "hit_ratio",
        "Hit ratios (WARP Fig. 8)",
        lambda runs: grouped_bars(runs, "cachelib", groups="SOC", metric="recent.hit_ratio", label="hit ratio"),
    ),
    PaperFigure(
        "noisy_neighbour",
        "A noisy neighbour (WARP Fig. 9)",
        lambda runs: curves(runs, "noisy_neighbour", panels="neighbour"),
    ),
    PaperFigure("f2fs", "F2FS (WARP Fig. 10)", lambda runs: curves(runs, "f2fs", panels="personality", rows="device")),
    PaperFigure(
        "f2fs_handles",
        "F2FS, host writes per handle (WARP Fig. 11)",
        lambda runs: handles(runs, "f2fs", by="personality", of=["host"], variant="FDP"),
    ),
    PaperFigure(
        "one_stream_emulator",
        "Settings of the emulated drive, over the last full drive write (WARP Fig. 12)",
        lambda runs: curves(runs, "one_stream_emulator", lines="setting", window=1.0),
    ),
    PaperFigure(
        "per_handle",
        "Host writes and copies per handle (WARP Fig. 16, 17)",
        lambda runs: handles(runs, "per_handle", by="overwrite", OP="10 %"),
    ),
    PaperFigure("ii_vs_pi", "II against PI (WARP Fig. 18, 19)", isolation),
    PaperFigure(
        "small_soc_units",
        "Small reclaim units for small objects, at equal time (WARP Fig. 20)",
        lambda runs: grouped_bars(runs, "small_soc_units", groups="SOC"),
    ),
    PaperFigure(
        "small_soc_units_in_time",
        "Small units at equal bytes, and a cache that drops inserts (WARP section 6.1)",
        lambda runs: grouped_bars(
            runs, "small_soc_units_in_time", groups="load", metric="tail_write_amplification", limits="shared"
        ),
    ),
    PaperFigure("latency", "Latency of random reads (WARP Table 3)", latency),
    PaperFigure("bandwidth", "Bandwidth over the request size (FDPVirt Fig. 2)", bandwidth),
    PaperFigure("latency_32k", "Latency of 32 KiB requests (FDPVirt Fig. 3a)", latency_32k),
    PaperFigure(
        "placement_granularity",
        "Handles in use (FDPVirt Fig. 4)",
        lambda runs: grouped_bars(runs, "placement_granularity", groups="handles", series="device"),
    ),
    PaperFigure(
        "reclaim_unit_size",
        "Sizes of reclaim units (FDPVirt section 3.3)",
        lambda runs: grouped_bars(runs, "reclaim_unit_size", groups="RU", series="device"),
    ),
    PaperFigure(
        "event_feedback",
        "Pages copied by each collection, without and with placement feedback (Kang & Shin Fig. 1)",
        lambda runs: feedback(runs, ["nobody listens", "longest run"]),
    ),
)
"""All figures, in the order of the papers."""


def draw(figure: PaperFigure, runs: Runs, out: str | os.PathLike[str], formats: Sequence[str] = ("png",)) -> list[Path]:
    """Draws a figure, writes it and returns its files."""
    drawn = figure.draw(runs)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"paper_{figure.name}.{ending}" for ending in formats]
    with plot.style():
        for file in files:
            # Without a date and a version, the same results give the same bytes.
            metadata = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(
                file.suffix[1:]
            )
            drawn.savefig(file, metadata=metadata)
    return files


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    names = [figure.name for figure in FIGURES]
    parser = argparse.ArgumentParser(
        prog="python -m warp_ssd.figures", description="Draw the figures of the papers from runs of WARP."
    )
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=f"figures to draw, default all ({', '.join(names)})")
    parser.add_argument("--out", default="docs/figures", help="output folder (default: %(default)s)")
    parser.add_argument(
        "--format", nargs="+", default=["png"], choices=["png", "pdf", "svg"], help="file formats (default: png)"
    )
    parser.add_argument(
        "--store", default="out/figures", help="folder for results, which the next call reuses (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="run the quick forms of the experiments")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.figures if name not in names]
    if unknown:
        parser.error(f"there is no figure {unknown[0]!r}. Give one of {', '.join(names)}")
    runs = Runs(options.store, options.quick)
    try:
        for figure in FIGURES:
            if not options.figures or figure.name in options.figures:
                for file in draw(figure, runs, options.out, options.format):
                    print(f"{file}: {figure.shows}", flush=True)
    except WarpError as error:
        print(f"figures: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
