"""Many pending pods at once on the real API server: all are bound, each once, nowhere too many."""

import http.client
import json
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from realparts.control_plane import ControlPlane
from realparts.process import Process, wait_until
from realparts.pytest_plugin import grant_scheduler_rights
from realparts.users import User

NODE_COUNT = 100
POD_COUNT = 3000
CPU_MILLI_OF_A_NODE = 4000
CPU_MILLI_OF_A_POD = 100  # so 40 fit on a node: 4000 in all
PODS = "/api/v1/namespaces/default/pods"
DRAIN_SECONDS = 120.0


class PodAudit:
    """Watches all pods from the start and keeps every change of a node name."""

    def __init__(self, plane: ControlPlane) -> None:
        self.changes: list[tuple[str, str]] = []
        address = urlsplit(plane.url)
        self._connection = http.client.HTTPSConnection(
            address.hostname or "",
            address.port,
            timeout=DRAIN_SECONDS,
            context=ssl.create_default_context(cafile=str(plane.ca_file)),
        )
        self._token = plane.admin_token
        self._node_names: dict[str, str] = {}
        self._version = ""
        self._is_stopped = False
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def start(self, resource_version: str) -> None:
        self._version = resource_version
        self._open()
        self._thread.start()

    def stop(self) -> None:
        self._is_stopped = True
        with suppress(OSError, AttributeError):  # it is closed already
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._response.close()
        self._connection.close()

    def _open(self) -> None:
        self._connection.request(
            "GET",
            f"{PODS}?watch=true&resourceVersion={self._version}",
            headers={"Authorization": f"Bearer {self._token}"},
        )
        self._response = self._connection.getresponse()

    def _follow(self) -> None:
        """The API server ends a watch that does not keep up: it goes on where it stopped."""
        while not self._is_stopped:
            with suppress(OSError, http.client.HTTPException):  # how a watch ends
                for line in self._response:
                    event = json.loads(line)
                    assert event["type"] != "ERROR", event
                    self._version = event["object"]["metadata"]["resourceVersion"]
                    self._take(event["object"])
            if not self._is_stopped:
                self._connection.close()
                self._open()

    def _take(self, pod: dict[str, Any]) -> None:
        name, node_name = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
        if node_name != self._node_names.get(name, ""):
            self._node_names[name] = node_name
            self.changes.append((name, node_name))


@pytest.mark.long
def test_drain(
    new_control_plane: Callable[..., ControlPlane],
    lowtide_scheduler: Callable[..., Process],
    tmp_path: Path,
) -> None:
    audit_log = tmp_path / "audit.log"
    lowtide = User("lowtide", "lowtide-token")
    plane = new_control_plane(
        has_controllers=False, has_kwok=False, users=[lowtide], audit_log=audit_log
    )
    grant_scheduler_rights(plane)
    plane.create_all("/api/v1/nodes", [node(number) for number in range(NODE_COUNT)])
    plane.create_all(PODS, [pod(number) for number in range(POD_COUNT)])
    audit = PodAudit(plane)
    audit.start(plane.request("GET", f"{PODS}?limit=1")["metadata"]["resourceVersion"])
    lowtide_scheduler(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "profiles": [{"schedulerName": "lowtide"}],
        },
        plane.kubeconfig("lowtide"),
        "-v=0",
    )
    wait_until(
        lambda: len(audit.changes) >= POD_COUNT,
        timeout_seconds=DRAIN_SECONDS,
        what="every pod is bound",
    )
    pods = plane.request("GET", PODS)["items"]
    audit.stop()
    names = [f"pod-{number}" for number in range(POD_COUNT)]
    assert Counter(name for name, _ in audit.changes) == dict.fromkeys(names, 1)
    assert dict(audit.changes) == {
        each["metadata"]["name"]: each["spec"]["nodeName"] for each in pods
    }
    fullest = max(Counter(node_name for _, node_name in audit.changes).values())
    assert fullest * CPU_MILLI_OF_A_POD <= CPU_MILLI_OF_A_NODE
    assert Counter(binding_requests(audit_log)) == dict.fromkeys(names, 1)


def binding_requests(audit_log: Path) -> list[str]:
    """The pods that the API server was asked to bind, one for each request."""
    entries = [json.loads(line) for line in audit_log.read_text().splitlines()]
    return [
        entry["objectRef"]["name"]
        for entry in entries
        if entry["verb"] == "create" and entry["objectRef"].get("subresource") == "binding"
    ]


def node(number: int) -> dict[str, Any]:
    resources = {"cpu": f"{CPU_MILLI_OF_A_NODE}m", "memory": "32Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{number}"},
        "status": {"allocatable": resources, "capacity": resources},
    }


def pod(number: int) -> dict[str, Any]:
    requests = {"cpu": f"{CPU_MILLI_OF_A_POD}m"}
    container = {"name": "main", "image": "example/none", "resources": {"requests": requests}}
    return {
        "metadata": {"name": f"pod-{number}"},
        "spec": {"schedulerName": "lowtide", "containers": [container]},
    }
