"""A real kubectl on the embedded cluster: what a person sees there."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from lowtide.localcluster import LocalCluster, LocalNode, bind

Kubectl = Callable[..., Awaitable[str]]
MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: test-scheduler
spec:
  replicas: 5
  selector:
    matchLabels: {app: test-scheduler}
  template:
    metadata:
      labels: {app: test-scheduler}
    spec:
      schedulerName: lowtide
      containers:
        - {name: nginx, image: nginx, ports: [{containerPort: 80}]}
"""


@pytest.fixture
async def cluster() -> AsyncIterator[LocalCluster]:
    nodes = [LocalNode("quiet", labels={"rack": "r"}), LocalNode("busy")]
    async with LocalCluster(clock=time.time, nodes=nodes) as running:
        yield running


@pytest.fixture
def kubectl(
    parts: Callable[..., dict[str, Path]], cluster: LocalCluster, tmp_path: Path
) -> Kubectl:
    program = str(parts("kubectl")["kubectl"])
    kubeconfig = str(cluster.kubeconfig(tmp_path / "kubeconfig"))
    cache = str(tmp_path / "cache")

    async def run(*arguments: str, stdin: str = "") -> str:
        process = await asyncio.create_subprocess_exec(
            program,
            "--kubeconfig",
            kubeconfig,
            "--cache-dir",
            cache,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate(stdin.encode())
        assert process.returncode == 0, output.decode()
        return output.decode()

    return run


def fields(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


async def test_a_deployment_from_apply_to_delete(cluster: LocalCluster, kubectl: Kubectl) -> None:
    applied = await kubectl("apply", "--validate=false", "-f", "-", stdin=MANIFEST)
    assert applied == "deployment.apps/test-scheduler created\n"
    assert "unchanged" in await kubectl("apply", "-f", "-", stdin=MANIFEST)
    await kubectl("scale", "deployment", "test-scheduler", "--replicas=2")
    names = (await kubectl("get", "pods", "-o", "name")).split()
    assert len(names) == 2
    for name in names:
        binding = {"metadata": {"name": name.removeprefix("pod/")}, "target": {"name": "quiet"}}
        bind(cluster.store, binding, namespace="default", clock=time.time)
    await kubectl("rollout", "status", "deployment", "test-scheduler", "--timeout=10s")
    wide = fields(await kubectl("get", "pods", "-A", "-o", "wide", "--no-headers"))
    assert [(row[0], row[2], row[3], row[7]) for row in wide] == [
        ("default", "1/1", "Running", "quiet"),
        ("default", "1/1", "Running", "quiet"),
    ]
    deployments = fields(await kubectl("get", "deployments", "--no-headers"))
    assert [row[:4] for row in deployments] == [["test-scheduler", "2/2", "2", "2"]]
    await kubectl("delete", "deployment", "test-scheduler")
    await kubectl("wait", "--for=delete", *names, "--timeout=10s")
    assert "No resources found" in await kubectl("get", "pods,replicasets")


async def test_describe_shows_events_and_the_pods_of_a_node(
    cluster: LocalCluster, kubectl: Kubectl
) -> None:
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]}
    pod = cluster.store.create("pods", {"metadata": {"name": "p"}, "spec": spec})
    binding = {"metadata": {"name": "p"}, "target": {"name": "quiet"}}
    bind(cluster.store, binding, namespace="default", clock=time.time)
    regarding = {
        "kind": "Pod",
        "name": "p",
        "namespace": "default",
        "uid": pod["metadata"]["uid"],
    }
    event = {
        "metadata": {"name": "p.1"},
        "involvedObject": regarding,
        "reason": "Scheduled",
        "message": "Successfully assigned default/p to quiet",
        "type": "Normal",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingComponent": "lowtide",
    }
    cluster.store.create("events", event)
    described = await kubectl("describe", "pod", "p")
    assert "Successfully assigned default/p to quiet" in described
    node = await kubectl("describe", "node", "quiet")
    assert ["cpu", "2", "(25%)", "0", "(0%)"] in fields(node)
    events = fields(await kubectl("get", "events", "--no-headers"))
    assert [row[1:4] for row in events] == [["Normal", "Scheduled", "pod/p"]]


async def test_nodes_are_labelled_tainted_and_cordoned(
    cluster: LocalCluster, kubectl: Kubectl
) -> None:
    await kubectl("label", "node", "quiet", "disk=ssd", "rack-")
    await kubectl("taint", "node", "quiet", "team=a:NoSchedule")
    await kubectl("cordon", "busy")
    rows = fields(await kubectl("get", "nodes", "--no-headers"))
    assert [row[:2] for row in rows] == [["busy", "Ready,SchedulingDisabled"], ["quiet", "Ready"]]
    labelled = await kubectl("get", "nodes", "-l", "disk=ssd,!rack", "-o", "name")
    assert labelled == "node/quiet\n"
    taints = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    assert cluster.store.get("nodes", "", "quiet")["spec"]["taints"] == taints
