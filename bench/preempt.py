"""What it costs to find whom to evict for a pod that fits nowhere, and what promises cost pods that
fit: turns of the machine on a large, full cluster, without a server. CPU time is measured, and
memory kept as in the scheduler."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from rich.table import Table

from lowtide.app.registry import make_registry, read_config
from lowtide.framework.plugin import Binder, BindOutcome
from lowtide.objects.events import Added, Deleted, Listed, Modified
from lowtide.objects.kinds import KIND_OF, NEEDED_KINDS
from lowtide.objects.pod import Pod
from lowtide.objects.policy import PodDisruptionBudget
from lowtide.scheduler.actions import Bind, Evict
from lowtide.scheduler.events import BindingEnded, EvictionEnded, Turn
from lowtide.scheduler.machine import Machine
from lowtide.simulator.cluster_objects import running
from lowtide.testing import make_node, make_pod
from many_nodes import NowhereBinder, memory_kept_as_in_the_scheduler
from report_lines import Compared, Report

NODES = 5000
PODS_PER_NODE = 10
PREEMPTIONS = 20  # of one round
PROMISED = 1000  # nodes that a pod is promised
DECISIONS = 200  # of one round
BEGIN = 1_750_000_000.0
HOST = "kubernetes.io/hostname"

PREEMPTION_MS = 50.0
# What 1000 promises may add to the decision for a pod that fits elsewhere.
PROMISES_MS = 1.0


@dataclass(frozen=True, slots=True)
class PreemptResult:
    workload: str
    nodes: int
    scheduler: str
    kind: str
    pods_per_node: int
    round: int
    cpu_ms: float  # of one preemption, or what promises add to a decision; the median
    worst_cpu_ms: float


def preempt(rounds: int, say: Callable[[str], None]) -> Iterator[PreemptResult]:
    for kind, of_kind in KINDS.items():
        say(f"preempt/{NODES}: {kind}, {rounds} rounds of {PREEMPTIONS} preemptions ...")
        cluster = _Cluster(of_kind)
        for number in range(1, rounds + 1):
            yield _result(kind, number, [cluster.preempt() for _ in range(PREEMPTIONS)])
    say(f"preempt/{NODES}: promises, {rounds} rounds of {DECISIONS} decisions ...")
    yield from _promises(rounds)


def preempt_report(results: Sequence[PreemptResult]) -> Report:
    table = Table("preemption", "nodes", "pods a node", "round")
    table.add_column("CPU ms", justify="right")
    table.add_column("worst", justify="right")
    for each in results:
        cells = (each.kind, each.nodes, each.pods_per_node, each.round)
        table.add_row(*map(str, cells), f"{each.cpu_ms:.2f}", f"{each.worst_cpu_ms:.2f}")
    yield table
    for kind in dict.fromkeys(each.kind for each in results):
        median_ms = statistics.median(each.cpu_ms for each in results if each.kind == kind)
        goal_ms = PROMISES_MS if kind == _PROMISES else PREEMPTION_MS
        yield Compared(
            f"preempt, {kind}: {median_ms:.2f} ms of CPU in the median",
            f"under {goal_ms:g} ms",
            is_met=median_ms < goal_ms,
        )


@dataclass(frozen=True, slots=True)
class Kind:
    """`running` makes a pod by the numbers of its node and of itself there."""

    running: Mapping[str, Any]
    preemptor: Mapping[str, Any]
    protected: bool = False  # whether a budget allows nobody to go
    firm_every: int = 0  # on all but each n-th node, what matters more takes most of the room


def _apart(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    return {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    }


def _spread(app: str) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return {"topologySpreadConstraints": [constraint]}


_ORDINARY = {"cpu": "400m", "memory": "1Gi", "labels": {"app": "web"}}
_PROMISES = f"{PROMISED} promises"
KINDS = {
    "room is needed": Kind(_ORDINARY, {"cpu": "1"}),
    "a budget protects all": Kind(_ORDINARY, {"cpu": "1"}, protected=True),
    "helps on few nodes": Kind(_ORDINARY, {"cpu": "1"}, firm_every=20),
    "host port": Kind({**_ORDINARY, "host_ports": [80]}, {"cpu": "1", "host_ports": [80]}),
    "anti-affinity by host": Kind(_ORDINARY, {"cpu": "4", "spec": _apart("web")}),
    "required zone spread": Kind(
        _ORDINARY, {"cpu": "1", "labels": {"app": "web"}, "spec": _spread("web")}
    ),
}


class _Cluster:
    """Full of pods of five priorities, all lower than that of those that come."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._made = 0
        self._now = BEGIN
        with memory_kept_as_in_the_scheduler():
            self.machine = _machine()
            if kind.protected:
                self.machine.step(Added(_budget("web")), BEGIN)
            for node in range(NODES):
                is_firm = bool(kind.firm_every) and node % kind.firm_every != 0
                for number in range(PODS_PER_NODE):
                    pod = self._running(node, number, is_firm=is_firm and number == 0)
                    self.machine.step(Added(pod), BEGIN)

    def _running(self, node: int, number: int, *, is_firm: bool) -> Pod:
        priority = 1000 if is_firm else (node + number) % 5
        given = {**self._kind.running, **({"cpu": "3500m"} if is_firm else {})}
        if number:
            given.pop("host_ports", None)
        pod = make_pod(f"low-{node}-{number}", priority=priority, **given)
        return running(pod, _node_name(node), BEGIN - 10_000 + (node * 7 + number) % 5000)

    def preempt(self) -> float:
        """One pod comes, others go for it, and it is bound in their place: the CPU seconds of the
        turn in which it was found who has to go."""
        self._made += 1
        self._now += 1.0
        pod = make_pod(f"high-{self._made}", priority=100, **self._kind.preemptor)
        self.machine.step(Added(pod), self._now)
        began = time.process_time()
        actions = self.machine.step(Turn(), self._now)
        seconds = time.process_time() - began
        (evict,) = (each for each in actions if isinstance(each, Evict))
        self.machine.step(EvictionEnded(pod.uid, evicted=evict.victims), self._now)
        for victim in evict.victims:
            self.machine.step(Deleted(victim), self._now)
        self._now += 20.0
        (bind,) = (each for each in self.machine.step(Turn(), self._now) if isinstance(each, Bind))
        self.machine.step(BindingEnded(pod.uid, BindOutcome()), self._now)
        self.machine.step(Modified(running(pod, bind.node_name, self._now)), self._now)
        return seconds


def _promises(rounds: int) -> Iterator[PreemptResult]:
    """Pods of one shape that fit, in turns where nobody is promised a node, and where many are."""
    with memory_kept_as_in_the_scheduler():
        without, promised = _machine(), _machine()
        for number in range(PROMISED):
            waiting = make_pod(f"waiting-{number}", cpu="1", priority=100)
            promised.state.nominate(waiting, _node_name(number))
    for number in range(1, rounds + 1):
        added = []
        for each in range(DECISIONS):
            pod = make_pod(f"pod-{number}-{each}", cpu="10m")
            added.append(_decide(promised, pod) - _decide(without, pod))
        yield _result(_PROMISES, number, added)


def _decide(machine: Machine, pod: Pod) -> float:
    machine.step(Added(pod), BEGIN)
    began = time.process_time()
    actions = machine.step(Turn(), BEGIN)
    seconds = time.process_time() - began
    (bind,) = (each for each in actions if isinstance(each, Bind))
    machine.step(BindingEnded(pod.uid, BindOutcome()), BEGIN)
    machine.step(Modified(running(pod, bind.node_name, BEGIN)), BEGIN)
    return seconds


def _machine() -> Machine:
    built = make_registry({}).build(read_config(None, None), {Binder: NowhereBinder()})
    machine = Machine(built.profiles)
    for number in range(NODES):
        name = _node_name(number)
        labels = {HOST: name, "topology.kubernetes.io/zone": f"zone-{number % 10}"}
        node = make_node(name, cpu="4", memory="64Gi", labels=labels)
        machine.step(Added(node), now=0.0)
    for kind in (*NEEDED_KINDS, *(KIND_OF[each].name for each in machine.plugins_by_kind)):
        machine.step(Listed(kind), now=0.0)
    return machine


def _budget(app: str) -> PodDisruptionBudget:
    return msgspec.convert(
        {
            "metadata": {"name": app, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
        },
        PodDisruptionBudget,
    )


def _node_name(number: int) -> str:
    return f"node-{number:04}"


def _result(kind: str, number: int, seconds: Sequence[float]) -> PreemptResult:
    return PreemptResult(
        workload="preempt",
        nodes=NODES,
        scheduler="lowtide",
        kind=kind,
        pods_per_node=PODS_PER_NODE,
        round=number,
        cpu_ms=1e3 * statistics.median(seconds),
        worst_cpu_ms=1e3 * max(seconds),
    )
