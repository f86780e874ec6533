"""Which host ports the pods on each node hold.

Plugins read them through `nodes.uses_port`.
"""

import numpy as np

from lowtide.cluster.columns import IntArray
from lowtide.cluster.groups import Groups
from lowtide.cluster.indexes.by_node import ByNode
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.placed import Footprint, HostPort, PlacedPod
from lowtide.cluster.table import Table
from lowtide.objects.node import Node


class HostPorts(Index):
    """Each column counts the pods that hold one port on one address. A wanted port is checked for
    conflicts once per address in use."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.holders: ByNode[HostPort] = ByNode(table)  # how many pods
        self._on_demand.append(self.holders.columns)
        self._addresses: Groups[tuple[str, int], str, None] = Groups()  # by protocol and port

    def concerns(self, footprint: Footprint) -> bool:
        return bool(footprint.host_ports)

    def conflicting(self, wanted: HostPort) -> IntArray:
        """How many pods on each row hold a port that conflicts with this one."""
        conflicting = np.zeros(self._table.capacity, np.int64)
        for ip in self._addresses.group((wanted.protocol, wanted.port)):
            if wanted.conflicts(ip):
                held = HostPort(wanted.protocol, wanted.port, ip)
                conflicting += self.holders.columns[held].array
        return conflicting

    def node_added(self, row: int, node: Node) -> None:
        self.holders.node_added(row, node.name)

    def pod_added(self, row: int | None, placed: PlacedPod) -> int:
        for held in placed.footprint.host_ports:
            self.holders.add(held, placed.node_name, 1)
            self._addresses.put((held.protocol, held.port), held.ip, None)
        return 0

    def pod_removed(self, row: int | None, placed: PlacedPod) -> int:
        for held in placed.footprint.host_ports:
            self.holders.add(held, placed.node_name, -1)
            if not self.holders[held]:
                self._addresses.drop((held.protocol, held.port), held.ip)
        return 0
