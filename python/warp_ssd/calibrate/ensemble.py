"""The ensemble: as few settings as span all settings that explain the measurements.

    all evaluations -> those within the threshold of the best -> the ends of every knob, then the farthest -> members

The threshold is that of the knobs' intervals (determine.py). For every quantity, the range of the members' predictions is
therefore the 95 % interval of its profile likelihood. `residual` adds the error of the best settings as a share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .knobs import Knob
from .objective import Evaluation, Objective

MEMBERS = 10
"""Default maximum number of members."""

_WIDTH = 1.64
"""Number of standard deviations that contain nine tenths of a normal distribution."""


def spread(objective: Objective, knobs: Sequence[Knob], best: Evaluation, limit: float, count: int) -> list[Evaluation]:
    """The best settings and others up to a loss that together span all of these. Equal drives count once.

    Parameters
    ----------
    knobs
        Knobs in which the settings should differ.
    limit
        See `determine.threshold`.
    """
    drives: dict[str, Evaluation] = {_drive(knobs, best): best}
    for one in sorted(objective.seen.values(), key=lambda one: one.loss):
        if one.loss <= limit and all(knob.path in one.settings for knob in knobs):
            drives.setdefault(_drive(knobs, one), one)
    candidates = list(drives.values())
    chosen = [best]
    while len(chosen) < min(count, len(candidates)):
        chosen.append(_next(knobs, candidates, chosen))
    return chosen


def _next(knobs: Sequence[Knob], candidates: Sequence[Evaluation], chosen: Sequence[Evaluation]) -> Evaluation:
    """The candidate with the most missing ends of knobs. If no end is missing, the candidate farthest from the chosen ones."""
    left = [one for one in candidates if one not in chosen]
    ends = [_ends(knob, candidates) - {_place(knob, one) for one in chosen} for knob in knobs]

    def worth(one: Evaluation) -> tuple[int, float]:
        new = sum(_place(knob, one) in missing for knob, missing in zip(knobs, ends, strict=True))
        return new, min(_distance(knobs, one, other) for other in chosen)

    return max(left, key=worth)


def _ends(knob: Knob, candidates: Sequence[Evaluation]) -> set[float]:
    """The places of a knob that the ensemble should have: the least and the greatest, or all names."""
    places = {_place(knob, one) for one in candidates}
    return places if knob.choices and not knob.ordered else {min(places), max(places)}


def _place(knob: Knob, one: Evaluation) -> float:
    """Place of a setting in its range, 0 to 1, or the index of a name."""
    value = one.settings[knob.path]
    if not knob.choices:
        return (float(value) - knob.low) / (knob.high - knob.low)  # type: ignore[arg-type]
    index = knob.choices.index(value)
    return index / (len(knob.choices) - 1) if knob.ordered else float(index)


def _distance(knobs: Sequence[Knob], one: Evaluation, other: Evaluation) -> float:
    pairs = [(knob, _place(knob, one), _place(knob, other)) for knob in knobs]
    return sum(
        float(here != there) if knob.choices and not knob.ordered else abs(here - there) for knob, here, there in pairs
    )


def _drive(knobs: Sequence[Knob], one: Evaluation) -> str:
    return repr([one.settings[knob.path] for knob in knobs])


def residual(objective: Objective, best: Evaluation, fitted: int) -> float:
    """The share by which each end of a range of predictions is widened: 1.64 standard deviations of the relative error of the
    best settings.

    Parameters
    ----------
    fitted
        Number of fitted knobs. Each takes the misfit of one measurement away, up to half of the measurements.
    """
    shares = [waf / one.waf - 1 for waf, one in zip(best.wafs, objective.measurements, strict=True)]
    free = max(len(shares) - fitted, len(shares) / 2)
    return min(1.0, _WIDTH * math.sqrt(sum(share**2 for share in shares) / free))
