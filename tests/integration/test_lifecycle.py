"""How `lowtide scheduler` begins, leads, survives its API server and ends, on both clusters."""

import re
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lowtide.localcluster import LocalCluster
from realparts.control_plane import ControlPlane
from realparts.process import Process, wait_until
from realparts.pytest_plugin import RBAC, RBAC_GROUP, SUBJECTS, grant_scheduler_rights
from realparts.users import User

Start = Callable[..., Process]
Configuration = Callable[..., dict[str, Any]]

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/lowtide"
RELEASE_SECONDS = 3.0
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
SELECTED = "volume.kubernetes.io/selected-node"
CLAIMED = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
RESOURCES = {"cpu": "8", "memory": "8Gi", "pods": "110"}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "alone"},
    "status": {"allocatable": RESOURCES, "capacity": RESOURCES},
}


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGTERM, id="ends with 0 after SIGTERM"),
        pytest.param(signal.SIGINT, id="ends with 0 after Ctrl-C"),
    ],
)
def test_end(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start, number: signal.Signals
) -> None:
    scheduler = lowtide_scheduler(configuration(), cluster.kubeconfig)
    scheduler.send(number)
    assert scheduler.wait(timeout_seconds=10) == 0
    assert scheduler.log().splitlines()[-1].endswith("] Stopped")


def test_sigusr2_compares_what_is_believed_with_the_api_server(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    cluster.create_node("alone")
    scheduler = lowtide_scheduler(configuration(), cluster.kubeconfig)
    for name in ("one", "two"):
        cluster.create_pod(name)
        cluster.wait_for_placement(name)
    scheduler.send(signal.SIGUSR2)
    said = re.compile(r'"Compared with the API server" nodes=\d+ pods=\d+ differences=0$', re.M)
    cluster.wait_for(lambda: said.search(scheduler.log()) is not None, what="it has compared")


def test_standby_takes_over_when_the_leader_ends(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    cluster.create_node("alone")
    election = {"leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "1s"}
    config = configuration(leaderElection=election)
    first = lowtide_scheduler(config, cluster.kubeconfig)
    cluster.wait_for(lambda: leads(first), what="the first leads")
    second = lowtide_scheduler(config, cluster.kubeconfig)
    cluster.create_pod("before")
    cluster.wait_for_placement("before")
    assert (leads(first), leads(second)) == (True, False)
    first_holder = holder(cluster)

    first.send(signal.SIGTERM)
    asked_at = time.monotonic()
    cluster.wait_for(lambda: holder(cluster) != first_holder, what="the lease is released")
    assert time.monotonic() - asked_at < RELEASE_SECONDS
    assert first.wait(timeout_seconds=10) == 0

    cluster.wait_for(lambda: leads(second), what="the second leads")
    cluster.create_pod("after")
    cluster.wait_for_placement("after")
    assert 'pod="' + cluster.namespace + '/before"' not in bindings(second)
    assert cluster.send("GET", LEASE, None)["spec"]["leaseTransitions"] >= 1
    cluster.send("DELETE", LEASE, None)


def test_a_pod_that_waits_for_its_volume_does_not_keep_the_lease(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    cluster.create_node("alone")
    config = configuration(leaderElection={"leaderElect": True})
    first = lowtide_scheduler(config, cluster.kubeconfig)
    cluster.wait_for(lambda: leads(first), what="the first leads")
    second = lowtide_scheduler(config, cluster.kubeconfig)
    with volume_that_nobody_makes(cluster) as annotations:
        cluster.create_pod("waiting", volumes=[CLAIMED])
        cluster.wait_for(
            lambda: annotations().get(SELECTED) == "alone", what="its claim is told its node"
        )
        first.send(signal.SIGTERM)
        asked_at = time.monotonic()
        cluster.create_pod("after")
        cluster.wait_for_placement("after")
        assert time.monotonic() - asked_at < RELEASE_SECONDS
        assert first.wait(timeout_seconds=10) == 0
        of_waiting = f'"Attempting to bind pod to node" pod="{cluster.namespace}/waiting"'
        cluster.wait_for(lambda: of_waiting in second.log(), what="the second takes it on")
        assert annotations()[SELECTED] == "alone"
        assert cluster.scheduled_condition("waiting") is None
        second.send(signal.SIGTERM)
        assert second.wait(timeout_seconds=10) == 0
    cluster.send("DELETE", LEASE, None)


@contextmanager
def volume_that_nobody_makes(cluster: Any) -> Iterator[Callable[[], dict[str, str]]]:
    """Claimed as `data`; yields how to look at the claim's annotations."""
    claims = f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims"
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "made-by-nobody",
    }
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "made-by-nobody"},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
    cluster.send("POST", STORAGE, storage_class)
    cluster.send("POST", claims, {**claim, "spec": spec})

    def annotations() -> dict[str, str]:
        found: dict[str, Any] = cluster.send("GET", f"{claims}/data", None)["metadata"]
        return found.get("annotations") or {}

    yield annotations
    cluster.send("DELETE", f"{STORAGE}/made-by-nobody", None)


def leads(scheduler: Process) -> bool:
    with urllib.request.urlopen(f"{scheduler.url}/metrics", timeout=5) as response:
        text = response.read().decode()
    return re.search(r"^lowtide_leader 1\.0$", text, re.MULTILINE) is not None


def holder(cluster: Any) -> str:
    return str(cluster.send("GET", LEASE, None)["spec"].get("holderIdentity"))


def bindings(scheduler: Process) -> str:
    lines = scheduler.log().splitlines()
    return "\n".join(line for line in lines if '"Attempting to bind pod to node"' in line)


def test_forbidden_nodes_are_one_warning_and_no_hang(
    cluster_kind: str,
    request: pytest.FixtureRequest,
    configuration: Configuration,
    lowtide_scheduler: Start,
) -> None:
    cluster = request.getfixturevalue(f"{cluster_kind}_cluster")
    cluster.create_pod("web")
    with nodes_forbidden(cluster_kind, request):
        scheduler = lowtide_scheduler(
            configuration(),
            cluster.kubeconfig,
            until=lambda started: (
                '"nodes cannot be listed' in started.log()
                and f"{cluster.namespace}/web" in started.log()
            ),
        )
        with pytest.raises(urllib.error.HTTPError, match="500"):
            urllib.request.urlopen(f"{scheduler.url}/readyz", timeout=5).close()
        scheduler.send(signal.SIGTERM)
        assert scheduler.wait(timeout_seconds=10) == 0
    assert cluster.scheduled_condition("web") is None
    warnings = [line for line in scheduler.log().splitlines() if '"nodes cannot be' in line]
    assert [line.partition("] ")[2].partition(" err=")[0] for line in warnings] == [
        '"nodes cannot be listed, trying again"'
    ]


@contextmanager
def nodes_forbidden(cluster_kind: str, request: pytest.FixtureRequest) -> Iterator[None]:
    if cluster_kind == "embedded":
        embedded = request.getfixturevalue("embedded")
        embedded.call(lambda c: c.faults.answer("GET", "/nodes", status=403, times=1000))
        yield
        return
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    ]
    name = "lowtide-without-nodes"
    reference = {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name}
    plane: ControlPlane = request.getfixturevalue("control_plane")
    manifest: dict[str, Any] = {"metadata": {"name": name}}
    plane.request("POST", f"{RBAC}/clusterroles", {**manifest, "rules": rules})
    bound = {**manifest, "roleRef": reference, "subjects": SUBJECTS}
    plane.request("POST", f"{RBAC}/clusterrolebindings", bound)
    yield
    for plural in ("clusterrolebindings", "clusterroles"):
        plane.request("DELETE", f"{RBAC}/{plural}/{name}")


def test_cut_watches_and_a_compacted_history_lose_nothing(
    embedded: Any,
    embedded_cluster: Any,
    configuration: Configuration,
    lowtide_scheduler: Start,
) -> None:
    embedded_cluster.create_node("alone")
    scheduler = lowtide_scheduler(configuration(), embedded_cluster.kubeconfig)
    embedded_cluster.create_pod("before")
    embedded_cluster.create_pod("deleted-unseen", cpu="100")
    embedded_cluster.wait_for_placement("before")
    embedded_cluster.wait_for_event("deleted-unseen", "FailedScheduling")

    def cut(cluster: LocalCluster) -> None:
        cluster.faults.cut_watches()
        cluster.store.create("pods", pod("unseen"), namespace="default")
        cluster.store.delete("pods", "default", "deleted-unseen")
        cluster.store.compact()

    embedded.call(cut)
    assert embedded_cluster.wait_for_placement("unseen") == "alone"
    assert "starts again with a list" in scheduler.log()
    embedded_cluster.create_pod("after")
    assert embedded_cluster.wait_for_placement("after") == "alone"
    assert 'Delete event for unscheduled pod" pod="default/deleted-unseen"' in scheduler.log()


@pytest.mark.real
@pytest.mark.versions
def test_restart_of_the_api_server_loses_nothing(
    new_control_plane: Callable[..., ControlPlane],
    configuration: Configuration,
    lowtide_scheduler: Start,
) -> None:
    lowtide = User("lowtide", "lowtide-token")
    plane = new_control_plane(has_controllers=False, has_kwok=False, users=[lowtide])
    grant_scheduler_rights(plane)
    plane.request("POST", "/api/v1/nodes", NODE)
    scheduler = lowtide_scheduler(configuration(), plane.kubeconfig("lowtide"))

    plane.create_all(pods_path(), [pod(f"before-{number}") for number in range(40)])
    plane.kill_api_server()
    plane.restart_api_server()
    plane.create_all(pods_path(), [pod(f"after-{number}") for number in range(10)])

    def waiting() -> list[str]:
        pods = plane.request("GET", pods_path())["items"]
        return [each["metadata"]["name"] for each in pods if not each["spec"].get("nodeName")]

    try:
        wait_until(lambda: not waiting(), timeout_seconds=40, what="every pod is bound")
    except TimeoutError:
        pytest.fail(f"these wait still: {waiting()}\n{scheduler.log()}")
    assert len(plane.request("GET", pods_path())["items"]) == 50
    assert scheduler.is_running()


def pods_path() -> str:
    return "/api/v1/namespaces/default/pods"


def pod(name: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "example/none",
        "resources": {"requests": {"cpu": "10m"}},
    }
    spec = {"schedulerName": "lowtide", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
