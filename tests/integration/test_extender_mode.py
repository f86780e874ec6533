"""Lowtide's scheduler asks Lowtide's extender, the same on the embedded and the real API server."""

import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from tests.extender_process import BY_LABEL, LABEL, Extender, StartExtender, that_binds

from realparts.process import Process, wait_until

Start = Callable[..., Process]
Configuration = Callable[..., dict[str, Any]]
VERBS = {
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "weight": 1,
    "preemptVerb": "preempt",
    "bindVerb": "bind",
}


def passes(extender: Extender, node_name: str) -> bool:
    """Whether the extender lets another pod onto this node, by what it knows itself."""
    pod = {"metadata": {"name": "other", "namespace": "default", "uid": "other"}}
    asked = json.dumps({"Pod": pod, "NodeNames": [node_name]}).encode()
    request = urllib.request.Request(
        f"{extender.url}/scheduler/filter", asked, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=5) as response:
        return bool(json.load(response)["NodeNames"])


@pytest.mark.parametrize("knows_nodes", [True, False], ids=["by names", "by whole nodes"])
def test_pods_go_where_the_extender_lets_them(
    cluster: Any,
    configuration: Configuration,
    lowtide_scheduler: Start,
    lowtide_extender: StartExtender,
    knows_nodes: bool,
) -> None:
    for name in ("with", "without", "also-without"):
        cluster.create_node(name)
    extender = lowtide_extender(that_binds(BY_LABEL), cluster.kubeconfig)
    said = {"urlPrefix": f"{extender.url}/scheduler", "nodeCacheCapable": knows_nodes, **VERBS}
    lowtide_scheduler(configuration(extenders=[said]), cluster.kubeconfig)
    cluster.create_pod("waits")
    event = cluster.wait_for_event("waits", "FailedScheduling")
    rejected = f"0/3 nodes are available: 3 node(s) did not have label {LABEL}."
    assert event["note"].startswith(rejected)
    cluster.send("PATCH", "/api/v1/nodes/with", {"metadata": {"labels": {LABEL: "true"}}})
    # The scheduler may have seen that first, and have been rejected once more.
    wait_until(
        lambda: passes(extender, "with"), timeout_seconds=10, what="the extender knows the label"
    )
    cluster.send("PATCH", "/api/v1/nodes/without", {"metadata": {"labels": {"changed": "true"}}})
    assert cluster.wait_for_placement("waits") == "with"
    cluster.wait_for_event("waits", "Scheduled")
    assert extender.answers("bind") == 1
