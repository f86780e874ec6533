"""What NetworkTraffic adds to a scheduling cycle: the default profile with it and without it.

Both place the same pods on their own large cluster, pod by pod in turns, without a server; readings
are published in between as polls would. CPU time is measured."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from lowtide.framework.plugin import BindOutcome
from lowtide.objects.events import Added, Modified
from lowtide.objects.meta import OwnerReference
from lowtide.objects.pod import Pod
from lowtide.objects.workloads import ReplicaSet
from lowtide.scheduler.actions import Action, Bind
from lowtide.scheduler.events import BindingEnded, Event, Turn
from lowtide.scheduler.machine import Machine
from lowtide.simulator.cluster_objects import running
from lowtide.testing import make_pod
from many_nodes import NODES, Readings, make_machine

ADDRESS = "http://127.0.0.1:9090"  # which nobody asks
PODS_PER_POLL = 1000
POLL_SECONDS = 15.0
BEGIN = 1_750_000_000.0


@dataclass(frozen=True, slots=True)
class CycleWorkload:
    """`shapes` of pods come in turns; those with an owner are spread over hosts and zones too."""

    name: str
    shapes: int
    has_owners: bool = False


@dataclass(frozen=True, slots=True)
class CycleResult:
    workload: str
    nodes: int
    pods: int
    scheduler: str
    shapes: int
    round: int
    without_us_per_pod: float
    with_us_per_pod: float
    ratio: float
    publish_ms: float  # a part of it


class Cycle:
    def __init__(self, workload: CycleWorkload) -> None:
        self._workload = workload
        self._without = _Timed(make_machine(None))
        self._with = _Timed(make_machine(ADDRESS))
        self._now = BEGIN
        self._readings = Readings(self._with.machine)
        self._made = 0
        if workload.has_owners:
            for machine in (self._without.machine, self._with.machine):
                for number in range(workload.shapes):
                    machine.step(Added(_owner(number)), BEGIN)

    def run(self, number: int) -> CycleResult:
        """One poll, and the pods until the next."""
        self._without.cpu_seconds = self._with.cpu_seconds = 0.0
        with _no_garbage_collection():
            self._with.step(self._readings.published_at(self._now), self._now)
            publish_seconds = self._with.cpu_seconds
            for _ in range(PODS_PER_POLL):
                self._place_one()
        without = self._without.cpu_seconds / PODS_PER_POLL
        with_traffic = self._with.cpu_seconds / PODS_PER_POLL
        return CycleResult(
            workload=self._workload.name,
            nodes=NODES,
            pods=PODS_PER_POLL,
            scheduler="lowtide",
            shapes=self._workload.shapes,
            round=number,
            without_us_per_pod=without * 1e6,
            with_us_per_pod=with_traffic * 1e6,
            ratio=with_traffic / without,
            publish_ms=publish_seconds * 1e3,
        )

    def _place_one(self) -> None:
        self._now += POLL_SECONDS / PODS_PER_POLL
        self._made += 1
        pod = self._make_pod()
        pair = (self._without, self._with)
        for timed in pair if self._made % 2 else reversed(pair):
            timed.place(pod, self._now)

    def _make_pod(self) -> Pod:
        shape = self._made % self._workload.shapes
        name = _owner_name(shape)
        pod = make_pod(
            f"{name}-{self._made}", cpu=f"{100 + shape}m", memory="100Mi", labels={"app": name}
        )
        if not self._workload.has_owners:
            return pod
        owner = OwnerReference("apps/v1", "ReplicaSet", name, name, controller=True)
        metadata = msgspec.structs.replace(pod.metadata, owner_references=[owner])
        return msgspec.structs.replace(pod, metadata=metadata)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A collection goes through both clusters, and would count for the one that it happens in."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Timed:
    """A machine, and the CPU time of its turns and of the readings published to it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.cpu_seconds = 0.0

    def step(self, event: Event, now: float) -> list[Action]:
        begin = time.process_time()
        actions = self.machine.step(event, now)
        self.cpu_seconds += time.process_time() - begin
        return actions

    def place(self, pod: Pod, now: float) -> None:
        """The pod's turn; what comes before and after it is not measured."""
        self.machine.step(Added(pod), now)
        (bind,) = (each for each in self.step(Turn(), now) if isinstance(each, Bind))
        self.machine.step(BindingEnded(pod.uid, BindOutcome()), now)
        self.machine.step(Modified(running(pod, bind.node_name, now)), now)


def _owner(number: int) -> ReplicaSet:
    name = _owner_name(number)
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"selector": {"matchLabels": {"app": name}}},
        },
        ReplicaSet,
    )


def _owner_name(number: int) -> str:
    return f"app-{number}"
