"""What the auditor is told: pods and nodes watched over a connection of its own, and the API
server's audit log as it is written. Threads, which go on whatever happens to the API server."""

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from faults.auditor import Auditor, Binding, Json, Leadership

SILENCE_SECONDS = 60.0
RETRY_SECONDS = 0.1
LOOK_SECONDS = 0.05

# Bindings and the lease alone, with what was written.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Request", "resources": [{"group": "", "resources": ["pods/binding"]}]},
        {
            "level": "Request",
            "verbs": ["create", "update", "patch"],
            "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
        },
        {"level": "None"},
    ],
}


class Following:
    """From `start` to `stop`."""

    def __init__(
        self, auditor: Auditor, *, url: str, ca_file: Path, token: str, audit_log: Path
    ) -> None:
        self._auditor = auditor
        self._url = url
        self._ca_file = ca_file
        self._token = token
        self._audit_log = audit_log
        self._is_over = threading.Event()
        self._connections: dict[str, http.client.HTTPSConnection] = {}
        self._threads = [
            threading.Thread(target=self._follow, args=each, daemon=True)
            for each in (
                ("/api/v1/nodes", self._took_nodes, self._took_node),
                ("/api/v1/pods", self._took_pods, self._took_pod),
                ("/api/v1/events", self._took_events, self._took_event),
            )
        ]
        self._threads.append(threading.Thread(target=self._read_log, daemon=True))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._is_over.set()
        for connection in list(self._connections.values()):
            with suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    # Watches.

    def _follow(
        self, path: str, took_list: Callable[[list[Any]], None], took: Callable[[str, Json], None]
    ) -> None:
        while not self._is_over.is_set():
            try:
                version = self._listed(path, took_list)
                for line in self._watched(path, version):
                    took(line["type"], line["object"])
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                pass  # cut, or told that the version is too old: it lists again
            finally:
                connection = self._connections.pop(path, None)
                if connection is not None:
                    connection.close()
            self._is_over.wait(RETRY_SECONDS)

    def _listed(self, path: str, took_list: Callable[[list[Any]], None]) -> str:
        answer = json.loads(self._asked(path, path).read())
        took_list(answer["items"])
        return str(answer["metadata"]["resourceVersion"])

    def _watched(self, path: str, version: str) -> Iterator[Json]:
        answer = self._asked(path, f"{path}?watch=true&resourceVersion={version}")
        while not self._is_over.is_set() and (line := answer.readline()):
            yield json.loads(line)

    def _asked(self, path: str, target: str) -> http.client.HTTPResponse:
        connection = self._connections.get(path)
        if connection is None:
            parts = urlsplit(self._url)
            connection = http.client.HTTPSConnection(
                parts.hostname or "",
                parts.port,
                timeout=SILENCE_SECONDS,
                context=ssl.create_default_context(cafile=str(self._ca_file)),
            )
            self._connections[path] = connection
        connection.request("GET", target, headers={"Authorization": f"Bearer {self._token}"})
        response = connection.getresponse()
        if response.status != 200:
            raise OSError(f"GET {target} was answered {response.status}")
        return response

    def _took_nodes(self, nodes: list[Any]) -> None:
        for node in nodes:
            self._auditor.saw_node(node)

    def _took_node(self, kind: str, node: Json) -> None:
        if kind in ("ADDED", "MODIFIED"):
            self._auditor.saw_node(node)

    def _took_pods(self, pods: list[Any]) -> None:
        self._auditor.saw_pods(pods, time.time())

    def _took_pod(self, kind: str, pod: Json) -> None:
        if kind == "DELETED":
            self._auditor.pod_gone(pod["metadata"]["uid"])
        elif kind in ("ADDED", "MODIFIED"):
            self._auditor.saw_pod(pod, time.time())
        else:
            raise OSError(f"the watch of pods ended with {pod}")

    def _took_events(self, events: list[Any]) -> None:
        for event in events:
            self._auditor.saw_event(event)

    def _took_event(self, kind: str, event: Json) -> None:
        if kind in ("ADDED", "MODIFIED"):
            self._auditor.saw_event(event)

    # The audit log.

    def _read_log(self) -> None:
        rest = b""
        while not self._audit_log.exists():
            if self._is_over.wait(LOOK_SECONDS):
                return
        with self._audit_log.open("rb") as log:
            while True:
                was_over = self._is_over.is_set()
                *lines, rest = (rest + log.read()).split(b"\n")
                for line in lines:
                    self._took_line(line)
                if was_over:
                    return
                self._is_over.wait(LOOK_SECONDS)

    def _took_line(self, line: bytes) -> None:
        """A line that was cut when the API server was killed tells nothing."""
        with suppress(ValueError, KeyError):
            take_request(self._auditor, json.loads(line))


def take_request(auditor: Auditor, request: Json) -> None:
    """One event of the audit log."""
    if request["stage"] != "ResponseComplete":
        return
    was_accepted = request["responseStatus"]["code"] < 300
    about, sent = request["objectRef"], request["requestObject"]
    user = request["user"]["username"]
    if about.get("subresource") == "binding":
        auditor.saw_binding(
            Binding(
                uid=sent["metadata"]["uid"],
                node_name=sent["target"]["name"],
                user=user,
                at=seconds(request["requestReceivedTimestamp"]),
                was_accepted=was_accepted,
            )
        )
    elif about["resource"] == "leases" and was_accepted and sent["spec"].get("holderIdentity"):
        spec = sent["spec"]
        auditor.saw_leadership(
            Leadership(user, spec["holderIdentity"], seconds(spec["acquireTime"]))
        )


def seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
