"""The whole scheduler without I/O: events in, actions out.

`step` applies one event and says what is to be done; `live` and the simulator drive it. It holds
ClusterState, the queue, and the pods whose binding is under way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lowtide.cluster.changes import NODE, NODES, OBJECTS, OTHERS, PODS, READING, ROW
from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import Decision
from lowtide.framework.plugin import PluginError, PodRejection, Reject, ask, reads_of
from lowtide.framework.profile import Profile
from lowtide.framework.verdicts import Verdicts
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable
from lowtide.objects.kinds import KIND_OF
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.scheduler.actions import (
    Action,
    AttemptFailed,
    Bind,
    Decided,
    WriteCondition,
    WriteKubeEvent,
)
from lowtide.scheduler.decide import decide
from lowtide.scheduler.events import BindingEnded, Event, ReadingPublished, Turn
from lowtide.scheduler.queue import (
    INITIAL_BACKOFF_SECONDS,
    MAX_BACKOFF_SECONDS,
    Queue,
    QueuedPod,
)

# Without these nothing can be placed; without others, only some rules are blind.
NEEDED_KINDS = frozenset({"Pod", "Node"})

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"

# A pod that is parked until a moment has waited long enough at it, whatever floats lose.
_LOST_SECONDS = 1e-6


@dataclass(frozen=True, slots=True)
class _Placement:
    """A pod that is assumed on a node while its binding is under way."""

    queued: QueuedPod
    node_name: str
    profile: Profile


class Machine:
    def __init__(
        self,
        profiles: Mapping[str, Profile],
        *,
        initial_backoff_seconds: float = INITIAL_BACKOFF_SECONDS,
        max_backoff_seconds: float = MAX_BACKOFF_SECONDS,
        keeps_every_score: bool = False,
    ) -> None:
        self.state = ClusterState()
        self.profiles = profiles
        self._keeps_every_score = keeps_every_score
        self._verdicts = {name: Verdicts(profile, self.state) for name, profile in profiles.items()}
        first = next(iter(profiles.values()))  # every profile sorts the queue alike
        (sorter,) = first.at("queueSort")
        self.queue = Queue(
            sorter.sort_key,
            self._may_enqueue,
            initial_backoff_seconds=initial_backoff_seconds,
            max_backoff_seconds=max_backoff_seconds,
        )
        self._binding: dict[str, _Placement] = {}
        self._turns = 0
        self._unlisted = {*NEEDED_KINDS, *(KIND_OF[kind].name for kind in self.rules_by_kind)}

    @property
    def rules_by_kind(self) -> dict[type, tuple[str, ...]]:
        """The object types to watch besides nodes and pods, and the rules that need them."""
        found: dict[type, tuple[str, ...]] = {}
        for profile in self.profiles.values():
            for kind, names in profile.rules_by_kind.items():
                found[kind] = tuple(dict.fromkeys((*found.get(kind, ()), *names)))
        return found

    @property
    def is_synced(self) -> bool:
        """Whether everything that existed at the start is known."""
        return not self._unlisted

    @property
    def binding_count(self) -> int:
        return len(self._binding)

    def has_work(self, now: float) -> bool:
        return self.is_synced and self.queue.is_ready(now)

    def step(self, event: Event, now: float) -> list[Action]:
        match event:
            case Turn():
                return self._take_turn(now)
            case Added(object=thing) | Modified(object=thing):
                return self._changed(thing, now)
            case Deleted(object=thing):
                return self._deleted(thing, now)
            case BindingEnded():
                return self._binding_ended(event, now)
            case ReadingPublished(source, reading):
                self.state.publish(source, reading)
                self.queue.wake(READING, now, "ReadingPublished")
            case Listed(kind=kind):
                self._unlisted.discard(kind)
            case Unavailable(kind=kind) if kind not in NEEDED_KINDS:
                self._unlisted.discard(kind)
        return []

    # What the watches say.

    def _changed(self, thing: Any, now: float) -> list[Action]:
        match thing:
            case Pod():
                return self._pod_changed(thing, now)
            case Node():
                self._node_changed(thing, now)
            case _:
                if self.state.put_object(thing):
                    self._object_changed(thing, now)
        return []

    def _deleted(self, thing: Any, now: float) -> list[Action]:
        match thing:
            case Pod():
                self._pod_gone(thing, now)
            case Node():
                self.state.remove_node(thing.name)
                self.queue.wake(NODES | OTHERS, now, "NodeDelete")
            case _:
                self.state.remove_object(thing)
                self._object_changed(thing, now)
        return []

    def _node_changed(self, node: Node, now: float) -> None:
        is_new, before = self.state.row_of(node.name) is None, self.state.position
        self.state.update_node(node)
        if is_new:
            # A row that comes is new to every rule, whatever it reads.
            self.queue.wake(ROW | NODES | OTHERS, now, "NodeAdd")
        elif self.state.position != before:
            self.queue.wake(NODE | NODES | OTHERS, now, "NodeUpdate")

    def _pod_changed(self, pod: Pod, now: float) -> list[Action]:
        if pod.has_ended:
            self._pod_gone(pod, now)
        elif pod.spec.node_name:
            self._pod_bound(pod, now)
        elif pod.spec.scheduler_name in self.profiles:
            self._pod_pending(pod, now)
        return []

    def _pod_bound(self, pod: Pod, now: float) -> None:
        self.queue.remove(pod.uid)
        self._drop_promise(pod.uid, now)
        before, position = self.state.placed(pod.uid), self.state.position
        self.state.place(pod)
        if before is None or before.is_assumed:
            self.queue.wake(OTHERS, now, "AssignedPodAdd")
        elif self.state.position != position:
            # It may have shrunk, and so have made room.
            self.queue.wake(OTHERS | PODS, now, "AssignedPodUpdate")

    def _pod_pending(self, pod: Pod, now: float) -> None:
        placement = self._binding.get(pod.uid)
        if placement is not None:
            placement.queued.pod = pod
            return
        placed = self.state.placed(pod.uid)
        if placed is not None and placed.is_assumed:
            return  # bound, and the watch has not said so yet
        if placed is not None:
            # The server was set back: a pod that had its node has none any more.
            self.state.remove_pod(pod.uid)
            self.queue.wake(PODS | OTHERS | READING, now, "AssignedPodDelete")
        if pod.uid not in self.state.nominated().get(pod.status.nominated_node_name, {}):
            self._drop_promise(pod.uid, now)
        self._keep_promise(pod)
        if pod.uid in self.queue:
            self.queue.update(pod, now)
        else:
            self.queue.add(pod, now)

    def _pod_gone(self, pod: Pod, now: float) -> None:
        self.queue.remove(pod.uid)
        self._drop_promise(pod.uid, now)
        if self.state.remove_pod(pod.uid) is not None:
            self.queue.wake(PODS | OTHERS | READING, now, "AssignedPodDelete")

    def _keep_promise(self, pod: Pod) -> None:
        """A node that a pending pod is nominated to is promised to it."""
        if pod.status.nominated_node_name:
            self.state.nominate(pod, pod.status.nominated_node_name)

    def _drop_promise(self, uid: str, now: float) -> None:
        if any(uid in promised for promised in self.state.nominated().values()):
            self.state.drop_nomination(uid)
            self.queue.wake(PODS | READING, now, "AssignedPodDelete")

    def _object_changed(self, thing: Any, now: float) -> None:
        for verdicts in self._verdicts.values():
            verdicts.object_changed(type(thing))
        self.queue.wake(OBJECTS, now, f"{type(thing).__name__}Update")

    # One pod has its turn.

    def _take_turn(self, now: float) -> list[Action]:
        queued = self.queue.pop(now)
        if queued is None or self.state.placed(queued.pod.uid) is not None:
            return []
        if queued.pod.is_terminating:
            return [
                self._failure_event(queued.pod, f"skip schedule deleting pod: {queued.pod.key}")
            ]
        profile = self._profile_of(queued.pod)
        try:
            decision = decide(
                queued.pod,
                self._verdicts[profile.scheduler_name],
                turn=self._turns,
                waited_seconds=now - queued.first_seen_at + _LOST_SECONDS,
                full=self._keeps_every_score,
            )
        except QuantityError as error:
            return self._park_unreadable(queued, str(error), now)
        except PluginError as error:
            return self._fail(queued, str(error), now)
        self._turns += 1
        if decision.node_name is None:
            return self._give_up(queued, decision, now)
        return self._place(queued, decision, _Placement(queued, decision.node_name, profile), now)

    def _give_up(self, queued: QueuedPod, decision: Decision, now: float) -> list[Action]:
        self._keep_promise(queued.pod)
        if decision.node_count == 0:
            self.queue.retry(queued, now)
        else:
            retry_on = self._retry_on(decision.scheduler_name, decision.rejected_by)
            until = queued.first_seen_at + decision.gives_way_after
            self.queue.park(queued, decision.rejected_by, retry_on, now, until=until)
        told = _told(queued, decision)
        return [told, *self._refusal(queued.pod, UNSCHEDULABLE, decision.fit_error)]

    def _place(
        self, queued: QueuedPod, decision: Decision, placement: _Placement, now: float
    ) -> list[Action]:
        self.state.assume(queued.pod, placement.node_name)
        try:
            refused = _reserve(placement) or _permit(placement)
        except PluginError as error:
            self._take_back(placement)
            return self._fail(queued, str(error), now)
        if refused is not None:
            self._take_back(placement)
            return self._give_up(queued, _refused_by(*refused, decision), now)
        self._binding[queued.pod.uid] = placement
        bind = Bind(queued.pod, placement.node_name, placement.profile)
        return [_told(queued, decision), bind]

    # How a binding ended.

    def _binding_ended(self, event: BindingEnded, now: float) -> list[Action]:
        placement = self._binding.pop(event.uid, None)
        if placement is None:
            return []
        queued, pod = placement.queued, placement.queued.pod
        if event.outcome.error is None:
            note = f"Successfully assigned {pod.key} to {placement.node_name}"
            name = placement.profile.scheduler_name
            return [WriteKubeEvent(pod, "Normal", "Scheduled", "Binding", note, name)]
        placed = self.state.placed(event.uid)
        errors = [event.outcome.error, *self._take_back(placement)]
        self.queue.wake(PODS | OTHERS | READING, now, "AssignedPodDelete")
        is_bound_elsewhere = placed is not None and not placed.is_assumed
        if placed is None or is_bound_elsewhere or event.outcome.is_gone:
            return []
        return self._fail(queued, "; ".join(errors), now)

    def _take_back(self, placement: _Placement) -> list[str]:
        """Undoes an assumption whatever happens; returns what went wrong on the way."""
        errors = []
        for rule in reversed(placement.profile.at("reserve")):
            try:
                if hasattr(rule, "unreserve"):
                    ask(rule, "unreserve", placement.queued.pod, placement.node_name)
            except PluginError as error:
                errors.append(str(error))
        self.state.forget(placement.queued.pod.uid)
        return errors

    # What is told.

    def _fail(self, queued: QueuedPod, error: str, now: float) -> list[Action]:
        self._keep_promise(queued.pod)
        self.queue.retry(queued, now)
        return [
            AttemptFailed(queued.pod, error),
            *self._refusal(queued.pod, SCHEDULER_ERROR, error),
        ]

    def _park_unreadable(self, queued: QueuedPod, error: str, now: float) -> list[Action]:
        """The pod's own spec cannot be read: only a change of the pod can help."""
        self.queue.park(queued, frozenset(), 0, now)
        return self._refusal(queued.pod, UNSCHEDULABLE, error)

    def _refusal(self, pod: Pod, reason: str, message: str) -> list[Action]:
        actions: list[Action] = [self._failure_event(pod, message)]
        if not _says_so_already(pod, reason, message):
            actions.append(WriteCondition(pod, reason, message))
        return actions

    def _failure_event(self, pod: Pod, note: str) -> WriteKubeEvent:
        name = pod.spec.scheduler_name
        return WriteKubeEvent(pod, "Warning", "FailedScheduling", "Scheduling", note, name)

    def _may_enqueue(self, pod: Pod) -> tuple[str, PodRejection] | None:
        try:
            return self._profile_of(pod).may_enqueue(pod)
        except PluginError as error:
            # A gate that cannot be read stays closed.
            return "", PodRejection(str(error))

    def _profile_of(self, pod: Pod) -> Profile:
        return self.profiles[pod.spec.scheduler_name]

    def _retry_on(self, scheduler_name: str, rule_names: Iterable[str]) -> int:
        """Everything that can change the mind of one of these rules."""
        names = set(rule_names)
        occasions = 0
        for rule in self.profiles[scheduler_name].rules:
            if rule.name in names:
                depends_on_objects = OBJECTS if getattr(rule, "kinds", ()) else 0
                occasions |= getattr(rule, "retry_on", reads_of(rule) | depends_on_objects)
        return occasions


def _reserve(placement: _Placement) -> tuple[str, str] | None:
    for rule in placement.profile.at("reserve"):
        rejection = ask(rule, "reserve", placement.queued.pod, placement.node_name)
        if rejection is not None:
            return rule.name, rejection.reason
    return None


def _permit(placement: _Placement) -> tuple[str, str] | None:
    for rule in placement.profile.at("permit"):
        answer = ask(rule, "permit", placement.queued.pod, placement.node_name)
        if isinstance(answer, Reject):
            return rule.name, answer.reason
    return None


def _told(queued: QueuedPod, decision: Decision) -> Decided:
    return Decided(decision, queued.attempts, queued.first_seen_at)


def _refused_by(rule_name: str, reason: str, decision: Decision) -> Decision:
    """The chosen node was refused after all; kube-scheduler then speaks of that node only."""
    return Decision(
        pod=decision.pod,
        scheduler_name=decision.scheduler_name,
        node_name=None,
        node_count=1,
        feasible_count=0,
        rejected_by=frozenset([rule_name]),
        reason_counts={reason: 1},
    )


def _says_so_already(pod: Pod, reason: str, message: str) -> bool:
    return any(
        each.type == "PodScheduled"
        and each.status == "False"
        and each.reason == reason
        and each.message == message
        for each in pod.status.conditions
    )
