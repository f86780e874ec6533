"""The embedded cluster with many whole nodes and running pods, in which nodes report and pods that
are bound start to run.

Run as a program by the benchmark of the extender, so that its watches have something to tell."""

import argparse
import asyncio
import itertools
import time
from pathlib import Path

import msgspec

from extender_objects import Json, make_nodes, make_pod, with_heartbeat
from lowtide.localcluster import LocalCluster, Part, Store
from lowtide.localcluster.changes import Change
from lowtide.localcluster.timestamps import timestamp
from many_nodes import make_running_pods

# A kubelet whose node has not changed reports that so often.
HEARTBEAT_SECONDS = 300.0
STARTS_AFTER_SECONDS = 1.0


class BusyCluster:
    """`pending` pods by the name of their scheduler are there to be asked about and bound."""

    def __init__(self, pending: dict[str, int]) -> None:
        self._cluster = LocalCluster(clock=time.time, runs_controllers=False)
        self._store: Store = self._cluster.store
        self._pending = pending

    async def run(self, kubeconfig: Path) -> None:
        for node in make_nodes():
            self._store.create("nodes", node)
        for running in make_running_pods():
            pod: Json = msgspec.to_builtins(running)
            created = self._store.create("pods", pod)
            # Every pod begins as pending, whatever it says.
            self._store.update("pods", {**created, "status": pod["status"]}, part=Part.STATUS)
        numbers = itertools.count()
        for scheduler_name, count in self._pending.items():
            for number in itertools.islice(numbers, count):
                self._store.create("pods", make_pod(number, scheduler_name))
        self._store.subscribe(self._notice)
        async with self._cluster:
            # It is ready when this is there.
            beside = kubeconfig.with_suffix(".new")
            self._cluster.kubeconfig(beside).rename(kubeconfig)
            await self._report()

    async def _report(self) -> None:
        names = [node["metadata"]["name"] for node in self._store.items("nodes")]
        for name in itertools.cycle(names):
            node = self._store.get("nodes", "", name)
            newer = with_heartbeat(node, timestamp(time.time()))
            self._store.update("nodes", newer, part=Part.STATUS)
            await asyncio.sleep(HEARTBEAT_SECONDS / len(names))

    def _notice(self, change: Change) -> None:
        if change.plural != "pods" or change.current is None:
            return
        pod = change.item
        if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
            loop = asyncio.get_running_loop()
            loop.call_later(STARTS_AFTER_SECONDS, self._start, pod["metadata"]["name"])

    def _start(self, name: str) -> None:
        pod = self._store.get("pods", "default", name)
        if pod["status"]["phase"] == "Pending":
            status = {**pod["status"], "phase": "Running", "startTime": timestamp(time.time())}
            self._store.update("pods", {**pod, "status": status}, part=Part.STATUS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kubeconfig", type=Path, help="is written when the cluster is there")
    parser.add_argument("--pending", action="append", default=[], metavar="SCHEDULER=COUNT")
    options = parser.parse_args()
    given = (each.split("=") for each in options.pending)
    pending = {name: int(count) for name, count in given}
    asyncio.run(BusyCluster(pending).run(options.kubeconfig))


if __name__ == "__main__":
    main()
