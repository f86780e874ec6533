"""`lowtide scheduler --config examples/01-second-scheduler/…` on the real API server, as a user
would try it: its Deployment is bound, kubectl tells of it, and the log has the expected lines."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from realparts.control_plane import ControlPlane
from realparts.hosts import Hosts
from realparts.process import Process, wait_until
from realparts.prometheus import Prometheus, Target

NAMES = ["raspberry-one", "raspberry-two"]


@pytest.fixture
def nodes(control_plane: ControlPlane) -> Iterator[None]:
    for name in NAMES:
        resources = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        status = {"allocatable": resources, "capacity": resources}
        control_plane.request(
            "POST", "/api/v1/nodes", {"metadata": {"name": name}, "status": status}
        )
    wait_until(
        lambda: (
            not any(
                node["spec"].get("taints")
                for node in control_plane.request("GET", "/api/v1/nodes")["items"]
            )
        ),
        timeout_seconds=30,
        what="the nodes are ready",
    )
    yield
    for name in NAMES:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


@pytest.mark.versions
def test_deployment_of_the_example_is_bound_and_told(
    control_plane: ControlPlane,
    namespace: str,
    nodes: None,
    hosts: Callable[..., Hosts],
    prometheus_process: Callable[..., Prometheus],
    scheduler_rights: None,
    lowtide_scheduler: Callable[..., Process],
    examples: Path,
) -> None:
    two = hosts(NAMES)
    prometheus = prometheus_process([Target(h.exporter_address) for h in two.by_name.values()])
    prometheus.wait_until_scraped()
    wait_until(
        lambda: len(prometheus.query("rate(node_network_receive_bytes_total[15s])")) >= len(NAMES),
        timeout_seconds=20,
        what="rates are known",
    )
    folder = examples / "01-second-scheduler"
    config = yaml.safe_load((folder / "scheduler-config.yaml").read_text())
    config["profiles"][0]["pluginConfig"][0]["args"]["prometheusAddress"] = prometheus.url
    scheduler = lowtide_scheduler(config, control_plane.kubeconfig("lowtide"))
    control_plane.kubectl("create", f"-n={namespace}", f"-f={folder / 'test-deployment.yaml'}")

    def bound() -> dict[str, str]:
        pods = control_plane.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in pods
            if pod["spec"].get("nodeName")
        }

    wait_until(lambda: len(bound()) == 5, timeout_seconds=20, what="five pods are bound")
    name, node_name = next(iter(bound().items()))
    assigned = f"Successfully assigned {namespace}/{name} to {node_name}"

    def described() -> str:
        return control_plane.kubectl("describe", "pod", f"-n={namespace}", name)

    wait_until(lambda: assigned in described(), timeout_seconds=20, what="the event is told")
    (told,) = [line for line in described().splitlines() if assigned in line]
    assert re.fullmatch(
        rf"\s*Normal\s+Scheduled\s+\S+\s+sample-scheduler\s+{re.escape(assigned)}", told
    )
    wait_until(
        lambda: f'"Add event for scheduled pod" pod="{namespace}/{name}"' in scheduler.log(),
        timeout_seconds=20,
        what="the watch brought the bound pod",
    )
    assert missing_lines(scheduler.log(), namespace, name, node_name) == []


def missing_lines(log: str, namespace: str, pod_name: str, node_name: str) -> list[str]:
    """Each line in klog's form; the numbers differ from run to run."""
    head = r"^I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \S+\.py:\d+\] "
    pod, node = rf'pod="{namespace}/{pod_name}"', rf'node="{node_name}"'
    wanted = [
        r"\[NetworkTraffic\] args received\. Device: eth0; TimeRange: 15\D*, Address: http://\S+",
        r'max by \([a-z_, ]+\) \(rate\(node_network_receive_bytes_total\{device="eth0"\}\[15s\]\) '
        r'and node_network_receive_bytes_total\{device="eth0"\}\)',
        rf'"Add event for unscheduled pod" {pod}',
        rf'"Attempting to schedule pod" {pod}',
        rf"\[NetworkTraffic\] node '{node_name}' bandwidth: \d+",
        r"\[NetworkTraffic\] highest score: \d+",
        r"\[NetworkTraffic\] operation: 100 - \( \d+ \* 100 / \d+\)",
        rf"\[NetworkTraffic\] node '{node_name}' final score: \d+",
        r"\[NetworkTraffic\] Nodes final score: \[\{raspberry-\w+ \d+\} \{raspberry-\w+ \d+\}\]",
        rf'"Attempting to bind pod to node" {pod} {node}',
        rf'"Successfully bound pod to node" {pod} {node} evaluatedNodes=2 feasibleNodes=2',
        rf'"Delete event for unscheduled pod" {pod}',
        rf'"Add event for scheduled pod" {pod}',
    ]
    return [line for line in wanted if not re.search(f"{head}{line}$", log, re.MULTILINE)]
