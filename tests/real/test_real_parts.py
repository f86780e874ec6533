"""The real parts themselves: what the other real tests take for granted about them."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from realparts.api_client import ApiError
from realparts.control_plane import ControlPlane
from realparts.hosts import Hosts
from realparts.parts import MissingPart, obtain
from realparts.process import Process, ProcessError, free_ports, wait_until
from realparts.prometheus import Prometheus, Target

KUBERNETES_VERSION = "v1.36.4"
CONTAINERS = [{"name": "main", "image": "example/none"}]


@pytest.fixture
def ready_node(control_plane: ControlPlane) -> Iterator[str]:
    name = "real-parts-node"
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "3", "memory": "5Gi", "pods": "7"}},
    }
    control_plane.request("POST", "/api/v1/nodes", node)
    wait_until(
        lambda: is_ready_and_untainted(control_plane.request("GET", f"/api/v1/nodes/{name}")),
        timeout_seconds=20,
        what=f"node {name} is ready and without taints",
    )
    yield name
    control_plane.request("DELETE", f"/api/v1/nodes/{name}")


def pods_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def names(control_plane: ControlPlane, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in control_plane.request("GET", path)["items"]]


def is_ready_and_untainted(node: dict[str, Any]) -> bool:
    conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


def make_pod(name: str, **spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": CONTAINERS, **spec},
    }


def test_api_server_is_ready_and_of_the_pinned_version(control_plane: ControlPlane) -> None:
    assert control_plane.client().text("GET", "/readyz") == "ok"
    assert control_plane.request("GET", "/version")["gitVersion"] == KUBERNETES_VERSION
    assert f"Server Version: {KUBERNETES_VERSION}" in control_plane.kubectl("version")


def test_rbac_is_on(control_plane: ControlPlane) -> None:
    with pytest.raises(ApiError) as rejection:
        control_plane.request("GET", "/api/v1/secrets", user="system:kube-scheduler")
    assert (rejection.value.status, rejection.value.message) == (
        403,
        'secrets is forbidden: User "system:kube-scheduler" cannot list resource "secrets" '
        'in API group "" at the cluster scope',
    )


def test_certificate_is_taken_for_a_user(control_plane: ControlPlane) -> None:
    kubeconfig = control_plane.certificate_kubeconfig("carol", ["system:masters"])
    template = "-o=jsonpath={.status.userInfo.username} {.status.userInfo.groups}"
    who = control_plane.kubectl(f"--kubeconfig={kubeconfig}", "auth", "whoami", template)
    assert who == 'carol ["system:masters","system:authenticated"]'


def test_deployment_gets_its_pods(control_plane: ControlPlane, namespace: str) -> None:
    pods = pods_path(namespace)
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "three"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "three"}},
            "template": {
                "metadata": {"labels": {"app": "three"}},
                "spec": {"schedulerName": "nobody", "containers": CONTAINERS},
            },
        },
    }
    control_plane.request("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment)
    wait_until(
        lambda: len(names(control_plane, pods)) == 3,
        timeout_seconds=20,
        what="three pods are made",
    )
    made = control_plane.request("GET", pods)["items"]
    assert [pod["status"]["phase"] for pod in made] == ["Pending"] * 3
    assert [pod["spec"].get("nodeName") for pod in made] == [None] * 3


def test_node_becomes_ready_and_keeps_what_it_offers(
    control_plane: ControlPlane, ready_node: str
) -> None:
    node = control_plane.request("GET", f"/api/v1/nodes/{ready_node}")
    assert node["status"]["allocatable"] == {"cpu": "3", "memory": "5Gi", "pods": "7"}
    assert {"type": "Hostname", "address": ready_node} in node["status"]["addresses"]
    assert ready_node in names(
        control_plane, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    )


def test_bound_pod_runs_and_goes_away_when_deleted(
    control_plane: ControlPlane, namespace: str, ready_node: str
) -> None:
    pods = pods_path(namespace)
    control_plane.request("POST", pods, make_pod("bound", schedulerName="nobody"))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "bound"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": ready_node},
    }
    control_plane.request("POST", f"{pods}/bound/binding", binding)
    wait_until(
        lambda: control_plane.request("GET", f"{pods}/bound")["status"]["phase"] == "Running",
        timeout_seconds=20,
        what="the bound pod runs",
    )
    control_plane.request("DELETE", f"{pods}/bound")
    wait_until(
        lambda: names(control_plane, pods) == [],
        timeout_seconds=20,
        what="the pod is gone",
    )


def test_kube_scheduler_binds_a_pod(
    control_plane: ControlPlane,
    namespace: str,
    ready_node: str,
    kube_scheduler: Callable[..., Process],
) -> None:
    pods = pods_path(namespace)
    kube_scheduler(
        "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, "
        "profiles: [{schedulerName: stock}], leaderElection: {leaderElect: false}}"
    )
    control_plane.request("POST", pods, make_pod("scheduled", schedulerName="stock"))
    wait_until(
        lambda: (
            control_plane.request("GET", f"{pods}/scheduled")["spec"].get("nodeName") == ready_node
        ),
        timeout_seconds=20,
        what="kube-scheduler bound the pod",
    )


def test_api_server_comes_back_with_its_data_after_a_crash(
    new_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = new_control_plane(has_controllers=False, has_kwok=False)
    url = plane.url
    plane.request("POST", "/api/v1/namespaces/default/pods", make_pod("kept"))
    plane.kill_api_server()
    with pytest.raises(ConnectionError):
        plane.request("GET", "/api/v1/namespaces/default/pods/kept")
    plane.restart_api_server()
    assert plane.url == url
    assert names(plane, "/api/v1/namespaces/default/pods") == ["kept"]


def test_traffic_of_one_host_is_seen_by_prometheus(
    hosts: Callable[..., Hosts], prometheus_process: Callable[..., Prometheus]
) -> None:
    three = hosts(["tide-a", "tide-b", "tide-c"], rate="100mbit")
    prometheus = prometheus_process(
        [Target(host.exporter_address, {"node": host.name}) for host in three.by_name.values()]
    )
    prometheus.wait_until_scraped()
    assert prometheus.values("node_uname_info", "nodename") == dict.fromkeys(three.names, 1.0)

    received = 'node_network_receive_bytes_total{device="eth0"}'
    before = prometheus.values(received, "node")
    with three.pull("tide-b", megabytes_per_second=8, seconds=30):
        wait_until(
            lambda: prometheus.values(received, "node")["tide-b"] - before["tide-b"] > 10_000_000,
            timeout_seconds=20,
            what="tide-b received 10 MB",
        )
    after = prometheus.values(received, "node")
    grown = {name: after[name] - before[name] for name in three.names}
    # A scrape is a few kB of acknowledged requests.
    assert {name for name in three.names if grown[name] > 1_000_000} == {"tide-b"}


def test_hosts_leave_nothing_behind(hosts: Callable[..., Hosts]) -> None:
    two = hosts(["tide-d", "tide-e"])
    links = [host.gateway_interface for host in two.by_name.values()]
    keepers = [host.keeper for host in two.by_name.values()]
    assert [Path("/sys/class/net", link).exists() for link in links] == [True, True]
    two.stop()
    assert [Path("/sys/class/net", link).exists() for link in links] == [False, False]
    assert [keeper.is_running() for keeper in keepers] == [False, False]


def test_unknown_part_is_named_with_the_known_ones() -> None:
    with pytest.raises(MissingPart, match=r"^no part is called nomad; there are etcd, kube-api"):
        obtain("nomad")


def test_free_ports_are_different() -> None:
    assert len(set(free_ports(50))) == 50


def test_early_death_tells_the_exit_code_and_the_log(tmp_path: Path) -> None:
    dying = Process("dying", ["sh", "-c", "echo no such disk; exit 7"], folder=tmp_path)
    dying.start()
    with pytest.raises(ProcessError) as failure:
        dying.wait_until_ready(lambda: False, timeout_seconds=10)
    assert str(failure.value) == "dying ended with 7 before it was ready:\nno such disk"


def test_stop_kills_what_ignores_the_polite_signal(tmp_path: Path) -> None:
    script = "trap '' TERM; echo deaf; while :; do sleep 0.05; done"
    deaf = Process("deaf", ["sh", "-c", script], folder=tmp_path)
    deaf.start()
    deaf.wait_until_ready(lambda: "deaf" in deaf.log(), timeout_seconds=10)
    assert deaf.stop(grace_seconds=0.1) == -9


def test_child_dies_with_a_killed_test_run(tmp_path: Path) -> None:
    tools = Path(sys.modules[Process.__module__].__file__ or "").parents[1]
    program = (
        "import os, signal, sys; from pathlib import Path; from realparts.process import Process\n"
        f"child = Process('child', ['sleep', '60'], folder=Path({str(tmp_path)!r}))\n"
        "child.start(); print(child.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(tools)}
    )
    assert done.returncode == -9
    child = Path("/proc", done.stdout.strip(), "cmdline")
    wait_until(
        lambda: not child.exists() or child.read_text() == "",
        timeout_seconds=5,
        what="the child of the killed run is dead",
    )
