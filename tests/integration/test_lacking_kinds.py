"""Kinds that an API server lacks, be it older or set up so: one line each, and pods are placed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lowtide.objects.kinds import KIND_OF, Kind
from realparts.api_client import ApiError
from realparts.control_plane import ControlPlane
from realparts.process import Process, wait_until

RESOURCES = {"cpu": "8", "memory": "8Gi", "pods": "110"}
NODE = {"metadata": {"name": "alone"}, "status": {"allocatable": RESOURCES, "capacity": RESOURCES}}
CONTAINER = {"name": "main", "image": "example/none"}
POD = {
    "metadata": {"name": "web"},
    "spec": {"schedulerName": "lowtide", "containers": [CONTAINER]},
}
PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"


def is_served(plane: ControlPlane, kind: Kind[Any]) -> bool:
    try:
        plane.request("GET", f"{kind.api}/{kind.plural}?limit=1")
    except ApiError as rejection:
        if rejection.status != 404:
            raise
        return False
    return True


@pytest.mark.real
@pytest.mark.versions
def test_a_kind_that_the_server_lacks_is_one_line(
    new_control_plane: Callable[..., ControlPlane],
    configuration: Callable[..., dict[str, Any]],
    lowtide_scheduler: Callable[..., Process],
    tmp_path: Path,
) -> None:
    audit_log = tmp_path / "audit.log"
    plane = new_control_plane(
        has_controllers=False,
        has_kwok=False,
        api_server_flags=["--runtime-config=policy/v1=false"],
        audit_log=audit_log,
    )
    plane.request("POST", "/api/v1/nodes", NODE)
    scheduler = lowtide_scheduler(configuration(), plane.kubeconfig())
    plane.request("POST", PODS, POD)
    wait_until(
        lambda: bool(plane.request("GET", f"{PODS}/web")["spec"].get("nodeName")),
        timeout_seconds=20,
        what="the pod is bound",
    )
    wait_until(
        lambda: audit_log.read_text().count(f'"requestURI":"{BUDGETS}?') > 2,
        timeout_seconds=20,
        what="it was asked for them again",
    )
    lacking = {kind.plural for kind in KIND_OF.values() if not is_served(plane, kind)}
    assert "poddisruptionbudgets" in lacking
    warnings = [line for line in scheduler.log().splitlines() if re.match("[WE]", line)]
    told = [re.sub(r'^.*?\] "(\w+) cannot be listed.*', r"\1", line) for line in warnings]
    assert sorted(told) == sorted(lacking)
