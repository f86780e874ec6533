"""What the tests of deploy/ have in common: a cluster without a scheduler, and the processes of
manifests on it."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.real.deployed import Deployed, Json

from realparts.control_plane import ControlPlane
from realparts.process import wait_until
from realparts.pytest_plugin import missing_parts_skip, skip_or_fail

SYSTEM = "kube-system"
PATIENCE_SECONDS = 60.0

Run = Callable[..., Deployed]
Placed = Callable[[Path, int], set[str]]


@pytest.fixture(scope="module")
def empty_plane(kubernetes: str | None) -> Iterator[ControlPlane]:
    """With two nodes, and without any scheduler but those that are deployed."""
    with ExitStack() as running:
        with missing_parts_skip():
            started = running.enter_context(ControlPlane(kubernetes=kubernetes))
        for name in ("left", "right"):
            resources = {"cpu": "8", "memory": "32Gi", "pods": "110"}
            status = {"allocatable": resources, "capacity": resources}
            node = {"metadata": {"name": name}, "status": status}
            started.request("POST", "/api/v1/nodes", node)
        wait_until(lambda: not any(taints_of(started)), timeout_seconds=30, what="nodes are ready")
        yield started


@pytest.fixture
def run_pod(empty_plane: ControlPlane, tmp_path: Path) -> Iterator[Run]:
    """Runs the containers of a pod spec; in the end each has to stop well when it is asked to."""
    if os.geteuid() != 0:
        skip_or_fail("root is missing: it makes the mount namespaces of pods' processes")
    started: list[Deployed] = []

    def start(spec: Json, **others: Any) -> Deployed:
        folder = tmp_path / f"pod-{len(started)}"
        folder.mkdir()
        deployed = Deployed(empty_plane, SYSTEM, spec, folder=folder, **others)
        started.append(deployed)
        deployed.start()
        return deployed

    yield start
    ends = [deployed.stop() for deployed in reversed(started)]
    assert ends == [dict.fromkeys(each, 0) for each in ends]
    logs = "".join(deployed.logs() for deployed in started)
    assert re.findall("^Traceback.*$", logs, re.MULTILINE) == []


@pytest.fixture
def apply(empty_plane: ControlPlane) -> Iterator[Callable[[Path], None]]:
    """`kubectl apply -f`; what was applied is deleted after."""
    applied: list[Path] = []

    def apply(file: Path) -> None:
        applied.append(file)
        empty_plane.kubectl("apply", f"--filename={file}")

    yield apply
    for file in reversed(applied):
        empty_plane.kubectl("delete", "--wait=false", f"--filename={file}")


@pytest.fixture
def placed(empty_plane: ControlPlane) -> Iterator[Placed]:
    """Creates the Deployment in a file, waits until all of its pods are placed, and returns which
    schedulers tell of having done so."""
    plane = empty_plane

    def place(file: Path, count: int) -> set[str]:
        plane.kubectl("create", "--namespace=default", f"--filename={file}")

        def bound() -> list[Json]:
            pods = plane.request("GET", "/api/v1/namespaces/default/pods")["items"]
            return [pod for pod in pods if pod["spec"].get("nodeName")]

        what = f"the pods of {file.name} are placed"
        wait_until(lambda: len(bound()) == count, timeout_seconds=PATIENCE_SECONDS, what=what)
        events = "/apis/events.k8s.io/v1/namespaces/default/events"

        def tellers() -> list[str]:
            told = plane.request("GET", events)["items"]
            return [each["reportingController"] for each in told if each["reason"] == "Scheduled"]

        wait_until(lambda: len(tellers()) == count, timeout_seconds=20, what="Events tell of it")
        return set(tellers())

    yield place
    plane.empty_namespace("default")


def taints_of(plane: ControlPlane) -> Iterator[Json]:
    for node in plane.request("GET", "/api/v1/nodes")["items"]:
        yield from node["spec"].get("taints") or ()
