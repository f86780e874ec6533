"""What a scheduler serves beyond loopback: by HTTPS, health to everybody, the rest to those whom
the API server lets. The flags and the probes are those of the seeds' static pod."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from realparts.control_plane import ControlPlane
from realparts.hosts import Hosts
from realparts.process import Process

RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
SCRAPER = "scraper"


def _container(name: str = "main", **resources: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "image": "example/none", "resources": resources}


PODS = {
    "plain": {
        "schedulerName": "lowtide",
        "containers": [_container(requests={"cpu": "100m", "memory": "64Mi"})],
    },
    "bounded": {
        "schedulerName": "lowtide",
        "containers": [
            _container(
                requests={"cpu": "1"},
                limits={"cpu": "1500m", "memory": "1Gi", "example.com/x": "2"},
            ),
            _container("second", limits={"cpu": "500m", "memory": "1G"}),
        ],
        "initContainers": [_container("first", requests={"cpu": "3"}, limits={"cpu": "4"})],
    },
    "says-nothing": {"schedulerName": "lowtide", "containers": [_container()]},
}


@pytest.fixture
def scraper(control_plane: ControlPlane, namespace: str) -> Iterator[str]:
    """The token of an account that may get metrics."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    control_plane.request("POST", accounts, {"metadata": {"name": SCRAPER}})
    role = {
        "metadata": {"name": SCRAPER},
        "rules": [{"nonResourceURLs": ["/metrics", "/metrics/resources"], "verbs": ["get"]}],
    }
    control_plane.request("POST", f"{RIGHTS}/clusterroles", role)
    binding = {
        "metadata": {"name": SCRAPER},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": SCRAPER,
        },
        "subjects": [{"kind": "ServiceAccount", "name": SCRAPER, "namespace": namespace}],
    }
    control_plane.request("POST", f"{RIGHTS}/clusterrolebindings", binding)
    asked = control_plane.request(
        "POST",
        f"{accounts}/{SCRAPER}/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )
    yield asked["status"]["token"]
    for plural in ("clusterroles", "clusterrolebindings"):
        control_plane.request("DELETE", f"{RIGHTS}/{plural}/{SCRAPER}")


def _get(url: str, token: str = "") -> tuple[int, str]:
    """As the kubelet probes: whoever signed the certificate."""
    context = ssl._create_unverified_context()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=15, context=context) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as rejected:
        return rejected.code, rejected.read().decode()


def _is_ready(process: Process) -> bool:
    try:
        return _get(f"{process.url}/readyz") == (200, "ok")
    except OSError:
        return False


@pytest.mark.real("control_plane")
@pytest.mark.usefixtures("scheduler_rights")
@pytest.mark.versions
def test_the_api_server_says_who_may_see_what(
    control_plane: ControlPlane,
    hosts: Callable[..., Hosts],
    scraper: str,
    namespace: str,
    lowtide_scheduler: Callable[..., Process],
) -> None:
    kubeconfig = control_plane.kubeconfig("lowtide")
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"resourceNamespace": namespace},
        "profiles": [{"schedulerName": "lowtide"}],
    }
    scheduler = lowtide_scheduler(
        config,
        kubeconfig,
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=0.0.0.0",
        "--leader-elect=true",
        "--leader-elect-lease-duration=15s",
        "--leader-elect-renew-deadline=10s",
        "--port=0",
        until=_is_ready,
        scheme="https",
    )
    assert "--port" in scheduler.log()
    # livenessProbe and startupProbe of the seeds' static pod.
    assert _get(f"{scheduler.url}/healthz") == (200, "ok")
    rejected, why = _get(f"{scheduler.url}/metrics")
    assert (rejected, json.loads(why)["error"].partition(";")[0]) == (
        403,
        "system:anonymous may not get /metrics",
    )
    assert _get(f"{scheduler.url}/metrics", "nobodys")[0] == 401
    status, metrics = _get(f"{scheduler.url}/metrics", scraper)
    assert status == 200
    assert "scheduler_pending_pods" in metrics
    # As by `kubectl port-forward`, and from elsewhere.
    assert _get(f"{scheduler.url}/api/health")[0] == 200
    elsewhere = hosts(["one"]).by_name["one"].gateway_address
    url = scheduler.url.replace("127.0.0.1", elsewhere)
    assert _get(f"{url}/healthz") == (200, "ok")
    assert [_get(f"{url}{path}")[0] for path in ("/", "/api/health", "/metrics")] == [403] * 3
    assert _get(f"{url}/api/health", scraper)[0] == 403
    assert _get(f"{url}/metrics", scraper)[0] == 200


@pytest.mark.real("control_plane")
@pytest.mark.usefixtures("scheduler_rights")
def test_pod_resources_are_told_as_kube_scheduler_tells_them(
    control_plane: ControlPlane,
    scraper: str,
    namespace: str,
    lowtide_scheduler: Callable[..., Process],
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    for name, spec in PODS.items():
        control_plane.request("POST", pods, {"metadata": {"name": name}, "spec": spec})
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "lowtide"}],
    }
    kube_scheduler = control_plane.kube_scheduler(yaml.safe_dump(config))
    try:
        told = _get(f"{kube_scheduler.url}/metrics/resources", scraper)
    finally:
        kube_scheduler.stop()
    scheduler = lowtide_scheduler(config, control_plane.kubeconfig("lowtide"))
    got = _samples(_get(f"{scheduler.url}/metrics/resources")[1], namespace)
    assert len(got) == 8
    assert got == _samples(told[1], namespace)


def _samples(text: str, namespace: str) -> dict[str, float]:
    """Labels in the order of their names, as both tell them."""
    found = {}
    for line in text.splitlines():
        if f'namespace="{namespace}"' in line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found
