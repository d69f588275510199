"""Running an experiment as a whole: choose its points, run them in the engine's threads, judge the results together."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from warp_ssd._engine import Experiment, Result
from warp_ssd.generators import Workload
from warp_ssd.policies import PlacementPolicy, VictimPolicy

#: Called with the share that is done (0 to 1), the number of points that are done, and the number of points.
ProgressCallback: TypeAlias = Callable[[float, int, int], object]


def run(
    experiment: str | os.PathLike[str] | Mapping[str, object] | Experiment,
    *,
    quick: bool = False,
    overrides: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
    devices: Sequence[str] | None = None,
    only: Sequence[str] | None = None,
    scale: int | str | None = None,
    write_capacities: float | None = None,
    until: str | None = None,
    prefill_capacities: float | None = None,
    seeds: Sequence[int] | None = None,
    workload: str | os.PathLike[str] | Mapping[str, object] | Workload | None = None,
    seconds: float | None = None,
    timed: bool | None = None,
    replay: str | None = None,
    replay_speed: float | None = None,
    queue_depth: int | None = None,
    capacity_bytes: int | None = None,
    feedback: Mapping[str, object] | None = None,
    snapshot: str | os.PathLike[str] | None = None,
    interval: bool = False,
    gc_log: bool = False,
    victim_policy: VictimPolicy | None = None,
    placement_policy: PlacementPolicy | None = None,
    progress: ProgressCallback | None = None,
) -> Result:
    """Run all points of an experiment, on all cores within the memory there is.

    Parameters
    ----------
    experiment
        Name of a folder of ``experiments/``, path of an ``experiment.toml``, what stands in one as nested dictionaries, or an
        `Experiment`. A ``workload`` in the dictionaries may be a function that makes requests (`warp_ssd.generators`).
    quick, overrides, settings, devices, only, scale, write_capacities, until, prefill_capacities, seeds, workload
        Which points, and how: see `Experiment.points`.
    seconds, timed, replay, replay_speed, queue_depth, capacity_bytes, feedback, snapshot
        As well.
    interval
        Run every member of the devices' ensembles too: `Result.summary`, `published` and `intervals` say what they come to.
    gc_log
        Keep a row for each collection (`Result.gc_log`).
    victim_policy, placement_policy
        Decide instead of the drive and of the workload. Each point gets a deep copy of its own; points run one after another.
    progress
        Called every 50 ms with the share that is done, the number of points that are done, and the number of points. Without it a bar
        is drawn on standard error, if that is a terminal.

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
    points = experiment.points(
        quick=quick,
        overrides=overrides,
        settings=settings,
        devices=devices,
        only=only,
        scale=scale,
        write_capacities=write_capacities,
        until=until,
        prefill_capacities=prefill_capacities,
        seeds=seeds,
        workload=workload,
        seconds=seconds,
        timed=timed,
        replay=replay,
        replay_speed=replay_speed,
        queue_depth=queue_depth,
        capacity_bytes=capacity_bytes,
        feedback=feedback,
        snapshot=snapshot,
        interval=interval,
    )
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
