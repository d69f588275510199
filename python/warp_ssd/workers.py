"""Workers: processes of this machine or a Ray cluster that run points.

    jobs -> Workers.run -> (key, content of its file in the store), in the order in which they finish

Both run the same function on the same pickled input, so results do not depend on the choice. If a point raises an exception, its
file contains the error. If a process dies, only its point is lost. The memory budget uses the memory that each point states for
its maps. Workers store no result. The caller of `run` stores, so workers need no file system in common with it.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from . import store
from ._engine import WarpError, memory_available

if TYPE_CHECKING:
    from ._engine import Point
    from .policies import PlacementPolicy, VictimPolicy

Finished = Callable[[str, bytes], None]
"""Receives the key of a job and the content of its file."""


@dataclass(frozen=True)
class Job:
    """A point to run, the key of its result, and the names among `store.SERIES` to keep."""

    key: str
    point: Point
    series: tuple[str, ...] = ()
    victim_policy: VictimPolicy | None = None
    placement_policy: PlacementPolicy | None = None


class Workers(Protocol):
    """Runs jobs."""

    def run(self, jobs: Sequence[Job], finished: Finished) -> None:
        """Runs all jobs and reports each one as it finishes."""

    def close(self) -> None:
        """Stops the workers. Unfinished jobs are lost."""


def run_job(job: Job) -> bytes:
    """Runs a point and returns the content of its file, even if the point fails."""
    started = time.perf_counter()
    try:
        result = job.point.run(
            gc_log="gc_log" in job.series, victim_policy=job.victim_policy, placement_policy=job.placement_policy
        )
        seconds = time.perf_counter() - started
        return store.done(job.key, job.point, result, seconds, job.series)
    except WarpError as error:
        return store.failure(job.key, job.point, str(error))
    except Exception as error:  # a policy written in Python may raise anything
        return store.failure(job.key, job.point, f"{type(error).__name__}: {error}")


def run_pickled(pickled: bytes) -> bytes:
    """Calls `run_job` for a pickled job. The pickle refers to the job's class, or contains its code if no module has it."""
    job: Job = pickle.loads(pickled)
    return run_job(job)


class LocalWorkers:
    """Processes of this machine, each with one job at a time.

    They are fresh interpreters, not copies of this one. So a script needs no `if __name__ == "__main__"`, and the processes can
    receive classes of a notebook.

    Parameters
    ----------
    count
        Number of processes. Default: one for each processor.
    memory_budget_bytes
        Memory for the maps of the points that run at the same time. Default: nine tenths of the available memory.
    """

    def __init__(self, count: int | None = None, memory_budget_bytes: int | None = None) -> None:
        import loky

        self._count: int = loky.cpu_count() if count is None else count
        if not isinstance(self._count, int) or self._count < 1:
            raise WarpError(f"workers = {count!r} is out of range. Give a whole number of 1 or more")
        self._budget_bytes = memory_budget_bytes if memory_budget_bytes is not None else memory_available()
        # One executor per process, so that a broken executor identifies its job.
        self._idle: list[Any] = []
        self._all: list[Any] = []

    def run(self, jobs: Sequence[Job], finished: Finished) -> None:
        """See `Workers.run`."""
        # Large points first, with small ones beside them. A large point at the end would run alone.
        pending = sorted(jobs, key=lambda job: -job.point.memory_bytes)
        running: dict[Future[bytes], tuple[Job, Any]] = {}
        while pending or running:
            free_bytes = self._budget_bytes - sum(job.point.memory_bytes for job, _ in running.values())
            while pending and len(running) < self._count:
                fitting = (index for index, job in enumerate(pending) if job.point.memory_bytes <= free_bytes)
                index = next(fitting, None)
                if index is None:
                    break
                job = pending.pop(index)
                free_bytes -= job.point.memory_bytes
                executor = self._executor()
                running[executor.submit(run_pickled, _pickled(job))] = (job, executor)
            if not running:
                for job in pending:
                    finished(job.key, store.failure(job.key, job.point, too_large(job.point, self._budget_bytes)))
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                job, executor = running.pop(future)
                finished(job.key, self._content(future, job, executor))

    def _content(self, future: Future[bytes], job: Job, executor: Any) -> bytes:
        try:
            content = future.result()
        except BrokenExecutor as error:
            executor.shutdown(kill_workers=True)
            self._all.remove(executor)
            return store.failure(job.key, job.point, _died(error))
        except Exception as error:
            content = store.failure(job.key, job.point, f"the point cannot be sent to a process ({error})")
        self._idle.append(executor)
        return content

    def _executor(self) -> Any:
        from loky.process_executor import ProcessPoolExecutor

        if self._idle:
            return self._idle.pop()
        executor = ProcessPoolExecutor(max_workers=1, initializer=_end_with, initargs=(os.getpid(),))
        self._all.append(executor)
        return executor

    def close(self) -> None:
        """See `Workers.close`."""
        for executor in self._all:
            executor.shutdown(kill_workers=True)
        self._all, self._idle = [], []


def _end_with(parent: int) -> None:
    """Ends this process when its parent is gone, so a killed parent leaves no process that uses memory and time."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class RayWorkers:
    """A Ray cluster: the connected one, the one that `RAY_ADDRESS` names, or a new one on this machine.

    `warp_ssd` has to be installed on its nodes. If the node or process of a job dies, the job runs again on another one, three
    times.
    """

    def __init__(self) -> None:
        try:
            import ray
        except ImportError as error:
            raise WarpError('engine = "ray" needs Ray. Run pip install "warp_ssd[ray]"') from error
        self._ray = ray
        self._started = not ray.is_initialized()
        if self._started:
            ray.init(logging_level=logging.ERROR, log_to_driver=False, include_dashboard=False)
        self._run_job = ray.remote(num_cpus=1, max_retries=3)(run_pickled)

    def run(self, jobs: Sequence[Job], finished: Finished) -> None:
        """See `Workers.run`."""
        ray = self._ray
        largest_bytes = max((node["Resources"].get("memory", 0) for node in ray.nodes() if node["Alive"]), default=0)
        running: dict[Any, Job] = {}
        for job in jobs:
            if job.point.memory_bytes > largest_bytes:
                finished(job.key, store.failure(job.key, job.point, too_large(job.point, int(largest_bytes))))
            else:
                running[self._run_job.options(memory=job.point.memory_bytes).remote(_pickled(job))] = job
        while running:
            for reference in self._next(running):
                job = running.pop(reference)
                try:
                    content = ray.get(reference)
                except ray.exceptions.RayError as error:
                    content = store.failure(job.key, job.point, _died(error))
                finished(job.key, content)

    def _next(self, running: Iterable[Any]) -> list[Any]:
        ready, _ = self._ray.wait(list(running), num_returns=1)
        return list(ready)

    def close(self) -> None:
        """See `Workers.close`."""
        if self._started:
            self._ray.shutdown()


def make_workers(engine: str, count: int | None, memory_budget_bytes: int | None) -> Workers:
    """Workers by the name of their engine: `local` or `ray`."""
    match engine:
        case "local":
            return LocalWorkers(count, memory_budget_bytes)
        case "ray":
            return RayWorkers()
    raise WarpError(f"engine = {engine!r} is unknown. Give local or ray")


def too_large(point: Point, available_bytes: int) -> str:
    """Error message for a point that exceeds the memory of every worker."""
    needed, available = (value / 2**30 for value in (point.memory_bytes, available_bytes))
    return f'the maps need {needed:.1f} GiB of memory, but {available:.1f} GiB are available. Run a scaled model (scale="1/64")'


def _pickled(job: Job) -> bytes:
    import cloudpickle  # type: ignore[import-untyped]

    content: bytes = cloudpickle.dumps(job)
    return content


def _died(error: Exception) -> str:
    signal = re.search(r"SIG[A-Z]+", str(error))
    how = f"was killed ({signal.group()})" if signal else f"died ({type(error).__name__})"
    return f"the process {how}, perhaps because the machine ran out of memory. Run it again with retry_failed=True"
