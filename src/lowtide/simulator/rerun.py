"""The arrivals of a recording under another configuration, on virtual time: nodes, objects, pods of
others and readings come as they were recorded; who goes where is decided anew.

`app/replay` makes one per configuration; `rerun_report` compares them."""

import heapq
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from lowtide.cluster.reading import Reading
from lowtide.framework.decision import Decision
from lowtide.framework.plugin import BindOutcome
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.pod import Pod
from lowtide.readings.request import TrafficRequest
from lowtide.records.recording import Step
from lowtide.scheduler.actions import Action, Bind, Decided, Evict
from lowtide.scheduler.events import (
    BindingEnded,
    Event,
    EvictionEnded,
    ExtendersAnswered,
    PermitAnswered,
    ReadingPublished,
    Turn,
)
from lowtide.scheduler.machine import Machine
from lowtide.simulator.link_course import LinkCourse
from lowtide.simulator.moved_reading import MovedPod, moved_reading
from lowtide.simulator.run import BINDING_SECONDS, DECISION_SECONDS

# What the recorded scheduler did and was answered: here that happens anew.
_OF_THE_RECORDED = (Turn, BindingEnded, EvictionEnded, PermitAnswered, ExtendersAnswered)

Happening = Callable[[float], None]


class Outcome(msgspec.Struct, frozen=True):
    """Where a pod went, and by which decision."""

    node_name: str
    decision: Decision


class Rerun:
    """`sources` are what the recording's readings stand for here; the first of traffic also says
    how busy links are. Extenders are not asked: what they would say is not recorded."""

    def __init__(
        self,
        machine: Machine,
        sources: Sequence[Hashable | None],
        *,
        takes_all: bool = False,
    ) -> None:
        """`takes_all`: also pods of other schedulers are decided, by the first profile."""
        self._machine = machine
        self._takes_all = takes_all
        self.sources = sources
        traffic = [each for each in sources if isinstance(each, TrafficRequest)]
        self._request = traffic[0] if traffic else None
        self.links = LinkCourse()
        self.outcomes: dict[str, Outcome] = {}  # by pod key, as it was last
        self.recorded: dict[str, str] = {}  # by pod key: where it went when it was recorded
        self._decisions: dict[str, Decision] = {}  # by uid, of pods that are being bound
        self._own: dict[str, str] = {}  # by uid: where pods are here
        self._then: dict[str, str] = {}  # by uid: where they were then
        self._known: dict[str, Pod] = {}  # by uid: as last recorded, of pods that are decided here
        self._evicted: set[str] = set()
        self._happenings: list[tuple[float, int, Happening]] = []
        self._planned = 0
        self._free_at = -math.inf
        self._now = -math.inf

    @property
    def pending(self) -> int:
        return sum(uid not in self._own for uid in self._known)

    def take(self, step: Step) -> None:
        """The next of the recording; what is due before it happens first."""
        self._go_on_until(step.now)
        self._now = max(self._now, step.now)
        if step.event is not None and not isinstance(step.event, _OF_THE_RECORDED):
            self._happen(step.event, step.now)

    def end(self) -> None:
        """Lets what is under way come to its end; nothing more arrives."""
        self._go_on_until(self._now + 60.0)

    # Time passes.

    def _go_on_until(self, until: float) -> None:
        while True:
            turn_at = self._turn_at()
            planned_at = self._happenings[0][0] if self._happenings else math.inf
            at = min(turn_at, planned_at)
            if at > until:
                return
            if planned_at <= turn_at:
                _, _, happening = heapq.heappop(self._happenings)
                happening(at)
            else:
                self._free_at = at + DECISION_SECONDS
                self._step(Turn(), at)

    def _turn_at(self) -> float:
        """When the next pod can have its turn."""
        machine = self._machine
        if not math.isfinite(self._now):
            return math.inf
        earliest = max(self._now, self._free_at)
        if machine.has_work(earliest):
            return earliest
        return max(machine.next_change_at(), earliest) if machine.is_synced else math.inf

    def _plan(self, at: float, happening: Happening) -> None:
        self._planned += 1
        heapq.heappush(self._happenings, (at, self._planned, happening))

    def _step(self, event: Event, now: float) -> None:
        self._now = max(self._now, now)
        for action in self._machine.step(event, now):
            self._act(action, now)

    def _act(self, action: Action, now: float) -> None:
        match action:
            case Decided(decision=decision) if decision.node_name is not None:
                self._decisions[decision.pod.uid] = decision
            case Bind(pod=pod, node_name=node_name):
                self._plan(now + BINDING_SECONDS, partial(self._bound, pod, node_name))
            case Evict():
                self._plan(now + BINDING_SECONDS, partial(self._evict, action))

    # What was recorded happens.

    def _happen(self, event: Event, now: float) -> None:
        match event:
            case Added(object=Pod() as pod) | Modified(object=Pod() as pod):
                self._pod_changed(event, pod, now)
            case Deleted(object=Pod() as pod):
                self._pod_gone(pod, now)
            case ReadingPublished(source, reading):
                self._reading(source, reading, now)
            case _:
                self._step(event, now)

    def _taken(self, pod: Pod) -> Pod:
        profiles = self._machine.profiles
        if not self._takes_all or pod.spec.scheduler_name in profiles:
            return pod
        return replace(pod, spec=replace(pod.spec, scheduler_name=next(iter(profiles))))

    def _pod_changed(self, event: Event, pod: Pod, now: float) -> None:
        uid = pod.uid
        if uid in self._evicted:
            return
        if not pod.spec.node_name:
            pod = self._taken(pod)
            if pod.spec.scheduler_name in self._machine.profiles:
                self._known[uid] = pod
            if uid not in self._own:
                self._step(Modified(pod), now)
            return
        if uid not in self._known:
            self._step(event, now)  # placed by somebody else
            return
        self._known[uid] = pod
        self._then[uid] = pod.spec.node_name
        self.recorded[pod.key] = pod.spec.node_name
        if uid in self._own:
            self._step(Modified(_on(pod, self._own[uid])), now)

    def _pod_gone(self, pod: Pod, now: float) -> None:
        uid = pod.uid
        if uid not in self._evicted:
            self._step(Deleted(_on(pod, self._own.get(uid, pod.spec.node_name))), now)
        for known in (self._known, self._own, self._then, self._decisions):
            known.pop(uid, None)
        self._evicted.discard(uid)

    def _reading(self, source: Hashable, reading: Reading, now: float) -> None:
        if isinstance(source, TrafficRequest):
            reading = moved_reading(reading, source, self._moved())
            if source == self._request:
                self.links.look(reading, self._machine.state, now)
        self._step(ReadingPublished(source, reading), now)

    def _moved(self) -> Iterator[MovedPod]:
        for uid, pod in self._known.items():
            then, here = self._then.get(uid), self._own.get(uid)
            if then != here:
                yield MovedPod(pod, then, here)

    # What is decided here happens.

    def _bound(self, pod: Pod, node_name: str, now: float) -> None:
        uid = pod.uid
        self._step(BindingEnded(uid, BindOutcome()), now)
        if uid not in self._known:
            return  # it was deleted meanwhile
        self._own[uid] = node_name
        decision = self._decisions.pop(uid, None)
        if decision is not None:
            self.outcomes[pod.key] = Outcome(node_name, decision)
        self._step(Modified(_on(self._known[uid], node_name)), now)

    def _evict(self, evict: Evict, now: float) -> None:
        self._step(EvictionEnded(evict.pod.uid, evicted=evict.victims), now)
        for victim in evict.victims:
            self._evicted.add(victim.uid)
            self._step(Deleted(victim), now)
            for known in (self._known, self._own, self._then):
                known.pop(victim.uid, None)


def _on(pod: Pod, node_name: str) -> Pod:
    if pod.spec.node_name == node_name:
        return pod
    return replace(pod, spec=replace(pod.spec, node_name=node_name))
