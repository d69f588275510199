"""The ensemble: not one drive that explains what was measured but all that do, as few of them as span the others.

    everything that was evaluated -> those within the threshold of the best -> the ends of every knob, then the farthest -> members

The threshold is that of the knobs' intervals (determine.py), so the range of what the members predict is, for every quantity, the
95 % interval of its profile likelihood. What even the best settings are off by is added as a share: `residual`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .knobs import Knob
from .objective import Evaluation, Objective

MEMBERS = 10
"""How many there are at most, unless the caller says otherwise."""

_WIDTH = 1.64
"""Standard deviations within which nine tenths of what is distributed normally lie."""


def spread(objective: Objective, knobs: Sequence[Knob], best: Evaluation, limit: float, count: int) -> list[Evaluation]:
    """The best settings and others up to a loss, at most so many, that span all of these; drives alike are one.

    Parameters
    ----------
    knobs
        In which they are to differ.
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
    """The one with the most ends of knobs that none of the chosen has; if they have all, the one farthest from them."""
    left = [one for one in candidates if one not in chosen]
    ends = [_ends(knob, candidates) - {_place(knob, one) for one in chosen} for knob in knobs]

    def worth(one: Evaluation) -> tuple[int, float]:
        new = sum(_place(knob, one) in missing for knob, missing in zip(knobs, ends, strict=True))
        return new, min(_distance(knobs, one, other) for other in chosen)

    return max(left, key=worth)


def _ends(knob: Knob, candidates: Sequence[Evaluation]) -> set[float]:
    """The places of a knob that should be there: the least and the greatest, or all that are names."""
    places = {_place(knob, one) for one in candidates}
    return places if knob.choices and not knob.ordered else {min(places), max(places)}


def _place(knob: Knob, one: Evaluation) -> float:
    """Where a setting lies in its range, 0 to 1; of a name, which it is."""
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
    """The share by which a range of predictions is to be widened at either end: 1.64 standard deviations of what the best
    settings are off by, relative to what was measured.

    Parameters
    ----------
    fitted
        Knobs that were fitted, each of which takes the misfit of a measurement away; at most half of them are counted.
    """
    shares = [waf / one.waf - 1 for waf, one in zip(best.wafs, objective.measurements, strict=True)]
    free = max(len(shares) - fitted, len(shares) / 2)
    return min(1.0, _WIDTH * math.sqrt(sum(share**2 for share in shares) / free))
