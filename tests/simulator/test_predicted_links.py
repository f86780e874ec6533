"""How busy links would be had pods gone elsewhere."""

import pytest
from tests.records.kept_decisions import GIGABIT, Keeping
from tests.scheduler.conftest import START

from lowtide.readings.demand import EXPECTED_RECEIVE, EXPECTED_TRANSMIT
from lowtide.simulator.predicted_links import PredictedLinks
from lowtide.testing import make_node

CAPACITY = 10 * GIGABIT
BUSY = {
    "busy": {"receive": 8 * GIGABIT, "transmit": GIGABIT, "capacity": CAPACITY},
    "quiet": {"receive": GIGABIT, "transmit": GIGABIT, "capacity": CAPACITY},
}
POD = {EXPECTED_RECEIVE: 3 * GIGABIT, EXPECTED_TRANSMIT: 0.0}


def links() -> PredictedLinks:
    keeping = Keeping(make_node("busy"), make_node("quiet"))
    keeping.publish(BUSY, sampled_at=START)
    return PredictedLinks(keeping.traffic.request, keeping.bench.machine.state)


def test_nothing_is_told_before_anything_is_measured() -> None:
    keeping = Keeping(make_node("a"))
    found = PredictedLinks(keeping.traffic.request, keeping.bench.machine.state)
    assert found.hottest() is None


def test_where_nothing_would_be_elsewhere_nothing_changes() -> None:
    found = links().hottest()
    assert found is not None
    assert (found.share, found.node) == (0.8, "busy")
    assert (found.predicted_share, found.predicted_node) == (0.8, "busy")


def test_what_a_pod_carries_goes_with_it_and_comes_back_when_it_ends() -> None:
    predicted = links()
    predicted.move("1", "busy", "quiet", POD)
    found = predicted.hottest()
    assert found is not None
    assert (found.share, found.node) == (0.8, "busy")
    assert found.predicted_share == pytest.approx(0.5)
    predicted.move("2", "busy", "quiet", POD)
    again = predicted.hottest()
    assert again is not None
    assert (again.predicted_share, again.predicted_node) == (pytest.approx(0.7), "quiet")
    predicted.forget("1")
    predicted.forget("2")
    assert predicted.hottest() == links().hottest()
    assert predicted.moved_count == 0


def test_no_link_carries_less_than_nothing() -> None:
    predicted = links()
    for number in range(4):
        predicted.move(str(number), "busy", "elsewhere", POD)
    found = predicted.hottest()
    assert found is not None
    assert found.predicted_share == 0.1
