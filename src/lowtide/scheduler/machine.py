"""The whole scheduler without I/O: events in, actions out.

`step` applies one event and returns the actions to perform; `live` and the simulator call it. The
machine holds ClusterState and one record per pending pod. ARCHITECTURE.md draws their stages.
"""

import math
from collections.abc import Iterable, Mapping

import msgspec

from lowtide.cluster.state import ClusterState
from lowtide.config.types import Extender
from lowtide.framework.asking import Asking
from lowtide.framework.change import Change, changes_by_binding, pod_change
from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.plugin import PluginError, PodRejection
from lowtide.framework.profile import Profile, plugins_by_kind
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.scheduler.actions import Action, AskExtenders, PluginFailed, failure_event
from lowtide.scheduler.binding_cycle import BindingCycle
from lowtide.scheduler.decide import decided_now, deciding
from lowtide.scheduler.events import (
    BindingEnded,
    BindingLookedUp,
    Event,
    EvictionEnded,
    ExtendersAnswered,
    PermitAnswered,
    Turn,
)
from lowtide.scheduler.extending import Answer, ExtenderDialogue, ExtenderError
from lowtide.scheduler.failures import Failures
from lowtide.scheduler.nominations import Nominations
from lowtide.scheduler.object_events import ObjectEvents
from lowtide.scheduler.pods import ASSUMED, QUEUED, PendingPod, Pods, Stage
from lowtide.scheduler.preemption import HELD, HELD_BY, Preemption
from lowtide.scheduler.queue import INITIAL_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS, Queue

# Added to the time a pod has waited. A pod parked until a moment has then waited long enough at
# that moment, despite floating-point rounding.
_ROUNDING_SECONDS = 1e-6


class Cycle(msgspec.Struct):
    """One pod's turn, from the queue to a decision. It pauses while extenders are asked."""

    record: PendingPod
    asking: Asking
    dialogue: ExtenderDialogue[Decision]
    # Events that arrive during a pause. They are applied after the decision, so that the whole
    # decision sees the same cluster. No deadline of another pod passes meanwhile.
    held: list[Event] = []


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
        first = next(iter(profiles.values()))  # all profiles have the same queueSort plugin
        (sorter,) = first.plugins_for_point("queueSort")
        self.pods = Pods(sorter)
        self.queue = Queue(
            self.pods,
            may_help=self._may_help,
            initial_backoff_seconds=initial_backoff_seconds,
            max_backoff_seconds=max_backoff_seconds,
        )
        wake = self.queue.wake
        self._objects = ObjectEvents(self.state, profiles.values(), self, wake)
        self._nominations = Nominations(self.state, self.pods, wake)
        self._failures = Failures(self.queue, self._nominations)
        self._binding = BindingCycle(
            self.state, self.pods, self.queue, self._failures, self._objects
        )
        self._preemption = Preemption(
            self.state, self.pods, self._nominations, self._failures, self._binding
        )
        self._paused: Cycle | None = None  # a cycle that waits for extenders
        self._failed_hints: dict[str, str] = {}  # by plugin: its first error since last turn
        self._turns = 0

    @property
    def plugins_by_kind(self) -> dict[type, tuple[str, ...]]:
        """The object types to watch besides nodes and pods, and the plugins that need them."""
        return plugins_by_kind(self.profiles.values())

    @property
    def is_synced(self) -> bool:
        """Whether every watched kind was listed once, or is known to be unavailable."""
        return not self._objects.unlisted

    @property
    def binding_count(self) -> int:
        return self.pods.counts[Stage.BINDING]

    def has_work(self, now: float) -> bool:
        is_ready = self.queue.is_ready(now) or self._next_deadline_at() <= now
        return self.is_synced and is_ready and self._paused is None

    def next_change_at(self) -> float:
        """When time alone makes work; infinity if nothing waits for time."""
        if self._paused is not None:
            return math.inf
        return min(self.queue.next_change_at(), self._next_deadline_at())

    def _next_deadline_at(self) -> float:
        deadline = self.pods.deadlines.first()
        return math.inf if deadline is None else deadline.at

    def decided_now(self, pod: Pod, now: float) -> Decision:
        """The decision that a known pod would get now, for explanations."""
        record, waited_seconds = self.pods.by_uid.get(pod.uid), 0.0
        if record is not None and record.stage in QUEUED:
            waited_seconds = now - record.first_seen_at
        return decided_now(
            self._nominations.applied_to(pod),
            self._verdicts[pod.spec.scheduler_name],
            turn=self._turns,
            waited_seconds=waited_seconds,
        )

    def rejection_of(self, pod: Pod, node_name: str) -> NodeRejection | None:
        return self._verdicts[pod.spec.scheduler_name].rejection_on(pod, node_name)

    def gate_of(self, pod: Pod) -> tuple[str, PodRejection] | None:
        """The plugin that keeps the pod out of the queue, and its rejection."""
        record = self.pods.by_uid.get(pod.uid)
        if record is not None and record.eviction is not None:
            return HELD_BY, HELD
        return self.profiles[pod.spec.scheduler_name].gate(pod)

    def objection_to(self, pod: Pod) -> str | None:
        """Why the binding that is about to be sent must not be: others changed the node after the
        decision. None if it may be sent."""
        held = () if self._paused is None else self._paused.held
        return self._binding.objection_to(pod.uid, held)

    def step(self, event: Event, now: float) -> list[Action]:
        if self._paused is not None and not isinstance(event, ExtendersAnswered):
            if not isinstance(event, Turn):  # the pod has its turn still
                self._paused.held.append(event)
            return []
        match event:
            case Turn():
                return self._take_turn(now)
            case Added(object=thing) | Modified(object=thing) | Deleted(object=thing):
                if isinstance(thing, Node):
                    self._binding.changed_by_others(thing.name)
                self._objects.step(event, now)
            case BindingEnded():
                return self._binding.ended(event, now)
            case BindingLookedUp():
                return self._binding.looked_up(event, now)
            case EvictionEnded():
                return self._eviction_ended(event, now)
            case PermitAnswered():
                return self._binding.permit_answered(event, now)
            case ExtendersAnswered(answer):
                return self._extenders_answered(answer, now)
            case _:
                self._objects.step(event, now)
        return []

    # Pod events of the watch.

    def pod_pending(self, pod: Pod, now: float) -> None:
        uid = pod.uid
        record, placed = self.pods.by_uid.get(uid), self.state.placed(uid)
        if placed is not None and not placed.is_assumed:
            # The API server went back to an older state, in which the pod has no node yet.
            self.state.remove_pod(uid)
            self.queue.wake(pod_change(placed.pod, None), now)
        if record is not None and record.stage in ASSUMED:
            record.update(pod)
            self._binding.still_pending(record)
            if pod.is_terminating and record.stage is Stage.WAITING:
                self._no_longer_pending(record, now)
            return
        if record is not None:
            self._nominations.pod_changed(record, pod, now)
            self.queue.update(record, pod, now)
            return
        profile = self.profiles.get(pod.spec.scheduler_name)
        if profile is None:
            return
        if pod.status.nominated_node_name or self.state.nominated():
            self._nominations.pod_added(pod, now)
        self.queue.add(PendingPod(pod, uid, profile, first_seen_at=now, queued_at=now))

    def pod_bound(self, pod: Pod, now: float) -> None:
        record = self.pods.by_uid.get(pod.uid)
        if record is not None:
            self._no_longer_pending(record, now)
        self._nominations.drop(pod.uid, now)
        before, placed = self.state.placed(pod.uid), self.state.place(pod)
        if before is None or not before.is_same_except_labels(placed):
            self._binding.changed_by_others(pod.spec.node_name)
        for change in changes_by_binding(before, placed):
            self.queue.wake(change, now)
        if pod.is_terminating:
            self._victim_gone(pod.uid, now)

    def pod_gone(self, pod: Pod, now: float) -> None:
        record = self.pods.by_uid.get(pod.uid)
        if record is not None:
            self._no_longer_pending(record, now)
        self._nominations.drop(pod.uid, now)
        placed = self.state.remove_pod(pod.uid)
        if placed is not None:
            self.queue.wake(pod_change(placed.pod, None), now)
        self._victim_gone(pod.uid, now)

    def _no_longer_pending(self, record: PendingPod, now: float) -> None:
        if record.stage is Stage.WAITING:
            self._binding.stop_waiting(record, now)
        if record.stage is not Stage.BINDING:  # the binding's answer is still to come
            self.pods.move(record, Stage.NOT_PENDING)
        if record.eviction is not None:
            self._preemption.forget(record, record.eviction)

    def _victim_gone(self, uid: str, now: float) -> None:
        for preemptor in self._preemption.victim_gone(uid):
            self.queue.victims_are_gone(preemptor, now)

    # One pod's turn.

    def _take_turn(self, now: float) -> list[Action]:
        actions = self._report_failed_hints() if self._failed_hints else []
        while (due := self.pods.deadlines.first()) is not None and due.at <= now:
            if due.waits_for:
                return actions + self._binding.timed_out(due, now)
            actions += self._binding.look_up(due)
        record = self.queue.pop(now)
        if record is not None:
            actions += self._decide(record, now)
        return actions

    def _report_failed_hints(self) -> list[Action]:
        failed, self._failed_hints = self._failed_hints, {}
        return [PluginFailed(plugin_name, error) for plugin_name, error in failed.items()]

    def _decide(self, record: PendingPod, now: float) -> list[Action]:
        pod, profile = record.pod, record.profile
        if pod.is_terminating:
            self.pods.move(record, Stage.NOT_PENDING)
            return [failure_event(pod, f"skip schedule deleting pod: {pod.key}")]
        if record.sort_error:
            return self._failures.error(record, record.sort_error, now)
        if pod.status.nominated_node_name or self.state.nominated():
            pod = self._nominations.applied_to(pod)
        asking = Asking(profile.clock)
        dialogue = deciding(
            pod,
            self._verdicts[profile.scheduler_name],
            turn=self._turns,
            waited_seconds=now - record.first_seen_at + _ROUNDING_SECONDS,
            full=self._keeps_every_score,
            extenders=self._extenders,
            signature=record.signature,
            asking=asking,
        )
        return self._go_on(Cycle(record, asking, dialogue), None, now)

    def _go_on(self, cycle: Cycle, answer: Answer | None, now: float) -> list[Action]:
        """Run the cycle to its next question to extenders, or to its decision."""
        record = cycle.record
        try:
            # Sending None starts a generator.
            question = cycle.dialogue.send(answer)  # type: ignore[arg-type]
        except StopIteration as ended:
            decision: Decision = ended.value
        except QuantityError as error:
            return self._failures.unreadable(record, str(error), now)
        except (PluginError, ExtenderError) as error:
            return self._failures.error(record, str(error), now)
        else:
            self._paused = cycle
            return [AskExtenders(question)]
        self._turns += 1
        if decision.node_name is not None:
            return self._binding.begin(record, decision, cycle.asking, now)
        actions = self._failures.no_node(record, decision, cycle.asking, now)
        found = decision.post_filtered
        if found is not None and found.eviction is not None:
            actions += self._preemption.begin(record, found.eviction, now)
        return actions

    def _extenders_answered(self, answer: Answer, now: float) -> list[Action]:
        cycle, self._paused = self._paused, None
        if cycle is None:
            return []
        if any(_is_taken_away(cycle.record.uid, event) for event in cycle.held):
            cycle.dialogue.close()
            actions = []
        else:
            actions = self._go_on(cycle, answer, now)
        if self._paused is None:
            for event in cycle.held:
                actions += self.step(event, now)
        return actions

    def _eviction_ended(self, event: EvictionEnded, now: float) -> list[Action]:
        preemptor, events = self._preemption.writes_ended(event)
        if preemptor is not None:
            if event.error is None:
                self.queue.victims_are_gone(preemptor, now)
            else:
                self.queue.eviction_failed(preemptor, now)
        return [*events]

    def _may_help(self, record: PendingPod, plugin_names: Iterable[str], change: Change) -> bool:
        """If a plugin fails, the answer is yes: one needless attempt does no harm, but a pod could
        stay parked for good."""
        try:
            return record.profile.may_help(record.pod, plugin_names, change)
        except QuantityError:
            return True  # its next turn reports the error
        except PluginError as error:
            self._failed_hints.setdefault(error.plugin_name, str(error))
            return True


def _is_taken_away(uid: str, event: Event) -> bool:
    """Whether the event says that the pod is gone, or bound by somebody else."""
    match event:
        case Deleted(object=Pod() as pod):
            return pod.uid == uid
        case Added(object=Pod() as pod) | Modified(object=Pod() as pod):
            return pod.uid == uid and (pod.has_ended or bool(pod.spec.node_name))
    return False
