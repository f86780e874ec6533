"""Draining a backlog: all pods exist, then a scheduler starts; measured by a watch from outside."""

import json
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from ssl import create_default_context
from types import TracebackType
from typing import Any, Self

from realparts.control_plane import ControlPlane
from realparts.process import Process

SCHEDULERS = ("lowtide", "kube-scheduler")
NAMESPACE = "default"
LONGEST_SECONDS = 300.0

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {qps: 5000, burst: 5000}
profiles: [{schedulerName: NAME}]
"""


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    nodes: int
    pods: int

    def __str__(self) -> str:
        return f"{self.name}/{self.nodes}"


@dataclass(frozen=True, slots=True)
class DrainResult:
    workload: str
    nodes: int
    pods: int
    scheduler: str
    round: int
    pods_per_second: float
    scheduler_cpu_ms_per_pod: float
    rss_mb: float
    nodes_used: int


class Drain:
    """One API server, on which schedulers take turns at the same backlog."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._plane = ControlPlane(
            has_controllers=False,
            has_kwok=False,
            priority_and_fairness=False,
            api_server_flags=["--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"],
        )
        self._folder = Path(tempfile.mkdtemp(prefix="lowtide-bench-"))
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._plane)
        nodes = [make_node(number) for number in range(self._workload.nodes)]
        self._plane.create_all("/api/v1/nodes", nodes)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def run(self, scheduler: str, number: int) -> DrainResult:
        pods = [make_pod(each, scheduler) for each in range(self._workload.pods)]
        self._plane.create_all(f"/api/v1/namespaces/{NAMESPACE}/pods", pods)
        with Bindings(self._plane) as bindings:
            process = self._start(scheduler)
            try:
                bindings.wait_for(self._workload.pods)
                cpu_seconds, rss_bytes = process.cpu_seconds(), process.rss_bytes()
            finally:
                process.stop()
        result = self._result(scheduler, number, bindings, cpu_seconds, rss_bytes)
        self._plane.empty_namespace(NAMESPACE)
        return result

    def _start(self, scheduler: str) -> Process:
        config = CONFIG.replace("NAME", scheduler)
        if scheduler == "kube-scheduler":
            return self._plane.kube_scheduler(config)
        # Lowtide sets itself no limit unless told to: 5000 would be one.
        unlimited = config.replace("clientConnection: {qps: 5000, burst: 5000}\n", "")
        return started_lowtide(self._plane, self._folder, unlimited)

    def _result(
        self,
        scheduler: str,
        number: int,
        bindings: "Bindings",
        cpu_seconds: float,
        rss_bytes: int,
    ) -> DrainResult:
        times = sorted(bindings.bound_at.values())
        pods = len(times)
        return DrainResult(
            workload=self._workload.name,
            nodes=self._workload.nodes,
            pods=pods,
            scheduler=scheduler,
            round=number,
            pods_per_second=pods / (times[-1] - times[0]),
            scheduler_cpu_ms_per_pod=cpu_seconds * 1000 / pods,
            rss_mb=rss_bytes / 1e6,
            nodes_used=len(Counter(bindings.node_of.values())),
        )


class Bindings:
    """Sees by a watch when which pod was bound."""

    def __init__(self, plane: ControlPlane) -> None:
        self.bound_at: dict[str, float] = {}
        self.node_of: dict[str, str] = {}
        listed = plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods?limit=1")
        version = listed["metadata"]["resourceVersion"]
        request = urllib.request.Request(
            f"{plane.url}/api/v1/namespaces/{NAMESPACE}/pods?watch=true&resourceVersion={version}",
            headers={"Authorization": f"Bearer {plane.admin_token}"},
        )
        context = create_default_context(cafile=str(plane.ca_file))
        self._response = urllib.request.urlopen(request, context=context)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._changed = threading.Condition()
        self._is_closed = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True

    def wait_for(self, pods: int) -> None:
        with self._changed:
            done = self._changed.wait_for(lambda: len(self.bound_at) >= pods, LONGEST_SECONDS)
        if not done:
            raise TimeoutError(
                f"{len(self.bound_at)} of {pods} pods were bound in {LONGEST_SECONDS:.0f} s"
            )

    def _follow(self) -> None:
        for line in self._response:
            now = time.monotonic()
            if self._is_closed:
                return
            if b'"nodeName":' not in line:
                continue
            pod = json.loads(line)["object"]
            uid, node_name = pod["metadata"]["uid"], pod["spec"]["nodeName"]
            before = self.node_of.setdefault(uid, node_name)
            if before != node_name:
                raise AssertionError(f"pod {uid} was bound to {before} and then to {node_name}")
            with self._changed:
                self.bound_at.setdefault(uid, now)
                self._changed.notify()


def started_lowtide(plane: ControlPlane, folder: Path, config: str, *, port: int = 0) -> Process:
    """`lowtide scheduler`, which serves health and metrics on this port, or nothing on 0."""
    file = folder / "config.yaml"
    file.write_text(config)
    process = Process(
        "lowtide",
        [
            sys.executable,
            "-m",
            "lowtide",
            "scheduler",
            f"--config={file}",
            f"--kubeconfig={plane.kubeconfig('system:kube-scheduler')}",
            "--leader-elect=false",
            f"--secure-port={port}",
        ],
        folder=folder,
        url=f"http://127.0.0.1:{port}",
    )
    process.start()
    return process


def make_node(number: int) -> dict[str, Any]:
    name = f"node-{number:05}"
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def make_pod(number: int, scheduler_name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number:05}"},
        "spec": {
            "schedulerName": scheduler_name,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
                }
            ],
        },
    }
