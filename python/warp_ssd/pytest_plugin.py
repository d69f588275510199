"""pytest plugin: a served drive for a test, with its counters and limits.

pytest loads it by itself when the package is installed. A test asks for the fixture ``warp_drive``:

    @pytest.mark.warp_drive(capacity="128M")
    def test_placement(warp_drive):
        subprocess.run(["my_program", warp_drive.target], check=True)
        warp_drive.assert_waf(at_most=1.2)
        warp_drive.assert_handle(0, at_most=1.01)

The mark's arguments are the options of ``warp serve``, with ``_`` for ``-``. ``True`` gives an option without a value, and a list
repeats an option. Each test has a new drive.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

#: Capacity of a drive without another one. It fills in less than a second.
CAPACITY = "64M"
#: Time limit for the start and the end of a server.
PATIENCE_SECONDS = 60

_SAMPLE = re.compile(r'^warp_(\w+?)(?:\{ruh="(\w+)"\})? (\S+)$', re.MULTILINE)


def _waf(host_bytes: float, media_bytes: float) -> float | None:
    return media_bytes / host_bytes if host_bytes else None


@dataclass(frozen=True)
class HandleStatistics:
    """Counters of a reclaim unit handle."""

    host_bytes: int
    copied_bytes: int

    @property
    def waf(self) -> float | None:
        """Host and copied bytes over host bytes. ``None`` if the host wrote nothing through the handle."""
        return _waf(self.host_bytes, self.host_bytes + self.copied_bytes)


@dataclass(frozen=True)
class DriveStatistics:
    """Counters of a drive since it was made. Copies of data that garbage collection had moved before count for no handle."""

    host_bytes: int
    media_bytes: int
    handles: dict[int, HandleStatistics]

    @property
    def waf(self) -> float | None:
        """Write amplification. ``None`` if the host wrote nothing."""
        return _waf(self.host_bytes, self.media_bytes)

    def __str__(self) -> str:
        rows = [f"drive: host {self.host_bytes} B, flash {self.media_bytes} B, WAF {_text(self.waf)}"]
        for number, handle in self.handles.items():
            if handle.host_bytes:
                rows.append(
                    f"RUH {number}: host {handle.host_bytes} B, copied {handle.copied_bytes} B, WAF {_text(handle.waf)}"
                )
        return "\n".join(rows)


def _text(waf: float | None) -> str:
    return "unknown, because nothing was written" if waf is None else f"{waf:.3f}"


class ServedDrive:
    """A drive that a process of its own serves over NVMe/TCP on loopback."""

    def __init__(self, folder: Path, **options: object) -> None:
        given = {"capacity": CAPACITY, "timing": "off", **options}
        arguments = [argument for name, value in given.items() for argument in _arguments(name, value)]
        self._log = folder / "serve.log"
        with self._log.open("wb") as log:
            self._process = _start([*arguments, "--tcp=127.0.0.1:0", "--metrics=127.0.0.1:0"], log)
        try:
            #: Port of the drive on 127.0.0.1.
            self.port = int(self._wait_for(r"nvme connect -t tcp -a 127\.0\.0\.1 -s (\d+)"))
            #: NQN of the drive's subsystem.
            self.nqn = self._wait_for(r"nvme connect .* -n (\S+)")
            self._metrics = self._wait_for(r"(http://\S+/metrics)")
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    @property
    def target(self) -> str:
        """The drive's address in the commands of WARP, such as ``tcp:127.0.0.1:4420``."""
        return f"tcp:127.0.0.1:{self.port}"

    def statistics(self) -> DriveStatistics:
        """Returns the counters of the drive at this time."""
        with urllib.request.urlopen(self._metrics, timeout=PATIENCE_SECONDS) as answer:
            samples = {(name, ruh): float(value) for name, ruh, value in _SAMPLE.findall(answer.read().decode())}
        page_bytes = int(samples["page_bytes", ""])
        written, copied = "handle_host_written_bytes_total", "handle_pages_copied_total"
        numbers = sorted(int(ruh) for name, ruh in samples if name == written and ruh.isdecimal())
        return DriveStatistics(
            host_bytes=int(samples["host_written_bytes_total", ""]),
            media_bytes=int(samples["media_written_bytes_total", ""]),
            handles={
                number: HandleStatistics(
                    host_bytes=int(samples[written, str(number)]),
                    copied_bytes=int(samples[copied, str(number)]) * page_bytes,
                )
                for number in numbers
            },
        )

    def assert_waf(self, *, at_most: float) -> None:
        """Fails the test if the drive's write amplification is larger or unknown."""
        statistics = self.statistics()
        _assert_limit("the drive", statistics.waf, at_most, statistics)

    def assert_handle(self, number: int, *, at_most: float) -> None:
        """Fails the test if the write amplification of a reclaim unit handle is larger or unknown."""
        statistics = self.statistics()
        if number not in statistics.handles:
            pytest.fail(f"the drive has {len(statistics.handles)} reclaim unit handles, and none is {number}", pytrace=False)
        _assert_limit(f"reclaim unit handle {number}", statistics.handles[number].waf, at_most, statistics)

    def stop(self) -> None:
        """Stops the drive. Its process must end in order."""
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        if code != 0:
            pytest.fail(f"the drive ended with exit code {code}:\n{self._log.read_text()}", pytrace=False)

    def _wait_for(self, pattern: str) -> str:
        """Returns the first group of a pattern in the server's output."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not (found := re.search(pattern + r"\s", self._log.read_text())):
            if self._process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"the drive was not served:\n{self._log.read_text()}", pytrace=False)
            time.sleep(0.02)
        return found[1]


def _arguments(name: str, value: object) -> list[str]:
    """Returns the arguments of an option."""
    option = f"--{name.replace('_', '-')}"
    values = value if isinstance(value, (list, tuple)) else [value]
    return [option if given is True else f"{option}={given}" for given in values]


def _start(arguments: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts `warp serve`: the program in WARP, or the command of this package."""
    program = [os.environ["WARP"]] if os.environ.get("WARP") else [sys.executable, "-m", "warp_ssd.command"]
    return subprocess.Popen([*program, "serve", "--quiet", *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _assert_limit(subject: str, waf: float | None, at_most: float, statistics: DriveStatistics) -> None:
    if waf is None or waf > at_most:
        above = "" if waf is None else f", above {at_most}"
        pytest.fail(f"write amplification of {subject} is {_text(waf)}{above}\n{statistics}", pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark."""
    config.addinivalue_line("markers", "warp_drive(**options): options of `warp serve` for the fixture warp_drive")


@pytest.fixture
def warp_drive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedDrive]:
    """A new drive, served until the end of the test. Its counters are in the report of the test."""
    mark = request.node.get_closest_marker("warp_drive")
    drive = ServedDrive(tmp_path_factory.mktemp("warp_drive"), **(mark.kwargs if mark else {}))
    try:
        yield drive
        request.node.add_report_section("teardown", "warp drive", str(drive.statistics()))
    finally:
        drive.stop()
