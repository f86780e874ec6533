"""PrioritySort: the pod of higher priority first, then the one that came earlier."""

from dataclasses import dataclass

from lowtide.objects.pod import Pod
from lowtide.plugins.priority_sort import PrioritySort
from lowtide.testing import make_pod


@dataclass(frozen=True)
class Waiting:
    pod: Pod
    queued_at: float


def test_the_order() -> None:
    waiting = [
        Waiting(make_pod("late", priority=5), 20.0),
        Waiting(make_pod("low", priority=-1), 0.0),
        Waiting(make_pod("early", priority=5), 10.0),
        Waiting(make_pod("high", priority=9), 30.0),
        Waiting(make_pod("none"), 0.0),
    ]
    ordered = sorted(waiting, key=PrioritySort().sort_key)
    assert [each.pod.name for each in ordered] == ["high", "early", "late", "none", "low"]
