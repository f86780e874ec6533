"""`lowtide shadow` beside the real kube-scheduler, by an account that may only read."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import LOWTIDE

from realparts.control_plane import ControlPlane
from realparts.process import Process, wait_until

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
    shadow = Process(
        "shadow",
        [
            *(LOWTIDE, "shadow", "--output=json", "-v=2"),
            f"--kubeconfig={plane.certificate_kubeconfig(READER)}",
        ],
        folder=tmp_path,
    )
    shadow.start()
    try:
        wait_until(
            lambda: "Shadowing" in shadow.log(), timeout_seconds=30, what="the shadow has begun"
        )
        plane.create_all(PODS, [_pod(number) for number in range(pods)])
        plane.kube_scheduler(json.dumps(CONFIG))
        wait_until(
            lambda: all(_nodes_of(plane)), timeout_seconds=180, what="kube-scheduler placed all"
        )
        where = dict(zip(_names(plane), _nodes_of(plane), strict=True))
    finally:
        assert shadow.stop() == 0
    summary = json.loads(shadow.log()[shadow.log().index("\n{") :])
    assert summary["pods"] == sum(summary["agreement"].values()) == pods
    assert summary["agreement"]["failed"] == summary["agreement"]["nowhere"] == 0
    assert summary["agreed"] + len(summary["differences"]) == pods
    for each in summary["differences"]:
        assert where[each["pod"].partition("/")[2]] == each["node"]
    # kube-scheduler looks at half of the nodes, and takes pods as it assumes them, not as they
    # are bound; on equal nodes it agrees all the same.
    assert summary["agreed"] >= 0.9 * pods
    verbs = Counter(
        line["verb"]
        for line in map(json.loads, audit_log.read_text().splitlines())
        if line["user"]["username"] == READER
    )
    assert set(verbs) <= {"get", "list", "watch"}


def _node(number: int) -> dict[str, Any]:
    resources = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}"},
        "status": {"capacity": resources, "allocatable": resources},
    }


def _pod(number: int) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "64Mi"}
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
