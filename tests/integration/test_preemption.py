"""Room is made for pods that matter more, the same on the embedded and the real API server."""

from collections.abc import Callable
from typing import Any

from realparts.process import Process

Start = Callable[..., Process]
Configuration = Callable[..., dict[str, Any]]

# A class that every cluster has; the API server fills in the number, and takes it where it fits.
CRITICAL = {"priorityClassName": "system-cluster-critical", "priority": 2_000_000_000}


def test_a_pod_takes_the_place_of_one_that_matters_less(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    cluster.create_node("small", cpu="1")
    lowtide_scheduler(configuration(), cluster.kubeconfig)
    cluster.create_pod("low", cpu="800m")
    cluster.wait_for_placement("low")
    critical = cluster.create_pod("critical", cpu="800m", **CRITICAL)
    assert cluster.wait_for_placement("critical") == "small"
    assert cluster.placements() == {"critical": "small"}
    event = cluster.wait_for_event("low", "Preempted")
    told = ("type", "reason", "action", "note", "reportingController")
    assert {key: event[key] for key in told} == {
        "type": "Normal",
        "reason": "Preempted",
        "action": "Preempting",
        "note": f"Preempted by pod {critical['metadata']['uid']} on node small",
        "reportingController": "lowtide",
    }
    assert event["related"]["name"] == "critical"
    failed = cluster.wait_for_event("critical", "FailedScheduling")
    assert failed["note"] == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_budget_says_who_has_to_go(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start
) -> None:
    for name in ("guarded", "open"):
        cluster.create_node(name, cpu="1", labels={"name": name})
    path = f"/apis/policy/v1/namespaces/{cluster.namespace}/poddisruptionbudgets"
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
    }
    cluster.send("POST", path, budget)
    lowtide_scheduler(configuration(), cluster.kubeconfig)
    for name in ("guarded", "open"):
        pod = cluster.create_pod(name, cpu="800m", nodeSelector={"name": name})
        labels = {"metadata": {"labels": {"app": name}}}
        cluster.send("PATCH", f"{cluster.pods_path}/{name}", labels)
        assert cluster.wait_for_placement(pod["metadata"]["name"]) == name
    cluster.create_pod("critical", cpu="800m", **CRITICAL)
    assert cluster.wait_for_placement("critical") == "open"
    assert cluster.placements() == {"critical": "open", "guarded": "guarded"}
