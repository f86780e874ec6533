"""Pods that wait in Permit: whose time is up, and what it costs to find that out."""

import math
from typing import Any

from tests.scheduler.conftest import default_profile

from lowtide.scheduler.placements import Placement
from lowtide.scheduler.queue import QueuedPod
from lowtide.scheduler.waiting import WaitingPlacements
from lowtide.testing import make_node, make_pod, place

PROFILE = default_profile()
DECISION = place([], make_pod(), [make_node()])


def added(waiting: WaitingPlacements, name: str, now: float = 0.0, **waits: float) -> str:
    """The pod's uid; `waits` are seconds by rule."""
    queued = QueuedPod(make_pod(name), queued_at=now, first_seen_at=now)
    waiting.add(Placement(queued, "node", PROFILE, waits=waits), DECISION, now)
    return queued.pod.uid


def overdue(waiting: WaitingPlacements, now: float) -> list[tuple[str, str]]:
    """Each with the rule that it waited for, in order."""
    found = []
    while (each := waiting.overdue(now)) is not None:
        found.append(each[:2])
        waiting.end(each[0])
    return found


def test_who_waits_no_longer_is_never_overdue() -> None:
    waiting = WaitingPlacements()
    allowed, refused = added(waiting, "allowed", A=10), added(waiting, "refused", A=20)
    waiting.allow(allowed, "A")
    assert waiting.next_deadline() == 20
    waiting.end(refused)
    assert waiting.next_deadline() == math.inf
    assert waiting.overdue(1000) is None


def test_a_rule_that_allows_takes_its_deadline_along() -> None:
    waiting = WaitingPlacements()
    uid = added(waiting, "web", Soon=10, Later=20)
    waiting.allow(uid, "Soon")
    assert (waiting.next_deadline(), waiting.overdue(19.9)) == (20, None)
    assert overdue(waiting, 20) == [(uid, "Later")]


def test_who_waits_a_second_time_has_a_new_deadline() -> None:
    waiting = WaitingPlacements()
    waiting.end(added(waiting, "web", A=10))
    uid = added(waiting, "web", now=5.0, A=10)
    assert (waiting.next_deadline(), waiting.overdue(14.9)) == (15, None)
    assert overdue(waiting, 15) == [(uid, "A")]


def test_the_earliest_deadline_comes_first_then_who_waits_longer() -> None:
    waiting = WaitingPlacements()
    late = added(waiting, "late", A=30)
    first, second = added(waiting, "first", A=10), added(waiting, "second", B=10)
    assert overdue(waiting, 30) == [(first, "A"), (second, "B"), (late, "A")]


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
        waiting, now = WaitingPlacements(), CountedTime(0.0)
        for number in range(count):
            added(waiting, f"pod-{number}", now=now, A=30, B=60)
        CountedTime.comparisons = 0
        assert waiting.overdue(now) is None
        assert waiting.next_deadline() == 30
        return CountedTime.comparisons

    assert comparisons(1000) <= comparisons(10)


def test_nothing_is_kept_of_pods_that_were_allowed_at_once() -> None:
    waiting = WaitingPlacements()
    for number in range(1000):
        waiting.allow(added(waiting, f"pod-{number}", A=900), "A")
    kept: list[Any] = [value for value in vars(waiting).values() if isinstance(value, list | dict)]
    assert sum(map(len, kept)) < 200
