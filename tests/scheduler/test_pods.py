"""Records of pods: whose time is up, what it costs to find that out, and where none moves."""

import math

import pytest
from tests.scheduler.queued_pods import PROFILE

from lowtide.plugins.priority_sort import PrioritySort
from lowtide.scheduler.pods import TRANSITIONS, Deadline, PendingPod, Pods, Stage
from lowtide.testing import make_pod

WAY = (Stage.ACTIVE, Stage.DECIDING, Stage.WAITING)


def make_pods() -> Pods:
    return Pods(PrioritySort())


def added(pods: Pods, name: str, now: float = 0.0, **waits: float) -> PendingPod:
    """`waits` are seconds by plugin."""
    pod = make_pod(name)
    record = PendingPod(pod, pod.uid, PROFILE, first_seen_at=now, queued_at=now)
    for stage in WAY:
        pods.move(record, stage)
    for plugin_name, seconds in waits.items():
        pods.wait(record, Deadline(record, now + seconds, seconds, plugin_name))
    return record


def next_deadline_at(pods: Pods) -> float:
    first = pods.deadlines.first()
    return math.inf if first is None else first.at


def overdue(pods: Pods, now: float) -> list[tuple[str, str]]:
    """Each with the plugin that it waited for, in order."""
    found = []
    while (due := pods.deadlines.first()) is not None and due.at <= now:
        found.append((due.record.pod.name, due.waits_for))
        pods.move(due.record, Stage.ERROR_BACKOFF)
    return found


def test_who_waits_no_longer_is_never_overdue() -> None:
    pods = make_pods()
    allowed, rejected = added(pods, "allowed", A=10), added(pods, "rejected", A=20)
    pods.end_deadline(allowed, "A")
    assert next_deadline_at(pods) == 20
    pods.move(rejected, Stage.NOT_PENDING)
    assert next_deadline_at(pods) == math.inf
    assert overdue(pods, 1000) == []


def test_a_plugin_that_allows_takes_its_deadline_along() -> None:
    pods = make_pods()
    record = added(pods, "web", Soon=10, Later=20)
    pods.end_deadline(record, "Soon")
    assert (next_deadline_at(pods), overdue(pods, 19.9)) == (20, [])
    assert overdue(pods, 20) == [("web", "Later")]


def test_who_waits_a_second_time_has_a_new_deadline() -> None:
    pods = make_pods()
    record = added(pods, "web", A=10)
    for stage in (Stage.ERROR_BACKOFF, *WAY):
        pods.move(record, stage)
    pods.wait(record, Deadline(record, 15, 10, "A"))
    assert (next_deadline_at(pods), overdue(pods, 14.9)) == (15, [])
    assert overdue(pods, 15) == [("web", "A")]


def test_the_earliest_deadline_comes_first_then_who_waits_longer() -> None:
    pods = make_pods()
    added(pods, "late", A=30)
    added(pods, "first", A=10)
    added(pods, "second", B=10)
    assert overdue(pods, 30) == [("first", "A"), ("second", "B"), ("late", "A")]


class CountedTime(float):
    """A time that counts how often times are compared."""

    comparisons = 0

    def __add__(self, other: float) -> "CountedTime":
        return CountedTime(float(self) + other)

    def __lt__(self, other: float) -> bool:
        CountedTime.comparisons += 1
        return float(self) < other

    def __le__(self, other: float) -> bool:
        CountedTime.comparisons += 1
        return float(self) <= other

    def __eq__(self, other: object) -> bool:
        CountedTime.comparisons += 1
        return float(self) == other

    __hash__ = float.__hash__


def test_finding_nobody_overdue_costs_the_same_however_many_wait() -> None:
    def comparisons(count: int) -> int:
        pods, now = make_pods(), CountedTime(0.0)
        for number in range(count):
            added(pods, f"pod-{number}", now=now, A=30, B=60)
        CountedTime.comparisons = 0
        assert overdue(pods, now) == []
        assert next_deadline_at(pods) == 30
        return CountedTime.comparisons

    assert comparisons(1000) <= comparisons(10)


def test_nothing_is_kept_of_pods_that_were_allowed_at_once() -> None:
    pods = make_pods()
    for number in range(1000):
        record = added(pods, f"pod-{number}", A=900)
        pods.move(record, Stage.NOT_PENDING)
    assert list(pods) == []
    assert len(pods.deadlines._entries) < 200


UNDRAWN = [
    pytest.param(before, after, id=f"from {before.value} to {after.value}")
    for before, stages in TRANSITIONS.items()
    for after in Stage
    if after is not before and after not in stages
]


@pytest.mark.parametrize(("before", "after"), UNDRAWN)
def test_a_pod_does_not_move(before: Stage, after: Stage) -> None:
    pods, pod = make_pods(), make_pod("web")
    record = PendingPod(pod, pod.uid, PROFILE, first_seen_at=0.0, queued_at=0.0, stage=before)
    error = f"pod default/web cannot go from {before.value} to {after.value}"
    with pytest.raises(ValueError, match=f"^{error}$"):
        pods.move(record, after)
    assert (record.stage, list(pods)) == (before, [])


def test_a_move_that_is_refused_changes_nothing() -> None:
    pods = make_pods()
    pod = make_pod("web")
    record = PendingPod(pod, pod.uid, PROFILE, first_seen_at=0, queued_at=0)
    pods.move(record, Stage.ACTIVE)
    with pytest.raises(ValueError, match="cannot go from active to waiting"):
        pods.move(record, Stage.WAITING)
    assert (record.stage, pods.active.first()) == (Stage.ACTIVE, record)
