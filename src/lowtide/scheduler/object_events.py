"""Events of watches and meters: they update the state and wake unschedulable pods that they may
help. Used by the machine, the shadow and the advisor, each with its own PodEvents."""

from collections.abc import Callable, Collection
from typing import Any, Protocol

from lowtide.cluster.state import ClusterState
from lowtide.framework.change import READING_PUBLISHED, Change, node_change, object_change
from lowtide.framework.profile import Profile, plugins_by_kind
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable
from lowtide.objects.kinds import KIND_OF, NEEDED_KINDS
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.scheduler.events import Event, ReadingPublished


class PodEvents(Protocol):
    """What the owner does with a pod of the watch."""

    def pod_pending(self, pod: Pod, now: float) -> None:
        """The pod has no node."""

    def pod_bound(self, pod: Pod, now: float) -> None:
        """The pod has a node."""

    def pod_gone(self, pod: Pod, now: float) -> None:
        """The pod is deleted or has ended."""


class ObjectEvents:
    def __init__(
        self,
        state: ClusterState,
        profiles: Collection[Profile],
        pods: PodEvents,
        wake: Callable[[Change, float], object] = lambda change, now: None,
    ) -> None:
        self._state = state
        self._pods = pods
        self._wake = wake
        self._kinds_that_wake = {kind for profile in profiles for kind in profile.kinds_that_wake}
        # The kinds whose first list has not arrived yet.
        self.unlisted = {*NEEDED_KINDS, *(KIND_OF[kind].name for kind in plugins_by_kind(profiles))}

    def step(self, event: Event, now: float) -> None:
        match event:
            case Added(object=Pod() as pod) | Modified(object=Pod() as pod):
                if pod.has_ended:
                    self._pods.pod_gone(pod, now)
                elif pod.spec.node_name:
                    self._pods.pod_bound(pod, now)
                else:
                    self._pods.pod_pending(pod, now)
            case Deleted(object=Pod() as pod):
                self._pods.pod_gone(pod, now)
            case ReadingPublished(source, reading):
                self._state.publish(source, reading)
                self._wake(READING_PUBLISHED, now)
            case Added(object=Node() as node) | Modified(object=Node() as node):
                self._node_changed(node, now)
            case Deleted(object=Node() as node):
                self._state.remove_node(node.name)
                self._wake(node_change(node, None), now)
            case Added(object=thing) | Modified(object=thing):
                before = self._state.known_objects.current(thing)
                if self._state.put_object(thing):
                    self.object_changed(before, thing, now)
            case Deleted(object=thing):
                self._state.remove_object(thing)
                self.object_changed(thing, None, now)
            case Listed(kind=kind):
                self.unlisted.discard(kind)
            case Unavailable(kind=kind) if kind not in NEEDED_KINDS:
                self.unlisted.discard(kind)

    def object_changed(self, before: Any, after: Any, now: float) -> None:
        change = object_change(before, after)
        if type(change.thing) in self._kinds_that_wake:
            self._wake(change, now)

    def _node_changed(self, node: Node, now: float) -> None:
        row, position = self._state.row_of(node.name), self._state.log.position
        before = None if row is None else self._state.node_at(row)
        self._state.update_node(node)
        if self._state.log.position != position:
            self._wake(node_change(before, node), now)
