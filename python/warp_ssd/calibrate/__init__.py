"""Calibration: the hidden knobs of a drive, from write amplifications that were measured on it.

    measurements (measurement.py) + knobs (knobs.py) + start profile
      -> search on small twins (search.py, objective.py) -> the best few on larger ones
      -> how well each knob is determined (determine.py) -> Calibration (result.py): profile, residuals, intervals

What it finds is a profile that behaves like the drive under what was measured, not the drive's insides: knobs that
the data cannot determine are said to be so.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from .._engine import WarpError, profile_text
from ..store import Store
from ..workers import make_workers
from .determine import KnobFit, determine, knob_fit, threshold
from .knobs import KNOBS, Knob, plain_value, read_knobs
from .measurement import Measurement, as_measurements, fdp_stats, published, read_csv
from .objective import Evaluation, Objective, Settings
from .result import Calibration, residual_table, with_fit, with_known
from .search import Tell, best_of_each_kind, refine, search

__all__ = [
    "KNOBS",
    "Calibration",
    "KnobFit",
    "Measurement",
    "calibrate",
    "fdp_stats",
    "published",
    "read_csv",
    "usual_scales",
]

_CANDIDATES = 3
"""Combinations of names that are refined, and taken to larger twins."""

_AGAIN = 12
"""Settings of the search, the best ones, that are evaluated with all seeds."""


def calibrate(
    measurements: str | os.PathLike[str] | Sequence[Measurement],
    free: Sequence[str] | Mapping[str, object],
    device: str = "warp_default",
    *,
    known: Mapping[str, object] | None = None,
    scales: Sequence[str] | None = None,
    trials: int = 200,
    seeds: Sequence[int] = (1, 2),
    seed: int = 1,
    noise: float = 0.02,
    loss: str = "squared",
    title: str | None = None,
    engine: str = "local",
    workers: int | None = None,
    memory_budget_bytes: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Calibration:
    """Finds the settings of a drive's knobs under which the model writes as much as the drive did.

    Parameters
    ----------
    measurements
        A CSV file (`read_csv`) or a list.
    free
        Dotted paths of the knobs to find (`KNOBS` are those with a usual range), or a dict from paths to a range `(low, high)`,
        a list of choices, or `None` for the usual ones.
    device
        The profile to begin with, by name or path: everything that is not free.
    known
        Settings of the drive that are known and differ from that profile, by dotted path.
    scales
        Twins, small ones first: the first for the search and the intervals, each further one for the best few, the last for
        the residuals; `"1/1"` is the drive itself. Default: reclaim units of 512 and of 2048 pages. Twins with much smaller
        ones are quicker and lead astray.
    trials
        Settings to evaluate in the search; refinement and intervals come on top, about as many again.
    seeds
        Each cell is run once for each; the model's WAF is their mean, and what they differ by counts as noise. The search takes the
        first one only.
    seed
        Of the search. The same seed gives the same result.
    noise
        Standard deviation of measurements that give none, as a share of them.
    loss
        `squared`, or `absolute` where some cells are known not to fit.
    title
        Of the profile; default: the start profile's.
    engine, workers, memory_budget_bytes, store, progress
        As in `sweep`. With a store a calibration that was killed finds what it had evaluated.

    Returns
    -------
    Calibration

    Raises
    ------
    WarpError
        A measurement or knob is none, or no settings can be run.
    """
    cells = as_measurements(measurements)
    knobs = read_knobs(free)
    start = with_known(profile_text(device), known or {}).as_string()
    scales = usual_scales(start, knobs) if scales is None else list(scales)
    if not scales:
        raise WarpError("scales = []: give at least one")
    with _folder(store) as folder, _bar(trials, progress) as tell:
        results = Store(folder)
        file = results.path / f"start-{hashlib.sha256(start.encode()).hexdigest()[:12]}.toml"
        file.write_text(start, encoding="utf-8")
        pool = make_workers(engine, workers, memory_budget_bytes)
        try:
            objective = Objective(
                cells, str(file), scale=scales[0], seeds=seeds, noise=noise, loss=loss, store=results, workers=pool
            )
            fit = _Fit(objective, knobs, start, seeds, tell)
            return fit.run(scales, trials, seed, _description(cells), title)
        finally:
            pool.close()


class _Fit:
    """One calibration, from the search to the result."""

    def __init__(
        self, objective: Objective, knobs: Sequence[Knob], start: str, seeds: Sequence[int], tell: Tell
    ) -> None:
        self._objective = objective
        self._knobs = knobs
        self._start = start
        self._seeds = seeds
        self._tell = tell

    def run(self, scales: Sequence[str], trials: int, seed: int, measured: str, title: str | None) -> Calibration:
        small, knobs = self._objective, self._knobs
        # What lies far apart one seed tells apart; what is near needs all of them.
        first = small.other(seeds=self._seeds[:1])
        search(first, knobs, self._start_values(), trials, seed, self._tell)
        promising = best_of_each_kind(first, knobs, _CANDIDATES)
        if not promising:
            raise WarpError(f"no settings can be run: {next(iter(first.seen.values())).error}")
        promising += sorted(first.seen.values(), key=lambda one: one.loss)[:_AGAIN]
        small.evaluate([one.settings for one in promising])
        small.learn_noise()
        found = best_of_each_kind(small, knobs, _CANDIDATES)
        found = [refine(small, knobs, one, self._tell) for one in found]
        best = min(found, key=lambda one: one.loss)
        intervals = determine(small, knobs, best, threshold(small, best, knobs), self._tell)
        # The profiles may have come across something better.
        found = best_of_each_kind(small, knobs, _CANDIDATES)
        last = small
        for scale in scales[1:]:
            last = small.other(scale=scale)
            found = self._on_larger(last, found)
        best = min(found, key=lambda one: one.loss)
        fits = [knob_fit(interval, best.settings[interval.knob.path]) for interval in intervals]
        before = self._unchanged(last)
        residuals = residual_table(
            [one.name for one in last.measurements],
            [one.metric for one in last.measurements],
            [one.waf for one in last.measurements],
            last.measured_sigmas,
            before.wafs or None,
            best.wafs,
        )
        toml = with_fit(self._start, fits, measured, title)
        seen = [*{*first.seen, *small.seen}, *(last.seen if last is not small else ())]
        return Calibration(best.settings, fits, residuals, last.scale, len(seen), toml)

    def _on_larger(self, objective: Objective, found: Sequence[Evaluation]) -> list[Evaluation]:
        """The same settings, and those of the start profile, on larger twins; the best one moved to where it is best there."""
        start = self._start_values()
        complete = [start] if None not in start.values() else []
        candidates = [*(one.settings for one in found), *complete]
        objective.evaluate(candidates)
        objective.learn_noise()
        again = objective.evaluate(candidates)
        self._tell(len(again))
        best = min(again, key=lambda one: one.loss)
        numbers = [knob for knob in self._knobs if not knob.choices]
        return [*again, refine(objective, numbers, best, self._tell, first_step=0.016, last_step=0.007)]

    def _start_values(self) -> Settings:
        """What the start profile says of the knobs."""
        import tomllib

        document = tomllib.loads(self._start)
        return {knob.path: _lookup(document, knob) for knob in self._knobs}

    def _unchanged(self, objective: Objective) -> Evaluation:
        return objective.evaluate([{}])[0]


def usual_scales(start: str, knobs: Sequence[Knob]) -> list[str]:
    """Scales of twins whose smallest reclaim units have 512 pages, and 2048, by powers of two.

    Parameters
    ----------
    start
        The start profile, as TOML.
    """
    import tomllib

    document = tomllib.loads(start)
    unit, page = (Knob(f"geometry.{name}") for name in ("reclaim_unit_bytes", "mapping_unit_bytes"))
    sizes = next((knob.choices for knob in knobs if knob.path == unit.path), ()) or (_lookup(document, unit),)
    pages = min(int(str(size)) for size in sizes) // int(str(_lookup(document, page) or 4096))
    return list(dict.fromkeys(f"1/{1 << max(0, (pages // least).bit_length() - 1)}" for least in (512, 2048)))


def _lookup(document: Mapping[str, object], knob: Knob) -> object:
    """What a profile says of a knob; `None` if it leaves it to the default."""
    found: object = document
    for name in knob.path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    value = found["value"] if isinstance(found, Mapping) and "value" in found else found
    return plain_value(knob.path, value)


def _description(cells: Sequence[Measurement]) -> str:
    sources = dict.fromkeys(one.experiment or one.workload or "" for one in cells)
    return f"{len(cells)} write amplifications ({', '.join(os.path.basename(one) for one in sources)})"


@contextmanager
def _folder(store: str | os.PathLike[str] | None) -> Iterator[str]:
    if store is not None:
        yield os.fspath(store)
        return
    with tempfile.TemporaryDirectory(prefix="warp-calibrate-") as folder:
        yield folder


@contextmanager
def _bar(trials: int, progress: bool) -> Iterator[Tell]:
    from tqdm import tqdm

    shown = progress and (sys.stderr.isatty() or "ipykernel" in sys.modules)
    # How much refinement will need is not known; it is about as much as the search.
    with tqdm(total=2 * trials, unit="setting", disable=not shown) as bar:
        yield bar.update
