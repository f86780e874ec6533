"""Compares what is believed with what the API server has, on SIGUSR2 as kube-scheduler does. What
differs twice in a row is told; the rest was on its way. What is in memory alone is told at once."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterator, Sequence
from typing import Final

from lowtide.app.garbage import give_back_holes
from lowtide.app.tasks import end
from lowtide.cluster.state import ClusterState
from lowtide.kube.connection import Connection
from lowtide.kube.errors import KubeError
from lowtide.kube.listing import list_all
from lowtide.logs import Log
from lowtide.objects.meta import Wire
from lowtide.objects.node import Node
from lowtide.objects.quantity import LARGEST
from lowtide.objects.requests import CPU, MEMORY
from lowtide.scheduler.machine import Machine

BETWEEN_LOOKS_SECONDS: Final = 3.0
MOST_DIFFERENCES: Final = 100

log = Log("scheduler")


class _ListedMeta(Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None


class _ListedSpec(Wire, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""


class _ListedStatus(Wire, frozen=True):
    phase: str = ""


class ListedPod(Wire, frozen=True):
    """What is compared of a pod, and no more: all pods of the cluster are listed at once, and
    whole ones would take as much memory again as all that is known."""

    metadata: _ListedMeta = _ListedMeta()
    spec: _ListedSpec = _ListedSpec()
    status: _ListedStatus = _ListedStatus()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def has_ended(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")


class InMemory(str):
    """A sentence about what is believed alone: nothing of it is on its way."""

    __slots__ = ()


class Comparing:
    """Tells in the log what is believed and is not so; one comparison at a time."""

    def __init__(self, connection: Connection, machine: Machine) -> None:
        self._connection = connection
        self._machine = machine
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    def start(self) -> None:
        if not self._is_over and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._compare())

    async def end(self) -> None:
        self._is_over = True
        if self._task is not None:
            await end([self._task])

    async def _compare(self) -> None:
        state = self._machine.state
        try:
            found = await compare(self._connection, self._differences)
        except KubeError as error:
            log.warning("What is believed cannot be compared", err=str(error))
            return
        for each in found[:MOST_DIFFERENCES]:
            log.warning("What is believed is not so", difference=each)
        log.info(
            "Compared with the API server",
            nodes=state.count,
            pods=state.placed_count,
            differences=len(found),
        )
        await asyncio.to_thread(give_back_holes)

    def _differences(self, nodes: Sequence[Node], pods: Sequence[ListedPod]) -> Iterator[str]:
        machine = self._machine
        waiting = {each.pod.uid for each in machine.queue}
        return differences(machine.state, waiting, machine.profiles, nodes, pods)


async def compare(
    connection: Connection,
    believed: Callable[[Sequence[Node], Sequence[ListedPod]], Iterator[str]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> list[str]:
    """What differs, a sentence each. `believed` compares lists of the API server's with what is
    known at that moment. KubeError where it does not answer."""

    async def look() -> tuple[set[str], set[str]]:
        nodes = await list_all(connection, "/api/v1/nodes", Node)
        pods = await list_all(connection, "/api/v1/pods", ListedPod)
        found = set(believed(nodes, pods))
        in_memory: set[str] = {each for each in found if isinstance(each, InMemory)}
        return found - in_memory, in_memory

    differing, in_memory = await look()
    if differing:
        await sleep(BETWEEN_LOOKS_SECONDS)
        still, in_memory = await look()
        differing &= still
    return sorted(differing | in_memory)


def differences(
    state: ClusterState,
    waiting: Container[str],
    scheduler_names: Container[str],
    nodes: Sequence[Node],
    pods: Sequence[ListedPod],
) -> Iterator[str]:
    """`waiting` has the uids of the pods that are in line."""
    yield from _nodes_that_differ(state, nodes)
    yield from _pods_that_differ(state, waiting, scheduler_names, pods)
    yield from _sums_that_differ(state)


def _nodes_that_differ(state: ClusterState, nodes: Sequence[Node]) -> Iterator[str]:
    there = {node.name: node for node in nodes}
    for row in range(state.count):
        known = state.node_at(row)
        node = there.pop(known.name, None)
        if node is None:
            yield f"node {known.name} is believed to exist, and does not"
        elif _read_of(node) != _read_of(known):
            yield f"node {known.name} is not as it is believed to be"
    for name in there:
        yield f"node {name} exists, and is not known"


def _pods_that_differ(
    state: ClusterState,
    waiting: Container[str],
    scheduler_names: Container[str],
    pods: Sequence[ListedPod],
) -> Iterator[str]:
    believed = {pod.uid: pod for pod in state.placed_pods()}
    for pod in pods:
        if pod.has_ended:
            continue
        believed.pop(pod.uid, None)
        placed = state.placed(pod.uid)
        if pod.spec.node_name:
            if placed is None:
                yield f"pod {pod.key} is on {pod.spec.node_name}, and not known there"
            elif placed.node_name != pod.spec.node_name:
                yield (
                    f"pod {pod.key} is on {pod.spec.node_name}, and believed to be on "
                    f"{placed.node_name}"
                )
        elif (
            pod.spec.scheduler_name in scheduler_names
            and placed is None
            and pod.uid not in waiting
            and not pod.is_terminating
        ):
            yield f"pod {pod.key} is pending, and not in line"
    for left in believed.values():
        yield f"pod {left.key} is believed to be on a node, and does not exist"


def _sums_that_differ(state: ClusterState) -> Iterator[InMemory]:
    """What columns hold was added up change by change; here once more from nothing."""
    for row in range(state.count):
        name = state.node_at(row).name
        placed = state.placed_on(name).values()
        taken: Counter[str] = Counter()
        for each in placed:
            taken.update(each.footprint.requests)
        for resource in (CPU, MEMORY):
            counted = int(state.requested(resource)[row])
            requested = min(taken[resource], LARGEST)
            if counted != requested:
                yield InMemory(
                    f"node {name}: its pods request {requested} {resource}, not {counted}"
                )
        pod_count = int(state.pod_count.array[row])
        if pod_count != len(placed):
            yield InMemory(f"node {name} has {len(placed)} pods, not {pod_count}")


def _read_of(node: Node) -> tuple[object, ...]:
    """But for what changes with every report of a kubelet."""
    return node.labels, node.spec, node.status.allocatable
