"""A drain with NetworkTraffic on: a real Prometheus scrapes the nodes of a model, Lowtide reads.

Of the seeds' plugin only the queries are part of the run (`seeds_queries`)."""

import json
import random
import sys

import msgspec

from burst import fresh_nodes
from drain import HERE, LOWTIDE, Drain, started, started_lowtide
from lowtide.app.registry import read_config
from model_exporter import Link, World
from realparts.process import Process, free_port, wait_until
from realparts.prometheus import Prometheus, Target
from seeds_queries import SeedsResult, ask_like_the_seeds
from workloads import SCHEDULER_NAME, Workload, node_name

LINK_BYTES_PER_SECOND = 1.25e9
# Scrapes on the same two cores cost what is measured: as seldom as clusters of this size have them.
SCRAPE_SECONDS = 60
WINDOW_SECONDS = 180
SETTLE_SECONDS = 240.0


class Traffic(Drain):
    """Lowtide takes turns with `none`: Prometheus scrapes in both."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self._prometheus: Prometheus | None = None

    def _set_up(self) -> None:
        port = free_port()
        names = [node_name(number) for number in range(self._workload.nodes)]
        chance = random.Random(1)
        links = {
            name: Link(LINK_BYTES_PER_SECOND, chance.uniform(0.05, 0.60) * LINK_BYTES_PER_SECOND)
            for name in names
        }
        file = self._folder / "world.json"
        file.write_bytes(msgspec.json.encode(World(links=links, pods={})))
        program = str(HERE / "drain_exporter.py")
        command = [sys.executable, program, f"--world={file}", f"--port={port}"]
        exporter = started(Process("model-exporter", command, folder=self._folder))
        self._stack.callback(exporter.stop)
        targets = [
            Target(f"127.0.0.1:{port}", {"__metrics_path__": f"/metrics/{name}", "node": name})
            for name in names
        ]
        prometheus = Prometheus(targets, scrape_interval_seconds=SCRAPE_SECONDS)
        self._prometheus = self._stack.enter_context(prometheus)
        self._beside = {"exporter": exporter, "prometheus": prometheus.process}
        super()._set_up()
        wait_until(
            self._has_rates,
            timeout_seconds=SETTLE_SECONDS,
            what="Prometheus has rates of all nodes",
            every_seconds=2.0,
        )

    def ask_like_the_seeds(self, number: int) -> SeedsResult:
        assert self._prometheus is not None
        window = f"{WINDOW_SECONDS}s"
        return ask_like_the_seeds(self._prometheus.url, self._workload.nodes, window, number)

    def _has_rates(self) -> bool:
        assert self._prometheus is not None
        query = f"count(rate(node_network_receive_bytes_total[{WINDOW_SECONDS}s]))"
        found = self._prometheus.query(query)
        return bool(found) and float(found[0]["value"][1]) == self._workload.nodes

    def _start(self, scheduler: str) -> Process:
        """What `--prometheus` gives, with a window that holds two scrapes."""
        if scheduler != LOWTIDE:
            return super()._start(scheduler)
        assert self._prometheus is not None
        config = read_config(None, self._prometheus.url).document.data
        (profile,) = config["profiles"]
        profile["schedulerName"] = SCHEDULER_NAME
        (plugin,) = profile["pluginConfig"]
        plugin["args"]["window"] = f"{WINDOW_SECONDS}s"
        return started_lowtide(self._plane, self._folder, json.dumps(config), port=free_port())

    def _check(self, scheduler: Process) -> None:
        if scheduler.name != LOWTIDE:
            return
        found = fresh_nodes(scheduler)
        if found != self._workload.nodes:
            raise RuntimeError(f"{found} of {self._workload.nodes} nodes had a fresh reading")
