"""Results can be selected by name, shown in a notebook, drawn and reported. The package has its
own command."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import warp_ssd
from warp_ssd import Device, Experiment, WarpError

ROOT = Path(__file__).parents[2]
QUICK = "three_stream"

ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "polars", "ray", "IPython", "anywidget"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
"""


@pytest.fixture(scope="module")
def result() -> warp_ssd.Result:
    return warp_ssd.run(QUICK, quick=True)


def python(code: str, folder: Path = ROOT) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder, env=environment).stdout


def test_the_version_is_the_engines() -> None:
    stated = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert stated and warp_ssd.__version__ == stated[1]


def test_points_are_picked_by_name(result: warp_ssd.Result) -> None:
    assert len(result) == len(list(result)) == 18
    fdp = result["FDP"]
    assert len(fdp) == 6 and {point.key["variant"] for point in fdp} == {"FDP"}
    (one,) = result["ssd_a", "FDP", "80/20"]
    assert one.key == {"device": "ssd_a", "variant": "FDP", "overwrite": "80/20"} and one.seed == 1
    cells = pa.table(one.cells())
    assert one.write_amplification == cells["write_amplification"][0].as_py()
    assert one.tail_write_amplification == cells["tail_write_amplification"][0].as_py()
    assert one.steady_write_amplification is None, "it did not go on until it was steady"
    assert len(result[{"overwrite": "80/20", "device": "ssd_a"}]) == 3
    assert result[-1].key == result[17].key
    with pytest.raises(WarpError, match='there is no point of "FPD". Choose one of device "ssd_a"'):
        result["FPD"]
    with pytest.raises(WarpError, match='no point of variant "80/20"'):
        result[{"variant": "80/20"}]
    with pytest.raises(IndexError):
        result[18]


def test_claims_are_judged_on_the_form_they_are_made_for(result: warp_ssd.Result) -> None:
    marked = (ROOT / "experiments" / QUICK / "experiment.toml").read_text().count("quick = true")
    both = [pa.table(table).to_pylist() for table in (result.claims(), result.regression())]
    claims, regression = both
    judged = [rule for rules in both for rule in rules if rule["holds"] is not None]
    unjudged = [rule for rules in both for rule in rules if rule["holds"] is None]
    assert 0 < marked == len(judged) and all(rule["holds"] for rule in judged) and unjudged
    assert all(rule["found"].startswith("not judged, because ") for rule in unjudged)
    assert not {rule["what"] for rule in claims} & {rule["what"] for rule in regression}
    assert "FAILS" not in result.summary()
    # Neither form applies. One run is a part of the quick form, and the other has another scale.
    small = warp_ssd.run(QUICK, scale=2048, drive_writes=0.1, devices=["ssd_a"])
    for other in (result["ssd_a"], small):
        assert pa.table(other.claims())["holds"].null_count == len(claims)
        assert pa.table(other.regression())["holds"].null_count == len(regression)


def test_a_notebook_shows_tables(result: warp_ssd.Result) -> None:
    shown = result._repr_html_()
    assert shown.count("<tr>") == 19 and "zipf 2.2" in shown and "claims hold" in shown
    table = result.samples()._repr_html_()
    assert table.count("<tr>") == 21 and f"and {result.samples().num_rows - 20} more rows" in table


def test_a_result_has_the_commands_report_and_a_figure(result: warp_ssd.Result, tmp_path: Path) -> None:
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and Experiment(QUICK).title in page
    figure = result.plot()
    assert len(figure.axes) == 6
    figure.savefig(tmp_path / "figure.png")
    assert len(result["ssd_a", "FDP", "80/20"].plot().axes) == 1
    with pytest.raises(WarpError, match="nowhere"):
        result.report(tmp_path / "nowhere" / "report.html")


def test_a_scale_may_be_a_number() -> None:
    assert Device("ssd_a", scale=512).logical_pages == Device("ssd_a", scale="1/512").logical_pages
    by_number, by_text = (Experiment(QUICK).points(scale=scale)[0].hash for scale in (2048, "1/2048"))
    assert by_number == by_text
    with pytest.raises(WarpError, match="scale"):
        Device("ssd_a", scale=0)


def test_the_oracle_beside_what_a_host_does() -> None:
    table = warp_ssd.oracle("volume", scale=1024, drive_writes=3)
    rows = {row["placement"]: row for row in table.to_pylist()}
    assert list(rows) == ["none", "its own", "oracle"]
    assert rows["oracle"]["above_oracle"] == 0 < rows["none"]["above_oracle"]


def test_the_manuals_first_example_needs_no_optional_package(tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?)```", (ROOT / "docs/reference/python.md").read_text(), re.DOTALL)
    assert example
    python(ABSENT + example[1], tmp_path)
    assert (tmp_path / "report.html").exists()


def test_the_package_has_the_command() -> None:
    run = "import sys; sys.argv = ['warp', *{!r}]; from warp_ssd.command import main; main()"
    assert python(run.format(["--version"])).strip().endswith(warp_ssd.__version__)
    assert "three_stream" in python(run.format(["list"]))
    with pytest.raises(subprocess.CalledProcessError) as refused:
        python(run.format(["run", "--scale", "1/64"]))
    assert refused.value.returncode == 2 and refused.value.stderr.startswith("warp: ")
