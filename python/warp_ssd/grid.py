"""Points of a grid or a sampler: the combinations that a sweep runs, their order and their names.

    {"geometry.over_provisioning": [0.05, 0.1], "variant": ["II", "PI"]} -> coordinates -> Experiment.points() -> Row

A row is a point with its coordinates. If the engine rejects a combination, because no drive can have it, the row has no point but
the message of the engine. This module runs no point.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._engine import WarpError
from .fingerprint import workload_label

if TYPE_CHECKING:
    from ._engine import Experiment, Point

RUN_SETTINGS = ("scale", "drive_writes", "precondition_drive_writes")
"""Settings of a run that can vary, as `run:scale`."""


@dataclass(frozen=True)
class Row:
    """A point of a sweep.

    Attributes
    ----------
    coordinates
        Coordinates from the grid or the sampler.
    point
        The point to run, or `None` if the engine rejected the combination.
    error
        The engine's message about a rejected combination.
    """

    coordinates: Mapping[str, object]
    point: Point | None
    error: str | None = None


def combinations(grid: Mapping[str, Sequence[object]]) -> Iterator[dict[str, object]]:
    """Every combination of a grid, with the last key varying fastest.

    Raises
    ------
    WarpError
        A key has no values.
    """
    for path, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or len(values) == 0:
            raise WarpError(f"grid {path!r} = {values!r} is not a list. Give a list of at least one value")
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def rows(experiment: Experiment, coordinates: Iterable[Mapping[str, object]], **common: Any) -> list[Row]:
    """The points at these coordinates, in their order. At each coordinate, the order is that of the experiment.

    Parameters
    ----------
    coordinates
        The varied keys. `device`, `variant` and axes of the experiment pick points. `workload` is another workload and
        `workload:PATH` one of its settings. `run:scale`, `run:drive_writes` and `run:precondition_drive_writes` are settings of the
        run. A dotted path is a device setting. A value of `change:NAME` sets several keys together:
        `{"name": "half", "workload:a.size": "50%", ...}`.
    common
        Arguments of `Experiment.points` for all coordinates.

    Raises
    ------
    WarpError
        A key is invalid, the experiment does not have a name, or the engine rejects every combination.
    """
    found = [row for at in coordinates for row in _rows_at(experiment, dict(at), common)]
    if found and all(row.point is None for row in found):
        raise WarpError(found[0].error or "no combination can run")
    return found


def _rows_at(experiment: Experiment, at: dict[str, object], common: Mapping[str, Any]) -> list[Row]:
    at, given = _unfolded(at)
    picks, arguments = _arguments(experiment, given, common)
    try:
        points = experiment.points(**arguments)
    except WarpError as error:
        return [Row(at, None, str(error))]
    for name, value in picks.items():
        known = dict.fromkeys(point.key.get(name, "") for point in points)
        if str(value) not in known:
            raise WarpError(f"{name} {value!r} is unknown. Give one of {', '.join(known)}")
        points = [point for point in points if point.key.get(name) == str(value)]
    return [Row(at, point) for point in points]


def _unfolded(at: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Coordinates with the names of their changes, and with the keys that these changes set."""
    names, given = dict(at), dict(at)
    for path, value in at.items():
        if path.startswith("change:"):
            if not isinstance(value, Mapping) or "name" not in value:
                raise WarpError(f'{path} = {value!r} has another form. Give {{"name": ..., and its changes}}')
            names[path] = value["name"]
            del given[path]
            given |= {inner: setting for inner, setting in value.items() if inner != "name"}
    return names, given


def _arguments(
    experiment: Experiment, at: Mapping[str, object], common: Mapping[str, Any]
) -> tuple[dict[str, object], dict[str, Any]]:
    """Coordinates that pick among the points, and arguments that make the points."""
    arguments = dict(common)
    overrides = dict(common.get("overrides") or {})
    settings = dict(common.get("settings") or {})
    picks: dict[str, object] = {}
    names = ("variant", *experiment.axes)
    for path, value in at.items():
        kind, _, rest = path.partition(":")
        if path == "device":
            arguments["devices"] = [value]
        elif path in names:
            picks[path] = value
        elif path == "workload":
            arguments["workload"] = value
        elif kind == "workload" and rest:
            settings[rest] = value
        elif kind == "run" and rest in RUN_SETTINGS:
            arguments[rest] = value
        elif "." in path:
            overrides[path] = value
        else:
            allowed = ", ".join(
                ["device", *names, "workload", "workload:PATH", "change:NAME", *(f"run:{name}" for name in RUN_SETTINGS)]
            )
            raise WarpError(f"{path!r} cannot be varied. Give the dotted path of a device setting, or one of {allowed}")
    arguments |= {"overrides": overrides or None, "settings": settings or None}
    return picks, arguments | {"variants": _variants(experiment, picks, common.get("variants"))}


def _variants(experiment: Experiment, picks: Mapping[str, object], common: Sequence[str] | None) -> list[str] | None:
    """Names for `Experiment.points`, so that it makes only points that will be picked."""
    values = {"variant": list(experiment.variants), **experiment.axes}
    elsewhere = {name for axis, names in values.items() if axis not in picks for name in names}
    of_picked = {name for axis in picks for name in values[axis]}
    picked = [str(value) for value in picks.values() if str(value) in of_picked - elsewhere]
    kept = [name for name in common or [] if name in elsewhere]
    return picked + kept or None


def plain_column(values: Sequence[object]) -> list[object]:
    """Coordinates as a column. Values of one kind (numbers, texts or booleans) stay as they are.

    Other values become JSON, and a function becomes its name.
    """
    values = [workload_label(value) if callable(value) else value for value in values]
    for kinds in (bool, str, (int, float)):
        if all(
            value is None or (isinstance(value, kinds) and (kinds is bool or not isinstance(value, bool)))
            for value in values
        ):
            mixed = kinds == (int, float) and any(isinstance(value, float) for value in values)
            return [float(value) if mixed and isinstance(value, int) else value for value in values]
    return [value if isinstance(value, str) else json.dumps(value, default=workload_label) for value in values]


Range = tuple[float, float] | Sequence[object]
"""A tuple of two numbers is a range, and a list is a choice."""


def latin_hypercube(space: Mapping[str, Range], count: int, *, seed: int = 1) -> list[dict[str, object]]:
    """Coordinates that cover a space evenly. Along every path, each of `count` equal parts is hit once.

    Parameters
    ----------
    space
        A range `(low, high)` or a list of choices for each path. A range of two integers gives integers.
    count
        Number of coordinates.
    seed
        The same seed gives the same coordinates.
    """
    from scipy.stats import qmc  # type: ignore[import-untyped]

    sample = qmc.LatinHypercube(d=len(space), rng=seed).random(count)
    return [_place(space, [float(share) for share in shares]) for shares in sample]


def random_samples(space: Mapping[str, Range], count: int, *, seed: int = 1) -> list[dict[str, object]]:
    """Coordinates drawn independently. The arguments are those of `latin_hypercube`."""
    import numpy as np

    sample = np.random.default_rng(seed).random((count, len(space)))
    return [_place(space, [float(share) for share in shares]) for shares in sample]


def _place(space: Mapping[str, Range], shares: Sequence[float]) -> dict[str, object]:
    return {path: _value(where, share) for (path, where), share in zip(space.items(), shares, strict=True)}


def _value(where: Range, share: float) -> object:
    if not isinstance(where, tuple):
        return where[int(share * len(where))]
    low, high = where
    if isinstance(low, int) and isinstance(high, int):
        return low + int(share * (high - low + 1))
    return float(low) + share * (float(high) - float(low))
