"""Calibration: the hidden settings (knobs) of a drive, from write amplifications measured on it.

    measurements (measurement.py) + knobs (knobs.py) + unknowns beside them (nuisances.py) + start profile
      -> search on small scaled models (search.py, objective.py) -> the best few on larger ones (fit.py)
      -> interval of each knob (determine.py), all settings that explain the data (ensemble.py)
      -> Calibration (result.py): profile, or experiment, with ensemble, residuals, intervals

The result is a profile that behaves like the drive under the measured load. It does not describe the inside of the drive. The
calibration reports the knobs that the data cannot determine.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from .._engine import WarpError, experiment_text, profile_text
from ..store import Store
from ..workers import make_workers
from .cross_validation import CrossValidation, FigureError, check_by, figures_of
from .determine import KnobFit
from .ensemble import MEMBERS
from .fit import Fit, usual_scales
from .knobs import KNOBS, read_knobs
from .measurement import Measurement, as_measurements, fdp_stats, published, read_csv
from .nuisances import Nuisance, read_nuisances
from .objective import Objective
from .result import Calibration, Member, with_known
from .search import Tell

__all__ = [
    "KNOBS",
    "Calibration",
    "CalibrationStopped",
    "CrossValidation",
    "FigureError",
    "KnobFit",
    "Measurement",
    "Member",
    "Nuisance",
    "calibrate",
    "fdp_stats",
    "published",
    "read_csv",
    "read_nuisances",
    "usual_scales",
]


class CalibrationStopped(KeyboardInterrupt):
    """Ctrl-C during a calibration.

    Attributes
    ----------
    so_far
        The best settings so far, in words.
    store
        Folder of the evaluations. A calibration with this store continues from there.
    """

    def __init__(self, so_far: str, store: Path) -> None:
        super().__init__(f"{so_far}\n\nstopped. The next calibration with store={str(store)!r} continues from here")
        self.so_far = so_far
        self.store = store


def calibrate(
    measurements: str | os.PathLike[str] | Sequence[Measurement],
    free: Sequence[str] | Mapping[str, object],
    device: str = "warp_default",
    *,
    nuisances: Sequence[Nuisance] = (),
    known: Mapping[str, object] | None = None,
    scales: Sequence[str] | None = None,
    trials: int = 200,
    seeds: Sequence[int] = (1, 2),
    seed: int = 1,
    noise: float = 0.02,
    loss: str = "squared",
    members: int = MEMBERS,
    ensemble_of: str = "device",
    cross_validate: bool | str = False,
    intervals: bool = True,
    starts: Sequence[Mapping[str, object]] = (),
    title: str | None = None,
    engine: str = "local",
    workers: int | None = None,
    memory_budget_bytes: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Calibration:
    """Finds the settings of the knobs under which the model writes as much as the drive did.

    Parameters
    ----------
    measurements
        A CSV file (`read_csv`) or a list.
    free
        Dotted paths of the knobs to find, or a dict from paths to values. Values are a range `(low, high)`, a list of choices, or
        `None` for the usual range of a path in `KNOBS`.
    device
        Name or path of the start profile. It gives all settings that are not free.
    nuisances
        Unknowns of the workloads and of the readings. The calibration searches them beside the knobs. No profile contains them.
    known
        Known settings of the drive that differ from the start profile, by dotted path.
    scales
        Scaled models, small ones first. The first is for the search and the intervals. The others are for the best few settings.
        The last is also for the residuals. `"1/1"` is the drive itself. Default: reclaim units of 512 and of 2048 pages. Models
        with much smaller units are faster but misleading.
    trials
        Number of settings that the search evaluates. The refinement needs about as many again.
    seeds
        Each cell runs once for each seed. The WAF of the model is their mean, and their variation counts as noise. The search
        uses only the first seed.
    seed
        Seed of the search. The same seed gives the same result.
    noise
        Standard deviation of measurements without one, as a share of the measurement.
    loss
        `squared`, or `absolute` if some cells are known not to fit.
    members
        Maximum number of members of the ensemble.
    ensemble_of
        `device` makes an ensemble of drives, without unknowns of the workload. `experiment` requires measurements of one
        experiment, whose open points are the nuisances. The ensemble then contains them.
    cross_validate
        Predicts each figure from a fit to the others. A figure is an experiment (`True`, `"experiment"`). With `"source"`, the
        numbers of an experiment with one `source` are a figure.
    intervals
        False omits the intervals of the knobs, which take most of the runs.
    starts
        Settings that the search evaluates first, after the start profile.
    title
        Title of the profile. Default: that of the start profile.
    engine, workers, memory_budget_bytes, store, progress
        As in `sweep`. With a store, a killed calibration finds its earlier evaluations. Without a store, Ctrl-C keeps the
        evaluations and any other end deletes them.

    Returns
    -------
    Calibration

    Raises
    ------
    WarpError
        A measurement or knob is invalid, or no settings can run.
    CalibrationStopped
        Ctrl-C.
    """
    cells = as_measurements(measurements)
    knobs = [*read_knobs(free), *(one.knob for one in nuisances)]
    leave_out = check_by(cross_validate)
    if leave_out is not None:
        figures_of(cells, leave_out)
    if ensemble_of not in ENSEMBLES_OF:
        raise WarpError(f"ensemble_of = {ensemble_of!r} is unknown. Give one of {', '.join(ENSEMBLES_OF)}")
    text = _text_of_experiment(cells, nuisances) if ensemble_of == "experiment" else None
    if members < 1:
        raise WarpError(f"members = {members} is out of range. Give 1 or more")
    start = with_known(profile_text(device), known or {}).as_string()
    scales = usual_scales(start, knobs) if scales is None else list(scales)
    if not scales:
        raise WarpError("scales = [] is empty. Give at least one")
    with _folder(store) as folder, _bar(trials, progress) as tell:
        results = Store(folder)
        file = results.path / f"start-{hashlib.sha256(start.encode()).hexdigest()[:12]}.toml"
        file.write_text(start, encoding="utf-8")
        pool = make_workers(engine, workers, memory_budget_bytes)
        try:
            objective = Objective(
                cells,
                str(file),
                scale=scales[0],
                seeds=seeds,
                noise=noise,
                loss=loss,
                store=results,
                workers=pool,
                nuisances=nuisances,
            )
            fit = Fit(objective, knobs, start, seeds, tell, text, nuisances)
            try:
                return fit.run(scales, trials, seed, _description(cells), title, members, leave_out, intervals, starts)
            except KeyboardInterrupt as stop:
                raise CalibrationStopped(fit.so_far(), results.path) from stop
        finally:
            pool.close()


ENSEMBLES_OF = ("device", "experiment")
"""Kinds of ensembles."""


def _text_of_experiment(cells: Sequence[Measurement], nuisances: Sequence[Nuisance]) -> str:
    """The file of the one measured experiment."""
    names = {one.experiment for one in cells}
    name = names.pop()
    if name is None or names:
        raise WarpError("ensemble_of = 'experiment' needs measurements of one experiment. Remove the other measurements")
    for nuisance in nuisances:
        if not nuisance.is_setting:
            raise WarpError(
                f"nuisance {nuisance.path} is not a setting, but an experiment's ensemble has only settings. "
                "Give workload:PATH or change:NAME"
            )
    return experiment_text(name)


def _description(cells: Sequence[Measurement]) -> str:
    sources = dict.fromkeys(one.experiment or one.workload or "" for one in cells)
    return f"{len(cells)} write amplifications ({', '.join(os.path.basename(one) for one in sources)})"


@contextmanager
def _folder(store: str | os.PathLike[str] | None) -> Iterator[str]:
    if store is not None:
        yield os.fspath(store)
        return
    folder = tempfile.mkdtemp(prefix="warp-calibrate-")
    try:
        yield folder
    except CalibrationStopped:
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _bar(trials: int, progress: bool) -> Iterator[Tell]:
    from tqdm import tqdm

    shown = progress and (sys.stderr.isatty() or "ipykernel" in sys.modules)
    # The work of the refinement is unknown in advance. It is about as much as the search.
    with tqdm(total=2 * trials, unit="setting", disable=not shown) as bar:
        yield bar.update
