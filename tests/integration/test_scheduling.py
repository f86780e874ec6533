"""What a cluster sees of `lowtide scheduler`, the same on the embedded and the real API server."""

from collections.abc import Callable
from typing import Any

from realparts.process import Process

Start = Callable[..., Process]
Configuration = Callable[..., dict[str, Any]]


def test_pod_is_bound_and_told(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    cluster.create_node("alone")
    lowtide_scheduler(configuration(), cluster.kubeconfig)
    cluster.create_pod("web")
    assert cluster.wait_for_placement("web") == "alone"
    event = cluster.wait_for_event("web", "Scheduled")
    told = ("type", "reason", "action", "note", "reportingController")
    assert {key: event[key] for key in told} == {
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "note": f"Successfully assigned {cluster.namespace}/web to alone",
        "reportingController": "lowtide",
    }
    assert cluster.scheduled_condition("web") == {"status": "True"}


def test_pods_of_a_deployment_are_bound(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    for name in ("one", "two"):
        cluster.create_node(name)
    lowtide_scheduler(configuration(), cluster.kubeconfig)
    template = {
        "metadata": {"labels": {"app": "five"}},
        "spec": {
            "schedulerName": "lowtide",
            "containers": [{"name": "main", "image": "example/none"}],
        },
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "five"},
        "spec": {"replicas": 5, "selector": {"matchLabels": {"app": "five"}}, "template": template},
    }
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments"
    cluster.send("POST", path, deployment)
    cluster.wait_for(
        lambda: cluster.send("GET", f"{path}/five", None)["status"].get("readyReplicas") == 5,
        what="five pods run",
    )
    assert sorted(set(cluster.placements().values())) == ["one", "two"]
    assert len(cluster.placements()) == 5


FULL = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
    "0/1 nodes are available: 1 No preemption victims found for incoming pod."
)


def test_pod_that_fits_nowhere_is_told_so_and_bound_when_a_pod_goes(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    cluster.create_node("small", cpu="1")
    lowtide_scheduler(configuration(), cluster.kubeconfig)
    cluster.create_pod("first", cpu="800m")
    cluster.wait_for_placement("first")
    cluster.create_pod("second", cpu="800m")
    cluster.wait_for(
        lambda: cluster.scheduled_condition("second") is not None, what="the condition is written"
    )
    assert cluster.scheduled_condition("second") == {
        "status": "False",
        "reason": "Unschedulable",
        "message": FULL,
    }
    event = cluster.wait_for_event("second", "FailedScheduling")
    told = ("type", "reason", "action", "note", "reportingController")
    assert {key: event[key] for key in told} == {
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "note": FULL,
        "reportingController": "lowtide",
    }
    cluster.delete_pod("first")
    assert cluster.wait_for_placement("second") == "small"


def test_pod_that_fits_nowhere_is_bound_when_a_node_comes(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    cluster.create_node("small", cpu="1")
    lowtide_scheduler(configuration(), cluster.kubeconfig)
    cluster.create_pod("large", cpu="3")
    cluster.wait_for_event("large", "FailedScheduling")
    assert cluster.node_of("large") is None
    cluster.create_node("large", cpu="4")
    assert cluster.wait_for_placement("large") == "large"


def test_taints_selectors_and_ports_are_respected(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    taint = {"key": "only", "value": "databases", "effect": "NoSchedule"}
    cluster.create_node("tainted", taints=(taint,))
    cluster.create_node("fast", labels={"disk": "fast"})
    lowtide_scheduler(configuration(), cluster.kubeconfig)
    tolerations = [{"key": "only", "operator": "Exists"}]
    port = {
        "name": "main",
        "image": "example/none",
        "ports": [{"containerPort": 80, "hostPort": 80}],
    }
    cluster.create_pod("selects", nodeSelector={"disk": "fast"})
    cluster.create_pod("takes-the-port", containers=[port])
    for name in ("selects", "takes-the-port"):
        cluster.wait_for_placement(name)
    cluster.create_pod("wants-the-port-too", containers=[port], tolerations=tolerations)
    cluster.create_pod("nothing-left", containers=[port])
    cluster.wait_for_placement("wants-the-port-too")
    event = cluster.wait_for_event("nothing-left", "FailedScheduling")
    assert event["note"] == (
        "0/2 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, "
        "1 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/2 nodes "
        "are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
    assert cluster.placements() == {
        "selects": "fast",
        "takes-the-port": "fast",
        "wants-the-port-too": "tainted",
        "nothing-left": None,
    }


def test_two_profiles_in_one_process_leave_others_pods_alone(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    cluster.create_node("alone")
    scheduler = lowtide_scheduler(configuration("day", "night"), cluster.kubeconfig)
    cluster.create_pod("others", schedulerName="somebody-else")
    cluster.create_pod("by-day", schedulerName="day")
    cluster.create_pod("by-night", schedulerName="night")
    by = [
        cluster.wait_for_event(name, "Scheduled")["reportingController"]
        for name in ("by-day", "by-night")
    ]
    assert by == ["day", "night"]
    assert cluster.placements() == {"others": None, "by-day": "alone", "by-night": "alone"}
    assert cluster.events("others", "FailedScheduling") == []
    assert f'Attempting to schedule pod" pod="{cluster.namespace}/others' not in scheduler.log()


def test_gated_pod_waits_until_its_gate_is_removed(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    cluster.create_node("alone")
    lowtide_scheduler(configuration(), cluster.kubeconfig)
    cluster.create_pod("gated", schedulingGates=[{"name": "example.com/wait"}])
    cluster.create_pod("open")
    cluster.wait_for_placement("open")
    assert cluster.node_of("gated") is None
    opened = {"spec": {"schedulingGates": None}}
    cluster.send("PATCH", f"{cluster.pods_path}/gated", opened)
    assert cluster.wait_for_placement("gated") == "alone"


def test_pod_deleted_while_it_waits_is_forgotten(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    cluster.create_node("small", cpu="1")
    scheduler = lowtide_scheduler(configuration(), cluster.kubeconfig)
    cluster.create_pod("doomed", cpu="3")
    cluster.wait_for_event("doomed", "FailedScheduling")
    cluster.delete_pod("doomed")
    cluster.create_node("large", cpu="4")
    cluster.create_pod("takes-its-place", cpu="3")
    assert cluster.wait_for_placement("takes-its-place") == "large"
    assert f'Attempting to bind pod to node" pod="{cluster.namespace}/doomed' not in scheduler.log()
    assert cluster.placements() == {"takes-its-place": "large"}
