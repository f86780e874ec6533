"""The pending pods that are nominated to nodes. Most decisions ask which of them take precedence
over a pod, and nominations rarely change between two decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.groups import Groups
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.overlay import HypotheticalPods, Overlays, hypothetical_pod
from lowtide.cluster.placed import PlacedPod
from lowtide.cluster.table import Table
from lowtide.objects.meta import as_int32
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod

if TYPE_CHECKING:
    from lowtide.cluster.nodes import Nodes


class PrecedingPods:
    """Nominated pods whose priority is at least that of some pod, on their nodes."""

    def __init__(self, nominated: _NominatedPods, counts: BoolArray) -> None:
        """`counts` is indexed by the number of the nominated pod."""
        self._pods = nominated.pods
        self._counts = counts
        self._places = np.flatnonzero(np.bincount(self._pods.places[counts]))
        self.rows: Rows = nominated.row_at[self._places]  # distinct

    def with_them(self, nodes: Nodes) -> Nodes:
        """The rows of these pods, with the pods added. `nodes` is the whole table."""
        overlays = Overlays(self._pods, self._places, self._counts.astype(np.int64))
        return nodes.take(self.rows).overlaid(overlays)

    @cached_property
    def by_row(self) -> Mapping[int, Sequence[PlacedPod]]:
        row_of = dict(zip(self._places.tolist(), self.rows.tolist(), strict=True))
        found: dict[int, list[PlacedPod]] = {}
        for number in np.flatnonzero(self._counts).tolist():
            row = row_of[int(self._pods.places[number])]
            found.setdefault(row, []).append(self._pods.pods[number])
        return found


class NominatedPods(Index):
    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.by_node: Groups[str, str, Pod] = Groups()  # by node name, then uid
        self._node_of: dict[str, str] = {}  # node names by uid
        # By uid: the nominated pods with their footprints.
        self._hypothetical: dict[str, PlacedPod] = {}
        self._nominated: _NominatedPods | None = None  # None after any change

    def node_name(self, uid: str) -> str:
        """The node that this pending pod is nominated to, or an empty string."""
        return self._node_of.get(uid, "")

    def nominate(self, pod: Pod, node_name: str) -> None:
        known = self._hypothetical.get(pod.uid)
        self.drop(pod.uid)
        self.by_node.put(node_name, pod.uid, pod)
        self._node_of[pod.uid] = node_name
        self._hypothetical[pod.uid] = (
            hypothetical_pod(pod) if known is None or known.pod is not pod else known
        )
        self._nominated = None

    def drop(self, uid: str) -> None:
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return
        del self._hypothetical[uid]
        self.by_node.drop(node_name, uid)
        self._nominated = None

    def preceding(self, pod: Pod) -> PrecedingPods | None:
        """The nominated pods that take precedence over this one, or None."""
        if not self.by_node:
            return None
        if self._nominated is None:
            self._nominated = self._on_rows()
        nominated = self._nominated
        counts = nominated.priorities >= as_int32(pod.spec.priority)
        if pod.uid in nominated.number_of:
            counts[nominated.number_of[pod.uid]] = False
        return PrecedingPods(nominated, counts) if counts.any() else None

    def node_added(self, row: int, node: Node) -> None:
        self._nominated = None

    def node_removed(self, row: int, node: Node) -> None:
        """Nominations to a removed node are dropped."""
        for uid in list(self.by_node.group(node.name)):
            self.drop(uid)
        self._nominated = None  # another node may move into the row

    def _on_rows(self) -> _NominatedPods:
        by_row = {
            row: [self._hypothetical[uid] for uid in pods]
            for node_name, pods in self.by_node.items()
            if (row := self._table.row_of(node_name)) is not None
        }
        return _NominatedPods(by_row)


class _NominatedPods:
    """All nominated pods on known nodes, numbered in this order."""

    def __init__(self, by_row: Mapping[int, Sequence[PlacedPod]]) -> None:
        places = np.repeat(np.arange(len(by_row)), [len(pods) for pods in by_row.values()])
        pods = list(chain.from_iterable(by_row.values()))
        self.pods = HypotheticalPods(pods, places, times=1, place_count=len(by_row))
        self.row_at: Rows = np.array(list(by_row), np.intp)  # by place
        self.number_of = {placed.pod.uid: number for number, placed in enumerate(pods)}
        self.priorities: IntArray = np.array(
            [as_int32(placed.pod.spec.priority) for placed in pods], np.int64
        )
