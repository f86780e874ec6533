"""NodePorts: a host port can be held once per protocol and address on a node."""

from collections.abc import Iterator

import numpy as np

from lowtide.cluster.placed import host_ports_of
from lowtide.framework.plugin import PODS, Nodes, Pod, Rejection


class NodePorts:
    name = "NodePorts"
    reads = PODS

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        wanted = host_ports_of(pod)
        if not wanted:
            return
        taken = np.logical_or.reduce([nodes.uses_port(port) for port in wanted])
        yield Rejection(
            taken,
            "node(s) didn't have free ports for the requested pod ports",
            eviction_helps=True,
        )
