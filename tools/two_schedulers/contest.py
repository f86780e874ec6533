"""A control plane with both schedulers; each round fills its nodes with pods, half of them for the
one and half for the other, which wake at the same moment."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import yaml

from faults.auditor import Auditor, Json
from faults.following import AUDIT_POLICY, Following, seconds
from realparts.control_plane import ControlPlane
from realparts.process import Process, wait_until
from realparts.pytest_plugin import grant_scheduler_rights
from realparts.users import User
from two_schedulers.conflicts import Bound

LOWTIDE = Path(sys.executable).parent / "lowtide"
LOWTIDE_NAME, OTHER_NAME = "lowtide", "default-scheduler"
NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
ROUND_SECONDS = 90.0
NEW_PODS_SECONDS = 1.0  # what was created arrives at schedulers that are held
CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

Object = dict[str, Any]


class Onlooker(Auditor):
    """Sees pods come to nodes by a watch of its own, as a scheduler with nothing to do would."""

    def __init__(self) -> None:
        super().__init__()
        self.seen_at: dict[str, float] = {}

    def saw_pod(self, pod: Json, now: float) -> None:
        if pod["spec"].get("nodeName"):
            metadata = pod["metadata"]
            self.seen_at.setdefault(f"{metadata['namespace']}/{metadata['name']}", now)
        super().saw_pod(pod, now)


class Contest:
    """`room` is how many pods fit on a node. `qps` is what kube-scheduler and Lowtide may ask of
    the API server in a second, with twice as much at once; `flags` are Lowtide's."""

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int,
        room: int,
        qps: tuple[int, int],
        flags: tuple[str, ...] = (),
    ) -> None:
        self._folder = folder
        self._nodes = nodes
        self._room = room
        self._qps = qps
        self._flags = flags
        self._audit_log = folder / "audit.log"
        policy = folder / "audit-policy.json"
        policy.write_text(json.dumps(AUDIT_POLICY))
        self._plane = ControlPlane(
            has_controllers=False,
            has_kwok=False,
            users=[User("lowtide", "lowtide-token")],
            audit_log=self._audit_log,
            api_server_flags=[f"--audit-policy-file={policy}"],
        )
        self.onlooker = Onlooker()
        self._running = ExitStack()
        self._rounds = 0

    def __enter__(self) -> Self:
        self._plane.start()
        self._running.callback(self._plane.stop)
        grant_scheduler_rights(self._plane)
        nodes = (_node(number, self._room) for number in range(self._nodes))
        self._plane.create_all("/api/v1/nodes", nodes)
        config = {
            **CONFIG,
            "leaderElection": {"leaderElect": False},
            "clientConnection": _limited(self._qps[0]),
        }
        self.other = self._plane.kube_scheduler(yaml.safe_dump(config))
        following = Following(
            self.onlooker,
            url=self._plane.url,
            ca_file=self._plane.ca_file,
            token=self._plane.admin_token,
            audit_log=self._audit_log,
        )
        following.start()
        self._running.callback(following.stop)
        self.lowtide = self._start_lowtide()
        self._running.callback(self.lowtide.stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def round(self, pods: int) -> list[Bound]:
        """All bindings of one round: until no pod is left that fits. The pods are gone after."""
        self._rounds += 1
        began_at = time.time()
        for process in (self.other, self.lowtide):
            process.send(signal.SIGSTOP)
        names = (OTHER_NAME, LOWTIDE_NAME)
        bodies = (
            _pod(f"round-{self._rounds}-{number}", names[number % 2]) for number in range(pods)
        )
        self._plane.create_all(PODS, bodies)
        time.sleep(NEW_PODS_SECONDS)
        for process in (self.other, self.lowtide):
            process.send(signal.SIGCONT)
        wait_until(
            lambda: not self._pending(),
            timeout_seconds=ROUND_SECONDS,
            what="every pod is bound",
            every_seconds=0.5,
        )
        wait_until(
            lambda: len(list(self._bindings(began_at))) >= pods,
            timeout_seconds=ROUND_SECONDS,
            what="the audit log tells of every binding",
            every_seconds=0.5,
        )
        self._plane.empty_namespace(NAMESPACE)
        return list(self._bindings(began_at))

    def _pending(self) -> int:
        answer = self._plane.request("GET", f"{PODS}?fieldSelector=spec.nodeName%3D")
        return len(answer["items"])

    def _bindings(self, since: float) -> Iterator[Bound]:
        for line in self._audit_log.read_text().splitlines():
            told = json.loads(line)
            about = told["objectRef"]
            if about.get("subresource") != "binding" or told["responseStatus"]["code"] >= 300:
                continue
            at = seconds(told["stageTimestamp"])
            if at >= since:
                yield Bound(
                    pod=f"{about['namespace']}/{about['name']}",
                    node=told["requestObject"]["target"]["name"],
                    user=told["user"]["username"],
                    at=at,
                )

    def _start_lowtide(self) -> Process:
        config = {
            **CONFIG,
            "leaderElection": {"leaderElect": False},
            "clientConnection": _limited(self._qps[1]),
            "profiles": [{"schedulerName": LOWTIDE_NAME}],
        }
        config_file = self._folder / "lowtide.yaml"
        config_file.write_text(yaml.safe_dump(config))
        kubeconfig = self._plane.kubeconfig("lowtide")
        words = ["scheduler", f"--config={config_file}", f"--kubeconfig={kubeconfig}"]
        process = Process(
            "lowtide",
            [LOWTIDE, *words, "--secure-port=0", *self._flags],
            folder=self._folder,
            environment={**os.environ, "TZ": "UTC"},
        )
        process.start()
        process.wait_until_ready(lambda: "scheduler" in process.log())
        return process


def _limited(qps: int) -> Object:
    return {"qps": qps, "burst": 2 * qps}


def _node(number: int, room: int) -> Object:
    resources = {"cpu": str(room), "memory": "64Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{number}"},
        "status": {"allocatable": resources, "capacity": resources},
    }


def _pod(name: str, scheduler_name: str) -> Object:
    container = {
        "name": "main",
        "image": "example/none",
        "resources": {"requests": {"cpu": "1", "memory": "64Mi"}},
    }
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": scheduler_name, "containers": [container]},
    }
