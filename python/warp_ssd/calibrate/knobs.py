"""Knobs: the settings of a device that a calibration may turn, and between what."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._engine import WarpError

if TYPE_CHECKING:
    from optuna import Trial


@dataclass(frozen=True)
class Knob:
    """A setting and its possible values.

    Attributes
    ----------
    path
        Its dotted path.
    choices
        Its values; or none, and it is a number from `low` to `high`.
    ordered
        Whether neighbours among the choices are alike (sizes, counts), so that a search may go from one to the next.
    whole
        Whether it is a whole number.
    nuisance
        Whether it is no setting of the drive but an unknown beside it (`Nuisance`): it gets into no profile.
    """

    path: str
    choices: tuple[object, ...] = ()
    low: float = 0.0
    high: float = 0.0
    ordered: bool = False
    whole: bool = False
    nuisance: bool = False

    def suggest(self, trial: Trial) -> object:
        """Lets a sampler choose."""
        if not self.choices:
            return self.rounded(trial.suggest_float(self.path, self.low, self.high))
        if self.ordered:
            return self.choices[trial.suggest_int(self.path, 0, len(self.choices) - 1)]
        return self.choices[trial.suggest_categorical(self.path, list(range(len(self.choices))))]

    def encode(self, value: object) -> float | int | None:
        """A value as a sampler knows it; `None` if it is not among the possible ones."""
        if self.choices:
            return self.choices.index(value) if value in self.choices else None
        inside = isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high
        return float(value) if inside else None  # type: ignore[arg-type]

    def neighbours(self, value: object, step: float) -> list[object]:
        """Values a step below and above; a step is a share of the range. Choices without an order have no neighbours, but for those of
        a nuisance, which cost little to try: all of them are."""
        if self.choices:
            if not self.ordered:
                return [other for other in self.choices if self.nuisance and other != value]
            index = self.choices.index(value)
            return [self.choices[near] for near in (index - 1, index + 1) if 0 <= near < len(self.choices)]
        middle, width = float(value), step * (self.high - self.low)  # type: ignore[arg-type]
        near = (max(self.low, middle - width), min(self.high, middle + width))
        return [number for number in map(self.rounded, near) if number != middle]

    def moved(self, value: object, distance: float) -> object:
        """A number so far from a value, within the range; a choice stays what it is."""
        if self.choices:
            return value
        return self.rounded(min(self.high, max(self.low, float(value) + distance)))  # type: ignore[arg-type]

    def rounded(self, number: float) -> float:
        """To six digits, so that a profile reads well and a search that comes back finds what it has stored."""
        return round(number) if self.whole else float(f"{number:.6g}")


def label(value: object) -> str:
    """A value in a table or a sentence."""
    if value is None:
        return "as it is"
    if isinstance(value, Mapping) and "name" in value:
        return str(value["name"])
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return size_text(value)
    return value if isinstance(value, str) else json.dumps(value)


def size_text(number: int) -> str:
    """A number of bytes with a binary unit if it is a multiple of one, as profiles write sizes."""
    for power, unit in ((30, "GiB"), (20, "MiB")):
        if number and number % (1 << power) == 0:
            return f"{number >> power}{unit}"
    return str(number)


_UNITS = {
    **{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40},
    **{"kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "B": 1},
}


def plain_value(path: str, value: object) -> object:
    """A value of a profile as a knob has it: sizes as numbers of bytes."""
    if not isinstance(value, str) or not path.endswith("_bytes"):
        return value
    unit = next((unit for unit in _UNITS if value.endswith(unit)), "")
    return int(float(value.removesuffix(unit)) * _UNITS.get(unit, 1))


_UNIT_SELECTIONS: tuple[object, ...] = (
    "greedy",
    "cost_age",
    "benefit_cost",
    "benefit_cost_since_invalidation",
    "fifo",
    "random",
    {"d_choices": 4},
    {"d_choices": 16},
    {"windowed_greedy": 16},
)

_KNOWN = (
    Knob("geometry.over_provisioning", low=0.03, high=0.40),
    Knob("geometry.reclaim_unit_bytes", tuple(1 << power for power in range(26, 35)), ordered=True),
    Knob("gc.unit_selection", _UNIT_SELECTIONS),
    Knob("gc.handle_selection", ("global", "highest_pressure")),
    Knob("gc.lazy_valid_share", low=0.0, high=0.5),
    Knob("gc.background_mark", low=0.5, high=0.98),
    Knob("gc.foreground_mark", low=0.8, high=1.0),
    Knob("gc.marks_of", ("spare", "all")),
    Knob("gc.copies", ("apart", "with_host")),
    Knob("gc.reserve_share", low=0.0, high=0.5),
    Knob("gc.block_remapping", (True, False)),
    Knob("gc.allocation", ("oldest", "least_worn")),
    Knob("handles.isolation", ("initially_isolated", "persistently_isolated")),
    Knob("handles.opening", ("on_first_use", "eager")),
    Knob("handles.open_reclaim_units", (1, 2, 4, 8), ordered=True),
    Knob("handles.reclaim_unit", ("superblock", "channel", "die")),
    Knob("handles.separation_bytes", (0, *(1 << power for power in range(24, 33))), ordered=True),
)

KNOBS = {knob.path: knob for knob in _KNOWN}
"""Knobs whose range need not be said."""


def read_knobs(free: Sequence[str] | Mapping[str, object]) -> list[Knob]:
    """Knobs by their paths; values of a mapping are a range `(low, high)`, a list of choices, or `None` for the usual ones.

    Raises
    ------
    WarpError
        A path that is not in `KNOBS` has neither.
    """
    given = dict(free) if isinstance(free, Mapping) else dict.fromkeys(free)
    if not given:
        raise WarpError("free = []: name at least one knob, such as geometry.over_provisioning")
    return [_knob(path, values) for path, values in given.items()]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest of these names, in brackets; nothing if none is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f" (did you mean {near[0]}?)" if near else ""


def _knob(path: str, values: object) -> Knob:
    if ":" in path:
        raise WarpError(f"{path} is no setting of a drive; what the workload or the reading leaves open is a nuisance")
    if values is not None:
        return knob_of(path, values, whole=path.endswith("_bytes"))
    if path not in KNOBS:
        raise WarpError(
            f"{path}{did_you_mean(path, KNOBS)}: its range is not known; give (low, high) or a list of values; "
            f"known are {', '.join(KNOBS)}"
        )
    return KNOBS[path]


def knob_of(path: str, values: object, *, whole: bool = False, nuisance: bool = False) -> Knob:
    """The knob of a path and its values, a range `(low, high)` or a list of choices.

    Raises
    ------
    WarpError
        The values are neither.
    """
    match values:
        case tuple((int() | float() as low, int() | float() as high)) if low < high:
            return Knob(path, low=float(low), high=float(high), whole=whole, nuisance=nuisance)
        case list() if len(values) > 1:
            numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
            choices = tuple(sorted(values)) if numbers and not nuisance else tuple(values)
            return Knob(path, choices, ordered=numbers and not nuisance, nuisance=nuisance)
    raise WarpError(f"{path}: {values!r} is neither a rising (low, high) nor a list of two or more values")
