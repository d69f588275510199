"""What a calibration found, and the device profile that it becomes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .determine import KnobFit
from .knobs import label, size_text

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


@dataclass(frozen=True)
class Calibration:
    """A drive's fitted knobs.

    Attributes
    ----------
    settings
        The value of each knob, by path.
    knobs
        How well each is determined.
    residuals
        `pyarrow.Table`, a row for each measurement: `measurement`, `metric`, `measured`, `sigma`, `before` (the start profile's WAF),
        `model` (the fitted one's), `residual` (`model` - `measured`).
    scale
        Of the twins that `before` and `model` were run on.
    evaluations
        Settings that were evaluated.
    toml
        The fitted profile: the start profile with the knobs set, `fitted = true`, and what they were fitted to.
    """

    settings: Mapping[str, object]
    knobs: Sequence[KnobFit]
    residuals: pa.Table
    scale: str
    evaluations: int
    toml: str

    @property
    def mean_absolute_error(self) -> float:
        """Mean of |model - measured| of the fitted profile."""
        return _mean_error(self.residuals, "model")

    @property
    def mean_absolute_error_before(self) -> float | None:
        """The same of the start profile; `None` if it could not run."""
        return None if self.residuals["before"].null_count else _mean_error(self.residuals, "before")

    @property
    def profile(self) -> dict[str, Any]:
        """The fitted profile as a dict, as `Device` takes it."""
        import tomllib

        return {
            name: _plain(value) for name, value in tomllib.loads(self.toml).items() if name not in ("title", "notes")
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted profile."""
        Path(path).write_text(self.toml, encoding="utf-8")

    def summary(self) -> str:
        """The knobs, the residuals and the errors, as text."""
        before = self.mean_absolute_error_before
        changed = f"mean absolute error {self.mean_absolute_error:.3f}"
        if before is not None:
            changed += f" (start profile {before:.3f})"
        lines = [f"{changed}, {self.residuals.num_rows} measurements, twins of {self.scale}", ""]
        lines += [knob.sentence for knob in self.knobs]
        lines += ["", f"{'measured':>9} {'model':>7} {'error':>7}"]
        for row in self.residuals.to_pylist():
            lines.append(f"{row['measured']:>9.3f} {row['model']:>7.3f} {row['residual']:>+7.3f}  {row['measurement']}")
        return "\n".join(lines)


def _mean_error(residuals: pa.Table, column: str) -> float:
    pairs = zip(residuals[column].to_pylist(), residuals["measured"].to_pylist(), strict=True)
    return fmean(abs(model - measured) for model, measured in pairs)


def _plain(value: Any) -> Any:
    """Values without their sources."""
    if not isinstance(value, dict):
        return value
    return value["value"] if "value" in value else {name: _plain(inner) for name, inner in value.items()}


def with_known(text: str, known: Mapping[str, object]) -> TOMLDocument:
    """A profile with settings that the user knows of the drive."""
    import tomlkit

    document = tomlkit.parse(text)
    for path, value in known.items():
        _set(document, path, value, {"source": "given to the calibration"})
    geometry = document.get("geometry", {})
    # The two exclude each other; what is given holds.
    for given, other in (("capacity_bytes", "physical_bytes"), ("physical_bytes", "capacity_bytes")):
        if f"geometry.{given}" in known and f"geometry.{other}" not in known and other in geometry:
            del geometry[other]
    return document


def with_fit(text: str, knobs: Sequence[KnobFit], measured: str, title: str | None) -> str:
    """A profile with fitted settings and notes on how well they are determined.

    Parameters
    ----------
    measured
        What they were fitted to, in words.
    """
    import tomlkit

    document = tomlkit.parse(text)
    for knob in knobs:
        _set(document, knob.path, knob.value, {"fitted": True, "source": f"fitted to {measured}"})
    sentences = "\n".join(f"- {knob.sentence}" for knob in knobs)
    notes = f"\nFitted to {measured}. How well the knobs are determined:\n{sentences}\n"
    if title is not None:
        document["title"] = title
    document["notes"] = tomlkit.string(notes, multiline=True)
    return tomlkit.dumps(document)


def _set(document: TOMLDocument, path: str, value: object, about: Mapping[str, object]) -> None:
    import tomlkit

    *tables, name = path.split(".")
    where: Any = document
    for table in tables:
        if table not in where:
            where[table] = tomlkit.table()
        where = where[table]
    leaf = tomlkit.inline_table()
    leaf["value"] = size_text(value) if name.endswith("_bytes") and isinstance(value, int) else value
    leaf.update(about)
    where[name] = leaf


def residual_table(
    names: Sequence[str],
    metrics: Sequence[str],
    measured: Sequence[float],
    sigmas: Sequence[float],
    before: Sequence[float] | None,
    model: Sequence[float],
) -> pa.Table:
    """The table `Calibration.residuals`."""
    return pa.table(
        {
            "measurement": list(names),
            "metric": list(metrics),
            "measured": list(measured),
            "sigma": list(sigmas),
            "before": pa.array(before if before is not None else [None] * len(model), pa.float64()),
            "model": list(model),
            "residual": [value - one for value, one in zip(model, measured, strict=True)],
        }
    )


__all__ = ["Calibration", "label", "residual_table", "with_fit", "with_known"]
