"""install.sh installs the command of a release that a web server has, or leaves nothing behind."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = "warp-9.8.7-x86_64-linux"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


class Release:
    """Files of a release, with a stand-in for the command, at an address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.command = b"#!/bin/sh\necho warp 9.8.7\n"
        self.write()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def write(self) -> None:
        (self.folder / COMMAND).write_bytes(self.command)
        names = (COMMAND, "warp-9.8.7.cdx.json", "install.sh")
        (self.folder / "SHA256SUMS").write_text("".join(f"{hashlib.sha256(self.command).hexdigest()}  {name}\n" for name in names))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def release(tmp_path: Path) -> Iterator[Release]:
    folder = tmp_path / "release"
    folder.mkdir()
    made = Release(folder)
    yield made
    made.close()


def install(release: Release, *arguments: Path | str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "WARP_RELEASES": release.address, "no_proxy": "127.0.0.1", **variables}
    return subprocess.run(["sh", ROOT / "install.sh", *arguments], env=environment, capture_output=True, text=True, timeout=60)


def refused(done: subprocess.CompletedProcess[str], sentence: str, folder: Path) -> None:
    """Asserts that an installation failed with a sentence and without a file in its folder."""
    assert done.returncode == 1
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert not folder.is_dir() or list(folder.iterdir()) == []


def test_the_command_is_installed_and_says_where(release: Release, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    done = install(release, folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"installed warp 9.8.7 as {folder}/warp\nadd {folder} to PATH\n"
    assert [file.name for file in folder.iterdir()] == ["warp"]
    assert (folder / "warp").read_bytes() == release.command
    assert os.access(folder / "warp", os.X_OK)


def test_a_folder_on_the_path_needs_no_advice(release: Release, tmp_path: Path) -> None:
    done = install(release, tmp_path / "bin", PATH=f"{os.environ['PATH']}:{tmp_path / 'bin'}")
    assert done.stdout == f"installed warp 9.8.7 as {tmp_path}/bin/warp\n"


def test_a_newer_release_replaces_an_older_one(release: Release, tmp_path: Path) -> None:
    install(release, tmp_path / "bin")
    release.command = b"#!/bin/sh\necho warp 9.8.8\n"
    release.write()
    assert install(release, tmp_path / "bin").stdout.startswith("installed warp 9.8.8 as ")


def test_a_wrong_checksum_installs_nothing(release: Release, tmp_path: Path) -> None:
    with (release.folder / COMMAND).open("ab") as file:
        file.write(b"# changed\n")
    refused(install(release, tmp_path / "bin"), f"the checksum of {COMMAND} is wrong", tmp_path / "bin")


def test_a_failed_update_keeps_the_old_command(release: Release, tmp_path: Path) -> None:
    install(release, tmp_path / "bin")
    (release.folder / COMMAND).write_bytes(b"#!/bin/sh\necho something else\n")
    assert install(release, tmp_path / "bin").returncode == 1
    assert [file.name for file in (tmp_path / "bin").iterdir()] == ["warp"]
    assert (tmp_path / "bin/warp").read_bytes() == release.command


@pytest.mark.parametrize("missing", ["SHA256SUMS", COMMAND])
def test_a_missing_file_is_named(release: Release, tmp_path: Path, missing: str) -> None:
    (release.folder / missing).unlink()
    refused(install(release, tmp_path / "bin"), f"cannot fetch {release.address}/{missing}", tmp_path / "bin")


def test_sums_without_a_command_are_refused(release: Release, tmp_path: Path) -> None:
    (release.folder / "SHA256SUMS").write_text("")
    refused(install(release, tmp_path / "bin"), "names no static command", tmp_path / "bin")


def test_each_machine_gets_its_own_command(release: Release, tmp_path: Path) -> None:
    arm = b"#!/bin/sh\necho warp 9.8.7 for Arm\n"
    name = COMMAND.replace("x86_64", "aarch64")
    (release.folder / name).write_bytes(arm)
    with (release.folder / "SHA256SUMS").open("a") as sums:
        sums.write(f"{hashlib.sha256(arm).hexdigest()}  {name}\n")
    fake = tmp_path / "fake"
    fake.mkdir()

    def on(machine: str) -> subprocess.CompletedProcess[str]:
        uname = fake / "uname"
        uname.write_text(f'#!/bin/sh\ncase $1 in -m) echo {machine} ;; -s) echo Linux ;; *) echo Linux {machine} ;; esac\n')
        uname.chmod(0o755)
        return install(release, tmp_path / machine, PATH=f"{fake}:{os.environ['PATH']}")

    assert on("aarch64").stdout.startswith("installed warp 9.8.7 for Arm as ")
    assert on("x86_64").stdout.startswith("installed warp 9.8.7 as ")
    refused(on("riscv64"), "the release is for Linux on x86_64 and aarch64, but this is Linux riscv64", tmp_path / "riscv64")


def test_a_command_that_does_not_run_is_not_installed(release: Release, tmp_path: Path) -> None:
    release.command = b"#!/bin/sh\nexit 1\n"
    release.write()
    refused(install(release, tmp_path / "bin"), "does not run on this machine", tmp_path / "bin")


def test_a_folder_that_cannot_be_written_is_named(release: Release) -> None:
    refused(install(release, "/dev/null/bin"), "/dev/null/bin is not writable", Path("/dev/null/bin"))


def test_the_address_is_needed(release: Release, tmp_path: Path) -> None:
    refused(install(release, tmp_path / "bin", WARP_RELEASES=""), "set WARP_RELEASES to the address", tmp_path / "bin")
