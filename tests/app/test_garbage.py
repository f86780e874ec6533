"""How Python looks for garbage; each test puts the process back as it was."""

import gc
from collections.abc import Iterator

import pytest

from lowtide.app.garbage import leave_out_what_is_known, look_seldom_for_garbage


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_garbage_is_looked_for_seldom() -> None:
    look_seldom_for_garbage()
    assert gc.get_threshold() == (20_000, 20, 20)


def test_what_is_known_is_looked_through_no_more() -> None:
    known = [[number] for number in range(1000)]
    leave_out_what_is_known()
    assert gc.get_freeze_count() >= len(known)
