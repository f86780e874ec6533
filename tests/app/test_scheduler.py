"""The scheduler's parts as they are joined, on the embedded cluster."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lowtide.app.clocks import steady_clock
from lowtide.app.registry import make_registry
from lowtide.app.scheduler import (
    DRAIN_SECONDS,
    FLUSH_SECONDS,
    SchedulerApp,
    SchedulerParts,
    Serving,
)
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder
from lowtide.framework.profile import Profile
from lowtide.kube.kubeconfig import plain_access
from lowtide.kube.lease import RELEASE_TIMEOUT_SECONDS
from lowtide.localcluster import LocalCluster
from lowtide.testing import ManualClock

pytestmark = pytest.mark.timeout(60)
NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def app_on(cluster: LocalCluster, **config: Any) -> SchedulerApp:
    about = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    profiles = [{"schedulerName": "lowtide"}]
    loaded = load_config(json.dumps({**about, "profiles": profiles, **config}), file="test")

    def make_profiles(binder: Binder) -> dict[str, Profile]:
        return make_registry({}).build(loaded, {Binder: binder}).profiles

    return SchedulerApp(
        SchedulerParts(
            access=plain_access(cluster.url),
            config=loaded.config,
            make_profiles=make_profiles,
            clock=steady_clock(),
            wall_clock=ManualClock(NOW),
            serving=Serving(port=-1),
        )
    )


@asynccontextmanager
async def running(app: SchedulerApp) -> AsyncIterator[None]:
    task = asyncio.create_task(app.run())
    try:
        yield
    finally:
        app.stop()
        await task


async def until(cluster: LocalCluster, is_so: Callable[[], bool]) -> None:
    changed = asyncio.Event()
    unsubscribe = cluster.store.subscribe(lambda _: changed.set())
    try:
        async with asyncio.timeout(20):
            while not is_so():
                changed.clear()
                await changed.wait()
    finally:
        unsubscribe()


def pod(name: str, *, cpu: str = "1") -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": "lowtide", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def condition_of(cluster: LocalCluster, name: str) -> dict[str, Any]:
    conditions = cluster.store.get("pods", "default", name)["status"].get("conditions") or []
    found: dict[str, Any] = {each["type"]: each for each in conditions}.get("PodScheduled", {})
    return found


def node_of(cluster: LocalCluster, name: str) -> str | None:
    node_name: str | None = cluster.store.get("pods", "default", name)["spec"].get("nodeName")
    return node_name


async def test_the_lease_waits_for_no_rate_limit_and_is_dated_by_the_wall_clock() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        app = app_on(cluster, clientConnection={"qps": 0.001, "burst": 1})

        def lease() -> dict[str, Any]:
            found = cluster.store.find("leases", "kube-system", "lowtide") or {"spec": {}}
            spec: dict[str, Any] = found["spec"]
            return spec

        async with running(app):
            await until(cluster, lambda: bool(lease().get("holderIdentity")))
            assert lease()["renewTime"] == "2026-01-01T00:00:00.000000Z"
        assert lease()["holderIdentity"] == ""


async def test_a_node_with_an_image_without_a_name_gets_pods() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        node = cluster.add_node("node-a")
        node["status"]["images"] = [{"names": None, "sizeBytes": 5}]
        cluster.store.replace("nodes", node)
        cluster.store.create("pods", pod("web"), namespace="default")
        async with running(app_on(cluster, leaderElection={"leaderElect": False})):
            await until(cluster, lambda: node_of(cluster, "web") == "node-a")


async def test_conditions_are_written_and_say_at_the_end_what_became_of_the_pod() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("small", cpu="1")
        cluster.store.create("pods", pod("web", cpu="3"), namespace="default")
        async with running(app_on(cluster, leaderElection={"leaderElect": False})):
            await until(cluster, lambda: condition_of(cluster, "web").get("status") == "False")
            written = condition_of(cluster, "web")
            assert written["lastTransitionTime"] == "2026-01-01T00:00:00Z"
            cluster.add_node("large", cpu="4")
            await until(cluster, lambda: node_of(cluster, "web") == "large")
        assert condition_of(cluster, "web")["status"] == "True"


def test_the_end_takes_less_time_than_kubernetes_grants() -> None:
    assert DRAIN_SECONDS + FLUSH_SECONDS < 28
    assert DRAIN_SECONDS + FLUSH_SECONDS + RELEASE_TIMEOUT_SECONDS < 30
