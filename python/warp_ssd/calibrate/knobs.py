"""Knobs: the device settings that a calibration may change, and their possible values."""

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
        Its values. Without choices, the knob is a number from `low` to `high`.
    ordered
        True if neighbours among the choices are similar (sizes, counts), so that a search may step between them.
    whole
        True for a whole number.
    nuisance
        True for an unknown beside the drive (`Nuisance`), which no profile contains.
    """

    path: str
    choices: tuple[object, ...] = ()
    low: float = 0.0
    high: float = 0.0
    ordered: bool = False
    whole: bool = False
    nuisance: bool = False

    def suggest(self, trial: Trial) -> object:
        """Lets a sampler choose a value."""
        if not self.choices:
            return self.rounded(trial.suggest_float(self.path, self.low, self.high))
        if self.ordered:
            return self.choices[trial.suggest_int(self.path, 0, len(self.choices) - 1)]
        return self.choices[trial.suggest_categorical(self.path, list(range(len(self.choices))))]

    def encode(self, value: object) -> float | int | None:
        """The sampler's form of a value, or `None` for an impossible one."""
        if self.choices:
            return self.choices.index(value) if value in self.choices else None
        inside = isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high
        return float(value) if inside else None  # type: ignore[arg-type]

    def neighbours(self, value: object, step: float) -> list[object]:
        """Values one step below and above. A step is a share of the range.

        Choices without an order have no neighbours. For a nuisance, all other choices are neighbours, because they cost little to
        try.
        """
        if self.choices:
            if not self.ordered:
                return [other for other in self.choices if self.nuisance and other != value]
            index = self.choices.index(value)
            return [self.choices[near] for near in (index - 1, index + 1) if 0 <= near < len(self.choices)]
        middle, width = float(value), step * (self.high - self.low)  # type: ignore[arg-type]
        near = (max(self.low, middle - width), min(self.high, middle + width))
        return [number for number in map(self.rounded, near) if number != middle]

    def moved(self, value: object, distance: float) -> object:
        """A number at this distance from a value, within the range. A choice stays the same."""
        if self.choices:
            return value
        return self.rounded(min(self.high, max(self.low, float(value) + distance)))  # type: ignore[arg-type]

    def rounded(self, number: float) -> float:
        """Rounds to six digits, so that profiles are readable and a repeated search finds its stored values."""
        return round(number) if self.whole else float(f"{number:.6g}")


def label(value: object) -> str:
    """Text of a value in a table or a sentence."""
    if value is None:
        return "unchanged"
    if isinstance(value, Mapping) and "name" in value:
        return str(value["name"])
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return size_text(value)
    return value if isinstance(value, str) else json.dumps(value)


def size_text(number: int) -> str:
    """A number of bytes with a binary unit, as in profiles, if it is a multiple of one."""
    for power, unit in ((30, "GiB"), (20, "MiB")):
        if number and number % (1 << power) == 0:
            return f"{number >> power}{unit}"
    return str(number)


_UNITS = {
    **{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40},
    **{"kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "B": 1},
}


def plain_value(path: str, value: object) -> object:
    """A profile's value in the form of a knob, with sizes as numbers of bytes."""
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
    Knob("geometry.media_overhead_share", low=0.0, high=0.15),
    Knob("geometry.reclaim_unit_bytes", tuple(1 << power for power in range(26, 35)), ordered=True),
    Knob("gc.victim_policy", _UNIT_SELECTIONS),
    Knob("gc.source_policy", ("global", "highest_pressure")),
    Knob("gc.lazy_valid_share", low=0.0, high=0.5),
    Knob("gc.background_watermark", low=0.5, high=0.98),
    Knob("gc.foreground_watermark", low=0.8, high=1.0),
    Knob("gc.watermark_base", ("spare", "all")),
    Knob("gc.copies", ("apart", "with_host")),
    Knob("gc.reserve_share", low=0.0, high=0.5),
    Knob("gc.block_remapping", (True, False)),
    Knob("gc.allocation", ("oldest", "least_worn")),
    Knob("gc.wear_levelling_erases", (0, 1, 2, 4, 8, 16, 32, 64), ordered=True),
    Knob("handles.isolation", ("initially_isolated", "persistently_isolated")),
    Knob("handles.opening", ("on_first_use", "eager")),
    Knob("handles.open_reclaim_units", (1, 2, 4, 8), ordered=True),
    Knob("handles.reclaim_unit", ("superblock", "channel", "die")),
    Knob("handles.hot_window_bytes", (0, *(1 << power for power in range(24, 33))), ordered=True),
    Knob("handles.write_absorption_bytes", (0, *(1 << power for power in range(16, 28))), ordered=True),
)

KNOBS = {knob.path: knob for knob in _KNOWN}
"""Knobs with a usual range."""


def read_knobs(free: Sequence[str] | Mapping[str, object]) -> list[Knob]:
    """Knobs by their paths. A value of a mapping is a range `(low, high)`, a list of choices, or `None` for the usual ones.

    Raises
    ------
    WarpError
        A path outside `KNOBS` has no range and no choices.
    """
    given = dict(free) if isinstance(free, Mapping) else dict.fromkeys(free)
    if not given:
        raise WarpError("free = [] is empty. Give at least one knob, such as geometry.over_provisioning")
    return [_knob(path, values) for path, values in given.items()]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest of these names, in brackets, or an empty text if none is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f" (did you mean {near[0]}?)" if near else ""


def _knob(path: str, values: object) -> Knob:
    if ":" in path:
        raise WarpError(f"{path} is not a setting of a drive. Give unknowns of the workload or the reading as nuisances")
    if values is not None:
        return knob_of(path, values, whole=path.endswith("_bytes"))
    if path not in KNOBS:
        raise WarpError(
            f"{path}{did_you_mean(path, KNOBS)} has no known range. Give (low, high) or a list of values. "
            f"Known ranges have {', '.join(KNOBS)}"
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
    raise WarpError(f"{path} = {values!r} is neither a rising (low, high) nor a list of two or more values")
