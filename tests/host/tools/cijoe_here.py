"""Pytest plugin that replaces the runner of xNVMe's tests. Commands run on this machine, on one
NVMe namespace.

XNVME_BLOCK and XNVME_GENERIC name the block and the character device of the namespace.
"""

import os
import subprocess

import pytest

_ABILITIES = ["dev", "nvm", "scc", "write_zeroes", "write_uncor", "idfy_cs", "fdp"]
_DEVICES = [("XNVME_BLOCK", "bdev"), ("XNVME_GENERIC", "cdev")]


class _Here:
    """Runner with the functions that the tests use."""

    def getconf(self, key: str, default: object = None) -> object:
        """Returns a setting. Only the devices are set."""
        if key != "devices":
            return default
        return [
            {"uri": os.environ[name], "nsid": 1, "labels": [*_ABILITIES, kind], "driver_attachment": "kernel"}
            for name, kind in _DEVICES
        ]

    def run(self, command: str, **_: object) -> tuple[int, "_State"]:
        """Runs a command in a shell and returns its exit code and output. pytest shows the
        printed output of failed tests."""
        ended = subprocess.run(command, shell=True, capture_output=True, text=True, errors="replace", check=False)
        print(f"$ {command}\n{ended.stdout}{ended.stderr}")
        return ended.returncode, _State(ended.stdout + ended.stderr)


class _State:
    """Output of a command."""

    def __init__(self, text: str) -> None:
        self._text = text

    def output(self) -> str:
        """Returns the whole output."""
        return self._text


def pytest_configure() -> None:
    """Puts the runner into the place where the tests expect it."""
    pytest.cijoe_instance = _Here()


@pytest.fixture
def cijoe() -> _Here:
    """Returns the runner."""
    return pytest.cijoe_instance
