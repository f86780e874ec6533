"""The queue and pods that are parked until a moment of their own."""

import math

import pytest
from tests.scheduler.queued_pods import QueueOfPods

from lowtide.framework.change import Change
from lowtide.framework.plugin import NODE, PODS
from lowtide.scheduler.pods import Stage
from lowtide.testing import make_pod

NOW = 1000.0
PLUGIN = frozenset(["NetworkTraffic"])


def parked(**until: float) -> QueueOfPods:
    """Pods of these names, parked until those moments."""
    queue = QueueOfPods()
    for name, moment in until.items():
        queue.comes(make_pod(name), NOW)
        queued = queue.pop(NOW)
        assert queued is not None
        queue.park(queued, PLUGIN, NODE, NOW, until=moment)
    return queue


def names_in_order(queue: QueueOfPods, now: float) -> list[str]:
    names = []
    while (queued := queue.pop(now)) is not None:
        names.append(queued.pod.name)
    return names


@pytest.mark.parametrize(
    ("until", "tried_at"),
    [
        pytest.param(NOW + 60, NOW + 60, id="is tried at that time"),
        pytest.param(NOW + 900, NOW + 300, id="is tried after five minutes if that is sooner"),
        pytest.param(math.inf, NOW + 300, id="is tried after five minutes if it names none"),
    ],
)
def test_a_parked_pod(until: float, tried_at: float) -> None:
    queue = parked(pod=until)
    assert queue.next_change_at() == tried_at
    assert not queue.is_ready(tried_at - 0.1)
    assert queue.is_ready(tried_at)
    (queued,) = queue
    assert (queued.stage, queue.next_change_at()) == (Stage.ACTIVE, math.inf)


def test_each_pod_has_its_own_moment() -> None:
    queue = parked(last=NOW + 200, first=NOW + 60, second=NOW + 70)
    assert (queue.next_change_at(), names_in_order(queue, NOW + 60)) == (NOW + 60, ["first"])
    assert (queue.next_change_at(), names_in_order(queue, NOW + 80)) == (NOW + 70, ["second"])
    assert (queue.next_change_at(), names_in_order(queue, NOW + 200)) == (NOW + 200, ["last"])


def test_what_its_plugins_read_wakes_it_before() -> None:
    queue = parked(pod=NOW + 60)
    assert (queue.wake(Change(PODS), NOW + 5), queue.wake(Change(NODE), NOW + 5)) == (0, 1)
    assert names_in_order(queue, NOW + 5) == ["pod"]


def test_a_moment_that_comes_before_the_backoff_ends_is_kept_when_nobody_else_waits() -> None:
    queue = parked(pod=NOW + 0.5)
    assert not queue.is_ready(NOW + 0.4)
    assert queue.is_ready(NOW + 0.5)
    assert names_in_order(queue, NOW + 0.5) == ["pod"]


def test_a_pod_that_went_is_not_waited_for() -> None:
    queue = parked(gone=NOW + 60, other=NOW + 200)
    queue.goes("default/gone")
    assert not queue.is_ready(NOW + 60)
    assert queue.next_change_at() == NOW + 200
