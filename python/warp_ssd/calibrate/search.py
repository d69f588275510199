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

_FIRST_STEP, _LAST_STEP = 0.08, 0.004
"""Steps of a pattern search, as shares of a knob's range."""

Tell = Callable[[int], None]
"""Receives the number of evaluations since its last call."""


def search(objective: Objective, knobs: Sequence[Knob], start: Settings, trials: int, seed: int, tell: Tell) -> None:
    """Evaluates `trials` settings, more densely around the better ones. The evaluations are then in `objective.seen`.

    Parameters
    ----------
    start
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
            best = found
        else:
            step /= 2
    return best
