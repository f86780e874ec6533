"""Evictions under way: pods that others make room for. Such a pod stays out of the queue until its
victims are seen to go, so that nobody else is evicted for it meanwhile. Used by the machine."""

from dataclasses import dataclass

from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import Eviction, Pod, PodRejection
from lowtide.scheduler.actions import Evict, WriteKubeEvent
from lowtide.scheduler.events import EvictionEnded

HELD_BY = "DefaultPreemption"
HELD = PodRejection("waiting for the preemption for this pod to be finished")


@dataclass(slots=True)
class _UnderWay:
    pod: Pod
    node_name: str
    victims: set[str]  # uids of those that are not seen to go yet
    has_ended: bool = False  # whether the writes have
    is_needed: bool = True  # whether the pod still waits for the room


class Evictions:
    def __init__(self) -> None:
        self._under_way: dict[str, _UnderWay] = {}  # by the uid of the pod that needs the room

    def __contains__(self, uid: str) -> bool:
        under_way = self._under_way.get(uid)
        return under_way is not None and under_way.is_needed

    def begin(self, pod: Pod, eviction: Eviction, state: ClusterState) -> Evict | None:
        """None where every victim goes or has gone already. Nominations to the node of pods that
        matter less are taken back: they may not fit there any more."""
        victims = tuple(
            each
            for each in eviction.victims
            if not each.is_terminating and state.placed(each.uid) is not None
        )
        if not victims:
            return None
        uids = {victim.uid for victim in victims}
        self._under_way[pod.uid] = _UnderWay(pod, eviction.node_name, uids)
        promised = state.nominated().get(eviction.node_name, {}).values()
        lower = tuple(each for each in promised if each.spec.priority < pod.spec.priority)
        return Evict(pod, eviction.node_name, victims, lower)

    def ended(self, event: EvictionEnded) -> list[WriteKubeEvent]:
        """The writes have ended; what is to be told of those that were evicted."""
        under_way = self._under_way.get(event.uid)
        if under_way is None:
            return []
        under_way.has_ended = True
        under_way.victims -= event.gone
        if event.error is not None or not under_way.victims or not under_way.is_needed:
            del self._under_way[event.uid]
        pod, node_name = under_way.pod, under_way.node_name
        return [told_preempted(victim, pod, node_name) for victim in event.evicted]

    def seen_to_go(self, uid: str) -> list[str]:
        """A victim is terminating or gone; the pods that are held no longer."""
        released = []
        for preemptor, under_way in list(self._under_way.items()):
            under_way.victims.discard(uid)
            if under_way.has_ended and not under_way.victims:
                del self._under_way[preemptor]
                released.append(preemptor)
        return released

    def forget(self, uid: str) -> None:
        """The pod that needed the room is gone, or has its node. Its victims are told all the
        same once the writes have ended."""
        under_way = self._under_way.get(uid)
        if under_way is not None and under_way.has_ended:
            del self._under_way[uid]
        elif under_way is not None:
            under_way.is_needed = False


def told_preempted(
    victim: Pod, pod: Pod, node_name: str, *, in_memory: bool = False
) -> WriteKubeEvent:
    note = f"Preempted by pod {pod.uid} on node {node_name}"
    if in_memory:
        note += " (in kube-scheduler memory)."
    name = pod.spec.scheduler_name
    return WriteKubeEvent(victim, "Normal", "Preempted", "Preempting", note, name, related=pod)
