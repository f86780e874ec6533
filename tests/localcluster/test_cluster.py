import asyncio
import json
from pathlib import Path

import aiohttp
import yaml

from lowtide.localcluster import (
    TRAFFIC_ANNOTATION,
    Background,
    Direction,
    Link,
    LocalCluster,
    bind,
)
from lowtide.localcluster.changes import Change
from lowtide.localcluster.documents import Json
from lowtide.testing.clock import ManualClock

SPEC = {"containers": [{"name": "c", "image": "i"}]}


def deployment(replicas: int) -> Json:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": SPEC}
    selector = {"matchLabels": {"a": "b"}}
    spec = {"replicas": replicas, "selector": selector, "template": template}
    return {"metadata": {"name": "d"}, "spec": spec}


async def until(cluster: LocalCluster, phase: str, count: int) -> None:
    """Waits for `count` pods to be in `phase`."""
    reached = asyncio.Event()

    def look(change: Change | None) -> None:
        phases = [pod["status"]["phase"] for pod in cluster.store.items("pods")]
        if phases.count(phase) == count:
            reached.set()

    unsubscribe = cluster.store.subscribe(look)
    look(None)
    await reached.wait()
    unsubscribe()


async def test_a_deployment_runs_once_its_pods_are_bound(clock: ManualClock) -> None:
    async with (
        LocalCluster(clock=clock) as cluster,
        aiohttp.ClientSession(base_url=cluster.url) as http,
    ):
        cluster.add_node("n", cpu="4", labels={"rack": "r"}, links=[Link("eth0", 1_000_000)])
        path = "/apis/apps/v1/namespaces/default/deployments"
        async with http.post(path, data=json.dumps(deployment(3))) as response:
            assert response.status == 201
        await until(cluster, "Pending", 3)
        for pod in cluster.store.items("pods"):
            binding = {"metadata": {"name": pod["metadata"]["name"]}, "target": {"name": "n"}}
            bind(cluster.store, binding, namespace="default", clock=clock)
        await until(cluster, "Running", 3)
        node = cluster.store.get("nodes", "", "n")
        assert node["metadata"]["labels"]["rack"] == "r"
        assert node["status"]["allocatable"] == {"cpu": "4", "memory": "32Gi", "pods": "110"}


async def test_running_pods_add_traffic_to_their_node(clock: ManualClock) -> None:
    async with LocalCluster(clock=clock, pod_bytes_per_second=1000.0) as cluster:
        background = Background(quiet_share=0.0)
        cluster.add_node("n", links=[Link("eth0", 1_000_000)], background=background)
        annotations = {TRAFFIC_ANNOTATION: "5000"}
        loud = {"metadata": {"name": "loud", "annotations": annotations}, "spec": SPEC}
        cluster.store.create("pods", loud)
        cluster.store.create("pods", {"metadata": {"name": "plain"}, "spec": SPEC})
        for name in ("loud", "plain"):
            binding = {"metadata": {"name": name}, "target": {"name": "n"}}
            bind(cluster.store, binding, namespace="default", clock=clock)
        await until(cluster, "Running", 2)
        assert cluster.traffic.bytes_per_second("n", "eth0", Direction.RECEIVE) == 6000
        cluster.store.delete("pods", "default", "loud", grace_period_seconds=0)
        assert cluster.traffic.bytes_per_second("n", "eth0", Direction.RECEIVE) == 1000
        cluster.store.delete("nodes", "", "n")
        assert cluster.traffic.names() == []


async def test_the_kubeconfig_points_to_the_cluster(clock: ManualClock, tmp_path: Path) -> None:
    async with LocalCluster(clock=clock) as cluster:
        document = yaml.safe_load(cluster.kubeconfig(tmp_path / "config").read_text())
        assert document["clusters"][0]["cluster"]["server"] == cluster.url
        assert cluster.url.startswith("http://127.0.0.1:")


async def test_open_watches_end_when_the_cluster_stops(clock: ManualClock) -> None:
    async with aiohttp.ClientSession() as http:
        async with LocalCluster(clock=clock) as cluster:
            watch = await http.get(f"{cluster.url}/api/v1/nodes?watch=true")
        assert await watch.content.read() == b""


async def test_a_thousand_pods_are_created_and_bound_over_http(clock: ManualClock) -> None:
    count, at_once = 1000, 50
    async with (
        LocalCluster(clock=clock) as cluster,
        aiohttp.ClientSession(base_url=cluster.url) as http,
    ):
        cluster.add_node("n")
        path = "/api/v1/namespaces/default/pods"

        async def work(first: int) -> None:
            for index in range(first, count, at_once):
                metadata = {"name": f"p{index}"}
                pod, target = {"metadata": metadata, "spec": SPEC}, {"name": "n"}
                binding = json.dumps({"metadata": metadata, "target": target})
                async with http.post(path, data=json.dumps(pod)) as created:
                    assert created.status == 201
                async with http.post(f"{path}/p{index}/binding", data=binding) as bound:
                    assert bound.status == 201

        await asyncio.gather(*(work(first) for first in range(at_once)))
        await until(cluster, "Running", count)
