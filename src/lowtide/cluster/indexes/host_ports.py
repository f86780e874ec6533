"""Which host ports pods hold on each node: columns made at first use and kept true after it.

Plugins read them by `nodes.uses_port`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from lowtide.cluster.columns import Column, IntArray, KeptColumns
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.placed import Footprint, HostPort, PlacedPod
from lowtide.cluster.table import Table
from lowtide.objects.node import Node


class HostPorts(Index):
    """A column counts the pods that hold one port on one address. Which of them conflict with a
    wanted port is asked once per address in use."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        # By protocol and port, then by address: how many pods hold it on each node, known or not.
        self._held: dict[tuple[str, int], dict[str, Counter[str]]] = {}
        self._columns: KeptColumns[HostPort, Column] = KeptColumns(self._make_column)

    @property
    def columns(self) -> Iterable[Column]:
        return self._columns

    def let_columns_go(self) -> None:
        self._columns.clear()

    def concerns(self, footprint: Footprint) -> bool:
        return bool(footprint.host_ports)

    def holders(self, held: HostPort) -> Mapping[str, int]:
        """By node name: how many pods hold just this."""
        return self._held.get((held.protocol, held.port), {}).get(held.ip, {})

    def conflicting(self, wanted: HostPort) -> IntArray:
        """On each row: how many pods hold what keeps this one from being held."""
        conflicting = np.zeros(self._table.capacity, np.int64)
        for ip in self._held.get((wanted.protocol, wanted.port), ()):
            if wanted.conflicts(ip):
                conflicting += self._columns[HostPort(wanted.protocol, wanted.port, ip)].array
        return conflicting

    def node_added(self, row: int, node: Node) -> None:
        for placed in self._table.placed_on(node.name).values():
            self._add(row, placed, 1)

    def pod_added(self, row: int | None, placed: PlacedPod) -> int:
        self._count_holder(placed, 1)
        self._add(row, placed, 1)
        return 0

    def pod_removed(self, row: int | None, placed: PlacedPod) -> int:
        self._count_holder(placed, -1)
        self._add(row, placed, -1)
        return 0

    def _add(self, row: int | None, placed: PlacedPod, times: int) -> None:
        for held in placed.footprint.host_ports:
            column = self._columns.get(held)
            if column is not None and row is not None:
                column.array[row] += times

    def _count_holder(self, placed: PlacedPod, times: int) -> None:
        for held in placed.footprint.host_ports:
            port, node_name = (held.protocol, held.port), placed.node_name
            by_ip = self._held.setdefault(port, {})
            nodes = by_ip.setdefault(held.ip, Counter())
            nodes[node_name] += times
            if not nodes[node_name]:
                del nodes[node_name]
            if not nodes:
                del by_ip[held.ip]
            if not by_ip:
                del self._held[port]

    def _make_column(self, held: HostPort) -> Column:
        column = Column(np.int64, 0, self._table.capacity)
        for node_name, pods in self.holders(held).items():
            row = self._table.row_of(node_name)
            if row is not None:
                column.array[row] = pods
        return column
