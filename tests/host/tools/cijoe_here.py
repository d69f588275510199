"""A pytest plugin that stands in for the runner of xNVMe's tests: commands run on this machine, on one NVMe namespace.

XNVME_BLOCK and XNVME_GENERIC name the namespace's block and character device.
"""

import os
import subprocess

import pytest

_ABILITIES = ["dev", "nvm", "scc", "write_zeroes", "write_uncor", "idfy_cs", "fdp"]
_DEVICES = [("XNVME_BLOCK", "bdev"), ("XNVME_GENERIC", "cdev")]


class _Here:
    """What the tests ask of their runner."""

    def getconf(self, key: str, default: object = None) -> object:
        """Return a setting: only the devices are set."""
        if key != "devices":
            return default
        return [
            {"uri": os.environ[name], "nsid": 1, "labels": [*_ABILITIES, kind], "driver_attachment": "kernel"}
            for name, kind in _DEVICES
        ]

    def run(self, command: str, **_: object) -> tuple[int, "_State"]:
        """Run a command in a shell; return its exit code and what it said, which pytest shows of a test that fails."""
        ended = subprocess.run(command, shell=True, capture_output=True, text=True, errors="replace", check=False)
        print(f"$ {command}\n{ended.stdout}{ended.stderr}")
        return ended.returncode, _State(ended.stdout + ended.stderr)


class _State:
    """What a command said."""

    def __init__(self, text: str) -> None:
        self._text = text

    def output(self) -> str:
        """Return all of it."""
        return self._text


def pytest_configure() -> None:
    """Put the runner where the tests look for it."""
    pytest.cijoe_instance = _Here()


@pytest.fixture
def cijoe() -> _Here:
    """Return the runner."""
    return pytest.cijoe_instance
