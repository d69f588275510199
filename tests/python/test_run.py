"""Experiments, points and results: bytes equal to those of the command, tables, inputs and
Ctrl-C."""

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import warp_ssd
from warp_ssd import Experiment, Point, WarpError

ROOT = Path(__file__).parents[2]
QUICK = "three_stream"


@pytest.fixture(scope="module")
def result() -> warp_ssd.Result:
    return warp_ssd.run(QUICK, quick=True, gc_log=True)


def point(**choice: object) -> Point:
    points = Experiment(QUICK).points(quick=True, variants=["FDP", "80/20"], devices=["ssd_a"], **choice)  # type: ignore[arg-type]
    (one,) = points
    return one


def warp_binary() -> str | None:
    """Returns the command named by WARP, in the target folder or on the path, if it was built."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [path for path in (target / "release/warp", target / "debug/warp") if path.exists()]
    return os.environ.get("WARP") or (str(built[0]) if built else shutil.which("warp"))


def test_names() -> None:
    assert QUICK in warp_ssd.experiments()
    assert "ssd_a" in warp_ssd.devices()
    assert {"three_stream", "twitter12"} <= set(warp_ssd.workloads())
    experiment = Experiment(QUICK)
    assert experiment.slug == QUICK and experiment.devices == ["ssd_a", "ssd_b"]
    assert experiment.variants == ["FDP", "Mixed", "NoFDP"]
    assert experiment.axes == {"overwrite": ["zipf 2.2", "zipf 1.2", "80/20"]}


def test_golden_results_are_golden_here(result: warp_ssd.Result) -> None:
    golden = json.loads((ROOT / "experiments" / QUICK / "golden.json").read_text())
    ours = {
        " | ".join([cell["device"], cell["variant"], *cell["grid"].values(), f"seed {cell['seed']}"]): cell
        for cell in json.loads(result.to_json())["cells"]
    }
    assert len(golden) == len(ours) > 0
    for row in golden:
        # The command names a cell by device, variant and then the grid.
        cell = ours[row["cell"]]
        for key in ("host_bytes_written", "media_bytes_written", "media_bytes_erased"):
            assert cell[key] == row[key]
        assert [owner["gc_pages_copied"] for owner in cell["owners"]] == row["gc_pages_copied"]


def test_the_files_of_the_command_are_the_tables_of_the_package(tmp_path: Path) -> None:
    """The command writes Parquet files without Arrow. Other readers see the same columns, types
    and values."""
    warp = warp_binary()
    if warp is None:
        pytest.skip("the command is not built")
    files = {"gc_log": tmp_path / "gc.parquet", "samples": tmp_path / "series.parquet"}
    arguments = ["--scale", "1/2048", "--drive-writes", "2", "--out", str(tmp_path)]
    options = ["--events", str(files["gc_log"]), "--series", str(files["samples"])]
    subprocess.run([warp, "run", QUICK, *arguments, *options], check=True, capture_output=True, cwd=ROOT)
    ours = warp_ssd.run(QUICK, scale="1/2048", drive_writes=2, gc_log=True)
    for name, file in files.items():
        table = pa.table(getattr(ours, name)())
        assert table.num_rows > 0
        assert pq.read_table(file).equals(table), name
        assert duckdb.sql(f"SELECT count(*) FROM '{file}'").fetchall() == [(table.num_rows,)]


def test_the_same_bytes_as_the_command(tmp_path: Path) -> None:
    warp = warp_binary()
    if warp is None:
        pytest.skip("the command is not built; test_golden_results_are_golden_here stands in for it")
    arguments = ["--scale", "1/2048", "--drive-writes", "1", "--seed", "7"]
    command = [warp, "run", QUICK, "--json", "--out", str(tmp_path), *arguments]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    ours = warp_ssd.run(QUICK, scale="1/2048", drive_writes=1, seeds=[7])
    assert ours.to_json() + "\n" == printed
    command[command.index("--json")] = "--format=table"
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    table = printed.split("wrote ")[0].rstrip()
    # Each interface names remedies by its own options.
    assert ours.summary().startswith(table.replace("(--steady-state)", '(steady_state=True)'))


def test_summary_is_a_table_and_claims(result: warp_ssd.Result) -> None:
    summary = result.summary()
    assert summary.startswith(Experiment(QUICK).title)
    assert "zipf 2.2" in summary and "NoFDP" in summary and ("holds" in summary or "FAILS" in summary)


def test_tables(result: warp_ssd.Result) -> None:
    cells = result.cells()
    frame = cells.to_pandas()
    assert cells.num_rows == len(cells) == len(frame) == 18
    assert cells.column_names[:4] == ["device", "variant", "overwrite", "seed"]
    ratio = frame.media_bytes_written / frame.host_bytes_written
    assert (frame.write_amplification - ratio).abs().max() == 0
    assert (frame.media_bytes_written - frame.host_bytes_written == frame.gc_bytes_copied).all()
    log = result.gc_log().to_pandas()
    assert (log.groupby(["device", "variant", "overwrite"]).pages_copied.sum().sort_index().to_numpy()
            == frame.set_index(["device", "variant", "overwrite"]).gc_pages_copied.sort_index().to_numpy()).all()
    owners = result.owners().to_pandas()
    assert owners.gc_pages_copied.sum() == frame.gc_pages_copied.sum()
    samples = result.samples().to_polars()
    assert {"host_bytes", "waf", "owner", "owner_valid_pages"} <= set(samples.columns)
    assert result.claims().column_names == result.regression().column_names == ["what", "holds", "found", "source"]
    published = result.published().to_pandas()
    assert len(published) == 18 and published.ours.notna().all()
    assert published.fitted.all() and published.not_comparable.isna().all(), "Table 2 was fitted"
    assert ((published.relative_error.abs() <= 0.1) == published.hit).all()
    assert result.jobs().num_rows == result.latencies().num_rows == 0


def test_tables_are_not_copied(result: warp_ssd.Result) -> None:
    table = result.samples()
    first, second = (pa.table(table)["host_bytes"].chunk(0).buffers()[1].address for _ in range(2))
    assert first == second


def test_timed_runs_have_latencies() -> None:
    experiment = Experiment(
        {
            "title": "A timed run",
            "source": "a test",
            "devices": ["pm9d3a"],
            "workload": "random_read",
            "run": {"timed": True, "scale": "1/64", "seconds": 0.01},
            "quick": {"timed": True, "scale": "1/64", "seconds": 0.01},
        }
    )
    (one,) = experiment.points()
    outcome = one.run()
    rates = outcome.jobs().to_pandas()
    assert (rates.requests > 0).all() and (rates.p50_ns <= rates.p99_9_ns).all()
    latencies = outcome.latencies().to_pandas()
    for _, steps in latencies.groupby(["job", "direction"]):
        assert steps.latency_ns.is_monotonic_increasing and steps.share.iloc[-1] == 1


def test_a_point_is_complete_and_pickles() -> None:
    one = point()
    assert one.key == {"device": "ssd_a", "variant": "FDP", "overwrite": "80/20"} and one.seed == 1
    assert one.memory_bytes > 0
    again = pickle.loads(pickle.dumps(one))
    assert (again.key, again.seed, again.hash, again.input) == (one.key, one.seed, one.hash, one.input)
    assert again.run().to_json() == one.run().to_json()
    assert one.input["device"]["geometry"]["mapping_unit_bytes"] == 4096


def test_points_with_the_same_input_have_the_same_hash() -> None:
    one = point()
    assert one.hash == point().hash and len(one.hash) == 64
    changes: list[dict[str, object]] = [
        {"seeds": [2]},
        {"scale": "1/1024"},
        {"drive_writes": 1.0},
        {"overrides": {"geometry.over_provisioning": 0.2}},
        {"settings": {"overwrite.random_distribution": "zipf:1.3"}},
        {"workload": "one_stream", "settings": {}},
    ]
    hashes = [one.hash] + [point(**change).hash for change in changes[:-1]]
    assert len(set(hashes)) == len(hashes)


def test_files_enter_by_their_contents(tmp_path: Path) -> None:
    def hash_of(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text)
        experiment = Experiment.of_workload(str(path), "warp_default")
        (one,) = experiment.points(scale="1/64", drive_writes=0.01)
        return one.hash

    header = "fio version 2 iolog\n/dev/x add\n/dev/x open\n"
    one = hash_of("one.log", header + "/dev/x write 0 4096\n")
    assert hash_of("two.log", header + "/dev/x write 0 4096\n") == one
    assert hash_of("one.log", header + "/dev/x write 4096 4096\n") != one


def test_experiments_are_dictionaries_too() -> None:
    experiment = Experiment(
        {
            "title": "Mine",
            "source": "nobody",
            "devices": ["warp_default"],
            "workload": "one_stream",
            "run": {"drive_writes": 0.5, "scale": "1/1024"},
            "quick": {"drive_writes": 0.1, "scale": "1/1024"},
            "grid": [{"axis": "op", "sweep": "geometry.over_provisioning", "over": [0.1, 0.2]}],
        }
    )
    outcome = warp_ssd.run(experiment)
    assert outcome.cells().to_pandas().op.tolist() == ["0.1", "0.2"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Experiment("three_steam"), "did you mean three_stream"),
        (lambda: Experiment({"title": "x"}), "devices"),
        (lambda: point(overrides={"gc.lazy": 1}), "lazy"),
        (lambda: Experiment(QUICK).points(variants=["NoFPD"]), "did you mean NoFDP"),
        (lambda: Experiment(QUICK).points(scale="half"), "is not of the form 1/64"),
        (lambda: Experiment(QUICK).points(seeds=[]), "Give at least one seed"),
        (
            lambda: Experiment(QUICK).points(drive_writes=float("nan")),
            "drive_writes = nan is not finite. Give a finite number",
        ),
        (lambda: Experiment(QUICK).points(settings={"overwrite.bs": "much"}), "bs"),
        (lambda: Experiment(QUICK).points(devices=["ssd_c"]), "there is no device ssd_c"),
    ],
)
def test_mistakes_are_the_engines_sentence(call: object, sentence: str) -> None:
    with pytest.raises(WarpError, match=sentence):
        call()  # type: ignore[operator]


def test_ctrl_c_ends_a_run_long_before_its_end() -> None:
    pressed: list[float] = []

    def press() -> None:
        time.sleep(0.5)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    # A script starts Python in the background with Ctrl-C ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=press).start()
        with pytest.raises(KeyboardInterrupt):
            warp_ssd.run(QUICK, drive_writes=1000, scale="1/512")
    finally:
        signal.signal(signal.SIGINT, before)
    # The run alone takes minutes. The bound is generous, because other jobs may use the processors.
    assert time.monotonic() - pressed[0] < 10


def test_progress_is_told() -> None:
    told: list[tuple[float, int, int]] = []
    warp_ssd.run(QUICK, quick=True, drive_writes=4, progress=lambda *progress: told.append(progress))
    assert told and all(0 <= share <= 1 and 0 <= done <= points == 18 for share, done, points in told)
    assert [share for share, _, _ in told] == sorted(share for share, _, _ in told)


def test_importing_is_quick() -> None:
    program = "import sys, warp_ssd; print([name for name in ('pandas', 'polars', 'matplotlib', 'optuna', 'ray') if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "[]"


def test_a_run_goes_on_with_a_saved_device(tmp_path: Path) -> None:
    device = warp_ssd.Device("warp_default", scale="1/1024")
    device.write(0, device.logical_pages)
    path = tmp_path / "filled.warp"
    device.snapshot(path)
    workload = Experiment.of_workload("one_stream", "warp_default")
    (fresh,) = workload.points(scale="1/1024", drive_writes=0.2, timed=False)
    (filled,) = workload.points(snapshot=path, drive_writes=0.2)
    (again,) = workload.points(snapshot=path, drive_writes=0.2)
    assert fresh.hash != filled.hash == again.hash
    assert filled.run().to_json() == again.run().to_json() == pickle.loads(pickle.dumps(filled)).run().to_json()
    assert json.loads(filled.run().to_json())["media_bytes_written"] > json.loads(fresh.run().to_json())["media_bytes_written"]
    with pytest.raises(WarpError, match="scale: this option cannot be combined with a snapshot"):
        workload.points(snapshot=path, scale="1/2")


def test_what_the_command_can_say_can_be_said_here() -> None:
    feedback = {"policy": "observe", "every_capacities": 0.5}
    observed = point(feedback=feedback).run()
    assert len(pa.table(observed.readings())) > 0
    assert point(feedback={"policy": "observe"}).hash != point().hash != point(drive_writes=1.5).hash
    with pytest.raises(WarpError, match="seconds"):
        point(seconds=0.0)
    with pytest.raises(WarpError, match="The nearest possible scale is 1/5"):
        point(capacity_bytes=1 << 30, scale="1/2048")
    with pytest.raises(WarpError, match="feedback: policy"):
        point(feedback={"policy": "none"})


def test_the_stub_names_every_run_option_of_the_engine() -> None:
    stub = (Path(warp_ssd.__file__).parent / "_engine.pyi").read_text()
    body = stub.split("class RunOptions(TypedDict, total=False):")[1].split("\nclass ")[0]
    with pytest.raises(WarpError, match="unknown field") as refused:
        Experiment(QUICK).points(nothing=1)
    assert re.findall(r"^    (\w+): ", body, re.M) == re.findall("`(\\w+)`", str(refused.value))[1:]
