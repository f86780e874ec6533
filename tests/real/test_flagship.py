"""The main job on real parts: three hosts with real exporters, a real Prometheus, real bytes, a
real API server with RBAC on, and `lowtide scheduler` as a process."""

import re
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from realparts.control_plane import ControlPlane
from realparts.hosts import Hosts
from realparts.process import Process, wait_until
from realparts.prometheus import Prometheus, Target

NAMES = ["tide-north", "tide-east", "tide-south"]
WINDOW = "5s"
RECEIVED = f'rate(node_network_receive_bytes_total{{device="eth0"}}[{WINDOW}])'
MEGABYTES_PER_SECOND = 8
BUSY_BYTES_PER_SECOND = 4_000_000
QUIET_BYTES_PER_SECOND = 40_000  # scrapes; below 1 % of the busy host, so quiet hosts are equal


@pytest.fixture
def three(hosts: Callable[..., Hosts]) -> Hosts:
    return hosts(NAMES, rate="100mbit")


@pytest.fixture
def prometheus(three: Hosts, prometheus_process: Callable[..., Prometheus]) -> Prometheus:
    started = prometheus_process([Target(h.exporter_address) for h in three.by_name.values()])
    started.wait_until_scraped()
    return started


@pytest.fixture
def nodes(control_plane: ControlPlane, three: Hosts) -> Iterator[None]:
    """Node objects of the hosts' names; KWOK keeps them ready."""
    for host in three.by_name.values():
        resources = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        address = {"type": "InternalIP", "address": host.address}
        node = {
            "metadata": {"name": host.name},
            "status": {"allocatable": resources, "capacity": resources, "addresses": [address]},
        }
        control_plane.request("POST", "/api/v1/nodes", node)
    wait_until(
        lambda: all(
            is_ready(node) for node in control_plane.request("GET", "/api/v1/nodes")["items"]
        ),
        timeout_seconds=30,
        what="the nodes are ready and without taints",
    )
    yield
    for name in three.names:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


def is_ready(node: dict[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


@pytest.mark.versions
def test_pods_go_where_the_network_is_quiet(
    control_plane: ControlPlane,
    namespace: str,
    nodes: None,
    three: Hosts,
    prometheus: Prometheus,
    scheduler_rights: None,
    lowtide_scheduler: Callable[..., Process],
    examples: Path,
) -> None:
    folder = examples / "01-second-scheduler"
    config = yaml.safe_load((folder / "scheduler-config.yaml").read_text())
    config["profiles"][0]["pluginConfig"][0]["args"] |= {
        "prometheusAddress": prometheus.url,
        "window": WINDOW,
    }
    deployment = yaml.safe_load((folder / "test-deployment.yaml").read_text())

    def nodes_of_new_pods(name: str) -> Counter[str]:
        """Deploys five pods of that name and tells where they went."""
        labels = {"app": name}
        deployment["metadata"]["name"] = name
        deployment["spec"]["selector"]["matchLabels"] = labels
        deployment["spec"]["template"]["metadata"]["labels"] = labels
        control_plane.kubectl("create", f"-n={namespace}", "-f=-", input=yaml.safe_dump(deployment))
        path = f"/api/v1/namespaces/{namespace}/pods?labelSelector=app%3D{name}"

        def placed() -> list[str]:
            pods = control_plane.request("GET", path)["items"]
            return [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]

        wait_until(lambda: len(placed()) == 5, timeout_seconds=20, what=f"{name} is bound")
        return Counter(placed())

    def only_busy_is(name: str) -> bool:
        rates = prometheus.values(
            f"{RECEIVED} * on(instance) group_left(nodename) node_uname_info", "nodename"
        )
        quiet = set(three.names) - {name}
        return rates.get(name, 0) > BUSY_BYTES_PER_SECOND and all(
            rates.get(other, BUSY_BYTES_PER_SECOND) < QUIET_BYTES_PER_SECOND for other in quiet
        )

    with three.pull("tide-east", megabytes_per_second=MEGABYTES_PER_SECOND, seconds=120):
        wait_until(lambda: only_busy_is("tide-east"), timeout_seconds=30, what="tide-east is busy")
        scheduler = lowtide_scheduler(config, control_plane.kubeconfig("lowtide"))
        first = nodes_of_new_pods("first")
    assert first.keys() <= {"tide-north", "tide-south"}

    with three.pull("tide-south", megabytes_per_second=MEGABYTES_PER_SECOND, seconds=120):
        wait_until(lambda: only_busy_is("tide-south"), timeout_seconds=30, what="the traffic moved")
        wait_for_reading_after(scheduler, time.monotonic())
        second = nodes_of_new_pods("second")
    assert second.keys() == {"tide-north", "tide-east"}


def wait_for_reading_after(scheduler: Process, moment: float) -> None:
    """Readings are taken every 15 seconds; the metric tells how old the newest is."""

    def is_newer() -> bool:
        with urllib.request.urlopen(f"{scheduler.url}/metrics", timeout=5) as response:
            text = response.read().decode()
        found = re.search(r"^lowtide_readings_age_seconds (\S+)", text, re.MULTILINE)
        return found is not None and float(found[1]) < time.monotonic() - moment

    wait_until(is_newer, timeout_seconds=40, what="the scheduler read the traffic again")
