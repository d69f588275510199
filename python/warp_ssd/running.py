"""Runs of a whole experiment: choose its points, run them in the engine's threads, judge the results together."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias, Unpack

from warp_ssd._engine import Experiment, Result
from warp_ssd.policies import PlacementPolicy, VictimPolicy

if TYPE_CHECKING:
    from warp_ssd._engine import PointOptions

#: Called with the finished share (0 to 1), the number of finished points, and the number of points.
ProgressCallback: TypeAlias = Callable[[float, int, int], object]


def run(
    experiment: str | os.PathLike[str] | Mapping[str, object] | Experiment,
    *,
    gc_log: bool = False,
    victim_policy: VictimPolicy | None = None,
    placement_policy: PlacementPolicy | None = None,
    progress: ProgressCallback | None = None,
    **options: Unpack[PointOptions],
) -> Result:
    """Run all points of an experiment on all cores, within the available memory.

    Parameters
    ----------
    experiment
        Name of a folder of ``experiments/``, path of an ``experiment.toml``, its content as nested dictionaries, or an
        `Experiment`. A ``workload`` in the dictionaries may be a function that makes requests (`warp_ssd.generators`).
    gc_log
        Keep a row for each collection (`Result.gc_log`).
    victim_policy, placement_policy
        Policies that decide instead of the drive and of the workload. Each point gets a deep copy. Points run one after another.
    progress
        Called every 50 ms with the finished share, the number of finished points, and the number of points. Without it, a bar
        appears on standard error if that is a terminal.
    **options
        Choice of points and settings of the runs, see `Experiment.points`. With ``uncertainty`` every member of the devices'
        ensembles runs too. `Result.summary`, `published` and `intervals` then contain the intervals.

    Returns
    -------
    Result
        The same seed gives the same bytes as ``warp run``.

    Raises
    ------
    WarpError
        A name, setting or file is wrong. The text is the message of the engine. An exception of a workload in Python also raises
        it, with that exception as the cause.
    Exception
        The exception that a policy raised.
    """
    if not isinstance(experiment, Experiment):
        experiment = Experiment(experiment)
    points = experiment.points(**options)
    with _bar(progress) as shown:
        return experiment.run_points(
            points,
            gc_log=gc_log,
            victim_policy=victim_policy,
            placement_policy=placement_policy,
            progress=shown,
        )


@contextmanager
def _bar(progress: ProgressCallback | None) -> Iterator[ProgressCallback | None]:
    """The caller's progress, or a bar if standard error is a terminal."""
    if progress is not None or not sys.stderr.isatty():
        yield progress
        return
    from tqdm import tqdm

    # A run of less than two seconds shows no bar.
    with tqdm(total=1.0, delay=2, leave=False, bar_format="{l_bar}{bar:30} {postfix}, {remaining} left") as bar:

        def update(share: float, done: int, points: int) -> None:
            bar.set_postfix_str(f"{done} of {points} points done", refresh=False)
            bar.update(share - bar.n)

        yield update
