"""The workflows of GitHub: each file and option that they name exists, and the release runs step by
step with stand-ins for the programs that build, install and publish."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from github import Runner, read  # noqa: E402

WORKFLOWS = [*sorted((ROOT / ".github/workflows").glob("*.yml")), ROOT / "docs/ci/github.yml", ROOT / "actions/warp-drive/action.yml"]
RELEASE = ROOT / ".github/workflows/release.yml"
NOTES = ROOT / "docs/release/notes.py"
#: A file of the repository in a command line.
NAMED = re.compile(r"(?<![\w$/}.-])(?:\./)?((?:docs|tests|actions|\.ci)/[\w./-]+|release(?= --)|Containerfile)")


def steps(path: Path) -> list[dict[str, Any]]:
    content = read(path)
    if "runs" in content:
        return list(content["runs"]["steps"])
    return [step for job in content["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=[path.name for path in WORKFLOWS])
def test_a_workflow_names_files_that_exist_and_valid_commands(path: Path) -> None:
    for step in steps(path):
        assert ("run" in step) != ("uses" in step), step
        for name in NAMED.findall(step.get("run", "")):
            assert (ROOT / name).exists(), name
        if "run" in step:
            text = re.sub(r"\$\{\{.*?\}\}", "value", step["run"])
            subprocess.run(["bash", "-n", "-c", text], check=True)
            assert "${{" not in step["run"], "an expression in a command line could run the text of a stranger"
        else:
            assert re.fullmatch(r"[\w./-]+@v[\d.]+", step["uses"]), step["uses"]


def test_the_workflow_of_other_projects_gives_inputs_that_the_action_has() -> None:
    declared = read(ROOT / "actions/warp-drive/action.yml")["inputs"]
    given = [step["with"] for step in steps(ROOT / "docs/ci/github.yml") if "warp-drive" in step["uses"]]
    assert given and all(name in declared for inputs in given for name in inputs)
    page = (ROOT / "docs/how-to/test-with-a-drive.md").read_text()
    assert [name for name in declared if f"| `{name}` |" not in page] == []


def repository(folder: Path, heading: str = "0.3.0 (2027-01-02)", version: str = "0.3.0", cited: str = "0.3.0") -> Path:
    """Makes a repository with a version, in which `./release` is a stand-in that needs no compiler."""
    folder.mkdir()
    (folder / "Cargo.toml").write_text(f'[workspace.package]\nversion = "{version}"\n')
    (folder / "CITATION.cff").write_text(f"cff-version: 1.2.0\nversion: {cited}\n")
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n## {heading}\n\n- Fast.\n\n### Parts\n\n- One.\n\n## 0.2.0 (2026-01-02)\n\n- Old.\n")
    (folder / "docs/release").mkdir(parents=True)
    shutil.copy(NOTES, folder / "docs/release")
    shutil.copy(ROOT / "Containerfile", folder)
    shutil.copytree(ROOT / "docs/ci", folder / "docs/ci")
    (folder / "release").write_text(
        "#!/bin/sh\nset -e\n[ $1 = --test ]\nmkdir -p target/release-artefacts && cd target/release-artefacts\n"
        f"echo command >warp-{version}-x86_64-linux\nsha256sum * >sums && mv sums SHA256SUMS\n"
    )
    (folder / "release").chmod(0o755)
    return folder


def published(tmp_path: Path, tag: str, **options: str) -> tuple[Runner, bool, str]:
    """Runs the release workflow for a tag. Returns the runner, its success and the calls of programs."""
    made = repository(tmp_path / "repository", **options)
    calls, programs = tmp_path / "calls", tmp_path / "programs"
    programs.mkdir()
    calls.touch()
    (programs / "sudo").write_text('#!/bin/sh\n[ "$1" != -E ] || shift\nexec "$@"\n')
    for name in ("gh", "podman", "apt-get"):
        (programs / name).write_text(f'#!/bin/sh\n[ "$1" != login ] || cat >/dev/null\necho {name} "$@" >>{calls}\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    path = f"{programs}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    runner = Runner(made, tmp_path / "job", {"PATH": path, "GITHUB_ACTOR": "someone"}, {"ref_name": tag, "repository": "someone/warp"})
    return runner, runner.job(RELEASE), calls.read_text()


def test_a_tag_publishes_files_image_and_notes(tmp_path: Path) -> None:
    runner, succeeded, calls = published(tmp_path, "v0.3.0")
    assert succeeded, runner.output
    assert (tmp_path / "job/temp/notes.md").read_text() == "- Fast.\n\n### Parts\n\n- One.\n"
    files = "target/release-artefacts/SHA256SUMS target/release-artefacts/warp-0.3.0-x86_64-linux"
    image = "ghcr.io/someone/warp:v0.3.0"
    assert [line for line in calls.splitlines() if not line.startswith("apt-get")] == [
        f"podman build --file Containerfile --tag {image} target/release-artefacts",
        f"podman run --rm --volume ./docs/ci:/work {image} guest --capacity 128M --timing off -- fio benchmark.fio",
        "podman login ghcr.io --username someone --password-stdin",
        f"podman push {image}",
        f"gh release create v0.3.0 --verify-tag --title v0.3.0 --notes-file {tmp_path}/job/temp/notes.md {files}",
    ]
    signed = [arguments for name, arguments in runner.used if name.startswith("actions/attest-build-provenance@")]
    assert [arguments["subject-path"] for arguments in signed] == ["target/release-artefacts/*"]


@pytest.mark.parametrize(
    ("tag", "options", "sentence"),
    [
        ("v0.4.0", {}, "the tag is v0.4.0, but Cargo.toml has version 0.3.0"),
        ("v0.3.0", {"heading": "0.3.0 (unreleased)"}, 'CHANGELOG.md has the heading "0.3.0 (unreleased)"'),
        ("v0.3.0", {"heading": "0.3.1 (2027-01-02)"}, "CHANGELOG.md has 0 sections of version 0.3.0"),
        ("v0.3.0", {"cited": "0.2.0"}, "CITATION.cff does not have version 0.3.0"),
    ],
)
def test_a_version_that_disagrees_publishes_nothing(tmp_path: Path, tag: str, options: dict[str, str], sentence: str) -> None:
    runner, succeeded, calls = published(tmp_path, tag, **options)
    assert not succeeded
    assert sentence in runner.output
    assert calls == ""


def test_a_damaged_file_is_not_published(tmp_path: Path) -> None:
    made = tmp_path / "repository"
    runner, succeeded, _ = published(tmp_path, "v0.3.0")
    assert succeeded, runner.output
    (made / "release").write_text("#!/bin/sh\necho x >>target/release-artefacts/warp-0.3.0-x86_64-linux\n")
    (tmp_path / "calls").write_text("")
    assert not runner.job(RELEASE)
    assert "podman build" not in (tmp_path / "calls").read_text()


def test_the_version_stands_in_one_place_and_citation_follows() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert version and f"\nversion: {version[1]}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version[1]} (" in (ROOT / "CHANGELOG.md").read_text()


def test_the_installer_is_a_file_of_the_release() -> None:
    assert 'install -m 755 install.sh "$out"' in (ROOT / "release").read_text()
    done = subprocess.run([ROOT / "release", "--help"], capture_output=True, text=True)
    assert done.returncode == 2 and "--test" in done.stderr and "install.sh" in done.stderr
