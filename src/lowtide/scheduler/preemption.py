"""Pods whose victims are being evicted. Until the victims are gone, such a pod stays out of the
queue, so that no other pods are evicted for it meanwhile. Used by the machine."""

from collections.abc import Iterable

from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import Eviction, Pod, PodRejection
from lowtide.scheduler.actions import Action, Evict, WriteKubeEvent
from lowtide.scheduler.binding_cycle import BindingCycle
from lowtide.scheduler.events import EvictionEnded
from lowtide.scheduler.failures import Failures
from lowtide.scheduler.nominations import Nominations
from lowtide.scheduler.pods import PendingEviction, PendingPod, Pods, Stage

HELD_BY = "DefaultPreemption"
HELD = PodRejection("waiting for the preemption for this pod to be finished")


class Preemption:
    def __init__(
        self,
        state: ClusterState,
        pods: Pods,
        nominations: Nominations,
        failures: Failures,
        binding: BindingCycle,
    ) -> None:
        self._state = state
        self._pods = pods
        self._nominations = nominations
        self._failures = failures
        self._binding = binding
        # By uid: pods whose victims are not gone, or whose writes have not ended. Such a pod may be
        # gone itself.
        self._preemptors: dict[str, PendingPod] = {}

    def begin(self, record: PendingPod, eviction: Eviction, now: float) -> list[Action]:
        """Victims that wait in Permit are not deleted: they go back into the queue. Pods of lower
        priority lose their nominations to the node: they may not fit there any more."""
        waiting = self._waiting(eviction.victims)
        victims = tuple(
            each
            for each in eviction.victims
            if each.uid not in waiting
            and not each.is_terminating
            and self._state.placed(each.uid) is not None
        )
        node_name = eviction.node_name
        if victims:  # set before anything can wake the pod
            uids = {victim.uid for victim in victims}
            record.eviction = PendingEviction(record.pod, node_name, uids)
            self._preemptors[record.uid] = record
        actions: list[Action] = []
        for victim in eviction.victims:
            if victim.uid in waiting:
                self._binding.stop_waiting(waiting[victim.uid], now)
                actions.append(preempted_event(victim, record.pod, node_name, in_memory=True))
                actions += self._failures.error(waiting[victim.uid], "preempted", now)
        if victims:
            lower = self._lower(record, node_name)
            for each in lower:
                self._nominations.take_back(each.uid, now)
            actions.append(Evict(record.pod, node_name, victims, lower))
        return actions

    def _waiting(self, victims: Iterable[Pod]) -> dict[str, PendingPod]:
        records = (self._pods.by_uid.get(victim.uid) for victim in victims)
        return {
            record.uid: record
            for record in records
            if record is not None and record.stage is Stage.WAITING
        }

    def _lower(self, record: PendingPod, node_name: str) -> tuple[Pod, ...]:
        """The pods of lower priority that are nominated to the node."""
        nominated = self._state.nominated().get(node_name, {}).values()
        priority = record.pod.spec.priority
        return tuple(each for each in nominated if each.spec.priority < priority)

    def writes_ended(self, event: EvictionEnded) -> tuple[PendingPod | None, list[WriteKubeEvent]]:
        """The pod if it is not held any longer, and the Events for the evicted pods."""
        record = self._preemptors.get(event.uid)
        if record is None or record.eviction is None:
            return None, []
        eviction = record.eviction
        eviction.is_written = True
        eviction.victims -= event.gone
        events = [
            preempted_event(victim, eviction.pod, eviction.node_name) for victim in event.evicted
        ]
        is_over = event.error is not None or not eviction.victims
        if is_over or record.stage is Stage.NOT_PENDING:
            self._end(record)
        return (record if is_over else None), events

    def victim_gone(self, victim_uid: str) -> list[PendingPod]:
        """A victim is terminating or gone. Return the pods that are not held any longer."""
        released = []
        for record in list(self._preemptors.values()):
            eviction = record.eviction
            if eviction is None:
                continue
            eviction.victims.discard(victim_uid)
            if eviction.is_written and not eviction.victims:
                self._end(record)
                released.append(record)
        return released

    def forget(self, record: PendingPod, eviction: PendingEviction) -> None:
        """The pod is gone or has its node. If its writes have not ended, it stays known until then,
        so that its victims get their Events."""
        if eviction.is_written:
            self._end(record)

    def _end(self, record: PendingPod) -> None:
        record.eviction = None
        del self._preemptors[record.uid]


def preempted_event(
    victim: Pod, pod: Pod, node_name: str, *, in_memory: bool = False
) -> WriteKubeEvent:
    note = f"Preempted by pod {pod.uid} on node {node_name}"
    if in_memory:
        note += " (in kube-scheduler memory)."
    name = pod.spec.scheduler_name
    return WriteKubeEvent(victim, "Normal", "Preempted", "Preempting", note, name, related=pod)
