"""From the chosen node to the confirmed binding: assume the pod, ask the Reserve and Permit
plugins, bind, and wait for the watch to confirm. Used by the machine."""

import sys
from collections import deque
from collections.abc import Iterable, Set
from typing import Any

from lowtide.cluster.changes import is_same_to_plugins
from lowtide.cluster.placed import PlacedPod, footprint_of
from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import UNTIMED, Asking, ask
from lowtide.framework.change import pod_change
from lowtide.framework.decision import Decision
from lowtide.framework.plugin import (
    Allow,
    BindOutcome,
    PluginError,
    PodRejection,
    Reject,
    Reserved,
    Wait,
)
from lowtide.framework.what_if import reasons_against
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.kinds import KIND_OF
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.scheduler.actions import Action, Bind, Decided, LookUpBinding, WriteKubeEvent
from lowtide.scheduler.events import BindingEnded, BindingLookedUp, Event, PermitAnswered
from lowtide.scheduler.failures import Failures, rejected_after_all
from lowtide.scheduler.object_events import ObjectEvents
from lowtide.scheduler.pods import ASSUMED, Deadline, PendingPod, Pods, Stage, memory_of
from lowtide.scheduler.queue import Queue

LONGEST_PERMIT_SECONDS = 900.0
# The watch usually confirms a binding within a second.
CONFIRMED_WITHIN_SECONDS = 30.0
# While the watch lags, the wait before each further look-up doubles, up to this.
LONGEST_WAIT_SECONDS = 600.0
MOST_READ_AT_ONCE = 4

_CONFIRMATION = ""  # the `waits_for` of a pod that waits for the watch, not for a plugin
_LONG_ENOUGH_SECONDS = sys.float_info.max  # for every rejection that gives way with time


class BindingCycle:
    def __init__(
        self,
        state: ClusterState,
        pods: Pods,
        queue: Queue,
        failures: Failures,
        objects: ObjectEvents,
    ) -> None:
        self._state = state
        self._pods = pods
        self._queue = queue
        self._failures = failures
        self._objects = objects
        self._being_read: dict[str, Deadline] = {}  # by uid: look-ups that have no answer yet
        self._to_be_read: deque[Deadline] = deque()

    # The pod has a node.

    def begin(
        self, record: PendingPod, decision: Decision, asking: Asking, now: float
    ) -> list[Action]:
        assert decision.node_name is not None
        self._state.assume(record.pod, decision.node_name, decision.signature)
        record.decision, record.node_name = decision, decision.node_name
        waits: dict[str, float] = {}  # seconds, by plugin
        answers: list[PermitAnswered] = []  # for other pods that wait in Permit
        try:
            rejection = self._reserve(record, asking) or self._permit(
                record, asking, waits, answers
            )
        except (PluginError, QuantityError) as error:
            self.take_back(record, now)
            actions = self._failures.error(record, str(error), now)
        else:
            actions = self._go_on(record, decision, rejection, waits, asking, now)
        for answer in answers:
            actions += self.permit_answered(answer, now)
        return actions

    def _go_on(
        self,
        record: PendingPod,
        decision: Decision,
        rejection: tuple[str, str] | None,
        waits: dict[str, float],
        asking: Asking,
        now: float,
    ) -> list[Action]:
        """The plugins were asked: the pod is rejected, waits or is bound."""
        if rejection is not None:
            self.take_back(record, now)
            rejected = rejected_after_all(*rejection, decision)
            return self._failures.no_node(record, rejected, asking, now)
        decided = Decided(decision, record.attempts, record.first_seen_at, asking.spent)
        if waits:
            self._wait(record, waits, now)
            return [decided]
        return [decided, self._bind(record)]

    def _reserve(self, record: PendingPod, asking: Asking) -> tuple[str, str] | None:
        """The first plugin that rejects the pod, and its reason. The objects that plugins reserve
        are assumed."""
        for plugin in record.profile.plugins_for_point("reserve"):
            nodes = self._state.nodes()
            answer, _ = asking.observed(
                self._state, plugin, "reserve", record.pod, record.node_name, nodes
            )
            if isinstance(answer, PodRejection) and isinstance(answer.reason, str):
                return plugin.name, answer.reason
            if isinstance(answer, Reserved):
                record.memories[plugin.name] = answer.memory
                if objects := _reserved_objects(plugin, answer):
                    self._state.known_objects.assume(record.uid, objects)
            elif answer is not None:
                raise PluginError(
                    f"{plugin.name}.reserve answers with {answer!r}; "
                    "it must be Reserved(...), PodRejection(reason) or None",
                    plugin_name=plugin.name,
                )
        return None

    def _permit(
        self,
        record: PendingPod,
        asking: Asking,
        waits: dict[str, float],
        answers: list[PermitAnswered],
    ) -> tuple[str, str] | None:
        """The first plugin that rejects the pod, and its reason. Fills `waits` and `answers`."""
        for plugin in record.profile.plugins_for_point("permit"):
            memory = memory_of(record.memories, plugin)
            nodes = self._state.nodes()
            answer, _ = asking.observed(
                self._state, plugin, "permit", record.pod, record.node_name, nodes, **memory
            )
            if not _is_permit_answer(answer):
                raise PluginError(
                    f"{plugin.name}.permit answers with {answer!r}; it must be Allow(), "
                    "Reject(reason) or Wait(seconds), with uids in a frozenset and seconds of 0 "
                    "or more",
                    plugin_name=plugin.name,
                )
            reason = answer.reason if isinstance(answer, Reject) else None
            if isinstance(answer, Wait):
                waits[plugin.name] = answer.seconds
            else:
                answers += [PermitAnswered(uid, plugin.name, reason) for uid in sorted(answer.also)]
            if reason is not None:
                return plugin.name, reason
        return None

    def _bind(self, record: PendingPod) -> Bind:
        self._pods.move(record, Stage.BINDING)
        return Bind(record.pod, record.node_name, record.profile, record.memories)

    # The pod waits in Permit.

    def _wait(self, record: PendingPod, waits: dict[str, float], now: float) -> None:
        self._pods.move(record, Stage.WAITING)
        for plugin_name, wanted in waits.items():
            seconds = min(wanted, LONGEST_PERMIT_SECONDS)
            self._pods.wait(record, Deadline(record, now + seconds, seconds, plugin_name))

    def permit_answered(self, event: PermitAnswered, now: float) -> list[Action]:
        record = self._pods.by_uid.get(event.uid)
        if record is None or record.stage is not Stage.WAITING:
            return []
        if event.rejection is None:
            self._pods.end_deadline(record, event.plugin_name)
            return [] if record.deadlines else [self._bind(record)]
        decision = record.decision
        assert decision is not None
        self.stop_waiting(record, now)
        rejected = rejected_after_all(event.plugin_name, event.rejection, decision)
        return self._failures.no_node(record, rejected, UNTIMED, now)

    def stop_waiting(self, record: PendingPod, now: float) -> None:
        """Take back the assumption. The caller then moves the pod to its next stage."""
        self.take_back(record, now)
        self._queue.wake(pod_change(record.pod, None), now)

    def timed_out(self, deadline: Deadline, now: float) -> list[Action]:
        name = deadline.waits_for
        waited = f"rejected due to timeout after waiting {_duration(deadline.seconds)}"
        answer = PermitAnswered(deadline.record.uid, name, f"{waited} at plugin {name}")
        return self.permit_answered(answer, now)

    # How the binding ended.

    def ended(self, event: BindingEnded, now: float) -> list[Action]:
        record = self._pods.by_uid.get(event.uid)
        if record is None or record.stage is not Stage.BINDING:
            return []
        if event.outcome.error is not None:
            return self._not_bound(record, event.outcome, event.outcome.error, now)
        record.decision, record.is_back = None, False
        self._state.known_objects.settle(event.uid)
        note = f"Successfully assigned {record.pod.key} to {record.node_name}"
        name = record.profile.scheduler_name
        placed = self._state.placed(event.uid)
        if placed is not None and placed.is_assumed:
            self._pods.move(record, Stage.UNCONFIRMED)
            seconds = CONFIRMED_WITHIN_SECONDS
            self._pods.wait(record, Deadline(record, now + seconds, seconds, _CONFIRMATION))
        else:
            self._pods.move(record, Stage.NOT_PENDING)
        return [WriteKubeEvent(record.pod, "Normal", "Scheduled", "Binding", note, name)]

    def still_pending(self, record: PendingPod) -> None:
        """The watch shows the pod without a node. If it showed it bound or gone before, the pod is
        assumed again until its binding ends."""
        if self._state.placed(record.uid) is None:
            self._state.assume(record.pod, record.node_name)
            record.is_doubtful = record.is_back = True

    def _not_bound(
        self, record: PendingPod, outcome: BindOutcome, error: str, now: float
    ) -> list[Action]:
        placed, is_gone = self._state.placed(record.uid), outcome.is_gone and not record.is_back
        errors = [error, *self.take_back(record, now)]
        self._queue.wake(pod_change(record.pod, None), now)
        if placed is None or not placed.is_assumed or is_gone:
            self._pods.move(record, Stage.NOT_PENDING)
            return []
        return self._failures.error(record, "; ".join(errors), now)

    def take_back(self, record: PendingPod, now: float) -> list[str]:
        """Undo the assumption, even if plugins fail; return their errors."""
        errors = self._unreserve(record)
        for assumed, watched in self._state.known_objects.forget(record.uid):
            self._objects.object_changed(assumed, watched, now)
        self._state.forget(record.uid)
        record.decision, record.node_name = None, ""
        record.is_doubtful = record.is_back = False
        record.memories = {}
        return errors

    def _unreserve(self, record: PendingPod) -> list[str]:
        """Call `unreserve` in reverse order; return the errors."""
        errors = []
        for plugin in reversed(record.profile.plugins_for_point("reserve")):
            try:
                if hasattr(plugin, "unreserve"):
                    memory = memory_of(record.memories, plugin)
                    ask(plugin, "unreserve", record.pod, record.node_name, **memory)
            except (PluginError, QuantityError) as error:
                errors.append(str(error))
        return errors

    # The watch does not confirm a binding.

    def look_up(self, deadline: Deadline) -> list[Action]:
        """Read few pods at once; the others follow."""
        record = deadline.record
        self._pods.end_deadline(record, deadline.waits_for)
        if len(self._being_read) >= MOST_READ_AT_ONCE:
            self._to_be_read.append(deadline)
            return []
        self._being_read[record.uid] = deadline
        return [LookUpBinding(record.pod, record.node_name)]

    def looked_up(self, event: BindingLookedUp, now: float) -> list[Action]:
        deadline = self._being_read.pop(event.uid, None)
        self._read_next()
        record = self._pods.by_uid.get(event.uid)
        if deadline is None or record is None or not _is_looked_up(record):
            return []  # it was confirmed meanwhile
        if event.outcome.error is not None:
            return self._not_bound(record, event.outcome, event.outcome.error, now)
        seconds = min(2 * deadline.seconds, LONGEST_WAIT_SECONDS)
        self._pods.wait(record, Deadline(record, now + seconds, seconds, _CONFIRMATION))
        return []

    def _read_next(self) -> None:
        while self._to_be_read:
            deadline = self._to_be_read.popleft()
            if _is_looked_up(deadline.record):
                self._pods.wait(deadline.record, deadline)
                return

    # Others change the node.

    def changed_by_others(self, node_name: str) -> None:
        """Mark the pods assumed there: they are checked again before they are bound."""
        for uid, placed in self._state.placed_on(node_name).items():
            record = self._pods.by_uid.get(uid) if placed.is_assumed else None
            if record is not None and record.stage in ASSUMED:
                record.is_doubtful = True

    def objection_to(self, uid: str, held: Iterable[Event]) -> str | None:
        """Why the pod must not be bound to its node any more; None if it may. Rejections that give
        way with time do not count: they may have given way in the decision. `held` are events that
        are not applied yet; if one changes the node, nobody can tell whether the pod still fits."""
        record = self._pods.by_uid.get(uid)
        if record is None or record.stage is not Stage.BINDING:
            return None
        if any(self._changes_node(event, record) for event in held):
            return f"node {record.node_name} is changing"
        if not record.is_doubtful:
            return None
        row = self._state.row_of(record.node_name)
        if row is None:
            return f"node {record.node_name} is gone"
        try:
            reasons = self._reasons_against(record, row)
        except (PluginError, QuantityError):
            return None  # a plugin that fails is no reason against the node, but the doubt stays
        if not reasons:
            record.is_doubtful = False
            return None
        return f"node {record.node_name} has changed meanwhile: {', '.join(reasons)}"

    def _changes_node(self, event: Event, record: PendingPod) -> bool:
        """Whether others change the pod's node in a way that plugins can see. A pod that leaves it
        only makes room."""
        match event:
            case Deleted(object=Node() as node):
                return node.name == record.node_name
            case Added(object=Node() as node) | Modified(object=Node() as node):
                row = self._state.row_of(node.name)
                return node.name == record.node_name and (
                    row is None or not is_same_to_plugins(self._state.node_at(row), node)
                )
            case Added(object=Pod() as pod) | Modified(object=Pod() as pod):
                return (
                    pod.spec.node_name == record.node_name
                    and pod.uid != record.uid
                    and not pod.has_ended
                    and not self._is_placed_like(pod)
                )
        return False

    def _is_placed_like(self, pod: Pod) -> bool:
        """Whether it is known on its node, assumed or bound, with the same needs."""
        before = self._state.placed(pod.uid)
        after = PlacedPod(pod, pod.spec.node_name, footprint_of(pod), is_assumed=False)
        return before is not None and before.is_same_except_labels(after)

    def _reasons_against(self, record: PendingPod, row: int) -> tuple[str, ...]:
        """The plugins' reasons against the node, as if the pod were not assumed there."""
        return reasons_against(
            record.pod,
            row,
            record.profile,
            self._state.without(record.uid),
            waited_seconds=_LONG_ENOUGH_SECONDS,
        )


def _is_looked_up(record: PendingPod) -> bool:
    """UNCONFIRMED without a deadline: it is read now or next."""
    return record.stage is Stage.UNCONFIRMED and not record.deadlines


def _reserved_objects(plugin: Any, answer: Reserved) -> tuple[Any, ...]:
    try:
        objects = tuple(answer.objects)
    except Exception as error:
        text = f"{plugin.name}.reserve answers with objects that cannot be read: {error!r}"
        raise PluginError(text, plugin_name=plugin.name) from error
    for each in objects:
        if type(each) not in KIND_OF:
            raise PluginError(
                f"{plugin.name}.reserve answers with the object {each!r}; "
                "it must be of one of the plugin's kinds",
                plugin_name=plugin.name,
            )
    return objects


def _is_permit_answer(answer: Any) -> bool:
    if isinstance(answer, Wait):
        return isinstance(answer.seconds, int | float) and answer.seconds >= 0
    if isinstance(answer, Reject) and not isinstance(answer.reason, str):
        return False
    return (
        isinstance(answer, Allow | Reject)
        and isinstance(answer.also, Set)
        and all(isinstance(uid, str) for uid in answer.also)
    )


def _duration(seconds: float) -> str:
    """As Go writes durations: 15m0s, 1.5s, 250ms."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    text = f"{hours:g}h" if hours else ""
    text += f"{minutes:g}m" if text or minutes else ""
    return f"{text}{rest:g}s"
