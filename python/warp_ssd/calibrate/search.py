"""The search: which settings of the knobs come closest, first anywhere, then nearby.

    Optuna (everywhere, mixed kinds of knobs) -> the best few -> pattern search (steps along each knob) -> Evaluation

The sampler is TPE in its multivariate form. Knobs are of both kinds, names and numbers, and act on each other (a policy that
copies more wants more spare), which CMA-ES and grids of numbers cannot take; a Gaussian process can, but brings a library a
hundred times as large, for objectives of which ten are evaluated in a second. What TPE lacks is precision at the end: that is
the pattern search's. Batches have a fixed size, so the result does not depend on how many processes there are.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

from .knobs import Knob
from .objective import Evaluation, Objective, Settings

BATCH = 8
"""Settings that are evaluated side by side."""

_FIRST_STEP, _LAST_STEP = 0.08, 0.004
"""Steps of a pattern search, as shares of a knob's range."""

Tell = Callable[[int], None]
"""Is told how many settings have been evaluated since it was last called."""


def search(objective: Objective, knobs: Sequence[Knob], start: Settings, trials: int, seed: int, tell: Tell) -> None:
    """Evaluates `trials` settings, the better ones more densely; they are then in `objective.seen`.

    Parameters
    ----------
    start
        Settings to look at first; values that are not possible ones are left to the sampler.
    """
    with warnings.catch_warnings():
        # In a notebook it asks for widgets for a progress bar that is not used.
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
    """The best evaluations so far, at most one for each combination of those of these knobs that have no order."""
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
    """Goes downhill: tries a step either way along each knob, takes the best, and halves the step where none is better.

    Parameters
    ----------
    knobs
        Those that may be turned; the others stay.
    enough
        A loss with which to be content.
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
