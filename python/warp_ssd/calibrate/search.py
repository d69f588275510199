"""The search: the settings of the knobs that come closest, first over the whole range, then nearby.

    Optuna (everywhere, mixed kinds of knobs) -> the best few -> pattern search (steps along each knob) -> Evaluation

The sampler is TPE in its multivariate form. Knobs are names and numbers, and they interact (a policy that copies more needs more
spare). CMA-ES and grids of numbers cannot handle this. A Gaussian process can, but its library is a hundred times as large, and
ten evaluations of this objective take a second. TPE lacks precision at the end, which the pattern search adds. Batches have a
fixed size, so the result does not depend on the number of processes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

from .knobs import Knob
from .objective import Evaluation, Objective, Settings

BATCH = 8
"""Number of settings that are evaluated in parallel."""

_DRIVES, _RANKS = 2, 3
"""Number of drives, and of values of the nuisances for each, that `recombine` evaluates."""

_FIRST_STEP, _LAST_STEP = 0.08, 0.004
"""Steps of a pattern search, as shares of a knob's range."""

Tell = Callable[[int], None]
"""Receives the number of evaluations since its last call."""


def search(
    objective: Objective, knobs: Sequence[Knob], starts: Sequence[Settings], trials: int, seed: int, tell: Tell
) -> None:
    """Evaluates `trials` settings, more densely around the better ones. The evaluations are then in `objective.seen`.

    Parameters
    ----------
    starts
        Settings to evaluate first. The sampler replaces impossible values.
    """
    with warnings.catch_warnings():
        # In a notebook, Optuna warns about widgets for a progress bar that is not used.
        warnings.simplefilter("ignore")
        import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(
        seed=seed,
        multivariate=True,
        constant_liar=True,
        n_startup_trials=max(2 * BATCH, min(trials // 4, 8 * len(knobs))),
    )
    study = optuna.create_study(sampler=sampler)
    for start in starts:
        encoded = {knob.path: knob.encode(start.get(knob.path)) for knob in knobs}
        known = {path: value for path, value in encoded.items() if value is not None}
        if known:
            study.enqueue_trial(known)
    for first in range(0, trials, BATCH):
        asked = [study.ask() for _ in range(min(BATCH, trials - first))]
        batch = [{knob.path: knob.suggest(trial) for knob in knobs} for trial in asked]
        for trial, evaluation in zip(asked, objective.evaluate(batch), strict=True):
            study.tell(trial, min(evaluation.loss, 1e12))
        tell(len(asked))


def best_of_each_kind(objective: Objective, knobs: Sequence[Knob], count: int) -> list[Evaluation]:
    """The best evaluations so far, at most one for each combination of the knobs without an order."""
    names = [knob.path for knob in knobs if knob.choices and not knob.ordered]
    best: dict[str, Evaluation] = {}
    for one in sorted(objective.seen.values(), key=lambda one: one.loss):
        if one.settings:
            best.setdefault(repr([one.settings[name] for name in names]), one)
    found = [one for one in best.values() if math.isfinite(one.loss)]
    return found[:count]


def recombine(objective: Objective, knobs: Sequence[Knob], tell: Tell) -> None:
    """Evaluates the best drives with the nuisances that explained each part of the measurements best, with whatever drive.

    The nuisances of one part do not change another part, so the search need not meet good values of all of them at once.
    """
    parts = objective.parts
    if not parts:
        return
    drive = [knob for knob in knobs if not knob.nuisance]
    by_part = [(paths, _ranked(objective.subset(indices))) for paths, indices in parts]
    tried = [
        dict(one.settings)
        | {path: ranked[min(rank, len(ranked) - 1)].settings[path] for paths, ranked in by_part for path in paths}
        for one in best_of_each_kind(objective, drive, _DRIVES)
        for rank in range(_RANKS)
    ]
    tell(len(objective.evaluate(tried)))


def _ranked(objective: Objective) -> list[Evaluation]:
    complete = (one for one in objective.seen.values() if one.settings)
    return sorted(complete, key=lambda one: one.loss)


def refine(
    objective: Objective,
    knobs: Sequence[Knob],
    begin: Evaluation,
    tell: Tell,
    *,
    first_step: float = _FIRST_STEP,
    last_step: float = _LAST_STEP,
    enough: float = -math.inf,
) -> Evaluation:
    """Goes downhill: tries a step either way along each knob, takes the best, and halves the step if none is better.

    Parameters
    ----------
    knobs
        The knobs that may change.
    enough
        A loss at which the refinement stops.
    """
    best, step = begin, first_step
    while step >= last_step and best.loss > enough:
        nearby = [
            {**best.settings, knob.path: value}
            for knob in knobs
            for value in knob.neighbours(best.settings[knob.path], step)
        ]
        if not nearby:
            break
        found = min(objective.evaluate(nearby), key=lambda one: one.loss)
        tell(len(nearby))
        if found.loss < best.loss:
            best = min(found, _together(objective, knobs, best, nearby), key=lambda one: one.loss)
        else:
            step /= 2
    return best


def _together(objective: Objective, knobs: Sequence[Knob], best: Evaluation, nearby: Sequence[Settings]) -> Evaluation:
    """The better values of all nuisances at once. Most nuisances concern different measurements, so their gains add up."""
    better = dict(best.settings)
    for knob in (knob for knob in knobs if knob.nuisance):
        moved = [one for one in nearby if one[knob.path] != best.settings[knob.path]]
        found = min(objective.evaluate(moved), key=lambda one: one.loss, default=best)
        if found.loss < best.loss:
            better[knob.path] = found.settings[knob.path]
    return objective.evaluate([better])[0]
