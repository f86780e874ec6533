"""The protocol of all indexes: the events that ClusterState passes on to them."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from lowtide.cluster.columns import Column, KeptColumns
from lowtide.cluster.placed import Footprint, PlacedPod
from lowtide.cluster.table import Table
from lowtide.objects.node import Node


class Index:
    """Something that ClusterState keeps true. A subclass overrides the events that it handles; the
    others are not passed on to it. `row` is None where the pod's node is unknown."""

    # While True, no event about a pod is passed on: there is nothing to keep true.
    is_idle = False

    def __init__(self, table: Table) -> None:
        self._table = table
        # Columns that can be rebuilt when a plugin asks again.
        self._on_demand: list[KeptColumns[Any, Any]] = []

    @property
    def columns(self) -> Iterable[Column]:
        """All columns. ClusterState moves and clears their rows when nodes go."""
        return chain.from_iterable(self._on_demand)

    def let_columns_go(self) -> None:
        """Drops the columns that can be rebuilt."""
        for kept in self._on_demand:
            kept.clear()

    def resize(self) -> None:
        """The table has another capacity."""
        self.let_columns_go()
        for column in self.columns:
            column.resize(self._table.capacity)

    def concerns(self, footprint: Footprint) -> bool:
        """Whether pods with this footprint matter here. Asked once per footprint, so the answer
        must never change."""
        return True

    # Events about nodes.

    def node_added(self, row: int, node: Node) -> None:
        """The table has the node already, and the pods that were known to be on it."""

    def node_changed(self, row: int, before: Node, after: Node) -> None: ...

    def node_removed(self, row: int, node: Node) -> None:
        """The node has no row any more; the last row moves into the gap after this."""

    # Events about pods. The answer is what they changed on the row, besides what pods take there
    # and their labels: bits of `changes`.

    def pod_added(self, row: int | None, placed: PlacedPod) -> int:
        return 0

    def pod_removed(self, row: int | None, placed: PlacedPod) -> int:
        return 0

    def pod_relabelled(self, row: int | None, before: PlacedPod, after: PlacedPod) -> int:
        """Nothing but the labels changed, of a pod without affinity terms and volumes."""
        return 0

    # Events about other objects.

    def object_changed(self, before: Any, after: Any) -> None:
        """One of the two is None where the object comes or goes."""


def handlers(indexes: Iterable[Index], event: Callable[..., Any]) -> tuple[Index, ...]:
    """The indexes that handle this event of Index."""
    name = event.__name__
    return tuple(each for each in indexes if getattr(type(each), name) is not event)
