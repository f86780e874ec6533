"""Nodes and all other objects but pods, as the watches tell of them: the state is kept true, and
parked pods that may profit are woken.

Used by the machine, and by the advisor, where nothing is parked."""

from collections.abc import Callable, Collection
from typing import Any

from lowtide.cluster.state import ClusterState
from lowtide.framework.change import Change, node_change, object_change
from lowtide.framework.profile import Profile, rules_by_kind
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable
from lowtide.objects.kinds import KIND_OF, NEEDED_KINDS
from lowtide.objects.node import Node
from lowtide.scheduler.events import Event


class Surroundings:
    def __init__(
        self,
        state: ClusterState,
        wake: Callable[[Change, float], object],
        profiles: Collection[Profile],
    ) -> None:
        self._state = state
        self._wake = wake
        self._kinds_that_wake = {kind for profile in profiles for kind in profile.kinds_that_wake}
        self.unlisted = {*NEEDED_KINDS, *(KIND_OF[kind].name for kind in rules_by_kind(profiles))}

    def step(self, event: Event, now: float) -> None:
        """What a watch tells, but for pods; `unlisted` are the kinds of which it is not known yet
        what exists."""
        match event:
            case Added(object=thing) | Modified(object=thing):
                self.changed(thing, now)
            case Deleted(object=thing):
                self.deleted(thing, now)
            case Listed(kind=kind):
                self.unlisted.discard(kind)
            case Unavailable(kind=kind) if kind not in NEEDED_KINDS:
                self.unlisted.discard(kind)

    def changed(self, thing: Any, now: float) -> None:
        if isinstance(thing, Node):
            self._node_changed(thing, now)
            return
        before = self._state.known_objects.like(thing)
        if self._state.put_object(thing):
            self.object_changed(before, thing, now)

    def deleted(self, thing: Any, now: float) -> None:
        if isinstance(thing, Node):
            self._state.remove_node(thing.name)
            self._wake(node_change(thing, None), now)
            return
        self._state.remove_object(thing)
        self.object_changed(thing, None, now)

    def object_changed(self, before: Any, after: Any, now: float) -> None:
        change = object_change(before, after)
        kind = type(change.thing)
        if kind in self._kinds_that_wake:
            self._wake(change, now)

    def _node_changed(self, node: Node, now: float) -> None:
        row, position = self._state.row_of(node.name), self._state.log.position
        before = None if row is None else self._state.node_at(row)
        self._state.update_node(node)
        if self._state.log.position != position:
            self._wake(node_change(before, node), now)
