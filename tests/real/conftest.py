"""How real tests run `lowtide extender` as a process of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.extender_process import StartExtender, extenders_in


@pytest.fixture
def lowtide_extender(tmp_path: Path) -> Iterator[StartExtender]:
    """Starts `lowtide extender -v 2` until it is ready; see extenders_in."""
    with extenders_in(tmp_path) as start:
        yield start
