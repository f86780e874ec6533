"""NodePorts: rejects nodes where a pod already uses one of the pod's host ports, with the same
protocol and an overlapping address."""

from collections.abc import Iterator

import numpy as np

from lowtide.cluster.placed import HostPort, host_ports_of
from lowtide.framework.plugin import TAKEN, Change, Nodes, Pod, Rejection
from lowtide.objects.node import Node


class NodePorts:
    name = "NodePorts"
    retry_on = TAKEN

    def concerns(self, pod: Pod) -> bool:
        return bool(host_ports_of(pod))

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        wanted = host_ports_of(pod)
        taken = np.logical_or.reduce([nodes.uses_port(port) for port in wanted])
        yield Rejection(
            taken,
            "node(s) didn't have free ports for the requested pod ports",
            eviction_helps=True,
        )

    def may_help(self, pod: Pod, change: Change) -> bool:
        if isinstance(change.thing, Node):
            return change.before is None or change.is_of_taints
        return change.is_over(lambda other: _is_in_the_way(other, pod))


def _is_in_the_way(other: Pod, pod: Pod) -> bool:
    return any(
        _conflict(wanted, held) for held in host_ports_of(other) for wanted in host_ports_of(pod)
    )


def _conflict(wanted: HostPort, held: HostPort) -> bool:
    is_same = (wanted.protocol, wanted.port) == (held.protocol, held.port)
    return is_same and wanted.conflicts(held.ip)
