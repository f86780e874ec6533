"""`lowtide shadow` beside the real kube-scheduler, by an account that may only read."""

import json
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import LOWTIDE

from realparts.control_plane import ControlPlane
from realparts.process import Process, free_port, wait_until

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [{"schedulerName": "default-scheduler"}],
}
READER = "reader"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
MAY_READ = {
    f"{RIGHTS}/clusterroles": {
        "metadata": {"name": READER},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    },
    f"{RIGHTS}/clusterrolebindings": {
        "metadata": {"name": READER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER},
        "subjects": [{"kind": "User", "name": READER}],
    },
}
PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.real("kube_scheduler")
@pytest.mark.versions
@pytest.mark.parametrize(
    "pods",
    [
        pytest.param(50, id="50 pods"),
        pytest.param(1000, id="1000 pods", marks=pytest.mark.long),
    ],
)
def test_it_compares_and_writes_nothing(
    pods: int, new_control_plane: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    audit_log = tmp_path / "audit.log"
    plane = new_control_plane(has_controllers=False, has_kwok=False, audit_log=audit_log)
    for path, manifest in MAY_READ.items():
        plane.request("POST", path, manifest)
    plane.create_all("/api/v1/nodes", [_node(number) for number in range(100)])
    kubeconfig = f"--kubeconfig={plane.certificate_kubeconfig(READER)}"
    recording = tmp_path / "run.lowtide"
    port = free_port()
    flags = ["--output=json", "-v=2", kubeconfig, f"--port={port}"]
    shadow = Process("shadow", [LOWTIDE, "shadow", *flags], folder=tmp_path)
    recorder = Process("record", [LOWTIDE, "record", recording, kubeconfig], folder=tmp_path)
    shadow.start()
    recorder.start()
    try:
        wait_until(
            lambda: "Shadowing" in shadow.log() and "pods are listed" in recorder.log(),
            timeout_seconds=30,
            what="both have begun",
        )
        plane.create_all(PODS, [_pod(number) for number in range(pods)])
        plane.kube_scheduler(json.dumps(CONFIG))
        wait_until(
            lambda: all(_nodes_of(plane)), timeout_seconds=180, what="kube-scheduler placed all"
        )
        where = dict(zip(_names(plane), _nodes_of(plane), strict=True))
        wait_until(
            lambda: _compared(f"http://127.0.0.1:{port}/metrics") == pods,
            timeout_seconds=30,
            what="its metrics count all pods",
        )
    finally:
        ends = [shadow.stop(), recorder.stop()]
    assert ends == [0, 0]
    summary = json.loads(shadow.log()[shadow.log().index("\n{") :])
    assert summary["pods"] == sum(summary["agreement"].values()) == pods
    assert summary["agreement"]["failed"] == summary["agreement"]["nowhere"] == 0
    assert summary["agreed"] + len(summary["differences"]) == pods
    for each in summary["differences"]:
        assert where[each["pod"].partition("/")[2]] == each["node"]
    again = json.loads(_lowtide("replay", recording, "--output=json"))
    assert (again["pods"], again["nodes"]) == (pods, 100)
    assert again["agreed"] + len(again["differences"]) == pods
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    words = ("replay", recording, f"--config={config}", "--output=json")
    recorded, anew = json.loads(_lowtide(*words))["rows"]
    assert (recorded["placed"], recorded["pending"]) == (pods, 0)
    assert (anew["placed"], anew["pending"]) == (pods, 0)
    named = [(each["pod"], each["node"]) for each in again["differences"]]
    named += [(each["pod"], each["recorded_node"]) for each in anew["moved_pods"]]
    assert {pod: where[pod.partition("/")[2]] for pod, _ in named} == dict(named)
    # How often they agree is up to the order in which bindings are seen, which overtake each other:
    # kube-scheduler counts pods from its own decision on. No plugin is broken by that.
    assert summary["agreement"]["rejected there"] == again["agreement"]["rejected there"] == 0
    print(
        f"agreement {summary['agreed'] / pods:.0%}, from the recording {again['agreed'] / pods:.0%}"
    )
    verbs = Counter(
        line["verb"]
        for line in map(json.loads, audit_log.read_text().splitlines())
        if line["user"]["username"] == READER
    )
    assert set(verbs) <= {"get", "list", "watch"}


@pytest.mark.real("kube_scheduler")
def test_pods_that_come_one_at_a_time_are_all_agreed_on(
    new_control_plane: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    """Then nobody can see bindings in another order than that of the decisions. Nodes and pods of
    many sizes leave few choices among equals."""
    plane = new_control_plane(has_controllers=False, has_kwok=False)
    plane.create_all("/api/v1/nodes", [_node(number, cpu=8 + number) for number in range(20)])
    plane.kube_scheduler(json.dumps(CONFIG))
    port = free_port()
    flags = ["--output=json", f"--kubeconfig={plane.kubeconfig()}", f"--port={port}"]
    shadow = Process("shadow", [LOWTIDE, "shadow", *flags], folder=tmp_path)
    shadow.start()
    try:
        wait_until(
            lambda: "Shadowing" in shadow.log(), timeout_seconds=30, what="the shadow has begun"
        )
        for number in range(30):
            plane.request("POST", PODS, _pod(number, cpu_milli=100 * (number % 7 + 1)))
            wait_until(
                lambda seen=number + 1: _compared(f"http://127.0.0.1:{port}/metrics") == seen,
                timeout_seconds=30,
                what=f"pod {number} is placed and compared",
            )
    finally:
        shadow.stop()
    summary = json.loads(shadow.log()[shadow.log().index("\n{") :])
    assert (summary["pods"], summary["differences"]) == (30, [])
    assert len(set(_nodes_of(plane))) > 5


def _lowtide(*words: str | Path) -> str:
    ended = subprocess.run(
        [LOWTIDE, *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _compared(url: str) -> float:
    with urllib.request.urlopen(url, timeout=5) as response:
        lines = response.read().decode().splitlines()
    counted = [line for line in lines if line.startswith("lowtide_shadow_pods_total{")]
    return sum(float(line.rpartition(" ")[2]) for line in counted)


def _node(number: int, cpu: int = 32) -> dict[str, Any]:
    resources = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}"},
        "status": {"capacity": resources, "allocatable": resources},
    }


def _pod(number: int, cpu_milli: int = 100) -> dict[str, Any]:
    requests = {"cpu": f"{cpu_milli}m", "memory": "64Mi"}
    container = {"name": "main", "image": "example/none", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}"},
        "spec": {"containers": [container]},
    }


def _items(plane: ControlPlane) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = plane.request("GET", PODS)["items"]
    return items


def _names(plane: ControlPlane) -> list[str]:
    return [each["metadata"]["name"] for each in _items(plane)]


def _nodes_of(plane: ControlPlane) -> list[str | None]:
    return [each["spec"].get("nodeName") for each in _items(plane)]
