"""The arrivals of a recording under another configuration, on virtual time: nodes, objects, pods of
others and readings come as they were recorded; who goes where is decided anew.

`app/replay` makes one per configuration; `rerun_report` compares them."""

import heapq
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from lowtide.cluster.reading import Reading
from lowtide.framework.decision import Decision
from lowtide.framework.plugin import BindOutcome
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.pod import Pod, PodStatus
from lowtide.readings.request import TrafficRequest
from lowtide.records.recording import Step
from lowtide.scheduler.actions import Action, Bind, Decided, Evict
from lowtide.scheduler.events import (
    BindingEnded,
    BindingLookedUp,
    Event,
    EvictionEnded,
    ExtendersAnswered,
    ReadingPublished,
    Turn,
)
from lowtide.scheduler.machine import Machine
from lowtide.simulator.judged_anew import JudgedAnew
from lowtide.simulator.link_course import LinkCourse
from lowtide.simulator.moved_reading import HotNodes, MovedPod, moved_reading
from lowtide.simulator.run import BINDING_SECONDS, DECISION_SECONDS
from lowtide.simulator.spared import Spared, is_preempted, owner_of

# What the recorded scheduler did and was answered: here that happens anew.
_OF_THE_RECORDED = (Turn, BindingEnded, BindingLookedUp, EvictionEnded, ExtendersAnswered)

GRACE_SECONDS: Final = 30.0  # Kubernetes' default; a pod's own is not recorded
COMING_BACK_SECONDS: Final = 1.0  # until an owner has made another pod
_AGAIN: Final = " again "  # in the uid of a pod that came back
_LEAVING: Final = "1970-01-01T00:00:00Z"

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
        anew: Mapping[Hashable, JudgedAnew] | None = None,
    ) -> None:
        """`takes_all`: also pods of other schedulers are decided, by the first profile. `anew`
        judges the readings of a source as it asks for; links are told of as they were recorded."""
        self._machine = machine
        self._takes_all = takes_all
        self._anew = anew or {}
        self.sources = sources
        traffic = [each for each in sources if isinstance(each, TrafficRequest)]
        self.request = traffic[0] if traffic else None
        self._hot = {request: HotNodes(request) for request in traffic}
        self.links = LinkCourse()
        self.outcomes: dict[str, Outcome] = {}  # by pod key, as it was last
        self.recorded: dict[str, str] = {}  # by pod key: where it went when it was recorded
        self._decisions: dict[str, Decision] = {}  # by uid, of pods that are being bound
        self._own: dict[str, str] = {}  # by uid: where pods are here
        self._then: dict[str, str] = {}  # by uid: where they were then
        self._known: dict[str, Pod] = {}  # by uid: as last recorded, of pods that are decided here
        self.evicted_count = 0
        self.lost: set[str] = set()  # keys of pods that were evicted here alone
        self._evicted: set[str] = set()  # uids of pods that were evicted here
        self._leaving: set[str] = set()  # those of them that are still on their node
        self._spared = Spared()
        self._uid_here: dict[str, str] = {}  # by recorded uid, of pods that came back here
        self._happenings: list[tuple[float, int, Happening]] = []
        self._planned = 0
        self._free_at = -math.inf
        self._now = -math.inf

    @property
    def pending(self) -> int:
        """Without those that nobody brings back, and those that are there in another form."""
        return sum(
            uid not in self._own
            and uid not in self._evicted
            and self._spared.stands_for(uid) is None
            for uid in self._known
        )

    def take(self, step: Step) -> None:
        """The next of the recording; what is due before it happens first."""
        self._go_on_until(step.now)
        self._now = max(self._now, step.now)
        if step.event is not None and not isinstance(step.event, _OF_THE_RECORDED):
            self._happen(step.event, step.now)

    def end(self) -> None:
        """Lets what is under way come to its end; nothing more arrives."""
        self._go_on_until(self._now + 60.0)

    def notes_on_readings(self) -> list[str]:
        """What they could not tell exactly; complete at the end."""
        return [each.inexactness for each in self._anew.values() if each.inexactness]

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
            case Deleted(object=Pod() as pod):
                self._pod_gone(pod, now)
            case Added(object=Pod() as pod) | Modified(object=Pod() as pod) if pod.has_ended:
                self._pod_gone(pod, now)
            case Added(object=Pod() as pod) | Modified(object=Pod() as pod):
                self._pod_changed(event, pod, now)
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
        pod = self._as_here(pod)
        uid = pod.uid
        if uid in self._known and is_preempted(pod):
            self._preempted_then(pod)
        if uid in self._evicted or uid in self._spared:
            return
        if not pod.spec.node_name:
            self._pod_pending(self._taken(pod), now)
        elif uid not in self._known:
            self._step(event, now)  # placed by somebody else
        else:
            self._known[uid] = pod
            self._then[uid] = pod.spec.node_name
            if self._spared.stands_for(uid) is None:
                self.recorded[pod.key] = pod.spec.node_name
            if uid in self._own:
                self._step(Modified(_on(pod, self._own[uid])), now)

    def _pod_pending(self, pod: Pod, now: float) -> None:
        """Which node it was promised then does not matter here."""
        pod = replace(pod, status=replace(pod.status, nominated_node_name=""))
        uid = pod.uid
        if pod.spec.scheduler_name in self._machine.profiles:
            is_new = uid not in self._known
            self._known[uid] = pod
            if (is_new and self._spared.replaced_by(pod)) or self._spared.stands_for(uid):
                return
        if uid not in self._own:
            self._step(Modified(pod), now)

    def _pod_gone(self, pod: Pod, now: float) -> None:
        pod = self._as_here(pod)
        uid = pod.uid
        self._then.pop(uid, None)
        if uid in self._known and is_preempted(pod):
            self._preempted_then(pod)
        if uid in self._spared:
            return
        replaced = self._spared.stands_for(uid)
        if replaced is not None:  # what it stands for goes instead
            self._spared.forget(replaced)
            self._forget(uid)
            pod = self._known.get(replaced, pod)
            uid = replaced
        if uid not in self._evicted or uid in self._leaving:
            self._step(Deleted(_on(pod, self._own.get(uid, pod.spec.node_name))), now)
        self._forget(uid)

    def _preempted_then(self, pod: Pod) -> None:
        """It was evicted when it was recorded. Where it was evicted here too, the pod that was
        made in its place comes; else it lives on."""
        if pod.uid not in self._evicted:
            if pod.uid not in self._spared:
                self._spared.add(pod)
            return
        self.lost.discard(pod.key)
        self._known.pop(pod.uid)

    def _forget(self, uid: str) -> None:
        for known in (self._known, self._own, self._then, self._decisions):
            known.pop(uid, None)
        self._evicted.discard(uid)
        self._leaving.discard(uid)

    def _as_here(self, pod: Pod) -> Pod:
        """With the uid of the one that came back for it here."""
        uid = self._uid_here.get(pod.uid)
        return pod if uid is None else replace(pod, metadata=replace(pod.metadata, uid=uid))

    def _reading(self, source: Hashable, recorded: Reading, now: float) -> None:
        reading = recorded
        if isinstance(source, TrafficRequest):
            anew, moved = self._anew.get(source), list(self._moved())
            told = moved_reading(recorded, source if anew is None else anew.recorded, moved)
            if source == self.request:
                self.links.look(told, self._machine.state, now)
            then, reading = recorded, told
            if anew is not None and anew.is_needed:
                then = anew.judged(recorded)
                reading = moved_reading(then, source, moved)
            reading = self._hot[source].judged(then, reading)
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
        if uid not in self._known or uid in self._evicted:
            return  # it was deleted meanwhile
        self._own[uid] = node_name
        decision = self._decisions.pop(uid, None)
        if decision is not None:
            self.outcomes[pod.key] = Outcome(node_name, decision)
            self.lost.discard(pod.key)
        self._step(Modified(_on(self._known[uid], node_name)), now)

    def _evict(self, evict: Evict, now: float) -> None:
        state = self._machine.state
        victims = tuple(each for each in evict.victims if state.placed(each.uid) is not None)
        self._step(EvictionEnded(evict.pod.uid, evicted=victims), now)
        for victim in victims:
            self.evicted_count += 1
            self._evicted.add(victim.uid)
            self._leaving.add(victim.uid)
            self._own.pop(victim.uid, None)
            if victim.uid not in self._spared:
                self.lost.add(victim.key)
            meta = replace(victim.metadata, deletion_timestamp=_LEAVING)
            self._step(Modified(replace(victim, metadata=meta)), now)
            self._plan(now + GRACE_SECONDS, partial(self._left, victim))
            self._plan(now + COMING_BACK_SECONDS, partial(self._come_back, victim))

    def _left(self, victim: Pod, now: float) -> None:
        if victim.uid in self._leaving:
            self._leaving.remove(victim.uid)
            self._step(Deleted(victim), now)

    def _come_back(self, victim: Pod, now: float) -> None:
        """By what was made in its place when it was recorded, or, where it was not evicted then,
        by another one of its kind."""
        uid = victim.uid
        if uid in self._spared:
            replacement = self._spared.forget(uid)
            self._known.pop(uid, None)
            if replacement is not None:
                self._bring(self._known[replacement], now)
        elif uid in self._known and owner_of(victim):
            self._bring(self._another(uid), now)

    def _another(self, uid: str) -> Pod:
        """From now on what was recorded of the pod is about this one."""
        pod, then = self._known.pop(uid), self._then.pop(uid, None)
        recorded_uid = uid.partition(_AGAIN)[0]
        again = f"{recorded_uid}{_AGAIN}{self.evicted_count}"
        self._uid_here[recorded_uid] = again
        if then is not None:
            self._then[again] = then
        self._known[again] = replace(pod, metadata=replace(pod.metadata, uid=again))
        return self._known[again]

    def _bring(self, pod: Pod, now: float) -> None:
        if pod.uid in self._then:
            self.recorded[pod.key] = self._then[pod.uid]
        pending = replace(self._taken(_on(pod, "")), status=PodStatus())
        self._step(Added(pending), now)


def _on(pod: Pod, node_name: str) -> Pod:
    if pod.spec.node_name == node_name:
        return pod
    return replace(pod, spec=replace(pod.spec, node_name=node_name))
