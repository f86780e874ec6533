"""NodeUsage on a real metrics-server, and on a control plane that has none."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from realparts.control_plane import ControlPlane
from realparts.metrics_server import CPU_ANNOTATION, MetricsServer, node_annotations
from realparts.process import Process, wait_until
from realparts.pytest_plugin import grant_scheduler_rights, usage_rights

CONTAINERS = [{"name": "main", "image": "example/none"}]
# cores, and the cpu that a pod on the node uses
NODES = {"large": ("32", "264m"), "middle": ("4", "87m"), "small": ("2", "67m")}
NO_USAGE = "metrics-server gives no usage"


def create_node(plane: ControlPlane, name: str, *, cpu: str) -> None:
    resources = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    node = {
        "metadata": {"name": name, "annotations": node_annotations(name)},
        "status": {"allocatable": resources, "capacity": resources},
    }
    plane.request("POST", "/api/v1/nodes", node)


def wait_until_nodes_are_ready(plane: ControlPlane) -> None:
    def taints() -> list[Any]:
        nodes = plane.request("GET", "/api/v1/nodes")["items"]
        return [taint for node in nodes for taint in node["spec"].get("taints", ())]

    wait_until(lambda: not taints(), timeout_seconds=30, what="the nodes are ready")


def create_pod(
    plane: ControlPlane, name: str, namespace: str, *, uses_cpu: str = "1m", **spec: Any
) -> None:
    pod = {
        "metadata": {"name": name, "annotations": {CPU_ANNOTATION: uses_cpu}},
        "spec": {"containers": CONTAINERS, **spec},
    }
    plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)


def wait_for_placement(plane: ControlPlane, name: str, namespace: str) -> str:
    def node_name() -> str:
        pod = plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
        return str(pod["spec"].get("nodeName", ""))

    wait_until(lambda: bool(node_name()), timeout_seconds=20, what=f"pod {name} is bound")
    return node_name()


def config(units: Mapping[str, str]) -> dict[str, Any]:
    """A profile for each name, in which only NodeUsage scores."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [
            {
                "schedulerName": name,
                "plugins": {
                    "score": {"enabled": [{"name": "NodeUsage"}], "disabled": [{"name": "*"}]}
                },
                "pluginConfig": [
                    {"name": "NodeUsage", "args": {"unit": unit, "pollInterval": "1s"}}
                ],
            }
            for name, unit in units.items()
        ],
    }


def test_lowest_usage_is_chosen(
    metrics_server: MetricsServer, lowtide_scheduler: Callable[..., Process]
) -> None:
    plane = metrics_server.plane
    for name, (cores, uses_cpu) in NODES.items():
        create_node(plane, name, cpu=cores)
        create_pod(plane, f"on-{name}", "default", uses_cpu=uses_cpu, nodeName=name)
    grant_scheduler_rights(plane)
    for path, manifest in usage_rights():
        plane.request("POST", path, manifest)
    wait_until_nodes_are_ready(plane)
    metrics_server.wait_for_usage(len(NODES))
    scheduler = lowtide_scheduler(
        config({"by-share": "share", "by-millicores": "millicores"}), plane.kubeconfig("lowtide")
    )
    create_pod(plane, "one", "default", schedulerName="by-share")
    create_pod(plane, "two", "default", schedulerName="by-millicores")
    chosen = [wait_for_placement(plane, name, "default") for name in ("one", "two")]
    assert chosen == ["large", "small"]  # 0.8 % of 32 cores; 67 millicores
    assert NO_USAGE not in scheduler.log()


@pytest.fixture
def permissions(control_plane: ControlPlane, scheduler_rights: None) -> Iterator[None]:
    for path, manifest in usage_rights():
        control_plane.request("POST", path, manifest)
    yield
    for path, manifest in usage_rights():
        control_plane.request("DELETE", f"{path}/{manifest['metadata']['name']}")


@pytest.fixture
def nodes(control_plane: ControlPlane) -> Iterator[None]:
    for name, (cores, _) in NODES.items():
        create_node(control_plane, name, cpu=cores)
    wait_until_nodes_are_ready(control_plane)
    yield
    for name in NODES:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


def test_without_metrics_server_pods_are_placed_and_one_line_says_so(
    control_plane: ControlPlane,
    namespace: str,
    nodes: None,
    permissions: None,
    lowtide_scheduler: Callable[..., Process],
) -> None:
    scheduler = lowtide_scheduler(config({"lowtide": "share"}), control_plane.kubeconfig("lowtide"))
    names = [f"pod-{number}" for number in range(3)]
    for name in names:
        create_pod(control_plane, name, namespace, schedulerName="lowtide")
    chosen = {wait_for_placement(control_plane, name, namespace) for name in names}
    assert chosen == set(NODES)  # they take turns
    (line,) = [line for line in scheduler.log().splitlines() if NO_USAGE in line]
    assert line.startswith("W")
    assert 'err="metrics-server is not installed: ' in line
