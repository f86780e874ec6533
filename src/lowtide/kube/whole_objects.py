"""Nodes and pending pods as the API server spells them, every field: extenders are sent them.

The watches fill it where a configuration names extenders; other pods are read when asked for."""

from collections.abc import Collection

import msgspec

from lowtide.kube.connection import Connection
from lowtide.kube.errors import KubeError
from lowtide.objects.events import Deleted
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod


class WholeObjects:
    """Of pods, those that these schedulers are to place."""

    def __init__(
        self, connection: Connection, *, scheduler_names: Collection[str], keeps_nodes: bool
    ) -> None:
        self._connection = connection
        self._scheduler_names = scheduler_names
        self._keeps_nodes = keeps_nodes
        self._nodes: dict[str, msgspec.Raw] = {}
        self._pending: dict[str, msgspec.Raw] = {}  # by uid

    def keep(self, thing: Node | Pod, raw: msgspec.Raw) -> None:
        # A copy: a part of a list would hold the whole list in memory.
        match thing:
            case Node():
                if self._keeps_nodes:
                    self._nodes[thing.name] = raw.copy()
            case Pod() if thing.spec.node_name:
                self._pending.pop(thing.uid, None)
            case Pod() if thing.spec.scheduler_name in self._scheduler_names:
                self._pending[thing.uid] = raw.copy()

    def forget(self, event: Deleted) -> None:
        match event.object:
            case Node() as node:
                self._nodes.pop(node.name, None)
            case Pod() as pod:
                self._pending.pop(pod.uid, None)

    def node(self, name: str) -> msgspec.Raw | None:
        """None where it has gone meanwhile."""
        return self._nodes.get(name)

    async def pod(self, pod: Pod) -> msgspec.Raw | None:
        """None where it has to be read and cannot be."""
        kept = self._pending.get(pod.uid)
        if kept is not None:
            return kept
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        try:
            return msgspec.Raw((await self._connection.request("GET", path)).body)
        except KubeError:
            return None
