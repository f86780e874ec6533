"""`kubectl lowtide explain` with a user's own kubeconfig: through the API server's proxy to the pod
that decided."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import LOWTIDE

from realparts.control_plane import ControlPlane
from realparts.hosts import Hosts
from realparts.process import Process, wait_until

READER = "reader"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
MAY_ASK = [
    (
        f"{RIGHTS}/clusterroles",
        {
            "metadata": {"name": READER},
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
                {"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]},
            ],
        },
    ),
    (
        f"{RIGHTS}/clusterrolebindings",
        {
            "metadata": {"name": READER},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": READER,
            },
            "subjects": [{"kind": "User", "name": READER}],
        },
    ),
]


@pytest.fixture
def reader(control_plane: ControlPlane) -> Iterator[Path]:
    """The kubeconfig of somebody who may look at pods and ask them, and nothing else."""
    for path, manifest in MAY_ASK:
        control_plane.request("POST", path, manifest)
    yield control_plane.certificate_kubeconfig(READER)
    for path, manifest in MAY_ASK:
        control_plane.request("DELETE", f"{path}/{manifest['metadata']['name']}")  # type: ignore[index]


@pytest.mark.real("control_plane")
@pytest.mark.usefixtures("scheduler_rights")
@pytest.mark.versions
def test_kubectl_explains_a_pod_through_the_api_server(
    control_plane: ControlPlane,
    parts: Callable[..., dict[str, Path]],
    hosts: Callable[..., Hosts],
    namespace: str,
    reader: Path,
    lowtide_scheduler: Callable[..., Process],
) -> None:
    # The API server rejects to ask pods on loopback.
    host = hosts(["one"]).by_name["one"]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "lowtide"}],
    }
    scheduler = lowtide_scheduler(
        config,
        control_plane.kubeconfig("lowtide"),
        *("--bind-address=0.0.0.0", "--page"),
        until=lambda process: "Serving" in process.log(),  # by a certificate of its own
        scheme="https",
    )
    port = scheduler.url.rpartition(":")[2]
    pods = f"/api/v1/namespaces/{namespace}/pods"
    nodes = [_node(name) for name in ("a", "b")]
    try:
        for node in nodes:
            control_plane.request("POST", "/api/v1/nodes", node)
        control_plane.request("POST", pods, _pod("web"))
        label = {"app.kubernetes.io/name": "lowtide"}
        control_plane.request("POST", pods, _pod("lowtide-0", labels=label, nodeName="a"))
        wait_until(
            lambda: _is_running(control_plane, f"{pods}/lowtide-0"),
            timeout_seconds=30,
            what="lowtide-0 runs",
        )
        address = host.gateway_address
        status = {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
        control_plane.request("PATCH", f"{pods}/lowtide-0/status", status)
        wait_until(
            lambda: bool(_node_of(control_plane, f"{pods}/web")),
            timeout_seconds=30,
            what="web is bound",
        )
        environment = {**os.environ, "PATH": f"{LOWTIDE.parent}:{os.environ['PATH']}"}
        words = ["lowtide", "explain", f"{namespace}/web", f"--port={port}"]
        ended = subprocess.run(
            [parts("kubectl")["kubectl"], *words, f"--kubeconfig={reader}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=environment,
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        node_name = _node_of(control_plane, f"{pods}/web")
        # Which attempt it was is up to the nodes, which take a moment to be ready.
        assert ended.stdout.startswith(f"{namespace}/web -> {node_name} (attempt ")
    finally:
        for node in nodes:
            control_plane.request("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")


def _node(name: str) -> dict[str, Any]:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": resources, "allocatable": resources},
    }


def _pod(name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "example/none"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"schedulerName": "lowtide", "containers": containers, **spec},
    }


def _node_of(plane: ControlPlane, path: str) -> str | None:
    node_name: str | None = plane.request("GET", path)["spec"].get("nodeName")
    return node_name


def _is_running(plane: ControlPlane, path: str) -> bool:
    is_running: bool = plane.request("GET", path)["status"].get("phase") == "Running"
    return is_running
