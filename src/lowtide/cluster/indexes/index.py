"""The protocol of all indexes: the events that ClusterState passes on to them."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from lowtide.cluster.columns import Column, ColumnCache
from lowtide.cluster.placed import Footprint, PlacedPod
from lowtide.cluster.table import Table
from lowtide.objects.node import Node


class Index:
    """Data that ClusterState updates with every event. A subclass overrides the events that it
    handles; the others are not passed on to it. `row` is None if the pod's node is unknown."""

    # While True, pod_added and pod_removed are not called: there is nothing to update.
    is_idle = False

    def __init__(self, table: Table) -> None:
        self._table = table
        # Columns that can be rebuilt when a plugin reads them again.
        self._on_demand: list[ColumnCache[Any, Any]] = []

    @property
    def columns(self) -> Iterable[Column]:
        """All columns. ClusterState moves and clears their rows when nodes are removed."""
        return chain.from_iterable(self._on_demand)

    def drop_columns(self) -> None:
        """Drops the columns that can be rebuilt."""
        for kept in self._on_demand:
            kept.clear()

    def resize(self) -> None:
        """Called after the table's capacity has changed."""
        self.drop_columns()
        for column in self.columns:
            column.resize(self._table.capacity)

    def concerns(self, footprint: Footprint) -> bool:
        """Whether pods with this footprint matter here. Called once per footprint, so the answer
        must never change."""
        return True

    # Events about nodes.

    def node_added(self, row: int, node: Node) -> None:
        """Called when the table already has the node, and perhaps pods that are on it."""

    def node_changed(self, row: int, before: Node, after: Node) -> None: ...

    def node_removed(self, row: int, node: Node) -> None:
        """Called when the node's name has no row any more, before the last row fills the gap."""

    # Events about pods. They return the bits of `changes` that changed on the row, apart from TAKEN
    # and LABELS, which ClusterState logs itself.

    def pod_added(self, row: int | None, placed: PlacedPod) -> int:
        return 0

    def pod_removed(self, row: int | None, placed: PlacedPod) -> int:
        return 0

    def pod_relabelled(self, row: int | None, before: PlacedPod, after: PlacedPod) -> int:
        """Only the labels of a pod changed, which has neither affinity terms nor volumes."""
        return 0

    # Events about other objects.

    def object_changed(self, before: Any, after: Any) -> None:
        """`before` is None for a new object, and `after` for a deleted one."""


def handlers(indexes: Iterable[Index], event: Callable[..., Any]) -> tuple[Index, ...]:
    """The indexes that handle this event of Index."""
    name = event.__name__
    return tuple(each for each in indexes if getattr(type(each), name) is not event)
