"""A calibration from the search to the result: the order of its steps and the data between them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence

import pyarrow as pa

from .._engine import WarpError
from .cross_validation import cross_validate
from .determine import determine, knob_fit, threshold, without_interval
from .ensemble import residual, spread
from .knobs import Knob, label, plain_value
from .nuisances import Nuisance
from .objective import Evaluation, Objective, Settings
from .result import Calibration, Member, experiment_with_fit, residual_table, with_fit
from .search import Tell, best_of_each_kind, recombine, refine, search

_CANDIDATES = 3
"""Number of combinations of names that are refined and run at larger scales."""

_AGAIN = 12
"""Number of best settings of the search that are evaluated with all seeds."""


class Fit:
    """One calibration.

    Parameters
    ----------
    objective
        Objective on the small scaled models.
    knobs
        Knobs of the drive, then the nuisances.
    start
        The start profile, as TOML.
    experiment
        The text of the experiment that gets the ensemble. Its ensemble spans the nuisances too. `None` makes an ensemble of the
        profile.
    nuisances
        The nuisances among the knobs.
    """

    def __init__(
        self,
        objective: Objective,
        knobs: Sequence[Knob],
        start: str,
        seeds: Sequence[int],
        tell: Tell,
        experiment: str | None = None,
        nuisances: Sequence[Nuisance] = (),
    ) -> None:
        self._objective = objective
        self._knobs = knobs
        self._drive = [knob for knob in knobs if not knob.nuisance]
        self._spanned = self._drive if experiment is None else list(knobs)
        self._experiment = experiment
        self._nuisances = {nuisance.path: nuisance for nuisance in nuisances}
        self._start = start
        self._seeds = seeds
        self._tell = tell
        # In order of use. Each is more accurate than the one before it.
        self._objectives: list[Objective] = []

    def run(
        self,
        scales: Sequence[str],
        trials: int,
        seed: int,
        measured: str,
        title: str | None,
        members: int,
        leave_out: str | None,
        find_intervals: bool,
        starts: Sequence[Settings] = (),
    ) -> Calibration:
        """Runs the whole calibration. The other arguments are those of `calibrate`.

        Parameters
        ----------
        measured
            The measurements, in words.
        leave_out
            Way to group figures for cross-validation, or `None` for no cross-validation.
        find_intervals
            True to find the interval of each knob.
        """
        small = self._objective
        small.check_names(self._knobs)
        first = self._search(trials, seed, starts)
        intervals = (
            determine(small, self._knobs, self._best(small), self._limit(small), self._tell) if find_intervals else []
        )
        # The profile likelihoods may have found better settings.
        found = best_of_each_kind(small, self._spanned, _CANDIDATES)
        validation = None
        if leave_out is not None:
            parts = (small, first, self._knobs, self._best(small))
            validation = cross_validate(*parts, leave_out, members, self._tell)
        last = small
        for scale in scales[1:]:
            last = small.other(scale=scale)
            self._objectives.append(last)
            found = self._on_larger(last, found)
        best = self._best(last)
        chosen = self._ensemble(last, members)
        widening = residual(last, best, len(self._knobs))
        if validation is not None:
            widening = max(widening, min(1.0, validation.widening))
        fits = [knob_fit(interval, best.settings[interval.knob.path]) for interval in intervals]
        fits = fits or [without_interval(knob, best.settings[knob.path]) for knob in self._knobs]
        # Knobs of the drive come first.
        knobs, nuisances = fits[: len(self._drive)], fits[len(self._drive) :]
        seen = [*{*first.seen, *small.seen}, *(last.seen if last is not small else ())]
        kept = [Member(self._settings(one), one.loss) for one in chosen]
        if self._experiment is None:
            toml = with_fit(self._start, knobs, nuisances, kept, widening, validation, measured, title)
        else:
            toml = experiment_with_fit(self._experiment, self._settings(best), kept, widening, title)
        return Calibration(
            settings={one.path: one.value for one in knobs},
            knobs=knobs,
            nuisances=nuisances,
            members=kept,
            widening=widening,
            validation=validation,
            residuals=self._residuals(last, best),
            scale=last.scale,
            evaluations=len(seen),
            toml=toml,
        )

    def so_far(self) -> str:
        """The best settings so far, in words, for a stopped calibration."""
        for objective in reversed(self._objectives):
            fits = [one for one in objective.seen.values() if one.wafs and len(one.settings) == len(self._knobs)]
            if fits:
                best = min(fits, key=lambda one: one.loss)
                values = [f"{knob.path} = {label(best.settings[knob.path])}" for knob in self._knobs]
                rows = [
                    f"{one.waf:>9.3f} {waf:>7.3f} {waf - one.waf:>+7.3f}  {one.name}"
                    for one, waf in zip(objective.measurements, best.wafs, strict=True)
                ]
                begin = f"best of {len(objective.seen)} settings so far, at scale {objective.scale}:"
                return "\n".join([begin, *values, "", f"{'measured':>9} {'model':>7} {'error':>7}", *rows])
        return "no evaluated setting fits"

    def _settings(self, one: Evaluation) -> Settings:
        """Settings of a member by dotted path."""
        settings: dict[str, object] = {}
        for knob in self._spanned:
            value, nuisance = one.settings[knob.path], self._nuisances.get(knob.path)
            settings |= {knob.path: value} if nuisance is None else nuisance.settings(value)
        return settings

    def _search(self, trials: int, seed: int, starts: Sequence[Settings]) -> Objective:
        """Searches widely with the first seed, then nearby with all seeds. Returns the objective of the first seed."""
        small, knobs = self._objective, self._knobs
        # One seed suffices to compare distant settings. Close ones need all seeds.
        first = small.other(seeds=self._seeds[:1])
        self._objectives += [first, small]
        search(first, knobs, [self._start_values(), *starts], trials, seed, self._tell)
        recombine(first, knobs, self._tell)
        promising = best_of_each_kind(first, self._spanned, _CANDIDATES)
        if not promising:
            raise WarpError(f"no setting can run ({next(iter(first.seen.values())).error})")
        promising += sorted(first.seen.values(), key=lambda one: one.loss)[:_AGAIN]
        small.evaluate([one.settings for one in promising])
        small.learn_noise()
        for one in best_of_each_kind(small, self._spanned, _CANDIDATES):
            refine(small, knobs, one, self._tell)
        return first

    def _on_larger(self, objective: Objective, found: Sequence[Evaluation]) -> list[Evaluation]:
        """Evaluates these settings and the start profile at larger scales, and moves the best one to its optimum there."""
        start = self._start_values()
        complete = [start] if all(start[knob.path] is not None for knob in self._drive) else []
        candidates = [*(one.settings for one in found), *complete]
        objective.evaluate(candidates)
        objective.learn_noise()
        again = objective.evaluate(candidates)
        self._tell(len(again))
        best = min(again, key=lambda one: one.loss)
        numbers = [knob for knob in self._knobs if not knob.choices]
        return [*again, refine(objective, numbers, best, self._tell, first_step=0.016, last_step=0.007)]

    def _ensemble(self, last: Objective, count: int) -> list[Evaluation]:
        """Settings that explain the measurements as well as the best ones, at the largest scale."""
        small, best = self._objective, self._best(last)
        if last is small:
            return spread(small, self._spanned, best, self._limit(small), count)
        begin = self._best(small)
        found = spread(small, self._spanned, begin, self._limit(small), 2 * count)
        # Another scale may need other numbers. The fitting settings move along with the best one.
        by = {knob.path: _distance(knob, begin, best) for knob in self._knobs}
        moved = [
            {knob.path: knob.moved(one.settings[knob.path], by[knob.path]) for knob in self._knobs} for one in found
        ]
        last.evaluate(moved)
        self._tell(len(moved))
        return spread(last, self._spanned, self._best(last), self._limit(last), count)

    def _best(self, objective: Objective) -> Evaluation:
        complete = (one for one in objective.seen.values() if len(one.settings) == len(self._knobs))
        return min(complete, key=lambda one: one.loss)

    def _limit(self, objective: Objective) -> float:
        return threshold(objective, self._best(objective), self._knobs)

    def _residuals(self, objective: Objective, best: Evaluation) -> pa.Table:
        before = objective.evaluate([{}])[0]
        measurements = objective.measurements
        return residual_table(
            [one.name for one in measurements],
            objective.metrics(best.settings),
            [one.waf for one in measurements],
            objective.measured_sigmas,
            before.wafs or None,
            best.wafs,
        )

    def _start_values(self) -> Settings:
        """Values of the knobs in the start profile, and the first choice of each nuisance."""
        document = tomllib.loads(self._start)
        return {knob.path: _begin(knob) if knob.nuisance else lookup(document, knob) for knob in self._knobs}


def _begin(knob: Knob) -> object:
    return knob.choices[0] if knob.choices else knob.rounded((knob.low + knob.high) / 2)


def _distance(knob: Knob, begin: Evaluation, end: Evaluation) -> float:
    if knob.choices:
        return 0.0
    return float(end.settings[knob.path]) - float(begin.settings[knob.path])  # type: ignore[arg-type]


def lookup(document: Mapping[str, object], knob: Knob) -> object:
    """A profile's value of a knob, or `None` if the default applies."""
    found: object = document
    for name in knob.path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    value = found["value"] if isinstance(found, Mapping) and "value" in found else found
    return plain_value(knob.path, value)


def usual_scales(start: str, knobs: Sequence[Knob]) -> list[str]:
    """Scales at which the smallest reclaim units have 512 and 2048 pages, by powers of two.

    Parameters
    ----------
    start
        The start profile, as TOML.
    """
    document = tomllib.loads(start)
    unit, page = (Knob(f"geometry.{name}") for name in ("reclaim_unit_bytes", "mapping_unit_bytes"))
    sizes = next((knob.choices for knob in knobs if knob.path == unit.path), ()) or (lookup(document, unit),)
    pages = min(int(str(size)) for size in sizes) // int(str(lookup(document, page) or 4096))
    return list(dict.fromkeys(f"1/{1 << max(0, (pages // least).bit_length() - 1)}" for least in (512, 2048)))
