"""Nuisances: unknown facts about the load on the drive or about the readings.

    --nuisance KEY[@OF,...]=VALUES | a TOML file | Nuisance(...) -> Knob (searched beside those of the drive) -> coordinates of
    cells

A paper leaves options of its jobs open, or the interval in which it read its counters. The calibration searches such an unknown
together with the knobs, so that no knob has to compensate a wrong guess. A nuisance has one value for all cells that it concerns.
No profile contains it, because the fit describes the drive.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .._engine import WarpError
from .knobs import Knob, knob_of

METRIC = "metric"
"""The key of a nuisance that selects the column of `cells` to read."""

_KINDS = ("workload", "run", "change")


@dataclass(frozen=True)
class Nuisance:
    """An unknown of the workload or of the reading.

    Attributes
    ----------
    key
        The unknown, as in the grid of a sweep: `workload:SECTION.OPTION`, `workload:PATH`, `workload`, `run:precondition_drive_writes`,
        `run:drive_writes`, `change:NAME` (several of these together), or `metric`.
    values
        A list of choices or a range `(low, high)`. A search begins with the first choice. Two integers give integers. The choice
        `None` is the experiment's own value. A choice of `change:NAME` is a dictionary with `name` and the changed keys.
    of
        Names of the experiments that it concerns (of a workload without an experiment, the workload's), or `workload:NAME` for
        every cell of any experiment with this workload. If empty, it concerns all cells.
    """

    key: str
    values: Sequence[object] | tuple[float, float]
    of: Sequence[str] = ()

    def __post_init__(self) -> None:
        kind, _, rest = self.key.partition(":")
        if self.key not in (METRIC, "workload") and (kind not in _KINDS or not rest):
            raise WarpError(f"nuisance {self.key} is unknown. {_ALLOWED}")
        changes = [value for value in self.values if value is not None] if kind == "change" else []
        if not all(isinstance(value, Mapping) and "name" in value for value in changes):
            raise WarpError(f'nuisance {self.key} has a value of another form. Give {{"name": ..., and its changes}}')

    @property
    def path(self) -> str:
        """Its name among the knobs."""
        return f"{self.key}@{','.join(self.of)}" if self.of else self.key

    @property
    def knob(self) -> Knob:
        """The nuisance as a knob."""
        values = self.values if isinstance(self.values, tuple) else list(self.values)
        whole = isinstance(values, tuple) and all(isinstance(value, int) for value in values)
        return knob_of(self.path, values, whole=whole, nuisance=True)

    @property
    def is_setting(self) -> bool:
        """True if an experiment's ensemble can contain it, as settings of its workload or its device."""
        return self.key.startswith(("workload:", "change:"))

    def settings(self, value: object) -> dict[str, object]:
        """A value as settings of an experiment's ensemble, by dotted path. Paths of the workload begin with `workload.`.

        `None` has no settings.

        Raises
        ------
        WarpError
            A choice of `change:NAME` changes keys other than settings of the device and of the workload.
        """
        if value is None:
            return {}
        keys = value if isinstance(value, Mapping) and self.key.startswith("change:") else {self.key: value}
        changes = {key: one for key, one in keys.items() if key != "name"}
        others = [key for key in changes if ":" in key and not key.startswith("workload:")]
        if others:
            raise WarpError(f"nuisance {self.path} is not a setting. Remove {', '.join(others)} from the ensemble")
        return {key.replace("workload:", "workload.", 1): one for key, one in changes.items()}

    def is_about(self, figure: str, workload: str) -> bool:
        """True if the nuisance concerns a cell of this experiment (or workload alone) with this workload."""
        return not self.of or figure in self.of or f"workload:{workload}" in self.of


_ALLOWED = (
    "Give workload:PATH, workload, run:precondition_drive_writes, run:drive_writes, change:NAME or metric. "
    "Give settings of the drive as knobs"
)


def parse_nuisance(text: str, values: object) -> Nuisance:
    """A nuisance from `KEY[@OF,...]` and its values."""
    key, _, of = text.partition("@")
    if not isinstance(values, list | tuple):
        raise WarpError(f"nuisance {text} has no values. Give {text}=LOW:HIGH or {text}=[JSON list]")
    return Nuisance(key, values, tuple(name.strip() for name in of.split(",") if name.strip()))


def read_nuisances(path: str | os.PathLike[str]) -> list[Nuisance]:
    """Reads nuisances from a TOML file: a `[[nuisance]]` for each, with `key`, `of`, and `values` or `range = [low, high]`.

    `source` says where the values come from. The calibration does not use it.

    Raises
    ------
    WarpError
        The file is invalid. The message names it and the entry.
    """
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WarpError(f"{os.fspath(path)}: {error}") from None
    entries = table.get("nuisance")
    if list(table) != ["nuisance"] or not isinstance(entries, list):
        raise WarpError(f"{os.fspath(path)}: the file has other entries. Give only [[nuisance]] tables")
    return [_of_table(f"{os.fspath(path)}, nuisance {number}", entry) for number, entry in enumerate(entries, 1)]


def _of_table(place: str, entry: Mapping[str, object]) -> Nuisance:
    unknown = [name for name in entry if name not in ("key", "of", "values", "range", "source")]
    key, of, values, span = (entry.get(name) for name in ("key", "of", "values", "range"))
    if unknown or not isinstance(key, str) or (values is None) == (span is None):
        raise WarpError(f"{place}: the keys are wrong. Give key, values or range, and optionally of")
    names = of if isinstance(of, list) else [] if of is None else [of]
    given = tuple(span) if isinstance(span, list) and len(span) == 2 else values
    try:
        # TOML has no null, so the empty text stands for it.
        choices = [None if value == "" else value for value in given] if isinstance(given, list) else given
        return parse_nuisance("@".join([key, ",".join(map(str, names))] if names else [key]), choices)
    except WarpError as error:
        raise WarpError(f"{place}: {error}") from None
