"""How long `make bench` says the rest will take."""

from rich.console import Console

from lowtide.testing import ManualClock
from progress import Progress, took_seconds


def test_the_longest_beginning_of_a_name_counts() -> None:
    assert took_seconds("drain/basic/5000") != took_seconds("drain/preemption/5000")
    assert took_seconds("cycle/one-shape") == took_seconds("cycle/twenty-shapes")
    assert took_seconds("a name that nobody knows") == took_seconds("")


def test_what_is_left_follows_the_clock_and_the_pace_so_far() -> None:
    clock = ManualClock()
    one, two = 60.0, 400.0
    progress = Progress(Console(quiet=True), {"recorded": one, "burst/equal": two}, clock)

    progress.begin("recorded")
    assert progress.left_seconds() == one + two

    clock.advance(seconds=one / 2)
    assert progress.left_seconds() == one / 2 + two

    # It took half of what was expected: so may the next.
    progress.begin("burst/equal")
    assert progress.left_seconds() == two / 2

    clock.advance(seconds=two)
    assert progress.left_seconds() == 0
