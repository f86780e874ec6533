"""An outsider's plugin with args of its own places pods on the real API server, registered in each
of the three ways without touching a file of Lowtide's; and one asks a real Prometheus itself."""

import os
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conftest import LOWTIDE, is_ready

from realparts.control_plane import ControlPlane
from realparts.hosts import Hosts
from realparts.process import Process, free_port, wait_until
from realparts.prometheus import Prometheus, Target

ROWS = {"near": "one", "far": "two"}
CONTAINERS = [{"name": "main", "image": "example/none"}]

PLUGIN = '''\
import msgspec

from lowtide.framework.plugin import NODE, OneNode, Pod, filter_each


class SameRackArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    nodeLabel: str


class SameRack:
    """Pods go where the label that the args name is as their own."""

    name = "SameRack"
    args = SameRackArgs

    def __init__(self, args: SameRackArgs) -> None:
        self._label = args.nodeLabel

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        is_same = pod.labels.get(self._label) == node.labels.get(self._label)
        return None if is_same else "node(s) are in another row"
'''
MAIN = """\
import lowtide
from same_rack import SameRack

lowtide.run(plugins={"SameRack": SameRack})
"""
METADATA = "Metadata-Version: 2.1\nName: same-rack\nVersion: 1.0\n"
ENTRY_POINTS = "[lowtide.plugins]\nSameRack = same_rack:SameRack\n"


@dataclass(frozen=True)
class Way:
    """How a plugin is registered: files beside it, the command, and what a configuration calls
    it."""

    name: str
    command: tuple[str | Path, ...] = (LOWTIDE,)
    files: Mapping[str, str] = field(default_factory=dict)


WAYS = [
    pytest.param(
        Way("SameRack", (sys.executable, "main.py"), {"main.py": MAIN}),
        id="by a main of the user's own",
    ),
    pytest.param(
        Way(
            "SameRack",
            files={
                "same_rack-1.0.dist-info/METADATA": METADATA,
                "same_rack-1.0.dist-info/entry_points.txt": ENTRY_POINTS,
            },
        ),
        id="by an entry point",
    ),
    pytest.param(Way("same_rack:SameRack"), id="by module and class in the configuration"),
]


@pytest.fixture
def nodes(control_plane: ControlPlane) -> Iterator[None]:
    for name, row in ROWS.items():
        resources = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        node = {
            "metadata": {"name": name, "labels": {"example.com/row": row}},
            "status": {"allocatable": resources, "capacity": resources},
        }
        control_plane.request("POST", "/api/v1/nodes", node)

    def taints() -> list[Any]:
        items = control_plane.request("GET", "/api/v1/nodes")["items"]
        return [taint for node in items for taint in node["spec"].get("taints", ())]

    wait_until(lambda: not taints(), timeout_seconds=30, what="the nodes are ready")
    yield
    for name in ROWS:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Starts `scheduler` by a command that finds modules in one more folder."""
    started: list[Process] = []

    def start(
        command: tuple[str | Path, ...],
        config: Mapping[str, Any],
        kubeconfig: Path,
        modules: Path = tmp_path,
    ) -> Process:
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(dict(config)))
        port = free_port()
        words = ["scheduler", "--config=config.yaml", f"--kubeconfig={kubeconfig}", "-v=2"]
        process = Process(
            "outside",
            [*command, *words, f"--secure-port={port}"],
            folder=tmp_path,
            environment={"PYTHONPATH": os.fspath(modules), "PYTHONDONTWRITEBYTECODE": "1"},
            url=f"http://127.0.0.1:{port}",
        )
        started.append(process)
        process.start()
        process.wait_until_ready(lambda: is_ready(process))
        return process

    yield start
    assert [process.stop() for process in started] == [0] * len(started)
    assert [each for each in started if "Traceback" in each.log()] == []


def config(name: str, args: Mapping[str, Any], *, point: str) -> dict[str, Any]:
    plugins = {point: {"enabled": [{"name": name}]}}
    if point == "score":
        plugins[point]["disabled"] = [{"name": "*"}]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [
            {
                "schedulerName": "outside",
                "plugins": plugins,
                "pluginConfig": [{"name": name, "args": dict(args)}],
            }
        ],
    }


def create_pod(plane: ControlPlane, namespace: str, name: str, *, row: str = "") -> None:
    labels = {"example.com/row": row} if row else {}
    pod = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": CONTAINERS, "schedulerName": "outside"},
    }
    plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)


def nodes_of(plane: ControlPlane, namespace: str) -> dict[str, str]:
    pods = plane.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}


def why_pending(plane: ControlPlane, namespace: str, name: str) -> list[str]:
    """The first sentence of each condition; plugins that evict say more."""
    pod = plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
    conditions = pod["status"].get("conditions", ())
    return [each["message"].partition(".")[0] for each in conditions if "message" in each]


@pytest.mark.parametrize("way", WAYS)
def test_an_outsiders_plugin_places_pods_when_it_is_registered(
    control_plane: ControlPlane,
    namespace: str,
    nodes: None,
    scheduler_rights: None,
    scheduler: Callable[..., Process],
    tmp_path: Path,
    way: Way,
) -> None:
    for path, text in {"same_rack.py": PLUGIN, **way.files}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    args = {"nodeLabel": "example.com/row"}
    process = scheduler(
        way.command, config(way.name, args, point="filter"), control_plane.kubeconfig("lowtide")
    )
    pods = {"one": "near", "two": "far"}
    for number in range(3):
        for row in pods:
            create_pod(control_plane, namespace, f"{row}-{number}", row=row)
    create_pod(control_plane, namespace, "lost", row="three")
    want = {f"{row}-{number}": node for row, node in pods.items() for number in range(3)}
    wait_until(
        lambda: nodes_of(control_plane, namespace) == {**want, "lost": ""},
        timeout_seconds=20,
        what="the pods are where the plugin lets them go",
    )
    rejected = "0/2 nodes are available: 2 node(s) are in another row"
    wait_until(
        lambda: why_pending(control_plane, namespace, "lost") == [rejected],
        timeout_seconds=20,
        what="the pod that fits nowhere is told so in the plugin's words",
    )
    assert "Starting Lowtide" in process.log()


def test_an_outsiders_plugin_asks_prometheus_itself(
    control_plane: ControlPlane,
    namespace: str,
    nodes: None,
    hosts: Callable[..., Hosts],
    prometheus_process: Callable[..., Prometheus],
    scheduler_rights: None,
    scheduler: Callable[..., Process],
    examples: Path,
) -> None:
    """That of the example. Its series have an instance, and who that is, node_uname_info tells."""
    two = hosts(list(ROWS))
    prometheus = prometheus_process([Target(h.exporter_address) for h in two.by_name.values()])
    prometheus.wait_until_scraped()
    busy = (
        'max by (instance, job) (node_uname_info{nodename="near"} * 0.9 or node_uname_info * 0.2)'
    )
    process = scheduler(
        (LOWTIDE,),
        config(
            "quiet_disks:QuietDisks",
            {"prometheusAddress": prometheus.url, "promql": busy},
            point="score",
        ),
        control_plane.kubeconfig("lowtide"),
        examples / "09-own-readings",
    )
    wait_until(
        lambda: 'lowtide_query_nodes{state="known"} 2.0' in scraped(process),
        timeout_seconds=20,
        what="both nodes have a value",
    )
    for number in range(3):
        create_pod(control_plane, namespace, f"pod-{number}")
    wait_until(
        lambda: (
            nodes_of(control_plane, namespace)
            == dict.fromkeys([f"pod-{number}" for number in range(3)], "far")
        ),
        timeout_seconds=20,
        what="the pods are on the node whose disks are quiet",
    )


def scraped(process: Process) -> str:

    with urllib.request.urlopen(f"{process.url}/metrics", timeout=5) as response:
        return str(response.read().decode())
