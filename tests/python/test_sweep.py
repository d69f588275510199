"""A sweep runs each point once in the order of the grid, despite failures, kills and other
machines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from warp_ssd import Experiment, VictimPolicy, WarpError
from warp_ssd.fingerprint import fingerprint
from warp_ssd.sweep import SweepResult, latin_hypercube, random_samples, sweep
from warp_ssd.workers import Job, LocalWorkers

OP = "geometry.over_provisioning"
SMALL: dict[str, Any] = {"devices": ["warp_default"], "scale": "1/1024", "drive_writes": 1.0, "progress": False}
GRID: dict[str, list[object]] = {OP: [0.07, 0.1, 0.15], "overwrite": ["zipf 2.2", "80/20"], "variant": ["FDP", "NoFDP"]}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    return sweep("three_stream", GRID, store=tmp_path_factory.mktemp("store"), workers=2, **SMALL)


def test_points_are_in_the_order_of_the_grid(swept: SweepResult) -> None:
    table = swept.points()
    assert len(swept) == table.num_rows == 12
    assert table[OP].to_pylist() == [0.07] * 4 + [0.1] * 4 + [0.15] * 4
    assert table["variant"].to_pylist() == ["FDP", "NoFDP"] * 6
    assert table["overwrite"].to_pylist() == ["zipf 2.2", "zipf 2.2", "80/20", "80/20"] * 3
    assert set(table["status"].to_pylist()) == {"done"}
    nofdp = [
        row["write_amplification"]
        for row in table.to_pylist()
        if row["variant"] == "NoFDP" and row["overwrite"] == "80/20"
    ]
    assert nofdp == sorted(nofdp, reverse=True), "more spare, fewer copies"


def test_a_repeated_sweep_is_free_and_the_same(swept: SweepResult) -> None:
    again = sweep("three_stream", GRID, store=swept.store.path, workers=1, **SMALL)
    assert (swept.ran, again.ran) == (12, 0)
    assert again.points() == swept.points()
    assert again.samples() == swept.samples()


def test_a_point_knows_its_input_not_its_name(swept: SweepResult) -> None:
    """The grid contains the profile's default over-provisioning, the same input under another
    name."""
    plain = sweep("three_stream", {"variant": ["FDP", "NoFDP"]}, variants=["80/20"], store=swept.store.path, **SMALL)
    assert plain.ran == 0
    assert OP not in plain.points().column_names


def test_the_number_of_workers_changes_nothing(swept: SweepResult, tmp_path: Path) -> None:
    assert sweep("three_stream", GRID, store=tmp_path, workers=1, **SMALL).points() == swept.points()


def test_sql_and_frames(swept: SweepResult) -> None:
    best = swept.sql(
        f'select variant, min(write_amplification) waf from points where "{OP}" < 0.12 group by variant order by variant'
    )
    assert best["variant"].to_pylist() == ["FDP", "NoFDP"]
    assert swept.sql("select count(distinct seed) n from samples")["n"][0].as_py() == 1
    assert len(swept.to_pandas()) == swept.to_polars().height == 12
    assert swept.costs()["run_seconds"].to_pylist()[0] > 0


def test_seeds_and_run_settings_are_varied() -> None:
    found = sweep(
        "one_stream", {"run:drive_writes": [0.5, 1.0]}, seeds=[1, 2], **{**SMALL, "drive_writes": None}
    )
    table = found.points()
    assert table["seed"].to_pylist() == [1, 2, 1, 2]
    written = table["host_bytes_written"].to_pylist()
    assert written[2] == pytest.approx(2 * written[0], rel=0.01)


def test_an_impossible_drive_is_recorded_and_the_rest_runs() -> None:
    found = sweep("one_stream", {OP: [0.1, 0.0001]}, **SMALL)
    assert found.points()["status"].to_pylist() == ["done", "failed"]
    assert "over_provisioning" in found.points()["error"].to_pylist()[1]
    assert "1 failed" in found.summary()
    assert found.failed.num_rows == 1


def test_what_cannot_be_varied_is_said() -> None:
    with pytest.raises(WarpError, match=r"'op' cannot be varied.*variant, overwrite"):
        sweep("three_stream", {"op": [0.1]}, **SMALL)
    with pytest.raises(WarpError, match="variant 'fdp' is unknown. Give one of FDP, Mixed, NoFDP"):
        sweep("three_stream", {"variant": ["fdp"]}, **SMALL)
    with pytest.raises(WarpError, match="at least one value"):
        sweep("three_stream", {OP: []}, **SMALL)
    with pytest.raises(WarpError, match="over_provisionin"):
        sweep("three_stream", {"geometry.over_provisionin": [0.1]}, **SMALL)
    with pytest.raises(WarpError, match="Give local or ray"):
        sweep("one_stream", engine="slurm", **SMALL)


def test_samplers_cover_their_space() -> None:
    space: dict[str, Any] = {
        OP: (0.05, 0.25),
        "handles.open_reclaim_units": (1, 4),
        "handles.opening": ["eager", "on_first_use"],
    }
    found = latin_hypercube(space, 20, seed=3)
    parts = sorted(int((at[OP] - 0.05) / 0.01) for at in found)  # type: ignore[operator]
    assert parts == list(range(20))
    assert {at["handles.open_reclaim_units"] for at in found} == {1, 2, 3, 4}
    assert {at["handles.opening"] for at in found} == {"eager", "on_first_use"}
    assert found == latin_hypercube(space, 20, seed=3) != latin_hypercube(space, 20, seed=4)
    assert random_samples(space, 3, seed=1) == random_samples(space, 3, seed=1)
    table = sweep("one_stream", sampler=latin_hypercube({OP: (0.08, 0.2)}, 3), **SMALL).points()
    assert table.num_rows == 3
    assert 0.08 <= min(table[OP].to_pylist())


class Deadly(VictimPolicy):
    """Kills its own process at the first collection."""

    def select(self, candidates: Any) -> int | None:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0


class Broken(VictimPolicy):
    def select(self, candidates: Any) -> int | None:
        raise RuntimeError("no idea")


def test_a_process_that_dies_costs_its_point_and_no_other(tmp_path: Path) -> None:
    grid: dict[str, list[object]] = {"run:drive_writes": [0.2, 2.0], OP: [0.1, 0.15]}
    small = {**SMALL, "drive_writes": None}
    found = sweep("one_stream", grid, victim_policy=Deadly(), store=tmp_path, workers=2, **small)
    assert found.points()["status"].to_pylist() == ["done", "done", "failed", "failed"], (
        "the short runs collect nothing"
    )
    assert "SIGKILL" in found.failed["error"][0].as_py()
    again = sweep("one_stream", grid, victim_policy=Deadly(), store=tmp_path, workers=2, **small)
    assert again.ran == 0
    retried = sweep("one_stream", grid, victim_policy=Deadly(), store=tmp_path, workers=2, retry_failed=True, **small)
    assert retried.ran == 2


def test_a_policy_that_raises_fails_its_points() -> None:
    found = sweep("one_stream", victim_policy=Broken(), **{**SMALL, "drive_writes": 2.0})
    assert "no idea" in found.failed["error"][0].as_py()


def test_a_policys_code_and_attributes_are_part_of_the_hash() -> None:
    class One(VictimPolicy):
        def __init__(self, share: float) -> None:
            self.share = share

        def select(self, candidates: Any) -> int | None:
            return 0

    class Other(One):
        def select(self, candidates: Any) -> int | None:
            return 1

    assert fingerprint(None, None) == ""
    assert fingerprint(One(0.1)) == fingerprint(One(0.1)) != fingerprint(One(0.2))
    assert fingerprint(One(0.1)) != fingerprint(Other(0.1))
    assert fingerprint(One(0.1), None) != fingerprint(None, One(0.1))


@dataclass
class SlowPoint:
    """Point with a given memory and time."""

    memory_bytes: int
    folder: str
    input: dict[str, object]

    def run(self, **_: object) -> object:
        begin = time.time()
        time.sleep(0.15)
        (Path(self.folder) / f"{self.memory_bytes}-{os.getpid()}-{begin}").write_text(f"{begin} {time.time()}")
        raise WarpError("it is no point")


def test_memory_is_budgeted(tmp_path: Path) -> None:
    """Points of 6 and 6 do not fit in a budget of 10. A point of 3 runs beside one of them, and
    a point of 11 does not run."""
    points = [SlowPoint(size, str(tmp_path), {}) for size in (6, 6, 3, 11)]
    finished: dict[str, bytes] = {}
    workers = LocalWorkers(3, memory_budget_bytes=10)
    try:
        workers.run([Job(str(index), point) for index, point in enumerate(points)], finished.__setitem__)  # type: ignore[arg-type]
    finally:
        workers.close()
    assert sorted(finished) == ["0", "1", "2", "3"]
    assert b"GiB are available" in finished["3"]
    spans = {file.name: tuple(map(float, file.read_text().split())) for file in tmp_path.iterdir()}
    large = sorted(span for name, span in spans.items() if name.startswith("6-"))
    assert len(spans) == 3
    assert large[0][1] <= large[1][0]


KILLED = """
import sys
from warp_ssd.sweep import sweep
sweep("one_stream", {"geometry.over_provisioning": [0.08 + 0.005 * step for step in range(16)]}, store=sys.argv[1],
      devices=["warp_default"], scale="1/256", drive_writes=2.0, workers=1, progress=False)
"""


def test_a_sweep_killed_half_way_resumes_without_redoing_a_point(tmp_path: Path) -> None:
    store = tmp_path / "store"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(store)])
    _wait_for(lambda: len(list(store.glob("points/*.parquet"))) >= 8, process)
    process.kill()
    process.wait()
    before = {file.name: file.stat().st_mtime_ns for file in store.glob("points/*.parquet")}
    assert 8 <= len(before) < 16
    options: dict[str, Any] = {**SMALL, "scale": "1/256", "drive_writes": 2.0}
    grid: dict[str, list[object]] = {OP: [0.08 + 0.005 * step for step in range(16)]}
    resumed = sweep("one_stream", grid, store=store, workers=2, **options)
    assert resumed.ran == 16 - len(before)
    assert all((store / "points" / name).stat().st_mtime_ns == changed for name, changed in before.items())
    assert resumed.points() == sweep("one_stream", grid, workers=2, **options).points()


def _wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "it ended before"
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.01)


def test_ray_with_a_killed_node_gives_the_local_table(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    options: dict[str, Any] = {**SMALL, "scale": "1/256", "drive_writes": 2.0}
    grid: dict[str, list[object]] = {OP: [0.08 + 0.005 * step for step in range(16)]}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        victim = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
        found: list[SweepResult] = []
        run = threading.Thread(
            target=lambda: found.append(sweep("one_stream", grid, engine="ray", store=tmp_path, **options))
        )
        run.start()
        while len(list(tmp_path.glob("points/*.parquet"))) < 3 and run.is_alive():
            time.sleep(0.01)
        assert run.is_alive(), "the node has to be killed while the sweep runs"
        cluster.remove_node(victim, allow_graceful=False)
        run.join(120)
        assert found, "the sweep did not end"
    finally:
        ray.shutdown()
        cluster.shutdown()
    local = sweep("one_stream", grid, workers=2, **options)
    assert found[0].ran == 16
    assert _bytes(found[0].points()) == _bytes(local.points())
    assert _bytes(found[0].samples()) == _bytes(local.samples())


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    content: bytes = sink.getvalue().to_pybytes()
    return content


def test_a_scale_is_found_once_and_its_limit_is_part_of_the_point(tmp_path: Path) -> None:
    small = {"geometry.physical_bytes": "8GiB", "geometry.reclaim_unit_bytes": "64MiB"}
    options: dict[str, Any] = {**SMALL, "overrides": small, "drive_writes": 2.5, "store": tmp_path, "workers": 1}
    del options["scale"]
    grid: dict[str, list[object]] = {"run:scale": ["auto:1/1", "auto:1/16", "1/4"]}
    swept = sweep("one_stream", grid, **options)
    assert (swept.ran, swept.failed.num_rows) == (3, 0), swept.summary()
    found, limited, fixed = swept.points().to_pylist()
    assert len({row["hash"] for row in (found, limited, fixed)}) == 3
    assert found["smaller_scale_denominator"] == 4 * found["scale_denominator"]
    assert found["scale_difference"] <= 0.01 and "not_converged" not in found["warnings"]
    assert (limited["scale_denominator"], limited["scale_difference"]) == (16, None)
    assert limited["warnings"] == "not_steady, not_converged"
    assert fixed["smaller_scale_denominator"] is None and fixed["warnings"] == "not_steady"
    if found["scale_denominator"] == 4:
        assert found["media_bytes_written"] == fixed["media_bytes_written"]
    again = sweep("one_stream", grid, **options)
    assert again.ran == 0 and again.points() == swept.points()
    largest, smallest = (
        Experiment("one_stream").points(devices=["warp_default"], overrides=small, scale=scale)[0].memory_bytes
        for scale in ("auto:1/1", "auto:1/16")
    )
    assert largest > 10 * smallest, "a search needs the memory of its largest scaled model"
