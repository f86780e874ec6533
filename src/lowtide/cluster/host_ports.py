"""Which host ports pods hold on each node: columns made at first use and kept true after it.

ClusterState counts pods in and out; rules read them by `nodes.uses_port`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from lowtide.cluster.columns import Column, IntArray, KeptColumns
from lowtide.cluster.placed import HostPort, PlacedPod


class HostPorts:
    """A column counts the pods that hold one port on one address: which of them conflict with a
    wanted one is asked once per address in use."""

    def __init__(self, row_of: Mapping[str, int]) -> None:
        self._row_of = row_of
        # By protocol and port, then by address: how many pods hold it on each node, known or not.
        self._held: dict[tuple[str, int], dict[str, Counter[str]]] = {}
        self._columns: KeptColumns[HostPort, Column] = KeptColumns()

    @property
    def columns(self) -> Iterable[Column]:
        return iter(self._columns)

    def let_columns_go(self) -> None:
        self._columns.clear()

    def holders(self, held: HostPort) -> Mapping[str, int]:
        """By node name: how many pods hold just this."""
        return self._held.get((held.protocol, held.port), {}).get(held.ip, {})

    def conflicting(self, wanted: HostPort, capacity: int) -> IntArray:
        """On each row: how many pods hold what keeps this one from being held."""
        conflicting = np.zeros(capacity, np.int64)
        for ip in self._held.get((wanted.protocol, wanted.port), ()):
            if wanted.conflicts(ip):
                conflicting += self._column(HostPort(wanted.protocol, wanted.port, ip), capacity)
        return conflicting

    def count(self, placed: PlacedPod, times: int) -> None:
        """A pod came (1) or went (-1)."""
        for held in placed.footprint.host_ports:
            self._count_holder(held, placed.node_name, times)
            row = self._row_of.get(placed.node_name)
            if row is not None:
                self._add(row, held, times)

    def fill(self, row: int, placed: Iterable[PlacedPod]) -> None:
        """A row that is new to the table, and the pods that were known to be on it."""
        for each in placed:
            for held in each.footprint.host_ports:
                self._add(row, held, 1)

    def _add(self, row: int, held: HostPort, times: int) -> None:
        column = self._columns.get(held)
        if column is not None:
            column.array[row] += times

    def _count_holder(self, held: HostPort, node_name: str, times: int) -> None:
        port = held.protocol, held.port
        by_ip = self._held.setdefault(port, {})
        nodes = by_ip.setdefault(held.ip, Counter())
        nodes[node_name] += times
        if nodes[node_name] == 0:
            del nodes[node_name]
        if not nodes:
            del by_ip[held.ip]
        if not by_ip:
            del self._held[port]

    def _column(self, held: HostPort, capacity: int) -> IntArray:
        def make() -> Column:
            column = Column(np.int64, 0, capacity)
            for node_name, pods in self.holders(held).items():
                row = self._row_of.get(node_name)
                if row is not None:
                    column.array[row] = pods
            return column

        return self._columns.asked(held, make).array
