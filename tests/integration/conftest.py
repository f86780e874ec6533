"""One small face over two clusters, so that the same tests run on the embedded and on the real API
server; and a Prometheus that answers what a test wants."""

import asyncio
import http.client
import http.server
import json
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from lowtide.localcluster import LocalCluster
from realparts.api_client import ApiError
from realparts.process import wait_until

T = TypeVar("T")
Json = dict[str, Any]
Send = Callable[[str, str, Any], Json]

PATIENCE_SECONDS = 20.0
START_SECONDS = 10.0
CONTAINER = {"name": "main", "image": "example/none"}


@dataclass
class Cluster:
    """A cluster and a namespace in it. `send` is one JSON call; a PATCH is a merge patch."""

    send: Send
    kubeconfig: Path
    namespace: str
    node_names: list[str] = field(default_factory=list)

    def create_node(
        self,
        name: str,
        *,
        cpu: str = "4",
        labels: Mapping[str, str] | None = None,
        taints: tuple[Mapping[str, str], ...] = (),
    ) -> None:
        """Returns when the node is ready and has no taints but these."""
        resources = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": dict(labels or {})},
            "spec": {"taints": list(taints)},
            "status": {"capacity": resources, "allocatable": resources},
        }
        self.send("POST", "/api/v1/nodes", node)
        self.node_names.append(name)
        self.wait_for(lambda: self._is_ready(name, len(taints)), what=f"node {name} is ready")

    def _is_ready(self, name: str, taint_count: int) -> bool:
        node = self.send("GET", f"/api/v1/nodes/{name}", None)
        conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", ())}
        taints = node["spec"].get("taints") or ()
        return conditions.get("Ready") == "True" and len(taints) == taint_count

    def create_pod(self, name: str, *, cpu: str = "100m", **spec: Any) -> Json:
        container = {**CONTAINER, "resources": {"requests": {"cpu": cpu}}}
        spec = {"schedulerName": "lowtide", "containers": [container], **spec}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        return self.send("POST", self.pods_path, pod)

    def pod(self, name: str) -> Json:
        return self.send("GET", f"{self.pods_path}/{name}", None)

    def delete_pod(self, name: str) -> None:
        self.send("DELETE", f"{self.pods_path}/{name}?gracePeriodSeconds=0", None)

    def node_of(self, name: str) -> str | None:
        node_name: str | None = self.pod(name)["spec"].get("nodeName")
        return node_name

    def placements(self) -> dict[str, str | None]:
        """The node of each pod; None while it waits."""
        pods = self.send("GET", self.pods_path, None)["items"]
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods}

    def wait_for_placement(self, name: str, timeout_seconds: float = PATIENCE_SECONDS) -> str:
        self.wait_for(
            lambda: bool(self.node_of(name)),
            what=f"pod {name} is bound",
            timeout_seconds=timeout_seconds,
        )
        return str(self.node_of(name))

    def scheduled_condition(self, name: str) -> Json | None:
        """Type, status, reason and message of PodScheduled."""
        for condition in self.pod(name)["status"].get("conditions") or ():
            if condition["type"] == "PodScheduled":
                wanted = ("status", "reason", "message")
                return {key: condition[key] for key in wanted if key in condition}
        return None

    def events(self, pod_name: str, reason: str) -> list[Json]:
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        return [
            event
            for event in self.send("GET", path, None)["items"]
            if event["regarding"]["name"] == pod_name and event["reason"] == reason
        ]

    def wait_for_event(self, pod_name: str, reason: str) -> Json:
        self.wait_for(
            lambda: bool(self.events(pod_name, reason)),
            what=f"pod {pod_name} has an event {reason}",
        )
        (event,) = self.events(pod_name, reason)
        return event

    def wait_for(
        self,
        is_so: Callable[[], bool],
        *,
        what: str,
        timeout_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        wait_until(is_so, timeout_seconds=timeout_seconds, what=what)

    @property
    def pods_path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"


class EmbeddedCluster:
    """LocalCluster in a thread with an event loop of its own, for tests that block."""

    def __init__(self) -> None:
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._connections = threading.local()

    def start(self) -> None:
        self._thread.start()
        if not self._is_up.wait(START_SECONDS):
            raise TimeoutError(f"the embedded cluster is not up after {START_SECONDS:g} seconds")

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._end.set)
        self._thread.join(START_SECONDS)

    async def _main(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        async with LocalCluster(clock=time.time) as self.cluster:
            self._is_up.set()
            await self._end.wait()

    def call(self, function: Callable[[LocalCluster], T]) -> T:
        """Runs it where the cluster lives."""

        async def called() -> T:
            return function(self.cluster)

        return asyncio.run_coroutine_threadsafe(called(), self.loop).result(START_SECONDS)

    def send(self, method: str, path: str, body: Any) -> Json:
        address = urllib.parse.urlsplit(self.cluster.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
        patches = "application/merge-patch+json"
        headers = {"Content-Type": patches if method == "PATCH" else "application/json"}
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, body=sent, headers=headers)
            response = connection.getresponse()
            answer: Json = json.loads(response.read())
        finally:
            connection.close()
        if response.status >= 400:
            raise ApiError(f"{method} {path}", response.status, str(answer.get("message")))
        return answer


@pytest.fixture
def embedded() -> Iterator[EmbeddedCluster]:
    running = EmbeddedCluster()
    running.start()
    yield running
    running.stop()


@pytest.fixture
def embedded_cluster(embedded: EmbeddedCluster, tmp_path: Path) -> Cluster:
    kubeconfig = embedded.cluster.kubeconfig(tmp_path / "embedded.kubeconfig")
    return Cluster(embedded.send, kubeconfig, "default")


@pytest.fixture
def real_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The user of its kubeconfig has a scheduler's permissions where `scheduler_rights` is asked
    for."""
    namespace = request.getfixturevalue("namespace")
    plane = request.getfixturevalue("control_plane")

    def send(method: str, path: str, body: Any) -> Json:
        answer: Json = plane.request(method, path, body)
        return answer

    cluster = Cluster(send, plane.kubeconfig("lowtide"), namespace)
    yield cluster
    for name in cluster.node_names:
        plane.request("DELETE", f"/api/v1/nodes/{name}")


BOTH = [
    pytest.param("embedded", id="embedded"),
    pytest.param(
        "real", id="real", marks=[pytest.mark.real("control_plane"), pytest.mark.versions]
    ),
]


@pytest.fixture(params=BOTH)
def cluster_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cluster(cluster_kind: str, request: pytest.FixtureRequest) -> Cluster:
    """The embedded and the real one, with the permissions of a scheduler."""
    if cluster_kind == "real":
        request.getfixturevalue("scheduler_rights")
    found: Cluster = request.getfixturevalue(f"{cluster_kind}_cluster")
    return found


@pytest.fixture
def configuration() -> Callable[..., Json]:
    """A KubeSchedulerConfiguration for these scheduler names, without leader election."""

    def make(*scheduler_names: str, **fields: Any) -> Json:
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "profiles": [{"schedulerName": name} for name in scheduler_names or ("lowtide",)],
            **fields,
        }

    return make


class FakeServer:
    """Answers what is posted to it: from a path and a body to a content type and a text."""

    def __init__(self, answer: Callable[[str, bytes], tuple[str, str]]) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                posted = self.rfile.read(int(self.headers["Content-Length"]))
                content_type, text = answer(self.path, posted)
                body = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


Answer = Callable[[str], tuple[str, str]]


class FakePrometheus(FakeServer):
    """Answers each query with a content type and a body; `answer` may be changed meanwhile."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(self._answered)
        self.answer = answer
        self.queries: list[str] = []

    def _answered(self, path: str, body: bytes) -> tuple[str, str]:
        query = urllib.parse.parse_qs(body.decode())["query"][0]
        self.queries.append(query)
        return self.answer(query)


@pytest.fixture
def fake_prometheus() -> Iterator[Callable[[Answer], FakePrometheus]]:
    with ExitStack() as running:

        def start(answer: Answer) -> FakePrometheus:
            fake = FakePrometheus(answer)
            fake.start()
            running.callback(fake.stop)
            return fake

        yield start
