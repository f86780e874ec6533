"""Why a pod fits nowhere, told by Lowtide and by the real kube-scheduler on the same cluster."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from realparts.control_plane import ControlPlane
from realparts.process import Process, wait_until

TAINT = {"key": "only", "value": "databases", "effect": "NoSchedule"}
NODES: dict[str, dict[str, Any]] = {
    "tainted": {"taints": [TAINT]},
    "cordoned": {"unschedulable": True},
    "plain": {},
}
# What the node controller adds to a cordoned node.
TAINT_COUNTS = {"tainted": 1, "cordoned": 1, "plain": 0}
PORT = {"ports": [{"containerPort": 80, "hostPort": 80}]}
PODS: dict[str, dict[str, Any]] = {
    "too-large": {"container": {"resources": {"requests": {"cpu": "100", "memory": "1Ti"}}}},
    "selects-nothing": {"spec": {"nodeSelector": {"disk": "none"}}},
    "wants-a-taken-port": {"container": PORT},
    "tolerates-all-but-is-too-large": {
        "container": {"resources": {"requests": {"cpu": "100"}}},
        "spec": {"tolerations": [{"operator": "Exists"}]},
    },
}


@pytest.fixture
def nodes(control_plane: ControlPlane) -> Iterator[None]:
    for name, spec in NODES.items():
        node = {"metadata": {"name": name}, "spec": spec}
        control_plane.request("POST", "/api/v1/nodes", node)
    wait_until(
        lambda: taint_counts(control_plane) == TAINT_COUNTS,
        timeout_seconds=30,
        what="the nodes are ready",
    )
    yield
    for name in NODES:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


def taint_counts(plane: ControlPlane) -> dict[str, int]:
    nodes = plane.request("GET", "/api/v1/nodes")["items"]
    return {node["metadata"]["name"]: len(node["spec"].get("taints") or ()) for node in nodes}


def test_rejections_are_worded_as_kube_schedulers(
    control_plane: ControlPlane,
    namespace: str,
    nodes: None,
    scheduler_rights: None,
    kube_scheduler: Callable[..., Process],
    lowtide_scheduler: Callable[..., Process],
) -> None:
    def configuration(scheduler_name: str) -> dict[str, Any]:
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "profiles": [{"schedulerName": scheduler_name}],
        }

    pods = f"/api/v1/namespaces/{namespace}/pods"
    control_plane.request("POST", pods, pod("takes-the-port", "stock", PODS["wants-a-taken-port"]))
    kube_scheduler(str(configuration("stock")))
    wait_until(
        lambda: bool(
            control_plane.request("GET", f"{pods}/takes-the-port")["spec"].get("nodeName")
        ),
        timeout_seconds=20,
        what="the port is taken",
    )
    lowtide_scheduler(configuration("lowtide"), control_plane.kubeconfig("lowtide"))
    for name, parts in PODS.items():
        for scheduler_name in ("stock", "lowtide"):
            manifest = pod(f"{name}-{scheduler_name}", scheduler_name, parts)
            control_plane.request("POST", pods, manifest)

    def messages(scheduler_name: str) -> dict[str, str]:
        """The message of each pod's condition, without what tells of preemption."""
        found = {}
        for name in PODS:
            status = control_plane.request("GET", f"{pods}/{name}-{scheduler_name}")["status"]
            for condition in status.get("conditions") or ():
                if condition["type"] == "PodScheduled":
                    found[name] = condition["message"].partition(" no new claims")[0]
        return found

    for scheduler_name in ("stock", "lowtide"):
        wait_until(
            lambda: len(messages(scheduler_name)) == len(PODS),  # noqa: B023
            timeout_seconds=20,
            what=f"{scheduler_name} rejected every pod",
        )
    assert messages("lowtide") == messages("stock")
    assert messages("stock")["too-large"].startswith("0/3 nodes are available: 1 Insufficient cpu")


def pod(name: str, scheduler_name: str, parts: dict[str, Any]) -> dict[str, Any]:
    container = {"name": "main", "image": "example/none", **parts.get("container", {})}
    spec = {"schedulerName": scheduler_name, "containers": [container], **parts.get("spec", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
