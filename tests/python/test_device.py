"""`Device` in Python: addressing, counters, time, copies and wrong arguments."""

import pickle
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import warp_ssd
from warp_ssd import Device, WarpError

SCALE = "1/1024"


def drive(profile: str = "warp_default", **options: object) -> Device:
    return Device(profile, scale=SCALE, **options)  # type: ignore[arg-type]


def overwrite(device: Device, drive_writes: float, seed: int = 1) -> None:
    random = np.random.default_rng(seed)
    count = int(device.logical_pages * drive_writes)
    device.write(random.integers(device.logical_pages, size=count))


def test_counters_of_uniform_overwrites() -> None:
    device = drive(record_gc=True)
    device.write(0, device.logical_pages)
    overwrite(device, 2)
    stats = device.stats
    assert stats.host_bytes_written == 3 * device.capacity_bytes // device.page_bytes * device.page_bytes
    assert stats.media_bytes_written == stats.host_bytes_written + stats.gc_bytes_copied
    assert stats.write_amplification == stats.media_bytes_written / stats.host_bytes_written > 1.5
    assert stats.to_dict()["host_bytes_written"] == stats.host_bytes_written
    log = device.gc_log().to_pandas()
    collections = stats.background_collections + stats.foreground_collections + stats.forced_collections
    assert len(log) == collections == stats.units_reclaimed
    assert log.pages_copied.sum() * device.page_bytes == stats.gc_bytes_copied
    assert set(log.policy) == {"greedy"}
    with pytest.raises(AttributeError):
        stats.host_bytes_written = 0  # type: ignore[misc]


def test_arguments_are_broadcast_and_of_any_integer_type() -> None:
    one, other = drive(), drive()
    first = np.arange(0, 800, 8)
    one.write(first, 8, first % 3)
    for lpn in first.astype(np.uint16):
        other.write(lpn, np.int8(8), int(lpn) % 3)
    assert one.stats.to_dict() == other.stats.to_dict()
    handles = one.handles().to_pandas()
    assert handles.host_pages_written.tolist()[:4] == [272, 264, 264, 0]
    assert handles.owner.tolist() == [f"RUH {index}" for index in range(8)] + ["shared"]
    assert np.isnan(handles.ruh.iloc[-1])


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda device: device.write(device.logical_pages), WarpError, "beyond|capacity|pages"),
        (lambda device: device.write(-1), WarpError, "first = -1"),
        (lambda device: device.write([0, 1], [1, 1, 1]), ValueError, "broadcast"),
        (lambda device: device.write(0.5), TypeError, "first must be integers, not float64"),
        (lambda device: device.write(0, 1, 8), WarpError, "placement index 8 does not exist. Give 0 to 7"),
        (lambda device: device.write(0, queue_depth=0), ValueError, "queue_depth = 0"),
        (lambda device: device.update_handle(-1), WarpError, "placement index -1"),
        (lambda device: Device("warp_defualt"), WarpError, "did you mean warp_default"),
        (lambda device: Device("warp_default", overrides={"gc.unit_selction": "fifo"}), WarpError, "unit_selction"),
        (lambda device: Device("warp_default", scale="half"), WarpError, "is not of the form 1/64"),
        (lambda device: Device({"geometry": {}}), WarpError, "over_provisioning"),
        (lambda device: Device.load("/no/such/file"), WarpError, "/no/such/file"),
    ],
)
def test_mistakes_are_the_engines_sentence(call: object, error: type[Exception], sentence: str) -> None:
    device = drive()
    with pytest.raises(error, match=sentence):
        call(device)  # type: ignore[operator]
    assert device.stats.host_bytes_written == 0


def test_a_mistake_among_many_writes_nothing() -> None:
    device = drive()
    with pytest.raises(WarpError):
        device.write([0, 1, device.logical_pages])
    assert device.stats.host_bytes_written == 0


def test_profiles_are_names_paths_and_dictionaries(tmp_path: Path) -> None:
    values = warp_ssd.profile("warp_default")
    assert values["gc"]["victim_policy"] == "greedy"
    path = tmp_path / "mine.toml"
    path.write_text(warp_ssd.profile_text("warp_default"))
    configs = [drive(profile).config for profile in ("warp_default", values, path, str(path))]  # type: ignore[arg-type]
    assert all(config == configs[0] for config in configs)
    changed = drive(values, overrides={"geometry.over_provisioning": np.float64(0.28)})  # type: ignore[arg-type]
    assert changed.config["geometry"]["over_provisioning"] == pytest.approx(0.28, abs=1e-3)


def test_deallocated_pages_cost_nothing() -> None:
    device = drive()
    device.write(0, device.logical_pages)
    device.deallocate(np.arange(0, device.logical_pages, 2))
    assert device.stats.pages_deallocated == (device.logical_pages + 1) // 2
    assert device.units().to_pandas().valid_pages.sum() == device.logical_pages // 2


def test_handles_are_updated() -> None:
    device = drive()
    device.write(0, 10, 3)
    unit_pages = device.reclaim_unit_bytes // device.page_bytes
    assert device.available_media_writes(3) == unit_pages - 10
    assert device.update_handle(3) == unit_pages - 10
    assert device.available_media_writes(3) == unit_pages
    assert device.stats.units_closed_by_host == 1


def test_forks_snapshots_and_pickles_go_on_alike(tmp_path: Path) -> None:
    device = drive()
    device.write(0, device.logical_pages)
    overwrite(device, 0.5)
    path = tmp_path / "drive.snapshot"
    device.snapshot(path)
    copies = [device.fork(), Device.load(path), pickle.loads(pickle.dumps(device)), device]
    for copy in copies:
        overwrite(copy, 0.5, seed=2)
    assert all(copy.stats.to_dict() == device.stats.to_dict() for copy in copies)
    device.write(0)
    assert copies[0].stats.host_bytes_written < device.stats.host_bytes_written


def test_time() -> None:
    device = drive("pm9d3a")
    written = device.write(np.arange(256) * 8, 8, queue_depth=16)
    read = device.read(np.arange(256) * 8, 8)
    assert written is not None and read is not None
    assert written.dtype == np.uint64 and written.shape == (256,) and (written > 0).all()
    assert device.now_ns >= int(read.sum())
    before = device.now_ns
    device.step(1_000_000)
    assert device.now_ns == before + 1_000_000
    untimed = drive()
    assert untimed.write(0) is None and untimed.read(0) is None and untimed.now_ns == 0


def test_other_threads_run_meanwhile() -> None:
    device = drive()
    done = threading.Event()
    worker = threading.Thread(target=lambda: (overwrite(device, 20), done.set()))
    worker.start()
    ticks = 0
    while not done.is_set():
        time.sleep(0.001)
        ticks += 1
    worker.join()
    assert ticks > 10
