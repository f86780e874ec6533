"""Whatever happens to the queue, every waiting pod is in exactly one place and none is lost."""

import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
)
from tests.scheduler.queued_pods import QueueOfPods

from lowtide.framework.change import Change
from lowtide.framework.plugin import NODE, PODS, READING
from lowtide.objects.pod import Pod
from lowtide.scheduler.pods import QUEUED, PendingPod, Stage
from lowtide.testing import make_pod

OCCASIONS = st.integers(0, NODE | PODS | READING)
NUMBERS = st.integers(0, 7)
PRIORITIES = st.integers(-1, 2)


def uid_of(number: int) -> str:
    return f"default/pod-{number}"


class QueueMachine(RuleBasedStateMachine):
    """A model that knows only which pods wait, beside the queue."""

    held = Bundle("held")  # taken, not given back yet

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.queue = QueueOfPods()
        self.waiting: dict[str, Pod] = {}
        self.in_hand: set[str] = set()

    @rule(number=NUMBERS, priority=PRIORITIES, is_gated=st.booleans())
    def pod_comes_or_changes(self, number: int, priority: int, is_gated: bool) -> None:
        uid = uid_of(number)
        if uid in self.in_hand:
            return
        pod = make_pod(f"pod-{number}", priority=priority, gates=["gate"] if is_gated else [])
        if uid in self.waiting:
            self.queue.changes(pod, self.now)
        else:
            self.queue.comes(pod, self.now)
        self.waiting[uid] = pod

    @rule(number=NUMBERS)
    def pod_goes(self, number: int) -> None:
        if uid_of(number) in self.in_hand:
            return
        removed = self.queue.goes(uid_of(number))
        assert (removed is not None) == (self.waiting.pop(uid_of(number), None) is not None)

    @rule(target=held)
    def pod_is_taken(self) -> object:
        was_ready = self.queue.is_ready(self.now)
        before = list(self.queue)
        ready = [queued for queued in before if queued.stage is Stage.ACTIVE]
        queued = self.queue.pop(self.now)
        assert (queued is not None) == was_ready
        if queued is None:
            return multiple()
        if ready:
            assert queued in ready
            assert queued.pod.spec.priority == max(each.pod.spec.priority for each in ready)
        assert self.waiting.pop(queued.pod.uid) == queued.pod
        self.in_hand.add(queued.pod.uid)
        return queued

    @rule(queued=consumes(held), retry_on=OCCASIONS)
    def no_node_for_it(self, queued: PendingPod, retry_on: int) -> None:
        self.queue.park(queued, frozenset(["Plugin"]), retry_on, self.now)
        self.comes_back(queued)

    @rule(queued=consumes(held))
    def it_met_an_error(self, queued: PendingPod) -> None:
        self.queue.retry(queued, self.now)
        self.comes_back(queued)

    @rule(queued=consumes(held))
    def it_is_bound(self, queued: PendingPod) -> None:
        self.queue.goes(queued.uid)
        self.in_hand.discard(queued.pod.uid)

    def comes_back(self, queued: PendingPod) -> None:
        self.in_hand.discard(queued.pod.uid)
        self.waiting[queued.pod.uid] = queued.pod

    @rule(occasion=OCCASIONS)
    def something_changes(self, occasion: int) -> None:
        caring = [
            queued
            for queued in self.queue
            if queued.stage is Stage.UNSCHEDULABLE and queued.retry_on & occasion
        ]
        assert self.queue.wake(Change(occasion), self.now) == len(caring)
        assert all(queued.stage is not Stage.UNSCHEDULABLE for queued in caring)

    @rule(seconds=st.sampled_from([0.0, 0.3, 1.0, 2.0, 11.0, 301.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: not self.in_hand)
    @rule()
    def an_hour_without_gates_releases_everyone(self) -> None:
        self.now += 3600.0
        gated = {queued.pod.uid for queued in self.queue if queued.stage is Stage.GATED}
        taken = set()
        while (queued := self.queue.pop(self.now)) is not None:
            taken.add(queued.pod.uid)
            self.queue.goes(queued.uid)
        # A gate is looked at again when the pod enters, so a pod may have become gated by now.
        left = {queued.pod.uid for queued in self.queue}
        assert taken | left == self.waiting.keys()
        assert not taken & left
        assert gated <= left
        assert all(queued.pod.spec.scheduling_gates for queued in self.queue)
        self.waiting = {uid: self.waiting[uid] for uid in left}

    @invariant()
    def every_waiting_pod_is_there_once(self) -> None:
        found = list(self.queue)
        assert {queued.pod.uid: queued.pod for queued in found} == self.waiting
        assert len(found) == len(self.waiting)
        assert all(queued.stage in QUEUED for queued in found)
        assert all(self.queue.pods.by_uid.get(uid) is not None for uid in self.waiting)
        assert sum(self.queue.lengths().values()) == len(self.waiting)

    @invariant()
    def who_waits_for_time_is_waited_for(self) -> None:
        stages = {queued.stage for queued in self.queue}
        waits = bool(stages & {Stage.ERROR_BACKOFF, Stage.UNSCHEDULABLE})
        assert not waits or self.queue.next_change_at() < math.inf


QueueMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, derandomize=True
)
test_every_pod_is_in_exactly_one_place = QueueMachine.TestCase
