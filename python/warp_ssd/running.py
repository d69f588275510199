"""Running an experiment as a whole: choose its points, run them in the engine's threads, judge the results together."""

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

#: Called with the share that is done (0 to 1), the number of points that are done, and the number of points.
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
    """Run all points of an experiment, on all cores within the memory there is.

    Parameters
    ----------
    experiment
        Name of a folder of ``experiments/``, path of an ``experiment.toml``, what stands in one as nested dictionaries, or an
        `Experiment`. A ``workload`` in the dictionaries may be a function that makes requests (`warp_ssd.generators`).
    gc_log
        Keep a row for each collection (`Result.gc_log`).
    victim_policy, placement_policy
        Decide instead of the drive and of the workload. Each point gets a deep copy of its own; points run one after another.
    progress
        Called every 50 ms with the share that is done, the number of points that are done, and the number of points. Without it a bar
        is drawn on standard error, if that is a terminal.
    **options
        Which points, and how they are run: see `Experiment.points`. With ``interval`` every member of the devices' ensembles is run too:
        `Result.summary`, `published` and `intervals` say what they come to.

    Returns
    -------
    Result
        The same seed gives the same bytes as ``warp run``.

    Raises
    ------
    WarpError
        A name, setting or file that is wrong: the engine's sentence.
        So is an exception of a workload in Python, with the exception as its cause.
    Exception
        What a policy raised.
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
    """The caller's progress, or a bar where there is a terminal to draw it on."""
    if progress is not None or not sys.stderr.isatty():
        yield progress
        return
    from tqdm import tqdm

    # A run that is over in two seconds shows nothing.
    with tqdm(total=1.0, delay=2, leave=False, bar_format="{l_bar}{bar:30} {postfix}, {remaining} left") as bar:

        def update(share: float, done: int, points: int) -> None:
            bar.set_postfix_str(f"{done} of {points} points done", refresh=False)
            bar.update(share - bar.n)

        yield update
