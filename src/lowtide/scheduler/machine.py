"""The whole scheduler without I/O: events in, actions out.

`step` applies one event and says what is to be done; `live` and the simulator drive it. It holds
ClusterState, the queue, and the pods whose binding is under way.
"""

import math
from collections.abc import Iterable, Iterator, Mapping

from lowtide.cluster.changes import OBJECTS
from lowtide.cluster.state import ClusterState
from lowtide.config.types import Extender
from lowtide.framework.asking import UNTIMED, Asking
from lowtide.framework.change import (
    READING_PUBLISHED,
    Change,
    changes_by_binding,
    pod_change,
)
from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.plugin import BindOutcome, Eviction, PluginError, PodRejection
from lowtide.framework.profile import NO_PLUGIN, Profile, rules_by_kind
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.scheduler.actions import (
    Action,
    AskExtenders,
    AttemptFailed,
    Bind,
    LookUpBinding,
    PluginFailed,
    WriteKubeEvent,
    decided,
    failure_event,
    refusal,
)
from lowtide.scheduler.bindings import Bindings
from lowtide.scheduler.cycle import Cycle, UnderWay
from lowtide.scheduler.decide import decided_now, deciding
from lowtide.scheduler.events import (
    BindingEnded,
    BindingLookedUp,
    Event,
    EvictionEnded,
    ExtendersAnswered,
    PermitAnswered,
    ReadingPublished,
    Turn,
)
from lowtide.scheduler.evictions import HELD, HELD_BY, Evictions, told_preempted
from lowtide.scheduler.extending import Answer, ExtenderError
from lowtide.scheduler.placements import Placement, refused_by
from lowtide.scheduler.promises import Promises
from lowtide.scheduler.queue import (
    INITIAL_BACKOFF_SECONDS,
    MAX_BACKOFF_SECONDS,
    Queue,
    QueuedPod,
)
from lowtide.scheduler.surroundings import Surroundings
from lowtide.scheduler.unconfirmed import Unconfirmed
from lowtide.scheduler.waiting import WaitingPlacements

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"

# A pod that is parked until a moment has waited long enough at it, whatever floats lose.
_LOST_SECONDS = 1e-6


class Machine:
    def __init__(
        self,
        profiles: Mapping[str, Profile],
        *,
        initial_backoff_seconds: float = INITIAL_BACKOFF_SECONDS,
        max_backoff_seconds: float = MAX_BACKOFF_SECONDS,
        keeps_every_score: bool = False,
        extenders: tuple[Extender, ...] = (),
    ) -> None:
        self.state = ClusterState()
        self.profiles = profiles
        self._extenders = extenders
        self._keeps_every_score = keeps_every_score
        self._verdicts = {
            name: VerdictCache(profile, self.state) for name, profile in profiles.items()
        }
        first = next(iter(profiles.values()))  # every profile sorts the queue alike
        (sorter,) = first.at("queueSort")
        self.queue = Queue(
            sorter.sort_key,
            self.gate_of,
            may_help=self._may_help,
            initial_backoff_seconds=initial_backoff_seconds,
            max_backoff_seconds=max_backoff_seconds,
        )
        self._surroundings = Surroundings(self.state, self.queue.wake, profiles.values())
        self._bindings = Bindings(self.state)
        self._unconfirmed = Unconfirmed()
        self._waiting = WaitingPlacements()
        self._promises = Promises(self.state, self.queue)
        self._evictions = Evictions()
        self._under_way = UnderWay()
        self._failed_hints: dict[str, str] = {}  # since the last turn: the first error of each rule
        self._turns = 0

    @property
    def rules_by_kind(self) -> dict[type, tuple[str, ...]]:
        """The object types to watch besides nodes and pods, and the rules that need them."""
        return rules_by_kind(self.profiles.values())

    @property
    def is_synced(self) -> bool:
        """Whether everything that existed at the start is known."""
        return not self._surroundings.unlisted

    @property
    def binding_count(self) -> int:
        return len(self._bindings)

    def has_work(self, now: float) -> bool:
        is_ready = self.queue.is_ready(now) or self._next_deadline() <= now
        return self.is_synced and is_ready and not self._under_way.is_any

    def next_change_at(self) -> float:
        """When time alone will make work; infinity when nothing waits for time."""
        if self._under_way.is_any:
            return math.inf
        return min(self.queue.next_change_at(), self._next_deadline())

    def _next_deadline(self) -> float:
        return min(self._waiting.next_deadline(), self._unconfirmed.next_due_at())

    def decided_now(self, pod: Pod, now: float) -> Decision:
        """What would be decided about a pod that is known, for explanations."""
        queued = next((each for each in self.queue if each.pod.uid == pod.uid), None)
        return decided_now(
            self._promises.applied_to(pod),
            self._verdicts[pod.spec.scheduler_name],
            turn=self._turns,
            waited_seconds=0.0 if queued is None else now - queued.first_seen_at,
        )

    def rejection_of(self, pod: Pod, node_name: str) -> NodeRejection | None:
        return self._verdicts[pod.spec.scheduler_name].rejection_on(pod, node_name)

    def objection_to(self, pod: Pod) -> str | None:
        """Why the binding of this pod, which is about to be sent, must not be: others have changed
        its node since it was decided."""
        return self._bindings.objection(pod.uid)

    def step(self, event: Event, now: float) -> list[Action]:
        if self._under_way.is_any and not isinstance(event, ExtendersAnswered):
            self._under_way.hold(event)
            return []
        match event:
            case Turn():
                return [*self._put_off(now), *self._take_turn(now)]
            case Added(object=Pod() as pod) | Modified(object=Pod() as pod):
                self._pod_changed(pod, now)
            case Deleted(object=Pod() as pod):
                self._pod_gone(pod, now)
            case BindingEnded():
                return self._binding_ended(event, now)
            case BindingLookedUp():
                return self._binding_looked_up(event, now)
            case EvictionEnded():
                return self._eviction_ended(event, now)
            case PermitAnswered():
                return self._permit_answered(event, now)
            case ExtendersAnswered(answer):
                return self._extenders_answered(answer, now)
            case ReadingPublished(source, reading):
                self.state.publish(source, reading)
                self.queue.wake(READING_PUBLISHED, now)
            case _:
                if isinstance(event, Added | Modified | Deleted) and isinstance(event.object, Node):
                    self._changed_by_others(event.object.name)
                self._surroundings.step(event, now)
        return []

    # What the watch says of pods.

    def _pod_changed(self, pod: Pod, now: float) -> None:
        if pod.has_ended:
            self._pod_gone(pod, now)
        elif pod.spec.node_name:
            self._pod_bound(pod, now)
        elif pod.spec.scheduler_name in self.profiles:
            self._pod_pending(pod, now)

    def _pod_bound(self, pod: Pod, now: float) -> None:
        self.queue.remove(pod.uid)
        self._end_waiting(pod.uid, now)
        self._unconfirmed.confirm(pod.uid)
        self._evictions.forget(pod.uid)
        self._promises.forget(pod.uid, now)
        before, placed = self.state.placed(pod.uid), self.state.place(pod)
        if before is None or not before.takes_like(placed):
            self._changed_by_others(pod.spec.node_name)
        for change in changes_by_binding(before, placed):
            self.queue.wake(change, now)
        if pod.is_terminating:
            self._seen_to_go(pod.uid, now)

    def _pod_pending(self, pod: Pod, now: float) -> None:
        placement = self._placement(pod.uid)
        if placement is not None:
            placement.queued.pod = pod
            if pod.is_terminating:
                self._end_waiting(pod.uid, now)
            return
        placed = self.state.placed(pod.uid)
        if placed is not None:
            # The server was set back: a pod that had its node has none any more.
            self.state.remove_pod(pod.uid)
            self.queue.wake(pod_change(placed.pod, None), now)
        self._promises.renew(pod, now)
        if pod.uid in self.queue:
            self.queue.update(pod, now)
        else:
            self.queue.add(pod, now)

    def _pod_gone(self, pod: Pod, now: float) -> None:
        self.queue.remove(pod.uid)
        self._end_waiting(pod.uid, now)
        self._unconfirmed.confirm(pod.uid)
        self._promises.forget(pod.uid, now)
        placed = self.state.remove_pod(pod.uid)
        if placed is not None:
            self.queue.wake(pod_change(placed.pod, None), now)
        self._evictions.forget(pod.uid)
        self._seen_to_go(pod.uid, now)

    def _seen_to_go(self, uid: str, now: float) -> None:
        for held in self._evictions.seen_to_go(uid):
            self.queue.open_gate(held, now)

    def _changed_by_others(self, node_name: str) -> None:
        """Pods that are assumed there are checked again before they are bound."""
        for uid, placed in self.state.placed_on(node_name).items():
            placement = self._placement(uid) if placed.is_assumed else None
            if placement is not None:
                placement.is_doubtful = True

    def _placement(self, uid: str) -> Placement | None:
        """Where the pod waits in Permit, is being bound, or was bound and is not confirmed yet."""
        return (
            self._bindings.placement(uid)
            or self._unconfirmed.placement(uid)
            or self._waiting.placement(uid)
        )

    # One pod has its turn.

    def _put_off(self, now: float) -> Iterator[Action]:
        """What events since the last turn left to do: plugins that failed, and bindings that
        nothing confirmed in time."""
        if self._failed_hints:
            failed, self._failed_hints = self._failed_hints, {}
            for rule_name, error in failed.items():
                yield PluginFailed(rule_name, error)
        if self._unconfirmed.next_due_at() <= now:
            for each in self._unconfirmed.take_due(now):
                yield LookUpBinding(each.queued.pod, each.node_name)

    def _take_turn(self, now: float) -> list[Action]:
        overdue = self._waiting.overdue(now)
        if overdue is not None:
            return self._permit_answered(PermitAnswered(*overdue), now)
        queued = self.queue.pop(now)
        if queued is None or self.state.placed(queued.pod.uid) is not None:
            return []
        pod = queued.pod
        if pod.is_terminating:
            return [failure_event(pod, f"skip schedule deleting pod: {pod.key}")]
        profile = self.profiles[pod.spec.scheduler_name]
        asking = Asking(profile.clock)
        dialogue = deciding(
            self._promises.applied_to(pod),
            self._verdicts[profile.scheduler_name],
            turn=self._turns,
            waited_seconds=now - queued.first_seen_at + _LOST_SECONDS,
            full=self._keeps_every_score,
            extenders=self._extenders,
            asking=asking,
        )
        return self._go_on(Cycle(queued, profile, asking, dialogue), None, now)

    def _go_on(self, cycle: Cycle, answer: Answer | None, now: float) -> list[Action]:
        queued = cycle.queued
        try:
            found = cycle.go_on(answer)
        except QuantityError as error:
            return self._park_unreadable(queued, str(error), now)
        except (PluginError, ExtenderError) as error:
            return self._fail(queued, str(error), now)
        if not isinstance(found, Decision):
            self._under_way.wait(cycle)
            return [AskExtenders(found)]
        self._turns += 1
        if found.node_name is None:
            return self._give_up(queued, found, cycle.asking, now)
        placement = Placement(queued, found.node_name, cycle.profile, cycle.asking)
        return self._place(queued, found, placement, now)

    def _extenders_answered(self, answer: Answer, now: float) -> list[Action]:
        cycle = self._under_way.take()
        actions = [] if cycle is None else self._go_on(cycle, answer, now)
        if not self._under_way.is_any:
            for event in self._under_way.release():
                actions += self.step(event, now)
        return actions

    def _give_up(
        self, queued: QueuedPod, decision: Decision, asking: Asking, now: float
    ) -> list[Action]:
        found = decision.post_filtered
        self._promises.make(queued.pod, self._promises.after(decision), now)
        if decision.node_count == 0:
            self.queue.retry(queued, now)
        else:
            profile = self.profiles[decision.scheduler_name]
            retry_on = profile.retry_on(decision.rejected_by, decision.touched)
            until = queued.first_seen_at + decision.gives_way_after
            self.queue.park(queued, decision.rejected_by, retry_on, now, until=until)
        told = decided(decision, queued, asking.spent)
        actions = [told, *self._refusal(queued.pod, UNSCHEDULABLE, decision.fit_error_final)]
        if found is not None and found.eviction is not None:
            actions += self._evict(queued.pod, found.eviction, now)
        return actions

    def _evict(self, pod: Pod, eviction: Eviction, now: float) -> list[Action]:
        actions: list[Action] = []
        for victim in eviction.victims:
            ended = self._end_waiting(victim.uid, now)
            if ended is not None:  # it is not bound yet: it only loses its place
                actions.append(told_preempted(victim, pod, eviction.node_name, in_memory=True))
                actions += self._fail(ended[0].queued, "preempted", now)
        evict = self._evictions.begin(pod, eviction, self.state)
        if evict is None:
            return actions
        for each in evict.nominated:
            self._promises.take_back(each.uid, now)
        return [*actions, evict]

    def _eviction_ended(self, event: EvictionEnded, now: float) -> list[Action]:
        actions = self._evictions.ended(event)
        if event.error is not None:
            self.queue.retry_waiting(event.uid, now)
        elif event.uid not in self._evictions:
            self.queue.open_gate(event.uid, now)
        return [*actions]

    def _place(
        self, queued: QueuedPod, decision: Decision, placement: Placement, now: float
    ) -> list[Action]:
        self.state.assume(queued.pod, placement.node_name, decision.signature)
        try:
            refused = placement.refusal(self.state)
        except (PluginError, QuantityError) as error:
            self._take_back(placement, now)
            return self._fail(queued, str(error), now)
        if refused is not None:
            self._take_back(placement, now)
            refusal = refused_by(*refused, decision)
            actions = self._give_up(queued, refusal, placement.asking, now)
        elif placement.waits:
            self._waiting.add(placement, decision, now)
            actions = [decided(decision, queued, placement.asking.spent)]
        else:
            told = decided(decision, queued, placement.asking.spent)
            actions = [told, self._bind(placement)]
        for answer in placement.answers:
            actions += self._permit_answered(answer, now)
        return actions

    def _bind(self, placement: Placement) -> Bind:
        self._bindings.begin(placement)
        pod, node_name = placement.queued.pod, placement.node_name
        return Bind(pod, node_name, placement.profile, placement.memories)

    def _permit_answered(self, event: PermitAnswered, now: float) -> list[Action]:
        if event.refusal is None:
            allowed = self._waiting.allow(event.uid, event.rule_name)
            return [] if allowed is None else [self._bind(allowed)]
        ended = self._end_waiting(event.uid, now)
        if ended is None:
            return []
        placement, decision = ended
        refused = refused_by(event.rule_name, event.refusal, decision)
        return self._give_up(placement.queued, refused, UNTIMED, now)

    def _end_waiting(self, uid: str, now: float) -> tuple[Placement, Decision] | None:
        ended = self._waiting.end(uid)
        if ended is not None:
            self._take_back(ended[0], now)
            self.queue.wake(pod_change(ended[0].queued.pod, None), now)
        return ended

    # How a binding ended.

    def _binding_ended(self, event: BindingEnded, now: float) -> list[Action]:
        placement = self._bindings.end(event.uid)
        if placement is None:
            return []
        if event.outcome.error is not None:
            return self._not_bound(placement, event.outcome, event.outcome.error, now)
        self.state.known_objects.settle(event.uid)
        placed = self.state.placed(event.uid)
        if placed is not None and placed.is_assumed:
            self._unconfirmed.add(placement, now)
        pod = placement.queued.pod
        note = f"Successfully assigned {pod.key} to {placement.node_name}"
        name = placement.profile.scheduler_name
        return [WriteKubeEvent(pod, "Normal", "Scheduled", "Binding", note, name)]

    def _binding_looked_up(self, event: BindingLookedUp, now: float) -> list[Action]:
        error = event.outcome.error
        placement = self._unconfirmed.looked_up(event.uid, is_bound=error is None, now=now)
        if placement is None or error is None:
            return []
        return self._not_bound(placement, event.outcome, error, now)

    def _not_bound(
        self, placement: Placement, outcome: BindOutcome, error: str, now: float
    ) -> list[Action]:
        queued, pod = placement.queued, placement.queued.pod
        placed = self.state.placed(pod.uid)
        errors = [error, *self._take_back(placement, now)]
        self.queue.wake(pod_change(pod, None), now)
        is_bound_elsewhere = placed is not None and not placed.is_assumed
        if placed is None or is_bound_elsewhere or outcome.is_gone:
            return []
        return self._fail(queued, "; ".join(errors), now)

    def _take_back(self, placement: Placement, now: float) -> list[str]:
        """Undoes an assumption whatever happens; returns what went wrong on the way."""
        errors, uid = placement.unreserve(), placement.queued.pod.uid
        for assumed, watched in self.state.known_objects.take_back(uid):
            self._surroundings.object_changed(assumed, watched, now)
        self.state.forget(uid)
        return errors

    # What is told.

    def _may_help(self, pod: Pod, rule_names: Iterable[str], change: Change) -> bool:
        """Where a rule cannot say, the pod is tried again: that does no harm, and a pod that stays
        parked for good does."""
        try:
            return self.profiles[pod.spec.scheduler_name].may_help(pod, rule_names, change)
        except QuantityError:
            return True  # its next turn reports what cannot be read
        except PluginError as error:
            self._failed_hints.setdefault(error.rule_name, str(error))
            return True

    def _fail(self, queued: QueuedPod, error: str, now: float) -> list[Action]:
        self._promises.drop(queued.pod.uid, now)
        self.queue.retry(queued, now)
        return [
            AttemptFailed(queued.pod, error),
            *self._refusal(queued.pod, SCHEDULER_ERROR, error),
        ]

    def _park_unreadable(self, queued: QueuedPod, error: str, now: float) -> list[Action]:
        """Only a change of the pod can help, or of an object that it uses, such as a claim."""
        self.queue.park(queued, frozenset([NO_PLUGIN]), OBJECTS, now)
        return self._refusal(queued.pod, UNSCHEDULABLE, error)

    def _refusal(self, pod: Pod, reason: str, message: str) -> list[Action]:
        return refusal(pod, reason, message, self._promises.to_write(pod))

    def gate_of(self, pod: Pod) -> tuple[str, PodRejection] | None:
        """Who keeps a pod out of the queue, and why."""
        if pod.uid in self._evictions:
            return HELD_BY, HELD
        return self.profiles[pod.spec.scheduler_name].gate(pod)
