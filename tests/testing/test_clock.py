"""A clock that stands still until it is told to go on."""

from lowtide.testing import ManualClock


def test_the_clock() -> None:
    clock = ManualClock(100.0)
    assert (clock(), clock()) == (100.0, 100.0)
    clock.advance(2.5)
    assert clock() == 102.5
