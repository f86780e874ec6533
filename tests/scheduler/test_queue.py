"""The queue: who is next, how long a pod waits, and what brings it back."""

import math

import pytest
from tests.scheduler.queued_pods import QueueOfPods

from lowtide.framework.change import Change
from lowtide.framework.plugin import NODE, PODS, READING
from lowtide.objects.pod import Pod
from lowtide.scheduler.pods import QUEUED, PendingEviction, PendingPod, Stage
from lowtide.testing import make_pod

NOW = 1000.0
PLUGIN = frozenset(["NodeResourcesFit"])


def make_queue() -> QueueOfPods:
    return QueueOfPods()


def queue_of(*pods: Pod) -> QueueOfPods:
    queue = make_queue()
    for pod in pods:
        queue.comes(pod, NOW)
    return queue


def take(queue: QueueOfPods, now: float = NOW) -> PendingPod:
    queued = queue.pop(now)
    assert queued is not None
    return queued


def names_in_order(queue: QueueOfPods, now: float) -> list[str]:
    names = []
    while (queued := queue.pop(now)) is not None:
        names.append(queued.pod.name)
    return names


def places(queue: QueueOfPods) -> dict[str, Stage]:
    return {queued.pod.name: queued.stage for queued in queue}


def parked(pod: Pod, *, retry_on: int = NODE, now: float = NOW) -> QueueOfPods:
    queue = make_queue()
    queue.comes(pod, now)
    queue.park(take(queue, now), PLUGIN, retry_on, now)
    return queue


# Who is next.


def test_the_pod_of_higher_priority_is_first_then_the_one_that_came_earlier() -> None:
    queue = make_queue()
    queue.comes(make_pod("early"), 1.0)
    queue.comes(make_pod("late"), 2.0)
    queue.comes(make_pod("urgent late", priority=10), 3.0)
    queue.comes(make_pod("lowly", priority=-1), 0.0)
    queue.comes(make_pod("urgent later", priority=10), 4.0)
    assert names_in_order(queue, NOW) == ["urgent late", "urgent later", "early", "late", "lowly"]


def test_pods_of_one_moment_keep_their_order() -> None:
    queue = queue_of(*(make_pod(f"pod-{number}") for number in range(20)))
    assert names_in_order(queue, NOW) == [f"pod-{number}" for number in range(20)]


def test_an_empty_queue_has_nothing_to_give() -> None:
    queue = make_queue()
    assert (queue.pop(NOW), queue.is_ready(NOW), queue.next_change_at()) == (None, False, math.inf)


def test_each_taking_is_an_attempt() -> None:
    queue = queue_of(make_pod())
    for attempt in (1, 2, 3):
        queued = take(queue, NOW + 100 * attempt)
        assert (queued.attempts, queued.first_seen_at) == (attempt, NOW)
        queue.retry(queued, NOW + 100 * attempt)


def test_a_retried_pod_lines_up_behind_those_that_came_meanwhile() -> None:
    queue = queue_of(make_pod("failed"))
    queue.retry(take(queue), NOW)
    queue.comes(make_pod("earlier"), NOW - 1)
    queue.comes(make_pod("later"), NOW + 1)
    assert names_in_order(queue, NOW + 10) == ["earlier", "failed", "later"]


# How long a pod waits.


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(1000.0, id="from a whole second"),
        pytest.param(1000.75, id="from a fraction of a second"),
    ],
)
def test_errors_back_off_1_2_4_8_10_10_seconds_and_end_on_a_whole_second(start: float) -> None:
    queue = make_queue()
    queue.comes(make_pod(), start)
    waits, now = [], start
    for _ in range(6):
        queue.retry(take(queue, now), now)
        released_at = queue.next_change_at()
        assert not queue.is_ready(released_at - 0.01)
        assert queue.is_ready(released_at)
        waits.append(released_at - math.floor(now))
        now = released_at + start % 1
    # kube-scheduler is still waiting in the second in which the backoff ends.
    assert waits == [2.0, 3.0, 5.0, 9.0, 11.0, 11.0]


def test_rejections_back_off_by_their_own_count_and_errors_by_theirs() -> None:
    queue = queue_of(make_pod())
    waits = []
    for fails in ("rejected", "error", "error", "rejected", "error"):
        queued = take(queue)
        if fails == "rejected":
            queue.park(queued, PLUGIN, NODE, NOW)
            queue.wake(Change(NODE), NOW)
        else:
            queue.retry(queued, NOW)
        waits.append(queued.backoff_until - NOW - 1)
        assert queue.is_ready(NOW + 12)  # releases it, so that it can be taken again
    assert waits == [1.0, 1.0, 2.0, 2.0, 1.0]


def test_the_backoff_of_the_configuration_is_used() -> None:
    queue = QueueOfPods(initial_backoff_seconds=3.0, max_backoff_seconds=5.0)
    queue.comes(make_pod(), NOW)
    ends = []
    for _ in range(3):
        queued = take(queue, NOW + 100)
        queue.retry(queued, NOW)
        ends.append(queued.backoff_until)
    assert ends == [NOW + 4, NOW + 6, NOW + 6]


def test_a_pod_that_backs_off_is_taken_early_when_no_pod_is_ready() -> None:
    queue = parked(make_pod("rejected"))
    queue.wake(Change(NODE), NOW)
    queue.comes(make_pod("ready", priority=-5), NOW)
    assert places(queue) == {"rejected": Stage.BACKOFF, "ready": Stage.ACTIVE}
    assert queue.is_ready(NOW)
    assert names_in_order(queue, NOW) == ["ready", "rejected"]


def test_of_those_that_back_off_the_one_that_is_due_first_is_taken() -> None:
    queue = queue_of(make_pod("slow", priority=5), make_pod("fast"))
    slow, fast = take(queue), take(queue)
    slow.unschedulable_count = 3
    queue.park(slow, PLUGIN, NODE, NOW)
    queue.park(fast, PLUGIN, NODE, NOW)
    queue.wake(Change(NODE), NOW)
    assert names_in_order(queue, NOW) == ["fast", "slow"]


def test_a_pod_that_met_an_error_is_not_taken_early() -> None:
    queue = queue_of(make_pod())
    queue.retry(take(queue), NOW)
    assert (queue.is_ready(NOW + 1.9), queue.pop(NOW + 1.9)) == (False, None)
    assert queue.lengths() == {"active": 0, "backoff": 1, "unschedulable": 0, "gated": 0}
    assert names_in_order(queue, NOW + 2) == ["pod"]


# Parked until something changes.


def test_a_parked_pod_waits_until_something_its_plugins_read_changes() -> None:
    queue = parked(make_pod(), retry_on=NODE | PODS)
    assert places(queue) == {"pod": Stage.UNSCHEDULABLE}
    assert not queue.is_ready(NOW + 200)
    assert queue.wake(Change(READING), NOW + 200) == 0
    assert queue.wake(Change(PODS | READING), NOW + 200) == 1
    assert places(queue) == {"pod": Stage.ACTIVE}


def test_only_the_pods_that_care_are_woken() -> None:
    queue = queue_of(make_pod("by node"), make_pod("by pods"), make_pod("by both"))
    for retry_on in (NODE, PODS, NODE | PODS):
        queue.park(take(queue), PLUGIN, retry_on, NOW)
    assert queue.wake(Change(PODS), NOW + 60) == 2
    assert names_in_order(queue, NOW + 60) == ["by pods", "by both"]
    assert places(queue) == {"by node": Stage.UNSCHEDULABLE}


def test_a_pod_that_nothing_can_wake_stays() -> None:
    queue = parked(make_pod(), retry_on=0)
    assert queue.wake(Change(~0), NOW) == 0


def test_waking_does_not_shorten_the_backoff() -> None:
    queue = parked(make_pod("rejected"))
    queue.wake(Change(NODE), NOW + 1)
    assert places(queue) == {"rejected": Stage.BACKOFF}
    assert queue.is_ready(NOW + 2)
    assert places(queue) == {"rejected": Stage.ACTIVE}


def test_what_is_parked_remembers_who_rejected_it() -> None:
    queue = parked(make_pod())
    (queued,) = queue
    assert (queued.rejected_by, queued.unschedulable_count, queued.error_count) == (PLUGIN, 1, 0)


def test_after_five_minutes_a_parked_pod_is_tried_whatever_happened() -> None:
    queue = parked(make_pod(), retry_on=0)
    assert queue.next_change_at() == NOW + 300
    assert not queue.is_ready(NOW + 299.9)
    assert queue.is_ready(NOW + 300)
    assert (places(queue), queue.next_change_at()) == ({"pod": Stage.ACTIVE}, math.inf)


def test_each_parked_pod_has_its_own_five_minutes() -> None:
    queue = queue_of(make_pod("first"), make_pod("second"))
    queue.park(take(queue), PLUGIN, NODE, NOW)
    queue.park(take(queue), PLUGIN, PODS, NOW + 100)
    assert names_in_order(queue, NOW + 300) == ["first"]
    assert queue.next_change_at() == NOW + 400
    assert names_in_order(queue, NOW + 400) == ["second"]


# Who is asked about.


class Hints:
    """Says what it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, bool] = {}
        self.asked: list[tuple[str, frozenset[str]]] = []

    def may_help(self, record: PendingPod, rejected_by: frozenset[str], change: Change) -> bool:
        self.asked.append((record.pod.name, rejected_by))
        return self.answers.get(record.pod.name, False)


def test_the_question_is_put_once_for_pods_of_one_signature_that_the_same_plugins_rejected() -> (
    None
):
    hints = Hints()
    queue = QueueOfPods(may_help=hints.may_help)
    for name, cpu, plugins in (
        ("a", "1", PLUGIN),
        ("b", "1", PLUGIN),
        ("c", "2", PLUGIN),
        ("d", "1", frozenset(["NodePorts"])),
    ):
        queue.comes(make_pod(name, cpu=cpu), NOW)
        queue.park(take(queue), plugins, NODE, NOW)
    hints.answers = {"a": True}
    assert queue.wake(Change(PODS), NOW + 60) == 0
    assert hints.asked == []
    assert queue.wake(Change(NODE), NOW + 60) == 2
    assert hints.asked == [("a", PLUGIN), ("c", PLUGIN), ("d", frozenset(["NodePorts"]))]
    assert names_in_order(queue, NOW + 60) == ["a", "b"]


def test_the_first_of_a_group_may_leave_it() -> None:
    hints = Hints()
    queue = QueueOfPods(may_help=hints.may_help)
    for name in ("a", "b"):
        queue.comes(make_pod(name), NOW)
        queue.park(take(queue), PLUGIN, NODE, NOW)
    queue.goes("default/a")
    hints.answers = {"b": True}
    assert queue.wake(Change(NODE), NOW + 60) == 1


def test_what_helps_up_to_a_priority_wakes_nobody_above_it() -> None:
    queue = make_queue()
    for name, priority in (("low", -1), ("equal", 0), ("high", 1)):
        queue.comes(make_pod(name, priority=priority), NOW)
        queue.park(take(queue), PLUGIN, PODS, NOW)
    assert queue.wake(Change(PODS, highest_priority=0), NOW + 60) == 2
    assert places(queue) == {
        "low": Stage.ACTIVE,
        "equal": Stage.ACTIVE,
        "high": Stage.UNSCHEDULABLE,
    }


# Gated pods.


def test_a_pod_with_gates_stays_out_until_they_are_gone() -> None:
    queue = queue_of(make_pod(gates=["wait", "more"]))
    queue.changes(make_pod(gates=["more"]), NOW)
    assert queue.lengths() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
    assert (queue.is_ready(NOW + 1000), queue.wake(Change(~0), NOW)) == (False, 0)
    queue.changes(make_pod(), NOW)
    assert places(queue) == {"pod": Stage.ACTIVE}


# Room is made for a pod.


def evicting() -> tuple[QueueOfPods, PendingPod]:
    """A change may help the pod, but its victims have not gone."""
    queue = parked(make_pod())
    (record,) = queue
    record.eviction = PendingEviction(record.pod, "node-a", {"default/victim"})
    queue.wake(Change(NODE), NOW)
    return queue, record


def test_a_pod_waits_for_its_victims_when_a_change_may_help_it() -> None:
    queue, _ = evicting()
    assert places(queue) == {"pod": Stage.EVICTING}
    assert queue.lengths() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
    assert (queue.is_ready(NOW + 1000), queue.wake(Change(~0), NOW)) == (False, 0)


def test_a_pod_is_let_in_when_its_victims_are_gone() -> None:
    queue, record = evicting()
    record.eviction = None
    queue.victims_are_gone(record, NOW + 60)
    assert places(queue) == {"pod": Stage.ACTIVE}


def test_a_pod_whose_victims_are_gone_stays_out_while_a_plugin_gates_it() -> None:
    queue, record = evicting()
    queue.changes(make_pod(gates=["wait"]), NOW + 60)
    assert places(queue) == {"pod": Stage.EVICTING}
    record.eviction = None
    queue.victims_are_gone(record, NOW + 60)
    assert places(queue) == {"pod": Stage.GATED}


def test_a_parked_pod_stays_parked_when_its_victims_are_gone() -> None:
    queue = parked(make_pod())
    (record,) = queue
    queue.victims_are_gone(record, NOW)
    assert places(queue) == {"pod": Stage.UNSCHEDULABLE}


@pytest.mark.parametrize(
    ("place", "want"),
    [
        pytest.param(Stage.EVICTING, Stage.ERROR_BACKOFF, id="evicting"),
        pytest.param(Stage.UNSCHEDULABLE, Stage.ERROR_BACKOFF, id="unschedulable"),
        pytest.param(Stage.ACTIVE, Stage.ACTIVE, id="active, and stays active"),
    ],
)
def test_a_pod_whose_eviction_failed_is_retried_after_a_while_when_it_is(
    place: Stage, want: Stage
) -> None:
    queue = in_place(place)
    (record,) = queue
    record.eviction = None
    queue.eviction_failed(record, NOW)
    assert places(queue) == {"pod": want}


# Changes and removals, in each place.


def in_place(place: Stage) -> QueueOfPods:
    pod = make_pod(gates=["wait"] if place is Stage.GATED else [])
    queue = queue_of(pod)
    match place:
        case Stage.BACKOFF:
            queue = parked(pod)
            queue.wake(Change(NODE), NOW)
        case Stage.ERROR_BACKOFF:
            queue.retry(take(queue), NOW)
        case Stage.UNSCHEDULABLE:
            queue = parked(pod)
        case Stage.EVICTING:
            queue, _ = evicting()
    assert places(queue) == {"pod": place}
    return queue


WAITING = [
    pytest.param(place, id=f"holds for a pod that is {place.value}")
    for place in Stage
    if place in QUEUED
]


@pytest.mark.parametrize("place", WAITING)
def test_a_removed_pod_is_gone_from_everywhere(place: Stage) -> None:
    queue = in_place(place)
    removed = queue.goes("default/pod")
    assert removed is not None
    assert removed.stage is Stage.NOT_PENDING
    assert queue.pods.by_uid.get("default/pod") is None
    assert (list(queue), queue.wake(Change(~0), NOW), queue.pop(NOW + 1000)) == ([], 0, None)
    assert queue.lengths() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}


def test_removing_a_stranger_does_nothing() -> None:
    queue = queue_of(make_pod())
    assert queue.goes("stranger") is None
    assert places(queue) == {"pod": Stage.ACTIVE}


@pytest.mark.parametrize("place", WAITING)
def test_a_change_of_the_status_moves_nothing_and_is_kept(place: Stage) -> None:
    queue = in_place(place)
    (before,) = queue
    gates = ["wait"] if place is Stage.GATED else []
    changed = make_pod(gates=gates, nominated="node-a")
    queue.changes(changed, NOW)
    (after,) = queue
    assert (after is before, after.pod, after.stage) == (True, changed, place)


@pytest.mark.parametrize(
    ("place", "goes_to"),
    [
        pytest.param(Stage.ACTIVE, Stage.ACTIVE, id="leaves an active pod active"),
        pytest.param(Stage.BACKOFF, Stage.BACKOFF, id="leaves a pod in backoff"),
        pytest.param(Stage.ERROR_BACKOFF, Stage.ERROR_BACKOFF, id="leaves a pod in error backoff"),
        pytest.param(
            Stage.UNSCHEDULABLE, Stage.BACKOFF, id="moves an unschedulable pod to backoff"
        ),
        pytest.param(Stage.GATED, Stage.ACTIVE, id="activates a gated pod without gates"),
    ],
)
def test_a_change_of_the_spec(place: Stage, goes_to: Stage) -> None:
    queue = in_place(place)
    queue.changes(make_pod(cpu="1"), NOW)
    assert places(queue) == {"pod": goes_to}
    assert take(queue, NOW + 1000).pod == make_pod(cpu="1")
    assert queue.pop(NOW + 1000) is None


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(make_pod(labels={"a": "b"}), id="such as its labels"),
        pytest.param(make_pod(annotations={"a": "b"}), id="such as its annotations"),
        pytest.param(make_pod(tolerations=[{"operator": "Exists"}]), id="such as its tolerations"),
    ],
)
def test_a_parked_pod_is_tried_again_when_what_plugins_read_of_it_changes(changed: Pod) -> None:
    queue = parked(make_pod())
    queue.changes(changed, NOW + 60)
    assert places(queue) == {"pod": Stage.ACTIVE}


def test_a_ready_pod_that_becomes_urgent_goes_first() -> None:
    queue = queue_of(make_pod("first"), make_pod("second"))
    queue.changes(make_pod("second", priority=1), NOW)
    assert names_in_order(queue, NOW) == ["second", "first"]


def test_a_ready_pod_that_loses_its_urgency_goes_last() -> None:
    queue = queue_of(make_pod("urgent", priority=1), make_pod("plain"))
    queue.changes(make_pod("urgent", priority=-1), NOW)
    assert names_in_order(queue, NOW) == ["plain", "urgent"]


def test_a_pod_that_was_removed_and_comes_again_starts_anew() -> None:
    queue = parked(make_pod())
    queue.goes("default/pod")
    queue.comes(make_pod(), NOW + 5)
    queued = take(queue, NOW + 5)
    assert (queued.attempts, queued.unschedulable_count, queued.first_seen_at) == (1, 0, NOW + 5)
    assert queue.pop(NOW + 5) is None


# What the metric counts.


def test_each_entry_is_counted_by_queue_and_event() -> None:
    queue = queue_of(make_pod("web"), make_pod("gated", gates=["wait"]))
    queue.park(take(queue), PLUGIN, NODE, NOW)
    queue.wake(Change(NODE, "NodeUpdate"), NOW)
    queue.retry(take(queue), NOW)
    queue.is_ready(NOW + 10)
    assert queue.incoming == {
        ("active", "UnschedulablePodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("backoff", "NodeUpdate"): 1,
        ("backoff", "ScheduleAttemptFailure"): 1,
        ("active", "BackoffComplete"): 1,
    }


def test_a_queue_that_nobody_takes_from_forgets_pods_that_left() -> None:
    queue = make_queue()
    for number in range(5000):
        pod = make_pod(f"pod-{number}")
        queue.comes(pod, NOW)
        queue.goes(pod.uid)
    assert len(queue.pods.active._entries) <= 65
