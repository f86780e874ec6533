"""A large cluster without a server: nodes, their pods, and what Prometheus would answer of them.

Cycle, decide, poll and preempt measure the scheduler on it."""

import gc
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.random import Generator

from lowtide.app.garbage import (
    give_back_what_is_free,
    leave_out_what_is_known,
    look_seldom_for_garbage,
)
from lowtide.app.registry import make_registry, read_config, requests_of
from lowtide.framework.plugin import Binder, BindOutcome
from lowtide.framework.profile import Profile
from lowtide.objects.events import Added, Listed
from lowtide.objects.kinds import KIND_OF, NEEDED_KINDS
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.readings.columns import published
from lowtide.readings.meter import TrafficMeter
from lowtide.readings.request import (
    FLAGS,
    NUMBER,
    PARENT,
    POD_RECEIVE,
    POD_TRANSMIT,
    RECEIVE,
    SPEED,
    TRANSMIT,
    UNAME,
    TrafficRequest,
)
from lowtide.readings.series import Series
from lowtide.scheduler.events import ReadingPublished
from lowtide.scheduler.machine import Machine
from lowtide.testing import make_node, make_pod

NODES = 5000
PODS_PER_NODE = 2
LINK_BYTES_PER_SECOND = 1.25e9
SCHEDULER_NAME = "lowtide"
SCRAPE_SECONDS = 15.0

# IFF_UP, IFF_BROADCAST, IFF_RUNNING and IFF_MULTICAST: an ordinary device that is up.
_FLAGS_OF_A_DEVICE = 0x1043


class Row(NamedTuple):
    """One series of an answer."""

    labels: Mapping[str, str]
    value: float


class NowhereBinder:
    """Nothing is bound: the machine alone is measured."""

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        return BindOutcome()


@contextmanager
def memory_kept_as_in_the_scheduler() -> Iterator[None]:
    """While a cluster becomes known; after that it is left alone. One of before may go."""
    gc.unfreeze()
    look_seldom_for_garbage()
    give_back_what_is_free()
    yield
    gc.collect()
    leave_out_what_is_known()


def make_machine(
    prometheus_address: str | None,
    nodes: Iterable[Node] | None = None,
    judging: Collection[str] | None = None,
) -> Machine:
    """The default profile on these nodes or the large cluster's; with an address the recommended
    profile. Of the plugins that judge nodes, all or only those named."""
    loaded = read_config(None, prometheus_address)
    built = make_registry({}).build(loaded, {Binder: NowhereBinder()})
    # As the scheduler has them: it tells how long each plugin takes.
    machine = Machine(
        {
            name: profile.without(_left_out(profile, judging)).timed_by(time.monotonic)
            for name, profile in built.profiles.items()
        }
    )
    for node in make_nodes() if nodes is None else nodes:
        machine.step(Added(node), now=0.0)
    for kind in (*NEEDED_KINDS, *(KIND_OF[each].name for each in machine.plugins_by_kind)):
        machine.step(Listed(kind), now=0.0)
    return machine


def plugins_that_judge(profile: Profile) -> set[str]:
    """Those that filter or score; the others sort, bind and so on."""
    return {
        plugin.name
        for point in ("preFilter", "filter", "score")
        for plugin in profile.plugins_for_point(point)
    }


def _left_out(profile: Profile, judging: Collection[str] | None) -> set[str]:
    return set() if judging is None else plugins_that_judge(profile) - set(judging)


def request_of(machine: Machine) -> TrafficRequest:
    (request,) = requests_of(machine.profiles.values(), TrafficRequest)
    return request


def nodes_of(machine: Machine) -> list[Node]:
    nodes = machine.state.nodes()
    return [nodes.node(position) for position in range(len(nodes))]


def make_nodes() -> Iterator[Node]:
    for number in range(NODES):
        labels = {
            "topology.kubernetes.io/zone": f"zone-{number % 3}",
            "node.kubernetes.io/instance-type": f"type-{number % 5}",
        }
        yield make_node(
            node_name(number),
            cpu="32",
            memory="64Gi",
            labels=labels,
            addresses=[node_address(number)],
        )


def make_running_pods() -> Iterator[Pod]:
    """They have run for longer than any window."""
    for node in range(NODES):
        for number in range(PODS_PER_NODE):
            pod = make_pod(_pod_name(node, number), on=node_name(node), cpu="100m", phase="Running")
            owner = {"kind": "ReplicaSet", "name": f"app-{node % 200}", "controller": True}
            raw: dict[str, Any] = msgspec.to_builtins(pod)
            raw["metadata"]["ownerReferences"] = [owner]
            raw["status"]["startTime"] = "2023-01-01T00:00:00Z"
            yield msgspec.convert(raw, Pod)


def node_name(number: int) -> str:
    return f"ip-{node_address(number).replace('.', '-')}"


def answer_rows(query_name: str, chance: Generator, node_count: int = NODES) -> Sequence[Row]:
    """What Prometheus says to that query of a TrafficRequest about each node or pod."""
    match query_name:
        case "receive" | "transmit":
            carried = chance.uniform(0.05, 0.60, node_count) * LINK_BYTES_PER_SECOND
            return _of_devices(carried.tolist())
        case "uname":
            return [
                Row({"nodename": node_name(number), **_target(number)}, 1.0)
                for number in range(node_count)
            ]
        case "speed":
            return _of_devices([LINK_BYTES_PER_SECOND] * node_count)
        case "flags":
            return _of_devices([float(_FLAGS_OF_A_DEVICE)] * node_count)
        case "number" | "parent":
            return _of_devices([2.0] * node_count)
        case "pod_receive" | "pod_transmit":
            return _of_pods(chance, node_count)
    raise ValueError(f"no answer is made for the query {query_name}; there are {QUERY_NAMES}")


QUERY_NAMES = (
    RECEIVE,
    TRANSMIT,
    UNAME,
    SPEED,
    FLAGS,
    PARENT,
    NUMBER,
    POD_RECEIVE,
    POD_TRANSMIT,
)


class Readings:
    """What the polls of one machine would publish; the traffic of pods is not modelled."""

    def __init__(self, machine: Machine) -> None:
        self._nodes = nodes_of(machine)
        self._request = request_of(machine)
        self._meter = TrafficMeter(self._request)
        self._meter.scrapes_are_apart(SCRAPE_SECONDS, lag_seconds=SCRAPE_SECONDS / 2)
        self._chance = np.random.default_rng(1)

    def published_at(self, now: float) -> ReadingPublished:
        answers = {
            name: [
                Series(dict(row.labels), row.value, now)
                for row in answer_rows(name, self._chance, len(self._nodes))
            ]
            for name in (RECEIVE, TRANSMIT, SPEED)
        }
        reading = self._meter.take(answers, self._nodes, (), now)
        return ReadingPublished(self._request, published(reading))


def _of_devices(values: Sequence[float]) -> list[Row]:
    return [
        Row({"device": "eth0", **_target(number)}, value) for number, value in enumerate(values)
    ]


def _of_pods(chance: Generator, node_count: int) -> list[Row]:
    names = [
        _pod_name(node, number) for node in range(node_count) for number in range(PODS_PER_NODE)
    ]
    carried = np.exp(chance.normal(np.log(3e7), 1.0, len(names))).tolist()
    return [
        Row({"namespace": "default", "pod": name}, value)
        for name, value in zip(names, carried, strict=True)
    ]


def _target(number: int) -> dict[str, str]:
    """What the queries leave of the labels that an operator's scrape of a DaemonSet's pods has:
    `max by (node, kubernetes_node, nodename, instance, job, ...)`, of which it has two."""
    return {"instance": f"{node_address(number)}:9100", "job": "node-exporter"}


def node_address(number: int) -> str:
    return f"10.0.{number // 250}.{number % 250 + 1}"


def _pod_name(node: int, number: int) -> str:
    return f"pod-{node:04}-{number}"
