"""Pods that others make room for. While its victims have not gone, such a pod stays out of the
queue, so that nobody else is evicted for it meanwhile. Used by the machine."""

from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import Eviction, Pod, PodRejection
from lowtide.scheduler.actions import Evict, WriteKubeEvent
from lowtide.scheduler.events import EvictionEnded
from lowtide.scheduler.nominations import Nominations
from lowtide.scheduler.pods import PendingEviction, PendingPod, Stage

HELD_BY = "DefaultPreemption"
HELD = PodRejection("waiting for the preemption for this pod to be finished")


class Preemption:
    def __init__(self, state: ClusterState, nominations: Nominations) -> None:
        self._state = state
        self._nominations = nominations
        # By uid: pods whose victims have not gone, or whose writes have not ended. The pod itself
        # may be gone by then.
        self._preemptors: dict[str, PendingPod] = {}

    def begin(self, record: PendingPod, eviction: Eviction, now: float) -> list[Evict]:
        """Nothing where every victim goes or has gone already. Nominations to the node of pods
        that matter less are taken back: they may not fit there any more."""
        victims = tuple(
            each
            for each in eviction.victims
            if not each.is_terminating and self._state.placed(each.uid) is not None
        )
        if not victims:
            return []
        uids, node_name = {victim.uid for victim in victims}, eviction.node_name
        record.eviction = PendingEviction(node_name, uids)
        self._preemptors[record.uid] = record
        nominated = self._state.nominated().get(node_name, {}).values()
        priority = record.pod.spec.priority
        lower = tuple(each for each in nominated if each.spec.priority < priority)
        for each in lower:
            self._nominations.take_back(each.uid, now)
        return [Evict(record.pod, node_name, victims, lower)]

    def written(self, event: EvictionEnded) -> tuple[PendingPod | None, list[WriteKubeEvent]]:
        """The pod, where it is not held any longer, and the Events of those that were evicted."""
        record = self._preemptors.get(event.uid)
        if record is None or record.eviction is None:
            return None, []
        eviction = record.eviction
        eviction.is_written = True
        eviction.victims -= event.gone
        events = [
            preempted_event(victim, record.pod, eviction.node_name) for victim in event.evicted
        ]
        is_over = event.error is not None or not eviction.victims
        if is_over or record.stage is Stage.NOT_PENDING:
            self._end(record)
        return (record if is_over else None), events

    def gone(self, victim_uid: str) -> list[PendingPod]:
        """A victim is terminating or gone; the pods that are held no longer."""
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

    def forget(self, record: PendingPod) -> None:
        """The pod is gone, or has its node. Its victims get their Events all the same once the
        writes have ended."""
        if record.eviction is not None and record.eviction.is_written:
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
