"""Workloads in Python yield the requests that the drive receives, wherever the lab takes a
workload."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
import warp_ssd
from warp_ssd import (
    DEALLOCATE,
    NO_PLACEMENT,
    READ,
    REQUEST,
    WRITE,
    Device,
    Experiment,
    Target,
    WarpError,
    lifetimes,
    oracle,
    run,
    sweep,
    whatif,
)
from warp_ssd.fingerprint import workload_name

SMALL: dict[str, Any] = {"scale": "1/1024", "drive_writes": 2.0}


def overwrites(target: Target, block: int = 3000) -> Iterator[Any]:
    """Yields arrays of units of the drive. Half of them are in a tenth of it, with its own
    placement."""
    random = np.random.default_rng(target.seed)
    units = target.capacity_bytes // target.mapping_unit_bytes
    while True:
        unit = random.integers(units, size=block)
        unit[::2] //= 10
        placement = np.where(unit < units // 10, 1, 0)
        yield WRITE, unit * target.mapping_unit_bytes, target.mapping_unit_bytes, placement


def as_tuples(target: Target) -> Iterator[Any]:
    for operation, offsets, length, placements in overwrites(target):
        assert operation == WRITE
        for offset, placement in zip(offsets, placements, strict=True):
            yield "write", offset, length, placement


def as_dictionaries(target: Target) -> Iterator[Any]:
    for operation, offset, length, placement in overwrites(target):
        yield {"operation": operation, "bytes": length, "offset": offset.astype(np.uint32), "placement": list(placement)}


def as_structured_arrays(target: Target) -> Iterator[Any]:
    for operation, offset, length, placement in overwrites(target):
        rows = np.zeros(len(offset), REQUEST)
        rows["operation"], rows["offset"], rows["bytes"], rows["placement"] = operation, offset, length, placement
        yield rows[["operation", "offset", "bytes", "placement"]]


def in_large_blocks(target: Target) -> Iterator[Any]:
    offsets, placements = [], []
    for _, offset, length, placement in overwrites(target):
        offsets.append(offset)
        placements.append(placement)
        if len(offsets) == 40:
            yield WRITE, np.concatenate(offsets), length, np.concatenate(placements)
            offsets, placements = [], []


def result_of(workload: Any, device: str = "warp_default", **choice: Any) -> warp_ssd.Result:
    return run(Experiment.of_workload(workload, device), **SMALL | choice)


def counters(result: warp_ssd.Result) -> list[Any]:
    return result.owners().to_pyarrow().to_pylist()


def test_the_drive_gets_what_is_yielded() -> None:
    result = result_of(overwrites)
    device = Device("warp_default", scale="1/1024")
    target_bytes, written = 2 * device.capacity_bytes, 0
    units = device.logical_pages
    random = np.random.default_rng(1)
    while written < target_bytes:
        unit = random.integers(units, size=3000)
        unit[::2] //= 10
        unit = unit[: (target_bytes - written) // device.page_bytes]
        device.write(unit, 1, np.where(unit < units // 10, 1, 0))
        written += len(unit) * device.page_bytes
    cells = result.cells().to_pyarrow().to_pylist()[0]
    assert cells["host_bytes_written"] == device.stats.host_bytes_written == target_bytes
    assert cells["media_bytes_written"] == device.stats.media_bytes_written
    assert counters(result)[1]["host_bytes_written"] > target_bytes / 3, "through the second placement handle"


@pytest.mark.parametrize("workload", [as_tuples, as_dictionaries, as_structured_arrays, in_large_blocks])
def test_tuples_arrays_dictionaries_and_structured_arrays_are_the_same(workload: Callable[[Target], Any]) -> None:
    assert counters(result_of(workload)) == counters(result_of(overwrites))


def test_a_workload_that_ends_by_itself_needs_no_length() -> None:
    def once(target: Target) -> list[Any]:
        assert not target.endless and target.scale == 1024 and target.placement_count == 8
        assert target.request_bytes(64 << 20) == 64 << 10
        end = target.capacity_bytes
        return [(WRITE, 0, end // 2), (WRITE, end // 2, end // 2), (READ, 0, 4096), (DEALLOCATE, 0, end // 2)]

    cells = result_of(once, drive_writes=None).cells().to_pyarrow().to_pylist()[0]
    assert cells["host_bytes_written"] == Device("warp_default", scale="1/1024").capacity_bytes
    assert cells["pages_deallocated"] * 2 == Device("warp_default", scale="1/1024").logical_pages
    assert cells["write_amplification"] == 1


def test_seeds_are_the_points() -> None:
    one, two, again = (result_of(overwrites, seeds=[seed])[0].write_amplification for seed in (1, 2, 1))
    assert one == again != two


def test_an_experiment_takes_one_for_its_workload() -> None:
    experiment = {"title": "t", "source": "", "devices": ["warp_default"], "workload": overwrites}
    assert counters(run(experiment, **SMALL)) == counters(result_of(overwrites))
    replaced = run("one_stream", workload=overwrites, devices=["warp_default"], variants=None, **SMALL)
    assert counters(replaced) == counters(result_of(overwrites))
    (point,) = Experiment(experiment).points(**SMALL)
    assert point.workload == "overwrites"
    variants = [{"name": name, "settings": {"classifier.kind": name}} for name in ("none", "sepbit")]
    classified = run(experiment | {"variants": variants}, **SMALL)
    assert len(classified) == 2 and counters(classified["none"]) != counters(classified["sepbit"])


def test_each_point_has_a_workload_of_its_own() -> None:
    class Counting:
        def __init__(self) -> None:
            self.drives = 0

        def __call__(self, target: Target) -> Iterator[Any]:
            self.drives += 1
            assert self.drives == 1
            return overwrites(target)

    counting = Counting()
    result = result_of(counting, seeds=[1, 2])
    assert len(result) == 2 and counting.drives == 0


WRONG: list[tuple[Any, str]] = [
    ((WRITE, -1, 4096), "block 1, index 0: offset -1 with 4096 bytes is beyond the [0-9]+ bytes of the drive"),
    ((WRITE, 1 << 40, 4096), "block 1, index 0: offset 1099511627776 with 4096 bytes is beyond"),
    ((WRITE, [0, 0, 1 << 40], 4096), "block 1, index 2: offset 1099511627776 with 4096 bytes is beyond"),
    ((WRITE, 0, 0), "block 1, index 0: bytes 0 is out of range. Give 1 to 4294967295"),
    ((3, 0, 4096), r"block 1, index 0: operation 3 is unknown. Give 0 \(read\), 1 \(write\) or 2 \(deallocate\)"),
    (("wrote", 0, 4096), 'block 1: operation "wrote" is unknown. Give "read", "write" or "deallocate"'),
    ((WRITE, 0, 4096, 8), "block 1, index 0: placement 8 does not exist on the drive. Give 0 to 7, or NO_PLACEMENT"),
    ((WRITE, 0.5, 4096), "block 1: offset 0.5 is not an integer"),
    ((WRITE, np.array([0.5]), 4096), "block 1: offset is an array of float64. Give integers"),
    ((WRITE, np.zeros((2, 2), int), 4096), "block 1: offset has 2 dimensions. Give one"),
    ((WRITE, np.zeros(2, int), np.zeros(3, int)), "block 1: bytes has 3 values, but offset has 2. Give the same number of each"),
    ((WRITE, 0), r"block 1: has 2 fields. Give \(operation, offset, bytes\)"),
    ({"operation": WRITE, "offset": 0}, "block 1: has no bytes. Give every request operation, offset, bytes"),
    ({"operation": WRITE, "offset": 0, "lenght": 1}, "block 1: lenght is not a field of a request. Give operation"),
    ("write", "block 1: is str. Yield a tuple"),
    ((WRITE, 0, 4096, None, 7), "block 1, index 0: has a time, but earlier requests have none"),
]


@pytest.mark.parametrize(("block", "sentence"), WRONG)
def test_what_is_no_request_is_one_sentence_with_generator_block_and_index(block: Any, sentence: str) -> None:
    def wrong(target: Target) -> Iterator[Any]:
        yield WRITE, 0, 4096
        yield block

    with pytest.raises(WarpError, match=f"^workload wrong, {sentence}") as caught:
        result_of(wrong)
    assert "\n" not in str(caught.value)


def test_times_do_not_fall() -> None:
    def back(target: Target) -> Iterator[Any]:
        yield WRITE, [0, 0, 0], 4096, NO_PLACEMENT, [5, 9, 7]

    with pytest.raises(WarpError, match="workload back, block 0, index 2: time 7 is before 9"):
        result_of(back)


def test_an_exception_ends_the_run_and_is_the_cause() -> None:
    def broken(target: Target) -> Iterator[Any]:
        yield WRITE, np.zeros(5, int), 4096
        raise ZeroDivisionError("no idea")

    with pytest.raises(WarpError, match="^workload broken, block 1: ZeroDivisionError: no idea$") as caught:
        result_of(broken)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)

    def at_once(target: Target) -> Iterator[Any]:
        raise KeyError("nothing")

    with pytest.raises(WarpError, match="^workload at_once: KeyError: 'nothing'$"):
        result_of(at_once)
    with pytest.raises(WarpError, match="TypeError: returned int. Yield requests, or return an iterable"):
        result_of(lambda target: 5)


def test_what_is_no_workload_is_refused() -> None:
    with pytest.raises(TypeError, match="workload cannot be int. Give a name, a path or a function"):
        Experiment.of_workload(5, "ssd_a")  # type: ignore[arg-type]

    def nothing(target: Target) -> Iterator[Any]:
        while True:
            yield WRITE, np.zeros(0, int), 4096

    with pytest.raises(WarpError, match="workload nothing, block 65536: more than 65536 consecutive blocks have no request"):
        result_of(nothing)


def requests_at_times(target: Target) -> Iterator[Any]:
    """Yields a read each millisecond, for a tenth of a second."""
    yield "read", np.zeros(100, int), 4096, NO_PLACEMENT, np.arange(100) * 1_000_000


def test_in_virtual_time_requests_come_at_their_times() -> None:
    def at_once(target: Target) -> Iterator[Any]:
        yield "read", np.zeros(100, int), 4096

    def job(workload: Any) -> dict[str, Any]:
        result = run(Experiment.of_workload(workload, "pm9d3a"), scale="1/1024")
        (row,) = (row for row in result.jobs().to_pyarrow().to_pylist() if row["direction"] == "read")
        return dict(row)

    timed, closed = job(requests_at_times), job(at_once)
    assert timed["requests"] == closed["requests"] == 100
    assert timed["elapsed_ns"] == pytest.approx(99e6, rel=0.02) and closed["elapsed_ns"] < 20e6


def parametrised(share: float) -> Callable[[Target], Iterator[Any]]:
    def near_the_front(target: Target) -> Iterator[Any]:
        random = np.random.default_rng(target.seed)
        units = int(share * target.capacity_bytes / 4096)
        while True:
            yield WRITE, random.integers(units, size=5000) * 4096, 4096

    return near_the_front


LENGTH = 4096


def of_a_constant(target: Target) -> Iterator[Any]:
    yield WRITE, 0, LENGTH


def test_the_name_covers_code_closure_defaults_and_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    assert workload_name(parametrised(0.5)) == workload_name(parametrised(0.5)) != workload_name(parametrised(0.6))
    assert workload_name(overwrites).startswith("overwrites#")
    assert workload_name(overwrites) != workload_name(functools.partial(overwrites, block=5))
    before = workload_name(of_a_constant)
    monkeypatch.setitem(globals(), "LENGTH", 8192)
    assert workload_name(of_a_constant) != before

    def versioned(target: Target) -> Iterator[Any]:
        yield WRITE, 0, 4096

    plain = workload_name(versioned)
    versioned.version = 2  # type: ignore[attr-defined]
    assert workload_name(versioned) != plain
    with pytest.raises(WarpError, match="cannot be pickled"):
        workload_name(functools.partial(overwrites, block=(number for number in ())))


def test_a_sweep_keeps_results_by_what_the_generator_is(tmp_path: Path) -> None:
    options: dict[str, Any] = {**SMALL, "store": tmp_path, "workers": 1, "progress": False}

    def swept(*shares: float) -> Any:
        experiment = Experiment.of_workload(parametrised(0.5), "warp_default")
        return sweep(experiment, {"workload": [parametrised(share) for share in shares]}, **options)

    first = swept(0.5, 0.9)
    assert (first.ran, first.failed.num_rows) == (2, 0), first.summary()
    assert first.points()["workload"].to_pylist() == ["near_the_front"] * 2
    half, most = first.points()["write_amplification"].to_pylist()
    assert half < most, "what is never written is spare"
    assert swept(0.5, 0.9).ran == 0
    assert swept(0.5, 0.8).ran == 1
    alone = result_of(parametrised(0.9))[0]
    assert alone.write_amplification == most, "other processes run the same"


def test_a_pickled_point_takes_its_workload_along() -> None:
    (point,) = Experiment.of_workload(parametrised(0.5), "warp_default").points(**SMALL)
    again = cloudpickle.loads(cloudpickle.dumps(point))
    assert again.hash == point.hash and again.run().to_json() == point.run().to_json()


def test_a_broken_workload_fails_its_points() -> None:
    def broken(target: Target) -> Iterator[Any]:
        yield WRITE, 0, 4096
        if target.seed == 2:
            raise ValueError("no idea")
        yield from overwrites(target)

    experiment = Experiment.of_workload(broken, "warp_default")
    found = sweep(experiment, seeds=[1, 2], workers=1, progress=False, **SMALL)
    assert found.points()["status"].to_pylist() == ["done", "failed"]
    assert found.failed["error"][0].as_py() == "workload broken, block 1: ValueError: no idea"


@pytest.mark.deep
def test_on_ray_it_is_the_same(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    experiment = Experiment.of_workload(parametrised(0.7), "warp_default")
    on_ray = sweep(experiment, seeds=[1, 2], engine="ray", progress=False, **SMALL)
    local = sweep(experiment, seeds=[1, 2], workers=1, progress=False, **SMALL)
    assert on_ray.failed.num_rows == 0, on_ray.summary()
    assert on_ray.points() == local.points()


def test_whatif_lifetimes_and_the_oracle_take_it() -> None:
    few_units = {"geometry.reclaim_unit_bytes": "1GiB"}
    answer = whatif(
        overwrites, "warp_default", scale="1/1024", drive_writes=2.0, overrides=few_units, uncertainty=False
    )
    placements = answer.placements().to_pyarrow()["placement"].to_pylist()
    assert placements[0] == "none" and "the workload's own" in placements
    measured = lifetimes(overwrites, scale="1/1024", drive_writes=1.0)
    assert measured.quantiles().to_pyarrow().num_rows == 1
    rows = oracle(overwrites, scale="1/1024", drive_writes=2.0).to_pylist()
    assert [row["placement"] for row in rows] == ["none", "its own", "oracle"]


def test_the_studio_says_why_it_cannot_show_it() -> None:
    with pytest.raises(WarpError, match="a policy or a workload in Python"):
        warp_ssd.studio(result_of(overwrites))
    with pytest.raises(WarpError, match="a policy or a workload in Python"):
        warp_ssd.studio(Experiment.of_workload(overwrites, "warp_default"))
