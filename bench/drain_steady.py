"""Steady load: pods come at an even pace, and a scheduler that has long been there places each.

Lowtide and kube-scheduler take turns on one API server; drain_steady_load creates and watches."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from drain import Drain, rest, share_of
from drain_observing import access_flags
from workloads import MEASURED, Workload

HERE = Path(__file__).resolve().parent
NODES = 5000
PODS = 2000
PODS_PER_SECOND = 100.0
WARM_UP = 200
LOAD_SECONDS = 180.0
# Whoever has just been started may look at rest for a moment.
START_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class SteadyResult:
    """Seconds count from the creation of a pod, as a watch tells it, to its binding."""

    workload: str
    nodes: int
    pods: int
    scheduler: str
    round: int
    pods_per_second: float
    scheduler_cpu_ms_per_pod: float
    p50_seconds: float
    p99_seconds: float
    rss_mb: float
    max_seconds: float
    unbound: int


class Steady(Drain):
    def __init__(self, nodes: int = NODES, pods: int = PODS) -> None:
        super().__init__(Workload("steady", nodes, pods))

    def measure(self, scheduler: str, number: int) -> SteadyResult:
        pods = self._workload.pods
        listed = self._plane.request("GET", f"/api/v1/namespaces/{MEASURED}/pods?limit=1")
        process = self._start(scheduler)
        try:
            time.sleep(START_SECONDS)
            rest(self._plane, process)
            cpu_before = process.cpu_seconds()
            done = subprocess.run(
                [
                    *(
                        sys.executable,
                        str(HERE / "drain_steady_load.py"),
                        *access_flags(self._plane),
                    ),
                    f"--version={listed['metadata']['resourceVersion']}",
                    *(f"--pods={pods}", f"--pods-per-second={PODS_PER_SECOND}"),
                    f"--warm-up={min(WARM_UP, pods // 2)}",
                ],
                capture_output=True,
                text=True,
                check=True,
                timeout=LOAD_SECONDS,
            )
            cpu_seconds, rss_bytes = process.cpu_seconds() - cpu_before, process.rss_bytes()
        finally:
            process.stop()
        self._plane.empty_namespace(MEASURED)
        told = json.loads(done.stdout)
        waited = sorted(told["waited_seconds"])
        if not waited:
            raise RuntimeError(f"{scheduler} bound no pod of a steady load:\n{process.log()}")
        return SteadyResult(
            workload="steady",
            nodes=self._workload.nodes,
            pods=pods,
            scheduler=scheduler,
            round=number,
            pods_per_second=told["pods_per_second"],
            scheduler_cpu_ms_per_pod=1000 * cpu_seconds / pods,
            p50_seconds=share_of(waited, 0.50),
            p99_seconds=share_of(waited, 0.99),
            rss_mb=rss_bytes / 1e6,
            max_seconds=waited[-1],
            unbound=told["unbound"],
        )
