"""The scheduler's parts as they are joined, on the embedded cluster."""

from typing import Any

import pytest
from tests.app.conftest import NOW, app_on, running, until

from lowtide.app.scheduler import DRAIN_SECONDS, FLUSH_SECONDS, SchedulerApp
from lowtide.kube.lease import RELEASE_TIMEOUT_SECONDS
from lowtide.localcluster import LocalCluster
from lowtide.testing import ManualClock

pytestmark = pytest.mark.timeout(60)


def app_with(cluster: LocalCluster, **config: Any) -> SchedulerApp:
    """Of the default rules."""
    about = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return app_on(cluster, {**about, "profiles": [{"schedulerName": "lowtide"}], **config})


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
        app = app_with(cluster, clientConnection={"qps": 0.001, "burst": 1})

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
        async with running(app_with(cluster, leaderElection={"leaderElect": False})):
            await until(cluster, lambda: node_of(cluster, "web") == "node-a")


async def test_conditions_are_written_and_say_at_the_end_what_became_of_the_pod() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.add_node("small", cpu="1")
        cluster.store.create("pods", pod("web", cpu="3"), namespace="default")
        async with running(app_with(cluster, leaderElection={"leaderElect": False})):
            await until(cluster, lambda: condition_of(cluster, "web").get("status") == "False")
            written = condition_of(cluster, "web")
            assert written["lastTransitionTime"] == "2026-01-01T00:00:00Z"
            cluster.add_node("large", cpu="4")
            await until(cluster, lambda: node_of(cluster, "web") == "large")
        assert condition_of(cluster, "web")["status"] == "True"


def test_the_end_takes_less_time_than_kubernetes_grants() -> None:
    assert DRAIN_SECONDS + FLUSH_SECONDS < 28
    assert DRAIN_SECONDS + FLUSH_SECONDS + RELEASE_TIMEOUT_SECONDS < 30
