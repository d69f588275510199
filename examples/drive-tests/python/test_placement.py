"""The store keeps its log and its index apart. `pip install warp-ssd` brings the fixture `warp_drive`."""

import os
import subprocess
from pathlib import Path

import pytest

STORE = Path(__file__).parent.parent / "store.fio"


@pytest.mark.warp_drive(capacity="32M")
def test_the_log_causes_no_copies(warp_drive):
    subprocess.run([os.environ.get("WARP", "warp"), "run", STORE, "--target", warp_drive.target, "--no-keep"], check=True)
    warp_drive.assert_waf(at_most=1.15)
    warp_drive.assert_handle(0, at_most=1.01)
