"""The embedded cluster put together: store, API server, controllers, traffic and Prometheus.

`async with LocalCluster(...)` is all that the demo and fast tests need to know."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from lowtide.localcluster.api_server import ApiServer
from lowtide.localcluster.changes import Change, ChangeType
from lowtide.localcluster.controllers import Controllers
from lowtide.localcluster.documents import Json
from lowtide.localcluster.faults import Faults
from lowtide.localcluster.metrics_api import UsageModel
from lowtide.localcluster.nodes import LocalNode, node_object
from lowtide.localcluster.prometheus import PrometheusServer
from lowtide.localcluster.store import Store
from lowtide.localcluster.traffic import Background, Link, TrafficModel

TRAFFIC_ANNOTATION = "lowtide.dev/demo-bytes-per-second"
_EXPORTER_PORT = 9100


class LocalCluster:
    """Listens on loopback only. `runs_controllers=False` leaves deployments and pods alone."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        nodes: Sequence[LocalNode] = (),
        seed: int = 0,
        port: int = 0,
        prometheus_port: int = 0,
        runs_controllers: bool = True,
        pod_bytes_per_second: float = 2_000_000.0,
        bookmark_seconds: float = 10.0,
    ) -> None:
        self.store = Store(clock=clock, chance=random.Random(seed))
        self.traffic = TrafficModel(clock=clock)
        self.usage = UsageModel(clock=clock)
        self.faults = Faults()
        self.controllers = Controllers(self.store, clock) if runs_controllers else None
        self._api = ApiServer(
            store=self.store,
            usage=self.usage,
            faults=self.faults,
            clock=clock,
            bookmark_seconds=bookmark_seconds,
        )
        self._prometheus = PrometheusServer(traffic=self.traffic, faults=self.faults, clock=clock)
        self._first_nodes = tuple(nodes)
        self._ports = (port, prometheus_port)
        self._pod_bytes_per_second = pod_bytes_per_second
        self._node_count = 0
        self._unsubscribe: Callable[[], None] | None = None
        self._is_step_planned = False

    @property
    def url(self) -> str:
        return self._api.url

    @property
    def prometheus_url(self) -> str:
        return self._prometheus.url

    async def __aenter__(self) -> Self:
        self._unsubscribe = self.store.subscribe(self._notice)
        if self.controllers:
            self.controllers.start()
        for node in self._first_nodes:
            self.add(node)
        await self._api.start("127.0.0.1", self._ports[0])
        await self._prometheus.start("127.0.0.1", self._ports[1])
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.controllers:
            self.controllers.stop()
        if self._unsubscribe:
            self._unsubscribe()
        await self._prometheus.stop()
        await self._api.stop()

    def add(self, node: LocalNode) -> Json:
        """Creates the Node object and starts to measure its links."""
        self._node_count += 1
        address = f"10.231.{self._node_count // 250}.{self._node_count % 250 + 1}"
        instance = f"{address}:{_EXPORTER_PORT}"
        created = self.store.create("nodes", node_object(node, address))
        self.traffic.add_node(node.name, node.links, node.background, instance=instance)
        return created

    def add_node(
        self,
        name: str,
        *,
        cpu: str = "8",
        memory: str = "32Gi",
        labels: Mapping[str, str] | None = None,
        links: Sequence[Link] | None = None,
        background: Background | None = None,
    ) -> Json:
        plain = LocalNode(name)
        return self.add(
            LocalNode(
                name,
                cpu=cpu,
                memory=memory,
                labels=labels or {},
                links=plain.links if links is None else links,
                background=background or plain.background,
            )
        )

    def kubeconfig(self, path: Path) -> Path:
        """Writes a kubeconfig for this cluster, readable by kubectl and by Lowtide."""
        name = "lowtide-local"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": self.url}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path

    def open_watches(self, plural: str) -> int:
        return self._api.watches.count(plural)

    def _notice(self, change: Change) -> None:
        if change.plural == "pods":
            self._measure(change)
        if change.plural == "nodes" and change.type is ChangeType.DELETED:
            self.traffic.remove_node(change.item["metadata"]["name"])
            self.usage.remove_node(change.item["metadata"]["name"])
        if self.controllers and not self._is_step_planned:
            self._is_step_planned = True
            asyncio.get_running_loop().call_soon(self._step)

    def _measure(self, change: Change) -> None:
        pod = change.item
        is_running = pod["status"].get("phase") == "Running"
        before = change.previous
        was_running = before is not None and before.item["status"].get("phase") == "Running"
        if change.type is ChangeType.DELETED or (was_running and not is_running):
            self.traffic.stop_pod(pod["metadata"]["uid"])
        elif is_running and not was_running:
            annotations = pod["metadata"].get("annotations") or {}
            text = annotations.get(TRAFFIC_ANNOTATION, "")
            rate = float(text) if text.isdecimal() else self._pod_bytes_per_second
            metadata = pod["metadata"]
            named = (metadata["namespace"], metadata["name"])
            self.traffic.start_pod(metadata["uid"], pod["spec"]["nodeName"], rate, named=named)

    def _step(self) -> None:
        self._is_step_planned = False
        if self.controllers is None:
            return
        self.controllers.step()
        if self.controllers.has_work() and not self._is_step_planned:
            self._is_step_planned = True
            asyncio.get_running_loop().call_soon(self._step)
