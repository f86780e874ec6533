"""Volumes on the real API server and its own controller of volumes: local ones that wait for a pod,
and ones that a provisioner makes; a stand-in for it watches for the node that was selected."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from realparts.control_plane import ControlPlane
from realparts.process import Process, wait_until

STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
PROVISIONER = "csi.example.com"
SELECTED = "volume.kubernetes.io/selected-node"
NODES = ("left", "right")
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [{"schedulerName": "lowtide"}],
}


@pytest.fixture
def nodes(control_plane: ControlPlane) -> Iterator[None]:
    for name in NODES:
        labels = {"kubernetes.io/hostname": name}
        control_plane.request(
            "POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}}
        )

    def are_ready() -> bool:
        found = control_plane.request("GET", "/api/v1/nodes")["items"]
        return all(not node["spec"].get("taints") for node in found)

    wait_until(are_ready, timeout_seconds=30, what="the nodes are ready")
    yield
    for name in NODES:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


@pytest.fixture
def storage(control_plane: ControlPlane) -> Iterator[None]:
    """Two classes that wait for the first pod, and a local volume on each node."""
    for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", PROVISIONER)):
        given = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        control_plane.request("POST", STORAGE, {"metadata": {"name": name}, **given})
    for name in NODES:
        control_plane.request("POST", VOLUMES, volume(f"on-{name}", "local", name))
    yield
    for each in control_plane.request("GET", VOLUMES)["items"]:
        path = f"{VOLUMES}/{each['metadata']['name']}"
        control_plane.request("DELETE", path)
    for name in ("local", "made"):
        control_plane.request("DELETE", f"{STORAGE}/{name}")


def volume(name: str, class_name: str, host: str) -> dict[str, Any]:
    requirement = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}
    spec = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": class_name,
        "local": {"path": f"/mnt/{name}"},
        "nodeAffinity": affinity,
    }
    return {"metadata": {"name": name}, "spec": spec}


def claim(name: str, class_name: str) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": class_name,
    }
    return {"metadata": {"name": name}, "spec": spec}


def pod(name: str, claim_name: str, node_name: str | None = None) -> dict[str, Any]:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]
    container = {"name": "main", "image": "example/none"}
    spec = {"schedulerName": "lowtide", "containers": [container], "volumes": volumes}
    if node_name is not None:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node_name}
    return {"metadata": {"name": name}, "spec": spec}


@contextmanager
def provisioning(plane: ControlPlane, namespace: str) -> Iterator[None]:
    """Makes a volume for each claim that was told its node, on that node."""
    is_over = threading.Event()

    def work() -> None:
        client, made = plane.client(), set[str]()
        while not is_over.wait(0.1):
            path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
            for each in client.request("GET", path)["items"]:
                meta = each["metadata"]
                node_name = (meta.get("annotations") or {}).get(SELECTED)
                if node_name is not None and meta["name"] not in made:
                    made.add(meta["name"])
                    given = volume(f"pvc-{meta['uid']}", "made", node_name)
                    given["spec"]["claimRef"] = {
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "namespace": namespace,
                        "name": meta["name"],
                        "uid": meta["uid"],
                    }
                    client.request("POST", VOLUMES, given)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        is_over.set()
        worker.join()


@pytest.mark.versions
def test_pods_get_their_volumes_before_their_nodes(
    control_plane: ControlPlane,
    namespace: str,
    nodes: None,
    storage: None,
    scheduler_rights: None,
    lowtide_scheduler: Callable[..., Process],
) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    scheduler = lowtide_scheduler(CONFIG, control_plane.kubeconfig("lowtide"))

    def node_of(name: str) -> str | None:
        found = control_plane.request("GET", f"{path}/pods/{name}")
        node_name: str | None = found["spec"].get("nodeName")
        return node_name

    def message_of(name: str) -> str:
        status = control_plane.request("GET", f"{path}/pods/{name}")["status"]
        for each in status.get("conditions") or ():
            if each["type"] == "PodScheduled":
                return str(each.get("message", ""))
        return ""

    with provisioning(control_plane, namespace):
        control_plane.request("POST", f"{path}/pods", pod("early", "late"))
        wait_until(
            lambda: 'persistentvolumeclaim "late" not found' in message_of("early"),
            timeout_seconds=20,
            what="the pod without a claim is rejected",
        )
        control_plane.request("POST", f"{path}/persistentvolumeclaims", claim("late", "made"))
        for name in ("one", "two", "three"):
            control_plane.request("POST", f"{path}/persistentvolumeclaims", claim(name, "local"))
            control_plane.request("POST", f"{path}/pods", pod(name, name))
        control_plane.request("POST", f"{path}/persistentvolumeclaims", claim("here", "made"))
        control_plane.request("POST", f"{path}/pods", pod("here", "here", "right"))
        wait_until(
            lambda: (
                all(node_of(name) for name in ("early", "here"))
                and sum(bool(node_of(name)) for name in ("one", "two", "three")) == 2
            ),
            timeout_seconds=40,
            what="all pods but one are bound",
        )
        (left_out,) = [name for name in ("one", "two", "three") if not node_of(name)]
        wait_until(
            lambda: "didn't find available persistent volumes to bind" in message_of(left_out),
            timeout_seconds=20,
            what="the third pod on two volumes is rejected",
        )

    bound = {
        each["spec"]["claimRef"]["name"]: each
        for each in control_plane.request("GET", VOLUMES)["items"]
        if each["status"]["phase"] == "Bound"
    }
    hosts = {
        name: each["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][
            0
        ]["values"]
        for name, each in bound.items()
    }
    assert hosts == {
        name: [node_of(name if name != "late" else "early")]
        for name in {"one", "two", "three", "late", "here"} - {left_out}
    }
    assert node_of("here") == "right"
    assert {node_of(name) for name in ("one", "two", "three")} == {"left", "right", None}
    assert "Unavailable" not in scheduler.log()
