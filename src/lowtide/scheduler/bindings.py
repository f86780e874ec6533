"""The placements whose bindings are under way, and a second look at those that somebody else has
meanwhile got in the way of: another scheduler's pod on the node, or another change of it. The
machine has them; whoever sends a binding asks in the step in which it is sent."""

import sys

from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import PluginError
from lowtide.framework.what_if import reasons_against
from lowtide.objects.quantity import QuantityError
from lowtide.scheduler.placements import Placement

_LONG_ENOUGH_SECONDS = sys.float_info.max  # for all that ever gives way


class Bindings:
    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._by_uid: dict[str, Placement] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def begin(self, placement: Placement) -> None:
        self._by_uid[placement.queued.pod.uid] = placement

    def placement(self, uid: str) -> Placement | None:
        return self._by_uid.get(uid)

    def end(self, uid: str) -> Placement | None:
        return self._by_uid.pop(uid, None)

    def objection(self, uid: str) -> str | None:
        """Why the pod must not be bound any more to the node that it was decided for. What gives
        way to pods that have waited does not count: it may have."""
        placement = self._by_uid.get(uid)
        if placement is None or not placement.is_doubtful:
            return None
        row = self._state.row_of(placement.node_name)
        if row is None:
            return f"node {placement.node_name} is gone"
        reasons = self._reasons_against(placement, row)
        if not reasons:
            placement.is_doubtful = False
            return None
        return f"node {placement.node_name} has changed meanwhile: {', '.join(reasons)}"

    def _reasons_against(self, placement: Placement, row: int) -> tuple[str, ...]:
        """What plugins say of the node without the pod, which counts there already."""
        pod = placement.queued.pod
        try:
            return reasons_against(
                pod,
                row,
                placement.profile,
                self._state.without(pod.uid),
                waited_seconds=_LONG_ENOUGH_SECONDS,
            )
        except (PluginError, QuantityError):
            return ()  # nothing is known against it
