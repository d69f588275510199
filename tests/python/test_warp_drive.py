"""The fixtures for tests of other projects: the pytest plugin, the Rust library, the shell functions
and the GitHub action. Each project of examples/drive-tests passes, and fails if its data is misplaced."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from github import Runner, with_program  # noqa: E402
from test_install import Release  # noqa: E402

WARP = Path(os.environ.get("WARP", "target/debug/warp")).absolute()
PROJECTS = ["python", "rust", "shell", "action"]
WORKFLOW = """
jobs:
  placement:
    steps:
      - uses: actions/checkout@v4
      - id: drive
        uses: OWNER/warp/actions/warp-drive@v0.1.0
        with:
          attach: served
          capacity: 32M
          run: warp run store.fio --target "$WARP_DRIVE" --no-keep
          waf-at-most: 1.15
          handles: "0:1.01"
      - run: echo "the WAF is ${{ steps.drive.outputs.waf }}"
"""


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example projects."""
    monkeypatch.setenv("WARP", str(WARP))
    monkeypatch.setenv("WARP_RUNS", str(tmp_path / "runs"))
    return shutil.copytree(ROOT / "examples/drive-tests", tmp_path / "projects")


def misplace(projects: Path) -> None:
    """Puts the index on the placement identifier of the log."""
    store = projects / "store.fio"
    store.write_text(store.read_text().replace("plids=1", "plids=0"))


def run(*command: object, **variables: str) -> tuple[int, str]:
    done = subprocess.run(
        [str(word) for word in command], env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    return done.returncode, done.stdout


def plugged(folder: Path, *arguments: str) -> tuple[int, str]:
    """Runs pytest with the entry points of pyproject.toml, as in an environment that has the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = folder / "installed" / "warp_ssd-0.0.0.dist-info"
    installed.mkdir(parents=True, exist_ok=True)
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.0.0\n")
    plugins = project["entry-points"]["pytest11"]
    (installed / "entry_points.txt").write_text("".join(["[pytest11]\n", *(f"{name} = {module}\n" for name, module in plugins.items())]))
    path = os.pathsep.join([str(installed.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={folder}", *arguments, folder)
    return run(*command, PYTHONPATH=path)


def run_project(projects: Path, name: str) -> tuple[int, str]:
    """Runs the tests of a project. Returns the exit code and the output."""
    if name == "python":
        return plugged(projects / "python")
    if name == "shell":
        return run("sh", projects / "shell/test.sh", WARP_DRIVE_FUNCTIONS=str(ROOT / "actions/warp-drive/warp-drive.sh"))
    if name == "rust":
        return run("cargo", "test", "--offline", "--manifest-path", projects / "rust/Cargo.toml", "--target-dir", projects / "target")
    scratch = projects.parent / f"job-{len(list(projects.parent.iterdir()))}"
    (projects / "placement.yml").write_text(WORKFLOW)
    scratch.mkdir()
    runner = Runner(projects, scratch / "job", with_program(scratch))
    succeeded = runner.job(projects / "placement.yml")
    report = scratch / "job/artefacts/warp-drive"
    assert sorted(file.name for file in report.iterdir()) == ["check.txt", "drive.json", "drive.txt", "output.txt"]
    assert (report / "check.txt").read_text() in (scratch / "job/summary.md").read_text()
    return int(not succeeded), runner.output


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_passes_and_fails_when_its_data_is_misplaced(projects: Path, name: str) -> None:
    code, output = run_project(projects, name)
    assert code == 0, output
    if name == "action":
        assert "the WAF is 1.102" in output
    misplace(projects)
    code, output = run_project(projects, name)
    assert code != 0
    assert "1.219, above 1.15" in output


def test_the_action_keeps_the_exit_of_the_command_and_its_report(projects: Path) -> None:
    workflow = WORKFLOW.replace("--no-keep", "--no-keep; exit 7")
    (projects / "placement.yml").write_text(workflow)
    runner = Runner(projects, projects / "job", with_program(projects))
    assert not runner.job(projects / "placement.yml")
    assert "the command ended with status 7" in runner.output
    assert "at most 1.15" in (projects / "job/artefacts/warp-drive/check.txt").read_text()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("served", "nowhere", "attach is nowhere. Set it to guest or served"),
        ("waf-at-most: 1.15", "packages: jq", "packages are for a guest"),
        ('waf-at-most: 1.15\n          handles: "0:1.01"', "timing: off", "no limit is given"),
        ("capacity: 32M", "capacity: 32Q", "32Q"),
        ("waf-at-most: 1.15", "waf-at-most: little", "'--waf-at-most"),
    ],
)
def test_a_wrong_input_fails_with_a_sentence(projects: Path, old: str, new: str, sentence: str) -> None:
    assert old in WORKFLOW
    (projects / "placement.yml").write_text(WORKFLOW.replace(old, new))
    runner = Runner(projects, projects / "job", with_program(projects))
    assert not runner.job(projects / "placement.yml")
    assert sentence in runner.output


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("actions/checkout@v4", "actions/unknown@v1", "no stand-in for actions/unknown@v1"),
        ("capacity:", "size:", r"no inputs \['size'\]"),
        ("run: warp run", "releases: none #", r"needs the inputs \['run'\]"),
        ("outputs.waf", "outputs.life", "nothing is called 'steps.drive.outputs.life'"),
    ],
)
def test_the_runner_refuses_a_workflow_that_it_does_not_understand(projects: Path, old: str, new: str, problem: str) -> None:
    assert old in WORKFLOW
    (projects / "placement.yml").write_text(WORKFLOW.replace(old, new))
    with pytest.raises(ValueError, match=problem):
        Runner(projects, projects / "job", with_program(projects)).job(projects / "placement.yml")


GUEST_WORKFLOW = """
jobs:
  placement:
    steps:
      - uses: OWNER/warp/actions/warp-drive@v0.1.0
        with:
          run: fio benchmark.fio
          packages: jq,rocksdb-tools
          timeout: 60
          waf-at-most: 1.2
          releases: ADDRESS
"""


def test_the_action_installs_a_release_and_boots_a_guest(tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    release = Release(tmp_path / "release")
    # A stand-in that prints its arguments and ends like a guest that did not start.
    release.command = b'#!/bin/sh\n[ "$1" != --version ] || exit 0\nprintf "[%s]" "$@"\nexit 125\n'
    release.write()
    (tmp_path / "placement.yml").write_text(GUEST_WORKFLOW.replace("ADDRESS", release.address))
    (tmp_path / "project").mkdir()
    runner = Runner(tmp_path / "project", tmp_path / "job", {"PATH": "/usr/bin:/bin", "no_proxy": "127.0.0.1", "WARP_GUEST_CACHE": ""})
    succeeded = runner.job(tmp_path / "placement.yml")
    release.close()
    assert not succeeded
    assert "[guest][--device][warp_default][--capacity][128M][--timing][off][--data]" in runner.output
    assert "[--timeout][60][--with][jq,rocksdb-tools][--][sh][-ec][fio benchmark.fio]" in runner.output
    assert "the command ended with status 125" in runner.output
    assert [arguments["path"] for name, arguments in runner.used if name.startswith("actions/cache@")] == ["/var/tmp/warp-guest"]


PLUGIN_TESTS = """
import subprocess
import pytest

def test_nothing_written(warp_drive):
    assert warp_drive.statistics().waf is None
    warp_drive.assert_waf(at_most=9)

def test_unknown_handle(warp_drive):
    warp_drive.assert_handle(99, at_most=9)

@pytest.mark.warp_drive(capacity="32Q")
def test_wrong_option(warp_drive):
    pass

@pytest.mark.warp_drive(no_namespace=True, set=["handles.count=4", "geometry.over_provisioning=0.2"])
def test_options(warp_drive):
    assert list(warp_drive.statistics().handles) == [0, 1, 2, 3]

@pytest.mark.warp_drive(fdp="off")
def test_without_placement(warp_drive):
    assert warp_drive.nqn.startswith("nqn.2014-08.org.nvmexpress:uuid:")
    subprocess.run([WARP, "drive", "inspect", warp_drive.target], check=True)
"""


def test_the_fixture_explains_its_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARP", str(WARP))
    (tmp_path / "test_own.py").write_text(PLUGIN_TESTS.replace("WARP,", f"{str(WARP)!r},"))
    code, output = plugged(tmp_path, "--strict-markers")
    assert code == 1
    assert "2 failed, 2 passed, 1 error" in output
    assert "write amplification of the drive is unknown, because nothing was written" in output
    assert output.count("Captured warp drive teardown") == 2, "the counters are in the report of each failed test"
    assert "the drive has 8 reclaim unit handles, and none is 99" in output
    assert "the drive was not served:" in output and "32Q" in output
