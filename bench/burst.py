"""A burst of pods that nothing is known of: how near to the best placement each scheduler comes.

On a real API server and a real Prometheus; the links and what they carry are a model, drawn by a
seed from the simulator's scenarios, with more nodes."""

import json
import re
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from drain import CONFIG, NAMESPACE, SCHEDULERS, make_node, started_lowtide
from lowtide.app.registry import read_config
from lowtide.scenario.simulation import Simulation, read_simulation
from lowtide.simulator.draw import Draw, FloatArray, draw
from model_exporter import DEVICE, Link, World
from optimum import fractional_optimum
from realparts.control_plane import ControlPlane
from realparts.process import Process, free_port, wait_until
from realparts.prometheus import Prometheus, Target

HERE = Path(__file__).resolve().parent
NODES = 100
SCRAPE_SECONDS = 2
WINDOW_SECONDS = 10
POLL_SECONDS = 2
# The rates that Prometheus gives count as settled when all are this near to the drawn ones.
SETTLED_SHARE = 0.02
SETTLE_SECONDS = 90.0
PLACED_SECONDS = 120.0
FRESH = re.compile(r'^lowtide_reading_nodes\{state="fresh"\} (\S+)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class BurstResult:
    workload: str
    links: str
    nodes: int
    pods: int
    seed: int
    scheduler: str
    peak: float
    optimum: float
    peak_over_optimum: float
    nodes_used: int


@dataclass(frozen=True)
class Drawn:
    """One draw by its names: what every link carries before the burst, and every pod."""

    simulation: Simulation
    draw: Draw

    @classmethod
    def drawn_with(cls, links: str, seed: int) -> Self:
        simulation = read_simulation(HERE / "scenarios" / f"{links}-burst.yaml")
        (group,) = simulation.nodes
        nodes = (msgspec.structs.replace(group, count=NODES),)
        simulation = msgspec.structs.replace(simulation, nodes=nodes)
        return cls(simulation, draw(simulation, seed))

    @property
    def node_names(self) -> list[str]:
        return [node_name(number) for number in range(NODES)]

    @cached_property
    def pod_names(self) -> list[str]:
        return [
            f"{owner_name(owner)}-{number:03}"
            for number, owner in enumerate(self.draw.pods.owner.tolist())
        ]

    @property
    def background(self) -> FloatArray:
        return self.draw.background.shares(0.0)

    @property
    def optimum(self) -> float:
        demand = float(self.draw.pods.receive.sum())
        return fractional_optimum(self.draw.capacity, self.background, demand)

    def peak(self, node_of_pod: dict[str, str]) -> float:
        """The highest share of a link once every pod carries what it was drawn to carry."""
        row_of = {name: row for row, name in enumerate(self.node_names)}
        rows = [row_of[node_of_pod[name]] for name in self.pod_names]
        placed = np.bincount(rows, weights=self.draw.pods.receive, minlength=NODES)
        return float((self.background + placed / self.draw.capacity).max())

    def world(self) -> World:
        carried = (self.draw.capacity * self.background).tolist()
        links = map(Link, self.draw.capacity.tolist(), carried)
        return World(
            links=dict(zip(self.node_names, links, strict=True)),
            pods=dict(zip(self.pod_names, self.draw.pods.receive.tolist(), strict=True)),
        )


class Burst:
    """One API server, on which schedulers take turns at the same draws."""

    def __init__(self, links: str) -> None:
        self._links = links
        self._plane = ControlPlane(has_controllers=False, priority_and_fairness=False)
        self._folder = Path(tempfile.mkdtemp(prefix="lowtide-bench-"))
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
        try:
            self._stack.enter_context(self._plane)
            self._plane.create_all("/api/v1/nodes", [make_node(number) for number in range(NODES)])
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, seed: int) -> Iterator[BurstResult]:
        drawn = Drawn.drawn_with(self._links, seed)
        with self._measured(drawn) as prometheus:
            for scheduler in SCHEDULERS:
                yield self._placed_by(scheduler, drawn, prometheus)

    @contextmanager
    def _measured(self, drawn: Drawn) -> Iterator[Prometheus]:
        """A Prometheus that scrapes the drawn world; the pods that run are a part of it."""
        port = free_port()
        (self._folder / "world.json").write_bytes(msgspec.json.encode(drawn.world()))
        exporter = Process(
            "model-exporter",
            [
                sys.executable,
                HERE / "model_exporter.py",
                f"--world={self._folder / 'world.json'}",
                f"--port={port}",
                f"--api-server={self._plane.url}",
                f"--ca-file={self._plane.ca_file}",
                f"--token={self._plane.admin_token}",
            ],
            folder=self._folder,
        )
        targets = [
            Target(f"127.0.0.1:{port}", {"__metrics_path__": f"/metrics/{name}", "node": name})
            for name in drawn.node_names
        ]
        exporter.start()
        try:
            with Prometheus(targets, scrape_interval_seconds=SCRAPE_SECONDS) as prometheus:
                yield prometheus
        finally:
            exporter.stop()

    def _placed_by(self, scheduler: str, drawn: Drawn, prometheus: Prometheus) -> BurstResult:
        pods = list(self._make_pods(scheduler, drawn))
        process = self._started(scheduler, drawn, prometheus)
        try:
            self._plane.create_all(f"/api/v1/namespaces/{NAMESPACE}/pods", pods)
            wait_until(
                lambda: all(self._node_of_pod().values()),
                timeout_seconds=PLACED_SECONDS,
                what=f"{scheduler} bound {len(pods)} pods",
                every_seconds=0.25,
            )
        finally:
            process.stop()
        node_of_pod = self._node_of_pod()
        self._plane.empty_namespace(NAMESPACE)
        peak, optimum = drawn.peak(node_of_pod), drawn.optimum
        return BurstResult(
            workload=f"burst/{self._links}",
            links=self._links,
            nodes=NODES,
            pods=len(pods),
            seed=drawn.draw.seed,
            scheduler=scheduler,
            peak=peak,
            optimum=optimum,
            peak_over_optimum=peak / optimum,
            nodes_used=len(set(node_of_pod.values())),
        )

    def _make_pods(self, scheduler: str, drawn: Drawn) -> Iterator[dict[str, Any]]:
        """The ReplicaSets of the owners, which nobody acts on, and their pods."""
        (group,) = drawn.simulation.owners
        owners = [self._make_owner(number) for number in range(group.count)]
        for name, owner in zip(drawn.pod_names, drawn.draw.pods.owner.tolist(), strict=True):
            yield make_pod(name, owners[owner], group.requests, scheduler)

    def _make_owner(self, number: int) -> dict[str, Any]:
        labels = {"app": owner_name(number)}
        container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
        return self._plane.request(
            "POST",
            f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets",
            {
                "metadata": {"name": owner_name(number)},
                "spec": {
                    "replicas": 0,
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [container]},
                    },
                },
            },
        )

    def _node_of_pod(self) -> dict[str, str]:
        pods = self._plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}

    # Schedulers.

    def _started(self, scheduler: str, drawn: Drawn, prometheus: Prometheus) -> Process:
        if scheduler == "kube-scheduler":
            return self._plane.kube_scheduler(CONFIG.replace("NAME", scheduler))
        wait_until(
            lambda: is_settled(drawn, prometheus),
            timeout_seconds=SETTLE_SECONDS,
            what="Prometheus gives the drawn rates",
            every_seconds=0.5,
        )
        return self._lowtide(prometheus)

    def _lowtide(self, prometheus: Prometheus) -> Process:
        """What `--prometheus` gives, but for a scrape interval that is not minutes long."""
        config = read_config(None, prometheus.url).document.data
        (plugin,) = config["profiles"][0]["pluginConfig"]
        plugin["args"] |= {"window": f"{WINDOW_SECONDS}s", "pollInterval": f"{POLL_SECONDS}s"}
        process = started_lowtide(self._plane, self._folder, json.dumps(config), port=free_port())
        process.wait_until_ready(lambda: fresh_nodes(process) == NODES)
        return process


def is_settled(drawn: Drawn, prometheus: Prometheus) -> bool:
    query = f'rate(node_network_receive_bytes_total{{device="{DEVICE}"}}[{WINDOW_SECONDS}s])'
    rates = prometheus.values(query, "node")
    wanted = {name: link.background for name, link in drawn.world().links.items()}
    return rates.keys() == wanted.keys() and all(
        abs(rates[name] - rate) <= SETTLED_SHARE * rate for name, rate in wanted.items()
    )


def fresh_nodes(process: Process) -> int:
    with urllib.request.urlopen(f"{process.url}/metrics", timeout=5) as response:
        found = FRESH.search(response.read().decode())
    return 0 if found is None else int(float(found[1]))


def node_name(number: int) -> str:
    name: str = make_node(number)["metadata"]["name"]
    return name


def owner_name(number: int) -> str:
    return f"owner-{number}"


def make_pod(
    name: str, owner: dict[str, Any], requests: dict[str, Any], scheduler_name: str
) -> dict[str, Any]:
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": owner["spec"]["selector"]["matchLabels"],
            "ownerReferences": [reference],
        },
        "spec": {
            "schedulerName": scheduler_name,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": {"requests": requests},
                }
            ],
        },
    }
