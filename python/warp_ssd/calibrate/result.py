"""The result of a calibration, and the device profile or experiment made from it, with its ensemble."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .._engine import WarpError
from .cross_validation import CrossValidation
from .determine import KnobFit
from .knobs import size_text

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


@dataclass(frozen=True)
class Member:
    """A member of an ensemble: its settings by path and its misfit (`Evaluation.loss`).

    In an ensemble of an experiment, settings of the workload begin with `workload.`.
    """

    settings: Mapping[str, object]
    loss: float


@dataclass(frozen=True)
class Calibration:
    """The fitted knobs of a drive.

    Attributes
    ----------
    settings
        The value of each knob, by path.
    knobs
        The interval of each knob.
    nuisances
        The same for the unknowns of the workload and of the reading.
    members
        The ensemble: settings that explain the measurements as well as `settings`, which are the first member.
    widening
        Share by which a range of the members' predictions is widened at either end.
    validation
        Each figure predicted from the others, with cross-validation only.
    residuals
        `pyarrow.Table` with a row for each measurement: `measurement`, `metric`, `measured`, `sigma`, `before` (the start
        profile's WAF), `model` (the fitted one's), `residual` (`model` - `measured`).
    scale
        Scale of the runs for `before` and `model`.
    evaluations
        Number of evaluated settings.
    toml
        The fitted profile: the start profile with the knobs set, `fitted = true`, and the measurements as their source. For an
        ensemble of an experiment, the file of the experiment with the result in `[change]` and the ensemble.
    """

    settings: Mapping[str, object]
    knobs: Sequence[KnobFit]
    nuisances: Sequence[KnobFit]
    members: Sequence[Member]
    widening: float
    validation: CrossValidation | None
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
        """The same for the start profile, or `None` if it could not run."""
        return None if self.residuals["before"].null_count else _mean_error(self.residuals, "before")

    @property
    def profile(self) -> dict[str, Any]:
        """The fitted profile as a dict, as `Device` takes it.

        Raises
        ------
        WarpError
            The fit is of an experiment.
        """
        import tomllib

        if "devices" in tomllib.loads(self.toml):
            raise WarpError(
                "the ensemble is of an experiment, so there is no profile. Use settings for the fitted values of the drive"
            )
        others = ("title", "notes", *_OF_ENSEMBLE)
        return {name: _plain(value) for name, value in tomllib.loads(self.toml).items() if name not in others}

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted profile, or the experiment."""
        Path(path).write_text(self.toml, encoding="utf-8")

    def summary(self) -> str:
        """The knobs, the residuals and the errors, as text."""
        before = self.mean_absolute_error_before
        changed = f"mean absolute error {self.mean_absolute_error:.3f}"
        if before is not None:
            changed += f" (start profile {before:.3f})"
        lines = [f"{changed}, {self.residuals.num_rows} measurements, scale {self.scale}", ""]
        lines += [knob.sentence for knob in (*self.knobs, *self.nuisances)]
        lines += ["", f"ensemble of {len(self.members)}, ranges widened by {self.widening:.1%}"]
        lines += ["", f"{'measured':>9} {'model':>7} {'error':>7}"]
        for row in self.residuals.to_pylist():
            lines.append(f"{row['measured']:>9.3f} {row['model']:>7.3f} {row['residual']:>+7.3f}  {row['measurement']}")
        if self.validation is not None:
            lines += ["", self.validation.table()]
        return "\n".join(lines)


_OF_ENSEMBLE = ("ensemble_residual", "ensemble")
"""Keys of a profile that belong to its ensemble."""


def _mean_error(residuals: pa.Table, column: str) -> float:
    pairs = zip(residuals[column].to_pylist(), residuals["measured"].to_pylist(), strict=True)
    return fmean(abs(model - measured) for model, measured in pairs)


def _plain(value: Any) -> Any:
    """Values without their sources."""
    if not isinstance(value, dict):
        return value
    return value["value"] if "value" in value else {name: _plain(inner) for name, inner in value.items()}


def with_known(text: str, known: Mapping[str, object]) -> TOMLDocument:
    """A profile with the settings that the user knows of the drive."""
    import tomlkit

    document = tomlkit.parse(text)
    # The measurements behind the start profile do not matter here.
    for name in _OF_ENSEMBLE:
        document.pop(name, None)
    for path, value in known.items():
        set_leaf(document, path, value, {"source": "given to the calibration"})
    geometry = document.get("geometry", {})
    # The two exclude each other. The given one applies.
    for given, other in (("capacity_bytes", "physical_bytes"), ("physical_bytes", "capacity_bytes")):
        if f"geometry.{given}" in known and f"geometry.{other}" not in known and other in geometry:
            del geometry[other]
    return document


def with_fit(
    text: str,
    knobs: Sequence[KnobFit],
    nuisances: Sequence[KnobFit],
    members: Sequence[Member],
    widening: float,
    validation: CrossValidation | None,
    measured: str,
    title: str | None,
) -> str:
    """A profile with fitted settings, its ensemble, and notes on the intervals of the knobs.

    Parameters
    ----------
    measured
        The measurements of the fit, in words.
    """
    import tomlkit

    document = tomlkit.parse(text)
    for knob in knobs:
        set_leaf(document, knob.path, knob.value, {"fitted": True, "source": f"fitted to {measured}"})
    sentences = "\n".join(f"- {knob.sentence}" for knob in knobs)
    notes = f"\nFitted to {measured}. The data determines the knobs as follows:\n{sentences}\n"
    if nuisances:
        beside = "\n".join(f"- {one.sentence}" for one in nuisances)
        notes += f"Nuisances of the workloads and the readings, fitted too:\n{beside}\n"
    if validation is not None:
        sentence = validation.sentence
        notes += f"{sentence[0].upper()}{sentence[1:]} the intervals of fits without the figure.\n"
    if title is not None:
        document["title"] = title
    document["notes"] = tomlkit.string(notes, multiline=True)
    _add_ensemble(document, members, widening)
    return tomlkit.dumps(document)


def experiment_with_fit(
    text: str, settings: Mapping[str, object], members: Sequence[Member], widening: float, title: str | None
) -> str:
    """An experiment with fitted settings, as changes common to all of its cells, and its ensemble.

    Parameters
    ----------
    text
        Its file, including the notes.
    settings
        The result, by path. Settings of the workload begin with `workload.`.
    """
    import tomlkit

    document = tomlkit.parse(text)
    for name in _OF_ENSEMBLE:
        document.pop(name, None)
    if title is not None:
        document["title"] = title
    change = document.setdefault("change", tomlkit.table())
    for path, value in settings.items():
        of_workload = path.startswith("workload.")
        part = change.setdefault("settings" if of_workload else "device", tomlkit.table())
        part[path.removeprefix("workload.")] = _written(path, value)
    _add_ensemble(document, members, widening)
    return tomlkit.dumps(document)


def _add_ensemble(document: TOMLDocument, members: Sequence[Member], widening: float) -> None:
    import tomlkit

    residual, ensemble = _OF_ENSEMBLE
    document[residual] = float(f"{widening:.3g}")
    document[ensemble] = tomlkit.aot()
    for member in members:
        document[ensemble].append(_member_table(member))


def _member_table(member: Member) -> Any:
    import tomlkit

    settings = tomlkit.inline_table()
    settings.update({path: _written(path, member.settings[path]) for path in sorted(member.settings)})
    table = tomlkit.table()
    table["loss"] = float(f"{member.loss:.6g}")
    table["settings"] = settings
    return table


def _written(path: str, value: object) -> object:
    """A value in the form of a profile, with sizes as texts with a unit."""
    if not path.endswith("_bytes") or not isinstance(value, int):
        return value
    text = size_text(value)
    return value if text.isdigit() else text


def set_leaf(document: TOMLDocument, path: str, value: object, about: Mapping[str, object]) -> None:
    """Sets a value of a profile, with its source and other facts about it."""
    import tomlkit

    *tables, name = path.split(".")
    where: Any = document
    for table in tables:
        if table not in where:
            where[table] = tomlkit.table()
        where = where[table]
    leaf = tomlkit.inline_table()
    leaf["value"] = _written(path, value)
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


__all__ = ["Calibration", "Member", "experiment_with_fit", "residual_table", "set_leaf", "with_fit", "with_known"]
