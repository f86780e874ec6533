"""Pods with constraints of their own, on the embedded and the real API server."""

from collections.abc import Callable
from typing import Any

from realparts.process import Process

Start = Callable[..., Process]
Configuration = Callable[..., dict[str, Any]]
RACKS = {"one": "1", "two": "1", "three": "2", "four": "2"}


def create_pod(cluster: Any, name: str, app: str, **spec: Any) -> str:
    """Returns where it went."""
    container = {"name": "main", "image": "example/none"}
    spec = {"schedulerName": "lowtide", "containers": [container], **spec}
    meta = {"name": name, "labels": {"app": app}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    cluster.send("POST", cluster.pods_path, pod)
    return RACKS[cluster.wait_for_placement(name)]


def required(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "rack"}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def test_pods_stand_together_apart_and_evenly(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    for name, rack in RACKS.items():
        cluster.create_node(name, labels={"rack": rack})
    lowtide_scheduler(configuration(), cluster.kubeconfig)
    in_rack_2 = {"key": "rack", "operator": "In", "values": ["2"]}
    term = {"matchExpressions": [in_rack_2]}
    chosen = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    racks = {"database": create_pod(cluster, "database", "db", affinity={"nodeAffinity": chosen})}
    for number in range(2):
        near, far = f"near-{number}", f"far-{number}"
        racks[near] = create_pod(cluster, near, "near", affinity={"podAffinity": required("db")})
        racks[far] = create_pod(cluster, far, "far", affinity={"podAntiAffinity": required("db")})
    assert racks == {"database": "2", "near-0": "2", "near-1": "2", "far-0": "1", "far-1": "1"}

    constraint = {
        "maxSkew": 1,
        "topologyKey": "rack",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "even"}},
    }
    spread = {"topologySpreadConstraints": [constraint]}
    even = [create_pod(cluster, f"even-{number}", "even", **spread) for number in range(4)]
    assert sorted(even) == ["1", "1", "2", "2"]


def test_a_pod_that_claims_a_device_waits_where_the_server_knows_of_claims(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    """An older API server drops the claims of a pod; what is left is a pod like others."""
    cluster.create_node("alone")
    lowtide_scheduler(configuration(), cluster.kubeconfig)
    claims = [{"name": "card", "resourceClaimName": "nobody-made-it"}]
    created = cluster.create_pod("claims", resourceClaims=claims)
    if "resourceClaims" in created["spec"]:
        cluster.wait_for_event("claims", "FailedScheduling")
        assert cluster.node_of("claims") is None
    else:
        assert cluster.wait_for_placement("claims") == "alone"
