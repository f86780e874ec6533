"""What a cluster sees of PodTopologySpread: the Services that it reads are watched."""

from collections.abc import Callable
from typing import Any

from realparts.process import Process

Start = Callable[..., Process]
Configuration = Callable[..., dict[str, Any]]

ROOM = {"requests": {"cpu": "600m"}}
REJECTED = (
    "0/2 nodes are available: 1 Insufficient cpu, "
    "1 node(s) didn't match pod topology spread constraints. no new claims to deallocate, "
    "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
)


def profile() -> dict[str, Any]:
    """Pods that belong together stand evenly on the nodes."""
    constraint = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [constraint]}
    plugin = {"name": "PodTopologySpread", "args": args}
    return {"schedulerName": "lowtide", "pluginConfig": [plugin]}


def test_pods_of_a_service_are_spread_until_it_is_gone(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    cluster.create_node("large", cpu="8", labels={"rack": "1"})
    cluster.create_node("small", cpu="1", labels={"rack": "2"})
    services = f"/api/v1/namespaces/{cluster.namespace}/services"
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    cluster.send("POST", services, service)
    lowtide_scheduler(configuration(profiles=[profile()]), cluster.kubeconfig)

    def create(name: str) -> None:
        spec = {
            "schedulerName": "lowtide",
            "containers": [{"name": "main", "image": "example/none", "resources": ROOM}],
        }
        meta = {"name": name, "labels": {"app": "web"}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        cluster.send("POST", cluster.pods_path, pod)

    for name in ("first", "second", "third"):
        create(name)
        cluster.wait_for_placement(name)
    assert sorted(cluster.placements().values()) == ["large", "large", "small"]
    create("fourth")
    cluster.wait_for(
        lambda: cluster.scheduled_condition("fourth") is not None, what="the condition is written"
    )
    assert cluster.scheduled_condition("fourth") == {
        "status": "False",
        "reason": "Unschedulable",
        "message": REJECTED,
    }
    cluster.send("DELETE", f"{services}/web", None)
    assert cluster.wait_for_placement("fourth") == "large"
