"""The store has complete files only, one version of each, and answers SQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from warp_ssd import Experiment, WarpError
from warp_ssd.store import SERIES, Store, concatenate
from warp_ssd.workers import Job, run_job


def point_of(scale: str = "1/1024"):
    points = Experiment("one_stream").points(devices=["warp_default"], scale=scale, drive_writes=1.5)
    return points[0]


@pytest.fixture(scope="module")
def content() -> tuple[str, bytes]:
    point = point_of()
    return point.hash, run_job(Job(point.hash, point, SERIES))


def test_a_point_comes_back_as_it_was_measured(tmp_path: Path, content: tuple[str, bytes]) -> None:
    key, stored = content
    store = Store(tmp_path)
    store.put(key, stored)
    result = point_of().run(gc_log=True)
    cell = store.cell(key).to_pylist()[0]
    measured = result.cells().to_pyarrow().to_pylist()[0]
    assert cell["write_amplification"] == measured["write_amplification"]
    assert cell["host_bytes_written"] == measured["host_bytes_written"]
    for name in ("samples", "gc_log"):
        table, original = store.series(key, name), getattr(result, name)().to_pyarrow()
        assert table is not None
        assert table == original.select(table.column_names).combine_chunks()
        assert table.num_rows > 0


def test_names_of_the_point_are_not_stored(tmp_path: Path, content: tuple[str, bytes]) -> None:
    key, stored = content
    store = Store(tmp_path)
    store.put(key, stored)
    samples = store.series(key, "samples")
    assert samples is not None
    assert not {"device", "variant", "seed"} & {*store.cell(key).column_names, *samples.column_names}


def test_what_is_not_there_or_lacks_a_series_has_no_status(tmp_path: Path, content: tuple[str, bytes]) -> None:
    key, stored = content
    store = Store(tmp_path)
    assert store.status(key) is None
    store.put(key, stored)
    assert store.status(key, SERIES) == "done"
    point = point_of()
    store.put(key, run_job(Job(point.hash, point)))
    assert store.status(key) == "done"
    assert store.status(key, ["gc_log"]) is None


def test_half_a_file_is_never_seen(tmp_path: Path, content: tuple[str, bytes]) -> None:
    key, stored = content
    store = Store(tmp_path)
    (tmp_path / "points" / f"{key}.parquet.1.tmp").write_bytes(stored[:100])
    assert store.status(key) is None
    store.put(key, stored)
    assert store.sql("select count(*) n from points")["n"].to_pylist() == [1]


def test_another_version_is_refused(tmp_path: Path) -> None:
    Store(tmp_path)
    (tmp_path / "store.json").write_text('{"format": "warp-store", "version": 99}')
    with pytest.raises(WarpError, match=r"store\.json: this is not a store of version 1"):
        Store(tmp_path)


def test_sql_sees_counters_input_and_series(tmp_path: Path, content: tuple[str, bytes]) -> None:
    key, stored = content
    store = Store(tmp_path)
    store.put(key, stored)
    found = store.sql("select hash, write_amplification, input from points").to_pylist()[0]
    assert found["hash"] == key
    assert found["write_amplification"] >= 1
    assert '"seed"' in found["input"]
    samples = store.sql("select unnest(samples, recursive := true) from points")
    assert samples.num_rows == store.series(key, "samples").num_rows  # type: ignore[union-attr]
    with pytest.raises(WarpError, match="SQL"):
        store.sql("select nothing from points")


def test_no_tables_are_an_empty_one() -> None:
    assert concatenate([]).num_rows == 0
