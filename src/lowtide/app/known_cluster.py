"""The nodes, and the pods on them, that readings are matched to: as the scheduler believes, or as
the watches tell where what is believed belongs to another thread."""

from collections.abc import Iterable
from typing import Protocol

from lowtide.cluster.state import ClusterState
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.requests import CPU, MEMORY, node_amounts
from lowtide.readings.usage import Allocatable
from lowtide.scheduler.events import Event


class KnownCluster(Protocol):
    def nodes(self) -> list[Node]: ...

    def pods(self) -> Iterable[Pod]:
        """Those that have a node."""

    def allocatable(self) -> dict[str, Allocatable]:
        """By node."""


class BelievedCluster:
    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def nodes(self) -> list[Node]:
        nodes = self._state.nodes()
        return [nodes.node(position) for position in range(len(nodes))]

    def pods(self) -> Iterable[Pod]:
        return self._state.placed_pods()

    def allocatable(self) -> dict[str, Allocatable]:
        nodes = self._state.nodes()
        columns = zip(
            nodes.allocatable(CPU).tolist(), nodes.allocatable(MEMORY).tolist(), strict=True
        )
        return {name: Allocatable(*each) for name, each in zip(nodes.names, columns, strict=True)}


class WatchedCluster:
    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._allocatable: dict[str, Allocatable] = {}
        self._pods: dict[str, Pod] = {}  # by uid

    def handle(self, event: Event) -> None:
        match event:
            case Added(object=Node() as node) | Modified(object=Node() as node):
                before = self._nodes.get(node.name)
                self._nodes[node.name] = node
                if before is None or before.status.allocatable != node.status.allocatable:
                    self._allocatable[node.name] = _allocatable_of(node)
            case Deleted(object=Node() as node):
                self._nodes.pop(node.name, None)
                self._allocatable.pop(node.name, None)
            case Added(object=Pod() as pod) | Modified(object=Pod() as pod):
                if pod.spec.node_name and not pod.has_ended:
                    self._pods[pod.uid] = pod
                else:
                    self._pods.pop(pod.uid, None)
            case Deleted(object=Pod() as pod):
                self._pods.pop(pod.uid, None)

    def nodes(self) -> list[Node]:
        return list(self._nodes.values())

    def pods(self) -> Iterable[Pod]:
        return self._pods.values()

    def allocatable(self) -> dict[str, Allocatable]:
        return dict(self._allocatable)


def _allocatable_of(node: Node) -> Allocatable:
    amounts = node_amounts(node.status.allocatable)
    return Allocatable(amounts.amount_of(CPU), amounts.amount_of(MEMORY))
