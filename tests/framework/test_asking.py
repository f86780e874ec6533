"""The time that rules take adds up where a clock is handed in."""

import pytest

from lowtide.framework.asking import NOTHING_SPENT, Asking, Spent
from lowtide.framework.plugin import Pod, PodRejection
from lowtide.testing import ManualClock, make_pod


class Slow:
    """Takes a second."""

    name = "Slow"

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def may_enqueue(self, pod: Pod) -> PodRejection | None:
        self._clock.advance(1.0)
        if pod.name == "bad":
            raise ValueError("no")
        return None


def test_the_time_of_each_rule_adds_up_until_it_is_taken() -> None:
    clock = ManualClock(0.0)
    asking, slow = Asking(clock), Slow(clock)
    for _ in range(2):
        assert asking(slow, "may_enqueue", make_pod()) is None
    with pytest.raises(Exception, match=r"Slow\.may_enqueue failed"):
        asking(slow, "may_enqueue", make_pod("bad"))
    spent = asking.take_spent()
    assert spent == Spent((("Slow", "may_enqueue", 1.0),) * 3)
    assert (spent.by_rule, spent.by_method) == ({"Slow": 3.0}, {"may_enqueue": 3.0})
    assert asking.take_spent() == NOTHING_SPENT


def test_without_a_clock_nothing_is_timed() -> None:
    asking = Asking()
    asking(Slow(ManualClock(0.0)), "may_enqueue", make_pod())
    assert asking.take_spent() == NOTHING_SPENT
