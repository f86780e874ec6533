"""Lets tests import the modules of bench, which is run as a folder and not installed."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))


@pytest.fixture(autouse=True)
def garbage_as_before() -> Iterator[None]:
    """What is measured without a server sets it for the whole process."""
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)
