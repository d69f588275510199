"""Intervals of knobs: the values that the data cannot tell apart.

    for each value of a knob: the least loss over all other knobs (its profile) -> those within the noise of the best

With squared loss this is the profile likelihood. A value belongs to the 95 % interval if it costs less than 3.84 (chi squared,
one degree of freedom). If the best fit is worse than the noise explains, the error of the model exceeds the noise. The threshold
then grows in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .knobs import Knob, label
from .objective import Evaluation, Objective
from .search import Tell, refine

_THRESHOLD = 3.84
_STRIDES = (0.02, 0.05, 0.12, 0.3, 1.0)
"""Distances from the best value, as shares of a knob's range. They are tried in turn until one does not fit."""


@dataclass(frozen=True)
class Interval:
    """The values of a knob that fit within the noise: a range from `low` to `high`, or some of its choices."""

    knob: Knob
    best: object
    low: float = 0.0
    high: float = 0.0
    fitting: tuple[object, ...] = ()


@dataclass(frozen=True)
class KnobFit:
    """Result for one knob.

    Attributes
    ----------
    value
        The best value.
    low, high
        Ends of the interval of values that fit within the noise, or `None` for a knob with choices.
    alike
        Other choices that fit within the noise.
    determined
        True if the data exclude most of the searched values. This means half of a range, half of the ordered choices, or all
        other choices without an order.
    sentence
        The same in words.
    """

    path: str
    value: object
    low: float | None
    high: float | None
    alike: tuple[object, ...]
    determined: bool
    sentence: str


def threshold(objective: Objective, best: Evaluation, knobs: Sequence[Knob]) -> float:
    """The loss up to which settings cannot be told from the best ones."""
    return best.loss + _THRESHOLD * misfit(objective, best, knobs)


def misfit(objective: Objective, best: Evaluation, knobs: Sequence[Knob]) -> float:
    """Loss of the best settings as a multiple of the loss from noise alone, at least 1."""
    count = len(objective.measurements)
    # Each fitted knob takes the misfit of one measurement away.
    expected = objective.expected_loss * max(1, count - len(knobs)) / count
    return max(1.0, best.loss / expected)


def determine(
    objective: Objective, knobs: Sequence[Knob], best: Evaluation, limit: float, tell: Tell
) -> list[Interval]:
    """The fitting values of each knob, around the best settings.

    Parameters
    ----------
    limit
        See `threshold`.
    """
    profile = _Profile(objective, knobs, best, limit, tell)
    return [profile.of_choices(knob) if knob.choices else profile.of_range(knob) for knob in knobs]


def knob_fit(interval: Interval, value: object) -> KnobFit:
    """The interval of a knob around the finally chosen value, at the largest scale."""
    knob = interval.knob
    if knob.choices:
        alike = tuple(other for other in interval.fitting if other != value)
        determined = 2 * len(alike) < len(knob.choices) - 1 if knob.ordered else not alike
        return KnobFit(knob.path, value, None, None, alike, determined, _about_choices(knob, value, alike))
    number = knob.rounded(float(value))  # type: ignore[arg-type]
    # Another scale may need another number. The interval moves along, except for an end at the bound of the range.
    moved = number - float(interval.best)  # type: ignore[arg-type]
    low = interval.low if interval.low <= knob.low else interval.low + moved
    high = interval.high if interval.high >= knob.high else interval.high + moved
    determined = high - low < 0.5 * (knob.high - knob.low)
    return KnobFit(knob.path, number, low, high, (), determined, _about_range(knob, number, low, high))


def without_interval(knob: Knob, value: object) -> KnobFit:
    """The value of a knob whose interval was not searched."""
    return KnobFit(knob.path, value, None, None, (), False, f"{knob.path} = {label(value)}: without an interval")


@dataclass(frozen=True)
class _Profile:
    objective: Objective
    knobs: Sequence[Knob]
    best: Evaluation
    limit: float
    tell: Tell

    def fits(self, knob: Knob, value: object) -> bool:
        """True if a value fits within the noise for some values of the other knobs."""
        others = [other for other in self.knobs if other is not knob]
        seen = [one for one in self.objective.seen.values() if self._is_near(knob, one, value)]
        begins = sorted(seen, key=lambda one: one.loss)[:2]
        candidates = [{**one.settings, knob.path: value} for one in (self.best, *begins)]
        found = self.objective.evaluate(candidates)
        self.tell(len(candidates))
        begin = min(found, key=lambda one: one.loss)
        if not math.isfinite(begin.loss):
            return False
        reached = refine(self.objective, others, begin, self.tell, first_step=0.04, last_step=0.009, enough=self.limit)
        return reached.loss <= self.limit

    def _is_near(self, knob: Knob, one: Evaluation, value: object) -> bool:
        if knob.choices:
            return one.settings[knob.path] == value
        distance = abs(float(one.settings[knob.path]) - float(value))  # type: ignore[arg-type]
        return distance <= 0.05 * (knob.high - knob.low)

    def of_choices(self, knob: Knob) -> Interval:
        """Tries every choice."""
        value = self.best.settings[knob.path]
        fitting = tuple(one for one in knob.choices if one == value or self.fits(knob, one))
        return Interval(knob, value, fitting=fitting)

    def of_range(self, knob: Knob) -> Interval:
        """Finds both ends of the interval."""
        value = knob.rounded(float(self.best.settings[knob.path]))  # type: ignore[arg-type]
        return Interval(knob, value, self._end(knob, value, knob.low), self._end(knob, value, knob.high))

    def _end(self, knob: Knob, value: float, bound: float) -> float:
        """The first value that does not fit between the best one and a bound, to a hundredth of the range. If all fit, the bound.
        """
        inside = value
        for stride in _STRIDES:
            distance = stride * (knob.high - knob.low)
            outside = knob.rounded(max(bound, value - distance) if bound < value else min(bound, value + distance))
            if outside == inside:
                return bound
            if not self.fits(knob, outside):
                break
            inside = outside
        else:
            return bound
        while abs(outside - inside) > 0.01 * (knob.high - knob.low):
            middle = knob.rounded((inside + outside) / 2)
            if middle in (inside, outside):
                break
            if self.fits(knob, middle):
                inside = middle
            else:
                outside = middle
        return outside


def _about_choices(knob: Knob, value: object, alike: Sequence[object]) -> str:
    begin = f"{knob.path} = {label(value)}"
    if not alike:
        return f"{begin}: no other choice fits"
    others = ", ".join(label(other) for other in alike)
    if len(alike) == len(knob.choices) - 1:
        return f"{begin}: the data cannot determine it, because {others} fit as well"
    return f"{begin}: the data cannot distinguish it from {others}"


def _about_range(knob: Knob, value: float, low: float, high: float) -> str:
    begin = f"{knob.path} = {label(value)}"
    span = f"{label(low)} to {label(high)}"
    if low <= knob.low and high >= knob.high:
        return f"{begin}: the data cannot determine it, because all values from {span} fit"
    if low <= knob.low:
        return f"{begin}: at most {label(high)}"
    if high >= knob.high:
        return f"{begin}: at least {label(low)}"
    return f"{begin}: {span}"
