"""How busy links would be had pods gone elsewhere."""

from dataclasses import replace

import pytest
from tests.records.kept_decisions import GIGABIT, Keeping
from tests.scheduler.conftest import START

from lowtide.objects.pod import Pod
from lowtide.readings.columns import SHARE, published
from lowtide.readings.demand import Owners, Traffic
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.events import ReadingPublished
from lowtide.simulator.predicted_links import PredictedLinks
from lowtide.testing import make_node, make_pod

CAPACITY = 10 * GIGABIT
NODES = [make_node("busy"), make_node("quiet")]
BUSY = {
    "busy": {"receive": 8 * GIGABIT, "transmit": GIGABIT, "capacity": CAPACITY},
    "quiet": {"receive": GIGABIT, "transmit": GIGABIT, "capacity": CAPACITY},
}


def pod(name: str) -> Pod:
    return make_pod(name, annotations={"lowtide.dev/traffic": "receive=3G,transmit=0"})


def links(worst_share: float | None = None) -> PredictedLinks:
    """`worst_share` is that of another device of the busy node."""
    keeping = Keeping(*NODES)
    reading = published(traffic_reading(keeping.traffic.request, BUSY, NODES))
    if worst_share is not None:
        share = reading.columns[SHARE].copy()
        share[0] = worst_share
        reading = replace(reading, columns={**reading.columns, SHARE: share})
    pods = Owners().expectation(Traffic(0.0, 0.0))
    reading = replace(reading, sampled_at=START, window_seconds=60.0, expects=pods)
    keeping.bench.give(ReadingPublished(keeping.traffic.request, reading))
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
    predicted.move(pod("1"), "busy", "quiet")
    found = predicted.hottest()
    assert found is not None
    assert (found.share, found.node) == (0.8, "busy")
    assert found.predicted_share == pytest.approx(0.5)
    predicted.move(pod("2"), "busy", "quiet")
    again = predicted.hottest()
    assert again is not None
    assert (again.share, again.predicted_node) == (0.8, "quiet")
    assert again.predicted_share == pytest.approx(0.7)
    predicted.forget("default/1")
    predicted.forget("default/2")
    assert predicted.hottest() == links().hottest()
    assert predicted.moved_count == 0


def test_no_link_carries_less_than_nothing() -> None:
    predicted = links()
    for number in range(4):
        predicted.move(pod(str(number)), "busy", "elsewhere")
    found = predicted.hottest()
    assert found is not None
    assert found.predicted_share == pytest.approx(0.1)


def test_another_device_that_is_busier_stays_so() -> None:
    """What a pod adds is added to the share of the worst device."""
    predicted = links(worst_share=0.9)
    predicted.move(make_pod("small", annotations={"lowtide.dev/traffic": "8M"}), "quiet", "busy")
    found = predicted.hottest()
    assert found is not None
    assert (found.share, found.node) == (0.9, "busy")
    assert found.predicted_share == pytest.approx(0.9008)
