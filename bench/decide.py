"""Decisions alone: what one pod's turn costs the machine, on clusters up to 50,000 nodes.

The whole default profile and NetworkTraffic judge every node. Measured is the CPU time of
`machine.step(Turn())`: the pod is taken from the queue, judged, assumed on its node, and the
actions are made. All pods of a round are in the queue before. Not measured: how they came there,
their bindings, the watch that confirms them, and the reading that is published before each round;
what that makes stale is judged in the next turn, and counts. Memory is kept as in the scheduler.
`make bench` runs it."""

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from lowtide.framework.plugin import BindOutcome
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.workloads import ReplicaSet, Service
from lowtide.records.ring import Ring
from lowtide.scheduler.actions import Action, Bind, Decided
from lowtide.scheduler.events import BindingEnded, Turn
from lowtide.scheduler.machine import Machine
from lowtide.simulator.cluster_objects import running
from lowtide.testing import make_node, make_pod
from many_nodes import (
    Readings,
    make_machine,
    memory_kept_as_in_the_scheduler,
    node_address,
    node_name,
    plugins_that_judge,
)

ADDRESS = "http://127.0.0.1:9090"  # which nobody asks
BEGIN = 1_750_000_000.0
ROUND_SECONDS = 15.0  # one poll
ZONES = 10
PODS_PER_NODE = 2
APPS = 200
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
DISK = "example.com/disk"
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class DecideWorkload:
    """`make_pod` makes the pod of that number; a `kind` tells apart what has one name."""

    name: str
    nodes: int
    pods: int
    make_pod: Callable[[int], Pod]
    kind: str = ""
    pods_before: int | None = None  # else two on each node
    judging: tuple[str, ...] | None = None  # the plugins that do; else all


@dataclass(frozen=True, slots=True)
class DecideResult:
    workload: str
    nodes: int
    pods: int
    scheduler: str
    round: int
    kind: str
    us_per_pod: float
    p50_us: float
    p99_us: float
    max_us: float
    recording_us_per_pod: float  # not part of the others
    pods_before: int
    plugins: int  # that judge nodes
    # Of all pods, in wall time; nothing where most did not have to ask the plugin.
    p50_us_by_plugin: dict[str, float]


class Decide:
    """One machine, whose cluster fills up from round to round."""

    def __init__(self, workload: DecideWorkload) -> None:
        self._workload = workload
        self._now = BEGIN
        self._made = 0
        self._pods_before = workload.pods_before
        if self._pods_before is None:
            self._pods_before = PODS_PER_NODE * workload.nodes
        with memory_kept_as_in_the_scheduler():
            nodes = [_make_node(number) for number in range(workload.nodes)]
            self._zones = {node.name: node.labels[ZONE] for node in nodes}
            self._machine = make_machine(ADDRESS, nodes, workload.judging)
            for thing in (*_owners(), *_running_pods(self._pods_before, workload.nodes)):
                self._machine.step(Added(thing), BEGIN)
            self._readings = Readings(self._machine)
            profiles, state = self._machine.profiles, self._machine.state
            self._ring = Ring(profiles, state, time.monotonic, rows_may_change=False)
        (profile,) = profiles.values()
        self._plugins = len(plugins_that_judge(profile))
        self._spent: list[Mapping[str, float]] = []
        self._placed: list[Pod] = []

    def change_to(self, workload: DecideWorkload) -> None:
        """Other pods on the same cluster, from which those of before are gone."""
        for pod in self._placed:
            self._machine.step(Deleted(pod), self._now)
        self._placed.clear()
        self._workload = workload

    def run(self, number: int) -> DecideResult:
        """A reading, and the pods until the next."""
        self._machine.step(self._readings.published_at(self._now), self._now)
        count = self._workload.pods
        for each in range(count):
            pod = self._workload.make_pod(self._made + each)
            self._machine.step(Added(pod), self._now)
        self._made += count
        self._spent.clear()
        gc.collect()  # what this bench left behind
        took_us, recording_us = np.array([self._place_one() for _ in range(count)]).T * 1e6
        return DecideResult(
            workload=self._workload.name,
            nodes=self._workload.nodes,
            pods=count,
            scheduler="lowtide",
            round=number,
            kind=self._workload.kind,
            us_per_pod=float(took_us.mean()),
            p50_us=float(np.percentile(took_us, 50)),
            p99_us=float(np.percentile(took_us, 99)),
            max_us=float(took_us.max()),
            recording_us_per_pod=float(recording_us.mean()),
            pods_before=self._pods_before,
            plugins=self._plugins,
            p50_us_by_plugin=_medians_us(self._spent),
        )

    def _place_one(self) -> tuple[float, float]:
        """The CPU seconds of a turn, and of keeping the decision."""
        self._now += ROUND_SECONDS / self._workload.pods
        now, machine = self._now, self._machine
        begin = time.thread_time()
        actions = _measured_turn(machine, now)
        ended = time.thread_time()
        (decided,) = (each for each in actions if isinstance(each, Decided))
        self._spent.append(decided.spent.by_plugin)
        noting = time.thread_time()
        self._ring.note(decided, now)
        noted = time.thread_time()
        (bind,) = (each for each in actions if isinstance(each, Bind))
        machine.step(BindingEnded(bind.pod.uid, BindOutcome()), now)
        self._placed.append(self._as_watched(bind, now))
        machine.step(Modified(self._placed[-1]), now)
        return ended - begin, noted - noting

    def _as_watched(self, bind: Bind, now: float) -> Pod:
        """The API server labels a pod with its node's zone when it binds it."""
        pod = running(bind.pod, bind.node_name, now)
        labels = {**pod.labels, ZONE: self._zones[bind.node_name]}
        return replace(pod, metadata=replace(pod.metadata, labels=labels))


def _measured_turn(machine: Machine, now: float) -> list[Action]:
    """By its name, flame knows what to show."""
    return machine.step(Turn(), now)


def _medians_us(spent: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = {name for by_plugin in spent for name in by_plugin}
    seconds = {name: [each.get(name, 0.0) for each in spent] for name in names}
    medians = {name: 1e6 * float(np.median(found)) for name, found in seconds.items()}
    return dict(sorted(medians.items(), key=lambda item: -item[1]))


# The pods of each workload.


def plain_pod(number: int) -> Pod:
    """Of nobody, and no Service selects it."""
    return _make_pod(f"plain-{number}", cpu="100m", labels={"task": "plain"})


def replicaset_pod(number: int) -> Pod:
    return _owned(_make_pod(f"web-{number}", cpu="100m", labels={"app": "web"}), "web")


def different_pod(number: int) -> Pod:
    """No two are of one shape; every fourth chooses its nodes, every fifth tolerates a taint."""
    spec: dict[str, Any] = {}
    if number % 4 == 0:
        wants = {"key": DISK, "operator": "In", "values": ["ssd", f"type-{number}"]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [wants]}]}
        likes = {"key": ZONE, "operator": "In", "values": [f"zone-{number % ZONES}"]}
        preferred = [{"weight": 10, "preference": {"matchExpressions": [likes]}}]
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": required,
                "preferredDuringSchedulingIgnoredDuringExecution": preferred,
            }
        }
    if number % 5 == 0:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    name = f"different-{number}"
    cpu, memory = f"{50 + number % 400}m", f"{64 + number % 300}Mi"
    return _make_pod(name, cpu=cpu, memory=memory, labels={"app": name}, **spec)


def mixed_pod(number: int) -> Pod:
    """Twelve sizes in turn, those of the drain of mixed sizes."""
    cpu, memory = (50, 100, 250, 500, 1000, 2000)[number % 6], (128, 512, 1024, 4096)[number % 4]
    labels = {"task": "mixed"}
    return _make_pod(f"mixed-{number}", cpu=f"{cpu}m", memory=f"{memory}Mi", labels=labels)


def anti_affinity_pod(number: int) -> Pod:
    """One on each host."""
    return _attached_pod("apart", number, plugin="podAntiAffinity", topology_key=HOSTNAME)


def affinity_pod(number: int) -> Pod:
    """All in the zone of the first."""
    return _attached_pod("together", number, plugin="podAffinity", topology_key=ZONE)


def daemonset_pod(number: int) -> Pod:
    """For the node of that number, as the controller makes it, with a host port."""
    named = {"key": "metadata.name", "operator": "In", "values": [node_name(number)]}
    required = {"nodeSelectorTerms": [{"matchFields": [named]}]}
    container = {
        "name": "main",
        "image": _image_name(APPS),
        "ports": [{"hostPort": 9100}],
        "resources": {"requests": {"cpu": "10m", "memory": "20Mi"}},
    }
    return make_pod(
        f"exporter-{number}",
        labels={"app": "exporter"},
        spec={
            "containers": [container],
            "tolerations": [{"operator": "Exists"}],
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
            },
        },
    )


def _attached_pod(group: str, number: int, *, plugin: str, topology_key: str) -> Pod:
    labels = {"group": group}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": topology_key}
    affinity = {plugin: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return _make_pod(f"{group}-{number}", cpu="100m", labels=labels, affinity=affinity)


# The cluster.


def _make_node(number: int) -> Node:
    """In zones, some tainted; a quarter holds the image that all pods run."""
    taints = []
    if number % 20 == 7:
        taints.append({"key": "dedicated", "value": "batch", "effect": "NoSchedule"})
    if number % 10 == 3:
        taints.append({"key": "old", "value": "yes", "effect": "PreferNoSchedule"})
    images = {_image_name(each): 100 * MEBIBYTE for each in range(number % 7, number % 7 + 5)}
    if number % 4 == 0:
        images[_image_name(APPS)] = 400 * MEBIBYTE
    return make_node(
        node_name(number),
        cpu="32",
        memory="64Gi",
        labels={
            ZONE: f"zone-{number % ZONES}",
            "node.kubernetes.io/instance-type": f"type-{number % 5}",
            DISK: "ssd" if number % 3 else "hdd",
        },
        taints=taints,
        images=images,
        addresses=[node_address(number)],
    )


def _running_pods(count: int, node_count: int) -> Iterator[Pod]:
    for number in range(count):
        app = _app_name(number % APPS)
        name, on = f"{app}-{number}", node_name(number % node_count)
        cpu = f"{100 + 50 * (number % 5)}m"
        pod = _make_pod(name, on=on, cpu=cpu, labels={"app": app}, phase="Running")
        yield _owned(pod, app)


def _owners() -> Iterator[ReplicaSet | Service]:
    """Each app has a ReplicaSet, and a Service in front of it."""
    for name in ("web", *map(_app_name, range(APPS))):
        labels, meta = {"app": name}, {"name": name, "namespace": "default", "uid": name}
        spec = {"selector": {"matchLabels": labels}}
        yield msgspec.convert({"metadata": meta, "spec": spec}, ReplicaSet)
        yield msgspec.convert({"metadata": meta, "spec": {"selector": labels}}, Service)


def _make_pod(
    name: str,
    *,
    cpu: str,
    labels: dict[str, str],
    memory: str = "100Mi",
    on: str = "",
    phase: str = "Pending",
    **spec: Any,
) -> Pod:
    container = {
        "name": "main",
        "image": _image_name(APPS),
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    whole = {"containers": [container], **spec}
    return make_pod(name, labels=labels, on=on, phase=phase, spec=whole)


def _owned(pod: Pod, name: str) -> Pod:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name}
    raw: dict[str, Any] = msgspec.to_builtins(pod)
    raw["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return msgspec.convert(raw, Pod)


def _app_name(number: int) -> str:
    return f"app-{number}"


def _image_name(number: int) -> str:
    return f"registry.example.com/image-{number}:v1"
