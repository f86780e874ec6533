"""Which node has which row, and which pods are on which node.

The part of ClusterState that every index may read; only ClusterState changes it."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from lowtide.cluster.columns import Rows
from lowtide.cluster.groups import Groups
from lowtide.cluster.placed import PlacedPod
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod

FIRST_CAPACITY = 64


class Table:
    def __init__(self) -> None:
        self.count = 0
        self.capacity = FIRST_CAPACITY  # the length of every column
        self.table_version = 0  # grows when a node is added or removed
        self.names: list[str] = []
        self.node_objects: list[Node] = []  # by row
        self.row_by_name: dict[str, int] = {}
        self._every_row: Rows = np.empty(0, np.intp)
        self._every_name: tuple[str, ...] | None = None  # until it is asked for
        self._placed: dict[str, PlacedPod] = {}  # by uid
        self._placed_on: Groups[str, str, PlacedPod] = Groups()  # by node name, known or not
        # By namespace, in order of arrival, which is also their order in memory.
        self._placed_in: Groups[str, str, PlacedPod] = Groups()

    # Nodes.

    @property
    def every_row(self) -> Rows:
        """The same array until a node is added or removed."""
        if len(self._every_row) != self.count:
            self._every_row = np.arange(self.count)
            self._every_row.setflags(write=False)
        return self._every_row

    @property
    def every_name(self) -> tuple[str, ...]:
        """`names` for plugins. The same tuple until a node is added or removed."""
        if self._every_name is None:
            self._every_name = tuple(self.names)
        return self._every_name

    def node_at(self, row: int) -> Node:
        return self.node_objects[row]

    def row_of(self, node_name: str) -> int | None:
        return self.row_by_name.get(node_name)

    def rows_of(self, node_names: Iterable[str]) -> list[int]:
        """The rows of these nodes, without unknown nodes."""
        row_by_name = self.row_by_name
        return [row_by_name[name] for name in node_names if name in row_by_name]

    def _append_node(self, node: Node) -> int:
        row = self.count
        self.count += 1
        self.table_version += 1
        self.names.append(node.name)
        self._every_name = None
        self.node_objects.append(node)
        self.row_by_name[node.name] = row
        return row

    def _close_gap(self, row: int) -> None:
        """Move the last node into this row, whose node was removed."""
        last_name, last_node = self.names.pop(), self.node_objects.pop()
        self.count -= 1
        self._every_name = None
        if row != self.count:
            self.names[row], self.node_objects[row] = last_name, last_node
            self.row_by_name[last_name] = row

    # Pods.

    def placed_on(self, node_name: str) -> Mapping[str, PlacedPod]:
        return self._placed_on.group(node_name)

    def placed(self, uid: str) -> PlacedPod | None:
        return self._placed.get(uid)

    def all_placed(self) -> Mapping[str, PlacedPod]:
        """By uid."""
        return self._placed

    def placed_in(self, namespaces: Iterable[str] | None) -> Iterator[PlacedPod]:
        """The pods of these namespaces; None stands for every namespace."""
        for namespace in self._placed_in if namespaces is None else namespaces:
            yield from self._placed_in.group(namespace).values()

    def placed_pods(self) -> Iterator[Pod]:
        return (placed.pod for placed in self._placed.values())

    @property
    def placed_count(self) -> int:
        return len(self._placed)

    @property
    def assumed_count(self) -> int:
        return sum(placed.is_assumed for placed in self._placed.values())

    def _put_pod(self, placed: PlacedPod) -> None:
        """Add the pod, or replace the one with its uid, which must be on the same node."""
        meta, uid = placed.pod.metadata, placed.pod.metadata.uid
        self._placed[uid] = placed
        self._placed_on.setdefault(placed.node_name, {})[uid] = placed
        self._placed_in.setdefault(meta.namespace, {})[uid] = placed

    def _drop_pod(self, placed: PlacedPod) -> None:
        uid = placed.pod.uid
        del self._placed[uid]
        self._placed_on.drop(placed.node_name, uid)
        self._placed_in.drop(placed.pod.namespace, uid)
