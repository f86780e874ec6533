"""The demo: the embedded cluster with traffic that shifts, and the real scheduler on it.

It deploys five pods, and five more whenever another node is the busy one, when the oldest go;
`demo_view` shows it.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from lowtide.app.clocks import Clock
from lowtide.app.registry import config_with_traffic, make_registry
from lowtide.app.scheduler import SchedulerApp, SchedulerParts
from lowtide.config.load import LoadedConfig
from lowtide.framework.plugin import Binder
from lowtide.framework.profile import Profile
from lowtide.kube.kubeconfig import plain_access
from lowtide.localcluster.cluster import LocalCluster
from lowtide.localcluster.demo import SECONDS_PER_TURN, demo_nodes
from lowtide.localcluster.documents import Json
from lowtide.localcluster.traffic import Direction
from lowtide.plugins.network_traffic import RECOMMENDED_WEIGHT
from lowtide.scheduler.actions import Decided
from lowtide.server.serving import NOT_SERVING, Serving

SCHEDULER_NAME = "sample-scheduler"
REPLICAS = 5
DEPLOYMENTS_KEPT = 4
_VIEW_SECONDS = 0.5
_SETTLE_SECONDS = 2.5


@dataclass(frozen=True, slots=True)
class NodeLoad:
    name: str
    rack: str
    bytes_per_second: float  # of the busier direction
    capacity_bytes_per_second: float
    pods: int

    @property
    def share(self) -> float:
        return self.bytes_per_second / self.capacity_bytes_per_second


@dataclass(frozen=True, slots=True)
class PlacedInDemo:
    """One decision, and what the network looked like when it was taken."""

    at_seconds: float
    decided: Decided
    load: NodeLoad
    busiest: NodeLoad


@dataclass(slots=True)
class DemoStory:
    """What happened so far; the view reads it. Of deployments that were taken away again, how many
    they and their placed pods were."""

    started_at: float
    loads: list[NodeLoad] = field(default_factory=list)
    deployments: list[tuple[float, str]] = field(default_factory=list)
    placed: list[PlacedInDemo] = field(default_factory=list)
    earlier_deployments: int = 0
    earlier_placed: int = 0
    api_url: str = ""
    prometheus_url: str = ""
    page_url: str = ""

    @property
    def busiest(self) -> NodeLoad:
        return max(self.loads, key=lambda load: load.share)

    @property
    def deployed(self) -> int:
        return self.earlier_deployments + len(self.deployments)

    def forget_oldest(self) -> str:
        """Returns its name."""
        _, name = self.deployments.pop(0)
        kept = [each for each in self.placed if each.at_seconds >= self.deployments[0][0]]
        self.earlier_deployments += 1
        self.earlier_placed += len(self.placed) - len(kept)
        self.placed = kept
        return name


class DemoView(Protocol):
    def start(self, story: DemoStory) -> None: ...
    def deployed(self, story: DemoStory, name: str) -> None: ...
    def placed(self, story: DemoStory, placed: PlacedInDemo) -> None: ...
    def show(self, story: DemoStory, now: float) -> None: ...
    def finish(self, story: DemoStory) -> None: ...


class Demo:
    def __init__(
        self,
        view: DemoView,
        *,
        clock: Clock,
        wall_clock: Clock,
        for_seconds: float | None,
        page_port: int = -1,
    ) -> None:
        self._view = view
        self._clock = clock
        self._wall_clock = wall_clock
        self._for_seconds = for_seconds
        self._page_port = page_port  # below 0: no page
        self._stopping = asyncio.Event()
        self._story = DemoStory(started_at=clock())

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        story = self._story
        async with LocalCluster(clock=self._wall_clock, nodes=demo_nodes()) as cluster:
            story.api_url, story.prometheus_url = cluster.url, cluster.prometheus_url
            app = self._make_app(cluster)
            story.loads = self._loads(cluster)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(app.run())
                await app.is_serving.wait()
                story.page_url = "" if app.server is None else app.server.address.url
                self._view.start(story)
                await self._tell_story(cluster)
                app.stop()
        self._view.finish(story)

    async def _tell_story(self, cluster: LocalCluster) -> None:
        """Deploys at the start, and again whenever another node has become the busy one."""
        next_deploy_at = self._story.started_at + _SETTLE_SECONDS
        ends_at = None
        if self._for_seconds is not None:
            ends_at = self._story.started_at + self._for_seconds
        while not self._stopping.is_set():
            now = self._clock()
            if ends_at is not None and now >= ends_at:
                return
            self._story.loads = self._loads(cluster)
            if now >= next_deploy_at:
                self._deploy(cluster, now)
                next_deploy_at = now + SECONDS_PER_TURN
            self._view.show(self._story, now)
            try:
                async with asyncio.timeout(_VIEW_SECONDS):
                    await self._stopping.wait()
            except TimeoutError:
                continue

    def _deploy(self, cluster: LocalCluster, now: float) -> None:
        story, number = self._story, self._story.deployed + 1
        name = "test-scheduler" if number == 1 else f"test-scheduler-{number}"
        cluster.store.create("deployments", deployment(name), namespace="default")
        story.deployments.append((now - story.started_at, name))
        self._view.deployed(story, name)
        if len(story.deployments) > DEPLOYMENTS_KEPT:
            cluster.store.delete("deployments", "default", story.forget_oldest())

    def _make_app(self, cluster: LocalCluster) -> SchedulerApp:
        loaded = demo_config(cluster.prometheus_url)

        def make_profiles(binder: Binder) -> dict[str, Profile]:
            return make_registry({}).build(loaded, {Binder: binder}).profiles

        return SchedulerApp(
            SchedulerParts(
                access=plain_access(cluster.url),
                config=loaded.config,
                make_profiles=make_profiles,
                clock=self._clock,
                wall_clock=self._wall_clock,
                serving=Serving(port=self._page_port) if self._page_port >= 0 else NOT_SERVING,
                mode="demo",
                on_decision=lambda decided: self._note(decided, cluster),
            )
        )

    def _note(self, decided: Decided, cluster: LocalCluster) -> None:
        node_name = decided.decision.node_name
        if node_name is None:
            return
        loads = self._loads(cluster)
        self._story.loads = loads
        placed = PlacedInDemo(
            at_seconds=self._clock() - self._story.started_at,
            decided=decided,
            load=next(load for load in loads if load.name == node_name),
            busiest=max(loads, key=lambda load: load.share),
        )
        self._story.placed.append(placed)
        self._view.placed(self._story, placed)

    def _loads(self, cluster: LocalCluster) -> list[NodeLoad]:
        pods = Counter(pod["spec"].get("nodeName") for pod in cluster.store.items("pods"))
        loads = []
        for node in cluster.store.items("nodes"):
            name = node["metadata"]["name"]
            (link,) = cluster.traffic.links(name)
            rates = [
                cluster.traffic.bytes_per_second(name, link.device, direction)
                for direction in Direction
            ]
            rack = node["metadata"]["labels"]["rack"]
            capacity = link.capacity_bytes_per_second
            loads.append(NodeLoad(name, rack, max(rates), capacity, pods[name]))
        return loads


def demo_config(prometheus_url: str) -> LoadedConfig:
    """kube-scheduler's default plugins and NetworkTraffic, asking often because traffic shifts."""
    return config_with_traffic(
        {"prometheusAddress": prometheus_url, "window": "5s", "pollInterval": "1s"},
        scheduler_name=SCHEDULER_NAME,
        weight=RECOMMENDED_WEIGHT,
        leader_elect=False,
        source="demo",
    )


def deployment(name: str) -> Json:
    """The seeds' test Deployment: five pods that sleep."""
    labels = {"app": name}
    container = {
        "name": "busybox-try",
        "image": "busybox",
        "command": ["sleep"],
        "args": ["infinity"],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"schedulerName": SCHEDULER_NAME, "containers": [container]},
            },
        },
    }
