"""The report of a fit: one page without scripts and without a network, which a person can read and publish.

    Fitted -> tables and figures -> HTML
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .._engine import __version__
from ..page import document, image_of, text_of
from ..plot import stroke
from ..plot.tables import numbers, one_owner
from .fit import Fitted, Prediction, number_text
from .folder import PROFILE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_Line = tuple[Any, Any]
"""Places and heights of a line."""

_CURVES_MAX = 16
_POINTS = 60
"""Steps of a curve at most."""


def report(fitted: Fitted) -> str:
    """The page."""
    drive = fitted.folder.drive
    title = drive.model or "A drive"
    held = [one for one in fitted.predictions if one.measurement.use == "holdout"]
    parts = [
        f"<h1>{text_of(title)}</h1>",
        f"<p class=about>{text_of(_first_sentence(fitted, held))}</p>",
        f"<p class=about>Serial number {text_of(drive.serial_hash or 'unknown')} (hash).</p>",
        "<dl>" + "".join(f"<dt>{text_of(name)}<dd>{text_of(text)}" for name, text in fitted.portrait()) + "</dl>",
        "<h2>Write amplification of each probe</h2>",
        f"<figure class=wide>{image_of(_probes, fitted.predictions, rows=0.22 * len(fitted.predictions) + 0.8)}</figure>",
        _table(
            ("probe", "use", "measured", "model", "interval", "error"),
            (
                (
                    "holdout" if one in held else "",
                    (one.probe, one.measurement.use, f"{one.measurement.waf:.3f}", f"{one.model:.3f}"),
                    (f"{one.low:.3f} to {one.high:.3f}", f"{one.error:+.1%}"),
                    one.is_inside,
                )
                for one in fitted.predictions
            ),
        ),
        "<p class=about>The fit has not seen the holdouts. An error in orange is outside the interval.</p>",
        *_curves(fitted),
        *_times(fitted),
        "<h2>Not determined</h2>",
        "<ul>" + "".join(f"<li>{text_of(one)}" for one in fitted.undetermined or ["All searched settings are determined."]) + "</ul>",
        f"<p class=about>WARP {text_of(__version__)} evaluated {fitted.evaluations} settings at scale {text_of(fitted.scale)}. "
        "The numbers of this page are in fit.json, the profile is in profile.toml.</p>",
    ]
    return document(title, parts)


def _first_sentence(fitted: Fitted, held: Sequence[Prediction]) -> str:
    if not held:
        return "No probe was held out, so the error of a prediction is unknown."
    errors = ", ".join(f"{one.probe} {one.error:+.1%}" for one in held)
    return f"The fitted model predicts workloads that it has not seen with these errors of the write amplification: {errors}."


def _table(heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str], Sequence[str], bool]]) -> str:
    lines = []
    for kind, cells, last, is_inside in rows:
        shown = "".join(f"<td>{text_of(cell)}" for cell in (*cells, *last[:-1]))
        lines.append(f"<tr class='{kind}'>{shown}<td class='{'' if is_inside else 'out'}'>{text_of(last[-1])}")
    head = "".join(f"<th>{text_of(one)}" for one in heads)
    return f"<div class=scroll><table><tr>{head}{''.join(lines)}</table></div>"


def _times(fitted: Fitted) -> list[str]:
    if fitted.times is None or not fitted.times.numbers:
        return []
    rows = [
        (
            "",
            (one.measured.name, number_text(one.measured.value), number_text(one.model), one.measured.unit, one.fixed or ""),
            (f"{one.model / one.measured.value - 1:+.1%}",),
            one.fixed is None or abs(one.model / one.measured.value - 1) < 0.05,
        )
        for one in fitted.times.numbers
    ]
    return [
        "<h2>Rates and latencies</h2>",
        _table(("load", "measured", "model", "unit", "fixed setting", "error"), rows),
        "<p class=about>A number without a setting is a prediction.</p>",
    ]


def _probes(ax: Axes, predictions: Sequence[Prediction]) -> None:
    """Measured and modelled write amplifications with intervals, a row for each probe."""
    places = np.arange(len(predictions))[::-1]
    ax.hlines(places, [one.low for one in predictions], [one.high for one in predictions], color="#8bb8d8", linewidth=5)
    options: dict[str, Any] = {"linestyle": "none", "zorder": 5}
    ax.plot([one.model for one in predictions], places, "|", ms=8, mew=1.5, color="#0072B2", label="model", **options)
    for use, fill in (("fit", "#D55E00"), ("holdout", "white")):
        found = [(one.measurement.waf, place) for one, place in zip(predictions, places, strict=True) if one.measurement.use == use]
        if found:
            label = "measured" if use == "fit" else "held out"
            ax.plot(*zip(*found, strict=True), "o", ms=4, mec="#D55E00", mfc=fill, label=label, **options)
    ax.set_yticks(places, [one.probe for one in predictions])
    ax.set_xlabel("write amplification (bars: interval of the model)")
    ax.grid(axis="x")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, columnspacing=1.0)


def _curves(fitted: Fitted) -> list[str]:
    """A figure for each probe with raw samples."""
    figures = []
    for one in fitted.predictions[:_CURVES_MAX]:
        if one.measurement.relative_to is not None:
            continue
        measured = _measured_curve(fitted.folder.path / "samples" / f"{one.probe}.parquet", fitted.folder.drive.capacity_bytes)
        if measured is not None:
            figures.append(f"<figure>{image_of(_curve, one, measured, _model_curve(fitted, one))}</figure>")
    if not figures:
        return []
    return ["<h2>Over the written bytes</h2>", f"<div class=figures>{''.join(figures)}</div>"]


def _curve(ax: Axes, one: Prediction, measured: _Line, model: _Line) -> None:
    ax.plot(*model, label="model", **stroke(0))
    ax.plot(*measured, ".", ms=3, color="#D55E00", label="measured")
    ax.set_title(one.probe)
    ax.set_xlabel("host writes (x capacity)")
    ax.set_ylabel("write amplification")
    ax.set_xlim(left=0)
    heights = (*measured[1], *model[1])
    ax.set_ylim(min(0.9, *heights), 1.05 * max(heights))
    ax.legend()


def _measured_curve(file: Path, capacity_bytes: int) -> _Line | None:
    """The samples of a probe, or `None` without a counter or with a file that is not readable."""
    if file.is_symlink() or not file.is_file():
        return None
    try:
        table = pq.read_table(file, columns=["host_bytes", "media_bytes"]).drop_null()
        host, media = numbers(table, "host_bytes"), numbers(table, "media_bytes")
    except (pa.ArrowException, OSError, ValueError):
        return None
    return _steps(host, media, float(capacity_bytes)) if len(host) > 1 else None


def _model_curve(fitted: Fitted, one: Prediction) -> _Line:
    """The same workload on the fitted model."""
    point = one.measurement.load(os.fspath(fitted.folder.path / PROFILE)).points(scale=fitted.scale, seeds=[1])[0]
    samples = one_owner(point.run().samples().to_pyarrow())
    host, media = (np.concatenate([[0.0], numbers(samples, name)]) for name in ("host_bytes", "media_bytes"))
    return _steps(host, media, float(numbers(samples, "capacity_bytes")[0]))


def _steps(host: NDArray[np.float64], media: NDArray[np.float64], capacity_bytes: float) -> _Line:
    """Write amplification between samples, thinned out to a readable number."""
    order = np.linspace(0, len(host) - 1, min(len(host), _POINTS + 1)).round().astype(int)
    host, media = host[order] - host[0], media[order]
    rises = np.diff(host) > 0
    waf = np.diff(media)[rises] / np.diff(host)[rises]
    return host[1:][rises] / capacity_bytes, waf

