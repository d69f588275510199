"""Cross-validation: each figure is predicted from a fit to all others.

    all evaluations, weighed by the other figures -> a short refinement -> their ensemble -> its prediction of this figure

A good fit to nine numbers does not show how well it predicts a tenth. This module reports the error of numbers that the fit has
seen beside the error of unseen ones. It also counts how often an unseen number lies within its interval. Most runs are those of
the fit itself, because a fold is the same evaluations with another loss. A fold cannot know a nuisance that only its figure
determines, so it tries all values of the nuisance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from .._engine import WarpError
from .determine import threshold
from .ensemble import residual, spread
from .knobs import Knob
from .measurement import Measurement
from .objective import Evaluation, Objective, Settings
from .search import Tell, best_of_each_kind, refine

BY = ("experiment", "source")
"""Ways to group numbers into figures."""

_KINDS = 2
"""Number of combinations of names that a fold refines."""

_AGAIN = 8
"""Number of settings of the search, the best fits to the others, that are evaluated with all seeds."""

_COVERED = 0.9
"""Share of unseen numbers that the intervals should contain."""


@dataclass(frozen=True)
class FigureError:
    """Errors of a figure, in the fit that has seen it and in one that has not.

    Attributes
    ----------
    in_sample, out_of_sample
        Mean of abs(model - measured) of its cells.
    inside
        Number of cells within an interval that has not seen them.
    """

    figure: str
    cells: int
    in_sample: float
    out_of_sample: float
    inside: int


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
        return FigureError("all", cells, mean("in_sample"), mean("out_of_sample"), inside)

    @property
    def sentence(self) -> str:
        """The same in words."""
        total = self.total
        return (
            f"each of {len(self.figures)} figures was predicted from the others "
            f"with a mean absolute error of {total.out_of_sample:.3f} (in-sample {total.in_sample:.3f}), "
            f"and {total.inside} of {total.cells} cells ({total.inside / total.cells:.0%}) are inside"
        )

    def table(self) -> str:
        """A line for each figure and one for all, under headings."""
        lines = [f"{self.sentence}, scale {self.scale}", f"{'in-sample':>9} {'out':>7} {'inside':>9}  figure"]
        for one in (*self.figures, self.total):
            inside = f"{one.inside} of {one.cells}"
            lines.append(f"{one.in_sample:>9.3f} {one.out_of_sample:>7.3f} {inside:>9}  {one.figure}")
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
        errors.append(FigureError(name, len(held), fmean(seen), fmean(out), inside))
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
        self._open = [knob for knob in knobs if knob.nuisance and knob.path in self._held.nuisances - told]
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
        promising = sorted(self._first.seen.values(), key=lambda one: one.loss)[:_AGAIN]
        self._others.evaluate([one.settings for one in promising if one.settings])
        for one in best_of_each_kind(self._others, self._drive, _KINDS):
            refine(self._others, self._knobs, one, self._tell, first_step=0.04, last_step=0.016)
        limit = threshold(self._others, self.best, self._knobs)
        chosen = spread(self._others, self._drive, self.best, limit, self._members)
        combinations = list(itertools.product(*(_trials(knob) for knob in self._open)))
        of_best = [self._with(chosen[0].settings, values) for values in combinations]
        of_others = [
            self._with(one.settings, combinations[index % len(combinations)]) for index, one in enumerate(chosen[1:])
        ]
        found = self._held.evaluate([*of_best, *of_others])
        self._tell(len(found))
        runs = [one.wafs for one in found if one.wafs]
        if not found[0].wafs:
            raise WarpError(f"cross-validation: {found[0].error}")
        center = [
            fmean(column) for column in zip(*(one.wafs for one in found[: len(of_best)] if one.wafs), strict=True)
        ]
        columns = zip(*runs, strict=True)
        return [
            _Prediction(one.waf, model, min(column), max(column))
            for one, model, column in zip(self._held.measurements, center, columns, strict=True)
        ]

    def _with(self, settings: Settings, values: Sequence[object]) -> Mapping[str, object]:
        return dict(settings) | {knob.path: value for knob, value in zip(self._open, values, strict=True)}


def _trials(knob: Knob) -> Sequence[object]:
    """Values that represent all values of a nuisance."""
    return knob.choices or tuple(knob.rounded(value) for value in (knob.low, (knob.low + knob.high) / 2, knob.high))
