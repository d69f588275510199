"""Cross-validation: each figure is predicted from a fit to all others.

    all evaluations, weighed by the other figures -> a short refinement -> their ensemble -> its prediction of this figure

A good fit to nine numbers does not show how well it predicts a tenth. This module reports the error of numbers that the fit has
seen beside the error of unseen ones. It also counts how often an unseen number lies within its interval. Most runs are those of
the fit itself, because a fold is the same evaluations with another loss. A fold does not know the nuisances of its figure better
than the other figures do, so it tries their values, and weighs each by its fit to the others.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from .._engine import WarpError
from .determine import misfit, threshold
from .ensemble import residual, spread
from .knobs import Knob
from .measurement import Measurement
from .objective import Evaluation, Objective, Settings
from .search import Tell, best_of_each_kind, recombine, refine

BY = ("experiment", "source")
"""Ways to group numbers into figures."""

_KINDS = 2
"""Number of combinations of names that a fold refines."""

_AGAIN = 8
"""Number of settings of the search, the best fits to the others, that are evaluated with all seeds."""

_COVERED = 0.9
"""Share of unseen numbers that the intervals should contain."""

_COMBINATIONS = 24
"""Maximum number of combinations of values of a fold's unknown nuisances."""


@dataclass(frozen=True)
class FigureError:
    """Errors of a figure, in the fit that has seen it and in one that has not.

    Attributes
    ----------
    in_sample, out_of_sample
        Mean of abs(model - measured) of its cells.
    inside
        Number of cells within an interval that has not seen them.
    width
        Mean half-width of these intervals, as a share of the prediction.
    score
        Mean interval score of these intervals (Gneiting & Raftery 2007) for nine tenths: the width, plus twenty times the distance
        of a cell outside. Less is better.
    """

    figure: str
    cells: int
    in_sample: float
    out_of_sample: float
    inside: int
    width: float
    score: float


@dataclass(frozen=True)
class CrossValidation:
    """Result of all folds.

    Attributes
    ----------
    scale
        Scale of all runs.
    widening
        Share by which the ranges of the ensembles must be widened to contain nine tenths of the unseen cells.
    """

    figures: Sequence[FigureError]
    scale: str
    widening: float

    @property
    def total(self) -> FigureError:
        """All cells together."""
        cells = sum(one.cells for one in self.figures)

        def mean(name: str) -> float:
            return sum(float(getattr(one, name)) * one.cells for one in self.figures) / cells

        inside = sum(one.inside for one in self.figures)
        errors = mean("in_sample"), mean("out_of_sample")
        return FigureError("all", cells, *errors, inside, mean("width"), mean("score"))

    @property
    def sentence(self) -> str:
        """The same in words."""
        total = self.total
        return (
            f"each of {len(self.figures)} figures was predicted from the others "
            f"with a mean absolute error of {total.out_of_sample:.3f} (in-sample {total.in_sample:.3f}), "
            f"and {total.inside} of {total.cells} cells ({total.inside / total.cells:.0%}) are inside "
            f"intervals of +-{total.width:.0%} on average"
        )

    def table(self) -> str:
        """A line for each figure and one for all, under headings."""
        heads = f"{'in-sample':>9} {'out':>7} {'inside':>9} {'width':>7} {'score':>7}  figure"
        lines = [f"{self.sentence}, scale {self.scale}", heads]
        for one in (*self.figures, self.total):
            inside = f"{one.inside} of {one.cells}"
            errors = f"{one.in_sample:>9.3f} {one.out_of_sample:>7.3f} {inside:>9}"
            lines.append(f"{errors} {f'+-{one.width:.0%}':>7} {one.score:>7.2f}  {one.figure}")
        return "\n".join(lines)


@dataclass(frozen=True)
class _Prediction:
    """Prediction of a fold for an unseen cell."""

    measured: float
    model: float
    low: float
    high: float

    @property
    def outside(self) -> float:
        """Share by which the nearer end of the range would have to move to reach the cell."""
        return max(0.0, 1 - self.measured / self.low, self.measured / self.high - 1)

    def interval(self, widening: float) -> tuple[float, float]:
        """The range, widened by a share at either end. No drive writes less than its host does."""
        return max(1.0, self.low * (1 - widening)), self.high * (1 + widening)

    def width(self, widening: float) -> float:
        """Half of the interval's length, as a share of the prediction."""
        low, high = self.interval(widening)
        return (high - low) / 2 / self.model

    def score(self, widening: float) -> float:
        """Interval score, see `FigureError.score`."""
        low, high = self.interval(widening)
        return high - low + 2 / (1 - _COVERED) * max(0.0, low - self.measured, self.measured - high)


def check_by(cross_validate: bool | str) -> str | None:
    """The way to group figures, or `None` without cross-validation.

    Raises
    ------
    WarpError
        The argument is not one of `BY`.
    """
    by = BY[0] if cross_validate is True else cross_validate
    if by and by not in BY:
        raise WarpError(f"cross_validate = {by!r} is unknown. Give one of {', '.join(BY)}")
    return by or None


def figures_of(measurements: Sequence[Measurement], by: str) -> dict[str, list[int]]:
    """The indices of each figure's measurements.

    Raises
    ------
    WarpError
        There is only one figure.
    """
    figures: dict[str, list[int]] = {}
    for index, one in enumerate(measurements):
        figures.setdefault(one.figure(by == "source"), []).append(index)
    if len(figures) < 2:
        raise WarpError(
            f"cross-validation needs several figures, but all measurements are of {next(iter(figures))}. "
            "Add others, or group by source"
        )
    return figures


def cross_validate(
    objective: Objective, first: Objective, knobs: Sequence[Knob], best: Evaluation, by: str, members: int, tell: Tell
) -> CrossValidation:
    """Predicts each figure from the others.

    Parameters
    ----------
    objective
        Objective with all seeds, at the scale of the search.
    first
        Objective with the first seed, which has the evaluations of the search.
    best
        The settings of the fit to all figures.
    by
        One of `BY`.
    members
        Maximum number of members of each fold's ensemble.
    """
    figures = figures_of(objective.measurements, by)
    folds = {name: _Fold(objective, first, knobs, held, members, tell) for name, held in figures.items()}
    found = {name: fold.predict() for name, fold in folds.items()}
    errors = []
    for name, held in figures.items():
        # The error of the fit to the others, and the error of the others when they were unseen.
        unseen = _reaching(one for other, cells in found.items() if other != name for one in cells)
        widening = max(folds[name].residual, unseen)
        cells = found[name]
        seen = [abs(best.wafs[index] - objective.measurements[index].waf) for index in held]
        out = [abs(one.model - one.measured) for one in cells]
        inside = sum(one.outside <= widening for one in cells)
        width, score = (fmean(part) for part in zip(*((one.width(widening), one.score(widening)) for one in cells)))
        errors.append(FigureError(name, len(held), fmean(seen), fmean(out), inside, width, score))
    return CrossValidation(errors, objective.scale, _reaching(one for cells in found.values() for one in cells))


def _reaching(cells: Iterable[_Prediction]) -> float:
    """The widening with which nine tenths of these cells lie inside."""
    shares = sorted(one.outside for one in cells)
    return shares[min(len(shares), math.ceil(_COVERED * (len(shares) + 1))) - 1]


class _Fold:
    """The fit to all figures but one."""

    def __init__(
        self,
        objective: Objective,
        first: Objective,
        knobs: Sequence[Knob],
        held: Sequence[int],
        members: int,
        tell: Tell,
    ) -> None:
        others = [index for index in range(len(objective.measurements)) if index not in held]
        self._held = objective.subset(held)
        self._others = objective.subset(others)
        self._first = first.subset(others)
        told = self._others.nuisances
        self._knobs = [knob for knob in knobs if not knob.nuisance or knob.path in told]
        unknown = [knob for knob in knobs if knob.nuisance and knob.path in self._held.nuisances]
        self._open = [knob for knob in unknown if knob.path not in told]
        # Nuisances that another figure has too. It may determine them, but with one number it hardly does.
        self._shared = [knob for knob in unknown if knob.path in told]
        self._drive = [knob for knob in knobs if not knob.nuisance]
        self._members = members
        self._tell = tell
        self._complete = {knob.path for knob in knobs}

    @property
    def best(self) -> Evaluation:
        """The settings that explain the other figures best."""
        complete = (one for one in self._others.seen.values() if self._complete <= one.settings.keys())
        return min(complete, key=lambda one: one.loss)

    @property
    def residual(self) -> float:
        """Residual of the other figures, see `ensemble.residual`."""
        return residual(self._others, self.best, len(self._knobs))

    def predict(self) -> list[_Prediction]:
        """Predictions of the fit for the cells of its unseen figure."""
        recombine(self._first, self._knobs, self._tell)
        promising = sorted(self._first.seen.values(), key=lambda one: one.loss)[:_AGAIN]
        self._others.evaluate([one.settings for one in promising if one.settings])
        for one in best_of_each_kind(self._others, self._drive, _KINDS):
            refine(self._others, self._knobs, one, self._tell, first_step=0.04, last_step=0.016)
        same_drive = self._alternatives()
        best = self.best
        limit = threshold(self._others, best, self._knobs)
        chosen = spread(self._others, [*self._drive, *self._shared], best, limit, self._members)
        likely = [one for one in same_drive if one.loss <= limit]
        combinations = _combinations(self._open)
        of_likely = [_with(one, self._open, values) for one in likely for values in combinations]
        noise = misfit(self._others, best, self._knobs)
        weights = [math.exp((best.loss - one.loss) / 2 / noise) for one in likely for _ in combinations]
        of_others = [
            _with(one, self._open, combinations[index % len(combinations)]) for index, one in enumerate(chosen[1:])
        ]
        found = self._held.evaluate([*of_likely, *of_others])
        self._tell(len(found))
        runs = [one.wafs for one in found if one.wafs]
        if not found[0].wafs:
            raise WarpError(f"cross-validation: {found[0].error}")
        weighed = [(one.wafs, weight) for one, weight in zip(found, weights, strict=False) if one.wafs]
        total = sum(weight for _, weight in weighed)
        center = [sum(wafs[index] * weight for wafs, weight in weighed) / total for index in range(len(runs[0]))]
        columns = zip(*runs, strict=True)
        return [
            _Prediction(one.waf, model, min(column), max(column))
            for one, model, column in zip(self._held.measurements, center, columns, strict=True)
        ]

    def _alternatives(self) -> list[Evaluation]:
        """The best settings, and the same drive with other values of the nuisances that it shares with the unseen figure."""
        best = self.best
        others = self._others.evaluate([_with(best, self._shared, values) for values in _combinations(self._shared)])
        self._tell(len(others))
        return list({repr(sorted(one.settings.items())): one for one in (best, *others)}.values())


def _with(one: Evaluation, knobs: Sequence[Knob], values: Sequence[object]) -> Settings:
    return dict(one.settings) | {knob.path: value for knob, value in zip(knobs, values, strict=True)}


def _combinations(knobs: Sequence[Knob]) -> list[tuple[object, ...]]:
    """All combinations of values that represent nuisances, or an even selection of `_COMBINATIONS` of them."""
    values = [_trials(knob) for knob in knobs]
    if math.prod(map(len, values)) <= _COMBINATIONS:
        return list(itertools.product(*values))
    generator, columns = random.Random(1), []
    for column in values:
        repeated = list(itertools.islice(itertools.cycle(column), _COMBINATIONS))
        generator.shuffle(repeated)
        columns.append(repeated)
    return list(zip(*columns, strict=True))


def _trials(knob: Knob) -> Sequence[object]:
    """Values that represent all values of a nuisance."""
    return knob.choices or tuple(knob.rounded(value) for value in (knob.low, (knob.low + knob.high) / 2, knob.high))
