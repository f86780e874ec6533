"""One soak: a control plane, one scheduler on it, the churn, and samples all the time."""

import re
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import yaml

from realparts.api_client import ApiClient
from realparts.control_plane import ControlPlane
from realparts.process import Process, free_port, wait_until
from realparts.pytest_plugin import grant_scheduler_rights
from realparts.users import User
from soak.churn import Churn
from soak.figures import Counts, Figures, counts_of, memory_of
from soak.objects import NEVER_FITS, PODS, SCHEDULER_NAME
from soak.sampling import Sample, sample
from soak.traffic import ModelPrometheus

LOWTIDE = Path(sys.executable).parent / "lowtide"
COMPARISONS = 6
COMPARED = re.compile(r'"Compared with the API server".*differences="?(\d+)')
PATIENCE_SECONDS = 120.0

Say = Callable[[str], None]
Keep = Callable[[list[Sample]], None]


@dataclass(frozen=True, slots=True)
class Size:
    seconds: float = 3600.0
    nodes: int = 200
    pods: int = 2000
    changes_per_second: float = 50.0
    sample_seconds: float = 5.0
    say_seconds: float = 60.0
    rest_seconds: float = 120.0  # an API server closes connections that are idle for 90


class Session:
    """`run` once; `keep` is given all samples now and then, and in the end."""

    def __init__(self, size: Size, folder: Path, say: Say, keep: Keep) -> None:
        self.samples: list[Sample] = []
        self._keep = keep
        self._size = size
        self._folder = folder
        self._say = say
        self._plane = ControlPlane(
            has_controllers=False, has_kwok=False, users=[User("lowtide", "lowtide-token")]
        )

    def run(self) -> Figures:
        with ExitStack() as running:
            self._plane.start()
            running.callback(self._plane.stop)
            grant_scheduler_rights(self._plane)
            churn = self._make_churn()
            running.callback(churn.stop)
            prometheus = ModelPrometheus(lambda: list(churn.nodes))
            running.enter_context(prometheus.server)
            process = self._start_scheduler(prometheus.server.url)
            running.callback(process.stop)
            return self._soak(process, churn)

    def _soak(self, process: Process, churn: Churn) -> Figures:
        churn.fill()
        self._wait_for_bindings()
        before = self._rest(process)
        self._say(f"{self._size.pods} pods are placed: {before}; the churn begins")
        churn.start()
        seconds = self._follow(process, churn)
        churn.stop()
        churn.check()
        unbound = self._wait_for_bindings()
        after = self._rest(process)
        self._compare(process)
        found = [int(each) for each in COMPARED.findall(process.log())]
        after_warm_up, at_end = counts_of(self.samples, seconds)
        cpu_seconds = self.samples[-1].cpu_seconds - self.samples[0].cpu_seconds
        return Figures(
            seconds=round(seconds, 1),
            changes_per_second=round(churn.changes / seconds, 1),
            nodes_came=churn.counts["nodes_came"],
            pods_came=churn.counts["pods_came"],
            samples=len(self.samples),
            memory=memory_of(self.samples, seconds),
            at_rest_before=before,
            after_warm_up=after_warm_up,
            at_end=at_end,
            at_rest_after=after,
            comparisons=len(found),
            differences=sum(found),
            unbound_pods=unbound,
            cpu_percent=round(100 * cpu_seconds / seconds, 1),
        )

    def _follow(self, process: Process, churn: Churn) -> float:
        """Samples until the time is over; returns how long that was."""
        size, began_at = self._size, time.monotonic()
        said_at, compared = -size.say_seconds, 0
        while (seconds := time.monotonic() - began_at) < size.seconds:
            churn.check()
            self.samples.append(sample(process, seconds=seconds, changes=churn.changes))
            if seconds >= (compared + 1) * size.seconds / (COMPARISONS + 1):
                compared += 1
                process.send(signal.SIGUSR2)
            if seconds - said_at >= size.say_seconds:
                said_at = seconds
                self._say_progress(self.samples[-1])
                self._keep(self.samples)
            due = began_at + len(self.samples) * size.sample_seconds
            time.sleep(max(0.0, due - time.monotonic()))
        self._keep(self.samples)
        return time.monotonic() - began_at

    def _say_progress(self, now: Sample) -> None:
        left = self._size.seconds - now.seconds
        self._say(
            f"{now.changes} changes; {now.memory_bytes / 2**20:.1f} MiB, {now.descriptors} "
            f"descriptors, {now.tasks} tasks, {now.threads} threads; {now.nodes} nodes, "
            f"{now.pods} pods; {left / 60:.1f} minutes are left"
        )

    def _compare(self, process: Process) -> None:
        """Once more, when all is quiet."""
        before = len(COMPARED.findall(process.log()))
        process.send(signal.SIGUSR2)
        wait_until(
            lambda: len(COMPARED.findall(process.log())) > before,
            timeout_seconds=PATIENCE_SECONDS,
            what="the scheduler has compared what it believes",
        )

    def _rest(self, process: Process) -> Counts:
        """The least of what is seen for a while: requests end, and kept connections are closed."""
        seen = []
        for _ in range(int(self._size.rest_seconds)):
            seen.append(sample(process, seconds=-1.0, changes=0))
            time.sleep(1.0)
        return Counts(
            descriptors=min(each.descriptors for each in seen),
            tasks=min(each.tasks for each in seen),
            threads=min(each.threads for each in seen),
        )

    def _wait_for_bindings(self) -> int:
        """How many that fit are not bound in the end."""
        try:
            wait_until(
                lambda: not self._unbound(),
                timeout_seconds=PATIENCE_SECONDS,
                what="every pod that fits is bound",
                every_seconds=1.0,
            )
        except TimeoutError:
            return self._unbound()
        return 0

    def _unbound(self) -> int:
        fit = f"labelSelector=%21{NEVER_FITS.replace('/', '%2F')}"
        pending = "fieldSelector=spec.nodeName%3D"
        return len(self._plane.request("GET", f"{PODS}?{fit}&{pending}")["items"])

    def _make_churn(self) -> Churn:
        plane, size = self._plane, self._size
        return Churn(
            lambda: ApiClient(plane.url, str(plane.ca_file), plane.admin_token),
            nodes=size.nodes,
            pods=size.pods,
            per_second=size.changes_per_second,
        )

    def _start_scheduler(self, prometheus_address: str) -> Process:
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "schedulerName": SCHEDULER_NAME,
                    "plugins": {"score": {"enabled": [{"name": "NetworkTraffic", "weight": 9}]}},
                    "pluginConfig": [
                        {
                            "name": "NetworkTraffic",
                            "args": {"prometheusAddress": prometheus_address},
                        }
                    ],
                }
            ],
        }
        config_file = self._folder / "config.yaml"
        config_file.write_text(yaml.safe_dump(config))
        port = free_port()
        kubeconfig = self._plane.kubeconfig("lowtide")
        words = ["scheduler", f"--config={config_file}", f"--kubeconfig={kubeconfig}"]
        process = Process(
            "lowtide",
            [LOWTIDE, *words, f"--secure-port={port}"],
            folder=self._folder,
            url=f"http://127.0.0.1:{port}",
        )
        process.start()
        process.wait_until_ready(lambda: sample(process, seconds=-1.0, changes=0).tasks > 0)
        return process
