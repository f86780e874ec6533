"""What `lowtide scheduler` takes on a cluster of ordinary size: memory, CPU at rest and at work.

The embedded cluster and its Prometheus run in this process, the scheduler in one of its own, with
the default plugins, NetworkTraffic and its default poll. Run as a program;
docs/kube-prometheus-stack has what it printed."""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))

from lowtide.localcluster import LocalCluster, Part  # noqa: E402
from lowtide.localcluster.nodes import LocalNode  # noqa: E402
from ready_objects import NAMESPACE, make_canary, make_running_pods  # noqa: E402
from realparts.process import Process, free_port  # noqa: E402
from workloads import node_name  # noqa: E402

SETTLE_SECONDS = 20.0
PODS_PER_SECOND = 10


class Footprint:
    def __init__(self, *, nodes: int, pods: int, seconds: float) -> None:
        self._nodes = nodes
        self._pods = pods
        self._seconds = seconds
        self._cluster = LocalCluster(clock=time.time, runs_controllers=False)

    async def run(self) -> None:
        with tempfile.TemporaryDirectory(prefix="lowtide-bench-") as folder:
            async with self._cluster:
                self._fill()
                process = self._scheduler(Path(folder))
                process.start()
                try:
                    await self._measure(process)
                finally:
                    await asyncio.to_thread(process.stop)

    def _fill(self) -> None:
        for number in range(self._nodes):
            self._cluster.add(LocalNode(node_name(number), cpu="32", memory="128Gi"))
        store = self._cluster.store
        for pod in make_running_pods(self._pods, self._nodes):
            created = store.create("pods", pod)
            # Every pod begins as pending, whatever it says.
            store.update("pods", {**created, "status": pod["status"]}, part=Part.STATUS)

    def _scheduler(self, folder: Path) -> Process:
        command = [
            *(sys.executable, "-m", "lowtide", "scheduler"),
            f"--kubeconfig={self._cluster.kubeconfig(folder / 'kubeconfig')}",
            f"--prometheus={self._cluster.prometheus_url}",
            f"--secure-port={free_port()}",
        ]
        return Process("scheduler", command, folder=folder)

    async def _measure(self, process: Process) -> None:
        await self._place(1)
        await asyncio.sleep(SETTLE_SECONDS)
        at_rest = await self._cpu_share(process, placing=False)
        resting_mb = process.rss_bytes() / 1e6
        at_work = await self._cpu_share(process, placing=True)
        print(f"{self._nodes} nodes, {self._pods} pods")
        print(f"  at rest:    {resting_mb:.0f} MB, {1000 * at_rest:.0f} m of CPU")
        working_mb = process.rss_bytes() / 1e6
        print(f"  {PODS_PER_SECOND} pods/s:   {working_mb:.0f} MB, {1000 * at_work:.0f} m of CPU")

    async def _cpu_share(self, process: Process, *, placing: bool) -> float:
        """Of one core, over the whole time."""
        before, began = process.cpu_seconds(), time.monotonic()
        while time.monotonic() - began < self._seconds:
            if placing:
                await self._place(PODS_PER_SECOND)
            await asyncio.sleep(1)
        return (process.cpu_seconds() - before) / (time.monotonic() - began)

    async def _place(self, count: int) -> None:
        store = self._cluster.store
        names = [f"canary-{time.monotonic_ns()}" for _ in range(count)]
        for name in names:
            store.create("pods", make_canary(name, "lowtide"))
        while not all(store.get("pods", NAMESPACE, name)["spec"].get("nodeName") for name in names):
            await asyncio.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--pods", type=int, default=6000)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    footprint = Footprint(nodes=options.nodes, pods=options.pods, seconds=options.seconds)
    asyncio.run(footprint.run())


if __name__ == "__main__":
    main()
