"""A hidden drive is characterized: the fit predicts what it has not seen, and says which policy the drive has."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from warp_ssd import Experiment, Measurement, WarpError, profile_text
from warp_ssd.calibrate import read_csv
from warp_ssd.calibrate.result import set_leaf, with_known
from warp_ssd.characterize import Fitted, check_folder, fit_folder, read_folder
from warp_ssd.characterize.__main__ import main

CAPACITY, UNIT = 256 << 20, 2 << 20
HIDDEN: dict[str, object] = {
    "geometry.capacity_bytes": CAPACITY,
    "geometry.over_provisioning": 0.22,
    "geometry.reclaim_unit_bytes": UNIT,
    "geometry.media_overhead_share": 0.04,
    "gc.victim_policy": "benefit_cost",
    "gc.block_remapping": False,
    "handles.count": 2,
    "seed": 7,
}
RANDOM = "rw=randwrite\nbs=4k\nnorandommap\nrandseed=5\n"
JOBS = {
    "sequential": "[a]\nrw=write\nbs=128k\n",
    "uniform": f"[a]\n{RANDOM}",
    "uniform_half": f"[a]\n{RANDOM}size=50%\n",
    "two_zones": f"[a]\n{RANDOM}random_distribution=zoned:90/10:10/90\n",
    "streams_apart": f"[hot]\n{RANDOM}size=20%\nrate=80m\nfdp=1\nplids=0\n[cold]\n{RANDOM}offset=20%\nrate=20m\nfdp=1\nplids=1\n",
    "holdout": f"[a]\n{RANDOM}random_distribution=zoned:70/10:20/30:10/60\n",
}
COLUMNS = (
    "probe,workload,waf,sigma,relative_to,drive_writes,precondition_drive_writes,tail_drive_writes,"
    "precondition_bytes_share,steady,use,source"
)
TIMES = """probe,what,unit,value,block_bytes,queue_depth
buffer,buffer_bytes,bytes,16777216,,
idle,read_latency_mean,us,80,4096,1
idle,write_latency_mean,us,11,4096,1
rates,read_rate,MB/s,3000,131072,16
rates,write_rate,MB/s,1000,131072,16
rates,read_iops,1/s,200000,4096,32
idle,read_latency_p99,us,95,4096,1
"""
DRIVE: dict[str, Any] = {
    **{"format": "warp-characterization", "version": 1, "date": "2026-12-01", "target": "tcp:127.0.0.1:4420"},
    **{"model": "Hidden", "serial": "S-0001", "firmware": "1.0", "capacity_bytes": CAPACITY, "block_bytes": 4096},
    **{"write_granularity_bytes": 4096, "counter": "fdp", "missing": []},
    "fdp": {
        **{"handles": 2, "isolation": ["initially_isolated"] * 2, "reclaim_unit_bytes": UNIT, "reclaim_groups": 1},
        **{"endurance_group": 1, "reclaim_unit_writable_bytes": None},
    },
}


def make_folder(folder: Path) -> None:
    """Measures a model with hidden settings, as `warp characterize` measures a drive."""
    (folder / "jobs").mkdir(parents=True)
    (folder / "samples").mkdir()
    hidden = folder.parent / "hidden.toml"
    document = with_known(profile_text("warp_default"), {})
    del document["geometry"]["physical_bytes"]  # type: ignore[union-attr]
    for path, value in HIDDEN.items():
        set_leaf(document, path, value, {"source": "hidden"})
    hidden.write_text(document.as_string())
    lines = [COLUMNS]
    for probe, text in JOBS.items():
        job = folder / "jobs" / f"{probe}.fio"
        job.write_text(text)
        one = Measurement(1.0, workload=str(job), drive_writes=2.0, precondition_drive_writes=1.0, tail_drive_writes=0.5)
        result = one.load(str(hidden)).points(scale="1/1", seeds=[9])[0].run()
        waf = result.tail_write_amplification
        use = "holdout" if probe == "holdout" else "fit"
        lines.append(f"{probe},jobs/{probe}.fio,{waf:.5f},0.005,,2,1,0.5,1,true,{use},\"measured 2026-12-01, probe {probe}\"")
        samples = result.samples().to_pyarrow().filter(pa.compute.field("owner") == "shared")
        none = pa.nulls(samples.num_rows, pa.float64())
        columns = {name: samples[name].cast(pa.float64()) for name in ("host_bytes", "media_bytes", "waf")}
        table = pa.table({**columns, "erased_bytes": none, "seconds": none})
        before = pa.Table.from_pylist([{"host_bytes": 0.0, "media_bytes": 0.0}], schema=table.schema)
        pq.write_table(pa.concat_tables([before, table]), folder / "samples" / f"{probe}.parquet")
    (folder / "measurements.csv").write_text("\n".join(lines) + "\n")
    (folder / "times.csv").write_text(TIMES)
    (folder / "drive.json").write_text(json.dumps(DRIVE))
    (folder / "journal.jsonl").write_text(json.dumps({"serial": "S-0001"}) + "\n")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drives") / "measured"
    make_folder(folder)
    return folder


@pytest.fixture(scope="module")
def fitted(measured: Path) -> tuple[Path, Fitted]:
    folder = measured.with_name("fitted")
    shutil.copytree(measured, folder)
    return folder, fit_folder(folder, quick=True, trials=0, store=measured.with_name("store"), anonymous=True, progress=False)


@pytest.fixture
def copy(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "copy"))


@pytest.fixture
def contributed(fitted: tuple[Path, Fitted], tmp_path: Path) -> Path:
    return Path(shutil.copytree(fitted[0], tmp_path / "contributed"))


def test_a_workload_that_the_fit_has_not_seen_is_predicted(fitted: tuple[Path, Fitted]) -> None:
    (holdout,) = (one for one in fitted[1].predictions if one.measurement.use == "holdout")
    assert abs(holdout.error) < 0.05
    assert holdout.is_inside
    assert all(abs(one.error) < 0.05 for one in fitted[1].predictions)


def test_the_hidden_settings_are_found(fitted: tuple[Path, Fitted]) -> None:
    found = fitted[1]
    assert found.settings["geometry.over_provisioning"] == pytest.approx(0.22, abs=0.015)
    assert found.settings["geometry.media_overhead_share"] == pytest.approx(0.04, abs=0.002)
    assert found.family == "age-aware"
    assert found.value("gc.copies") == "apart"


def test_numbers_of_time_fix_a_setting_each(fitted: tuple[Path, Fitted]) -> None:
    times = fitted[1].times
    assert times is not None
    rows = {row.measured.what: row for row in times.numbers}
    for what in ("read_latency_mean", "write_latency_mean", "read_rate", "write_rate", "read_iops"):
        assert rows[what].model == pytest.approx(rows[what].measured.value, rel=0.02), what
        assert rows[what].fixed is not None
    assert rows["read_latency_p99"].fixed is None
    assert times.settings["timing.write_buffer_bytes"][0] == 16 << 20


def test_all_values_of_the_profile_have_a_source(fitted: tuple[Path, Fitted]) -> None:
    import tomllib

    profile = tomllib.loads((fitted[0] / "profile.toml").read_text())

    def leaves(table: dict[str, Any]) -> list[dict[str, Any]]:
        return [one for value in table.values() for one in ([value] if "value" in value else leaves(value))]

    tables = {name: profile[name] for name in ("geometry", "handles", "gc", "timing")}
    assert all(leaf["source"] for leaf in leaves(tables))
    assert profile["geometry"]["capacity_bytes"] == {"value": "256MiB", "source": "from the drive's identity"}
    assert profile["geometry"]["channels"]["source"] == "assumed, as in devices/warp_default"
    assert "measured 2026-12-01, probe sequential" in profile["geometry"]["media_overhead_share"]["source"]
    assert Experiment.of_workload("one_stream", str(fitted[0] / "profile.toml")).points(scale="1/1")


def test_the_summary_fits_a_terminal_and_the_report_needs_no_network(fitted: tuple[Path, Fitted]) -> None:
    summary = fitted[1].summary()
    assert max(map(len, summary.splitlines())) <= 80
    assert "holdout" in summary
    page = (fitted[0] / "report.html").read_text()
    assert "<script" not in page
    assert "http://" not in page and "https://" not in page
    assert page.count("<img") == 1 + len(JOBS), "all probes, and the samples of each"
    assert "S-0001" not in page


def test_a_repeated_fit_evaluates_nothing_and_gives_the_same(fitted: tuple[Path, Fitted], copy: Path) -> None:
    store = fitted[0].with_name("store")
    points = len(list(store.glob("points/*.parquet")))
    again = fit_folder(copy, quick=True, trials=0, store=store, progress=False)
    # The workloads have other paths, but the same contents.
    assert len(list(store.glob("points/*.parquet"))) == points
    assert again.settings == fitted[1].settings


def test_a_contributed_folder_is_accepted(contributed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_folder(contributed)
    assert main(["check", str(contributed)]) == 0
    assert "accepted" in capsys.readouterr().out
    assert "S-0001" not in "".join(path.read_text(errors="replace") for path in contributed.rglob("*") if path.is_file())


def _edit(name: str, old: str, new: str) -> Callable[[Path], object]:
    def edit(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return edit


def _sums(edit: Callable[[Path], object]) -> Callable[[Path], object]:
    from warp_ssd.characterize.folder import write_checksums

    return lambda folder: (edit(folder), write_checksums(folder))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda folder: (folder / "report.html").unlink(), "report.html is missing"),
        (lambda folder: (folder / "samples/uniform.parquet").unlink(), "not in both"),
        (lambda folder: (folder / "more.txt").write_text("more"), "not in both"),
        (_edit("report.html", "Hidden", "Better"), "checksum differs"),
        (lambda folder: (folder / "link").symlink_to("/etc/passwd"), "is a link"),
        (_sums(_edit("fit.json", '"uniform"', '"/home/me/uniform"')), "absolute path /home/me/uniform"),
        (_sums(_edit("fit.json", '"geometry.over_provisioning": 0', '"geometry.over_provisioning": 1')), "differs from profile"),
        (_sums(_edit("profile.toml", "[gc]", "[garbage]")), "garbage"),
        (_sums(_edit("profile.toml", "[geometry]", "[geo")), "not a profile"),
        (_sums(_edit("drive.json", "sha256:", "S")), "has the serial number"),
        (_sums(lambda folder: (folder / "samples/uniform.parquet").write_bytes(b"PAR1")), "not a Parquet file"),
    ],
)
def test_the_validator_names_the_first_problem(contributed: Path, damage: Callable[[Path], object], problem: str) -> None:
    damage(contributed)
    with pytest.raises(WarpError, match=problem):
        check_folder(contributed)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (_edit("measurements.csv", "0.005,,2,1,0.5", "0.005"), "line 2: the line does not have the columns"),
        (_edit("measurements.csv", ",0.005,", ",nan,"), "sigma = nan"),
        (_edit("measurements.csv", ",0.005,,2,", ",0.005,,-2,"), "drive_writes = -2.0"),
        (_edit("measurements.csv", ",0.005,,2,", ",0.005,,1e300,"), "too large for a drive"),
        (_edit("measurements.csv", ",0.005,,", ",0.005,nothing,"), "relative_to = nothing"),
        (_edit("measurements.csv", "jobs/sequential.fio", "../jobs/sequential.fio"), "not a file jobs/NAME.fio"),
        (_edit("measurements.csv", "sequential,jobs", "../s,jobs"), "not a name"),
        (_edit("measurements.csv", "\nuniform,", "\nother,"), "the probe uniform is missing"),
        (_edit("measurements.csv", "\nuniform,", "\nsequential,"), "two lines"),
        (_edit("jobs/uniform.fio", "[a]", "[a]\ninclude ../../secret.fio"), "names another file"),
        (_edit("times.csv", "read_rate,MB/s", "read_rate,GB/s"), "another unit"),
        (_edit("times.csv", ",3000,", ",inf,"), "not a number above 0"),
        (_edit("times.csv", "rates,read_rate,MB/s,3000", "rates"), "does not have the columns"),
        (_edit("drive.json", '"version": 1', '"version": 2'), "format and version"),
        (_edit("drive.json", "268435456", "-1"), "capacity_bytes = -1"),
        (_edit("drive.json", "268435456", "NaN"), "not JSON"),
        (_edit("drive.json", '"handles": 2', '"handles": 3'), "isolation does not have"),
        (lambda folder: (folder / "drive.json").write_text("[" * 100_000), "not JSON"),
        (lambda folder: (folder / "drive.json").write_bytes(b"\xff"), "not a text in UTF-8"),
        (lambda folder: (folder / "times.csv").unlink(), "times.csv is missing"),
        (lambda folder: (folder / "measurements.csv").write_bytes(b'"'), "not a CSV|no probe"),
    ],
)
def test_bad_input_is_one_sentence(
    copy: Path, damage: Callable[[Path], object], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(copy)
    with pytest.raises(WarpError, match=problem):
        read_folder(copy)
    assert main(["fit", str(copy)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("characterize: ")
    assert said.count("\n") == 1


def test_without_a_counter_ratios_are_measured(tmp_path: Path) -> None:
    """The ratio of host rates is the ratio of write amplifications."""
    file = tmp_path / "cells.csv"
    file.write_text("probe,workload,waf,relative_to,use\nuniform,one_stream,,,fit\nzipf,three_stream,1.2,uniform,holdout\n")
    (one,) = read_csv(file)
    assert one.relative_to is not None
    assert (one.waf, one.probe, one.use, one.relative_to.probe) == (1.2, "zipf", "holdout", "uniform")


@pytest.mark.deep
def test_a_drive_without_a_counter_is_fitted_by_its_ratios(copy: Path, tmp_path: Path) -> None:
    """The rows are those that `warp characterize --without-counters` writes for rates without noise."""
    lines = [line.split(",", 5) for line in (copy / "measurements.csv").read_text().splitlines()]
    uniform = next(float(line[2]) for line in lines if line[0] == "uniform")
    rows = [",".join(lines[0])]
    for probe, job, waf, _, _, rest in lines[1:]:
        ratio = float(waf) / uniform
        known = ["", "", ""] if probe == "uniform" else [f"{ratio:.5f}", f"{0.05 * ratio:.5f}", "uniform"]
        # Requests of another size have another rate.
        rows += [] if probe == "sequential" else [",".join([probe, job, *known, rest])]
    (copy / "measurements.csv").write_text("\n".join(rows) + "\n")
    (copy / "samples/sequential.parquet").unlink()
    (copy / "jobs/sequential.fio").unlink()
    (copy / "drive.json").write_text(json.dumps({**DRIVE, "counter": None, "missing": ["Media bytes are unknown."]}))
    found = fit_folder(copy, quick=True, trials=0, store=tmp_path / "store", progress=False)
    (holdout,) = (one for one in found.predictions if one.measurement.use == "holdout")
    assert holdout.is_inside
    assert abs(holdout.error) < 0.10
    assert "age-aware" in (found.family, *found.families_alike)
    assert "The media overhead is unknown" in (copy / "profile.toml").read_text()


def test_all_contributed_drives_are_accepted() -> None:
    folders = [path for path in (Path(__file__).parents[2] / "devices/community").iterdir() if path.is_dir()]
    for folder in folders:
        check_folder(folder)
