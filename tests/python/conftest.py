"""Tests with the mark `deep` take long. They run only with `WARP_DEEP=1`."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("WARP_DEEP", "0") != "0":
        return
    for item in items:
        if item.get_closest_marker("deep"):
            item.add_marker(pytest.mark.skip(reason="takes long; WARP_DEEP=1 runs it"))
