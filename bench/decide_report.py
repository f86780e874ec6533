"""Which decisions `make bench` measures alone, and how they compare with what was aimed at."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rich.table import Table

from decide import (
    DecideResult,
    DecideWorkload,
    affinity_pod,
    anti_affinity_pod,
    daemonset_pod,
    different_pod,
    mixed_pod,
    plain_pod,
    replicaset_pod,
)
from lowtide.objects.pod import Pod
from report_lines import Compared, Report, spread

NODE_COUNTS = (100, 1000, 5000, 15_000, 50_000)
# Microseconds per pod, by workload and nodes.
GOALS_US = {
    ("decide/one-shape", 5000): 100.0,
    ("decide/replicaset", 5000): 300.0,
    ("decide/all-different", 5000): 1000.0,
    ("decide/affinity", 5000): 1500.0,
    ("decide/one-shape", 50_000): 700.0,
    ("decide/replicaset", 50_000): 2500.0,
    ("decide/all-different", 50_000): 10_000.0,
    ("decide/affinity", 50_000): 15_000.0,
}

GOAL_KEEPING_US = 15.0


class Kind(NamedTuple):
    """`pods` are decided in a round, never more than `most_per_node` for each node: five rounds
    of them have to fit."""

    make_pod: Callable[[int], Pod]
    pods: int
    most_per_node: float = 10.0

    def pods_on(self, nodes: int) -> int:
        return min(self.pods, int(self.most_per_node * nodes))


KINDS = {
    "one-shape": Kind(plain_pod, 1000),
    "replicaset": Kind(replicaset_pod, 1000),
    "all-different": Kind(different_pod, 200),
    "anti-affinity": Kind(anti_affinity_pod, 500, most_per_node=0.15),
    "affinity": Kind(affinity_pod, 500, most_per_node=1.0),
}

# Of these no picture shows how their cost grows. Every pod of a DaemonSet is of a shape of its own,
# about one node.
OTHER_KINDS = {
    "mixed-sizes": Kind(mixed_pod, 500),
    "daemonset": Kind(daemonset_pod, 500, most_per_node=0.19),
}


def decide_workloads() -> Iterator[tuple[str, list[DecideWorkload]]]:
    """By the name of the benchmark; those of one name are run in turn."""
    for nodes in NODE_COUNTS:
        for name in ("one-shape", "replicaset", "all-different"):
            yield f"decide/{name}/{nodes}", [_workload(f"decide/{name}", nodes, KINDS[name])]
        yield (
            f"decide/affinity/{nodes}",
            [
                _workload("decide/affinity", nodes, KINDS[kind], kind)
                for kind in ("anti-affinity", "affinity")
            ],
        )
        for name, kind in OTHER_KINDS.items():
            yield f"decide/{name}/{nodes}", [_workload(f"decide/{name}", nodes, kind)]


def _workload(name: str, nodes: int, kind: Kind, kind_name: str = "") -> DecideWorkload:
    return DecideWorkload(name, nodes, kind.pods_on(nodes), kind.make_pod, kind_name)


def decide_report(results: Sequence[DecideResult]) -> Report:
    table = Table()
    for heading in ("decisions alone", "kind", "nodes", "pods", "round"):
        table.add_column(heading)
    for heading in ("µs/pod", "p50", "p99", "highest"):
        table.add_column(heading, justify="right")
    for each in results:
        names = (each.workload, each.kind, each.nodes, each.pods, each.round)
        figures = (each.us_per_pod, each.p50_us, each.p99_us, each.max_us)
        table.add_row(*map(str, names), *(f"{figure:.0f}" for figure in figures))
    yield table
    for workload, nodes, kind in dict.fromkeys(map(_series, results)):
        found = [each.us_per_pod for each in results if _series(each) == (workload, nodes, kind)]
        yield _line(f"{workload} {kind}".rstrip(), nodes, found, GOALS_US.get((workload, nodes)))
    for nodes in dict.fromkeys(each.nodes for each in results):
        recording = [each.recording_us_per_pod for each in results if each.nodes == nodes]
        yield _line("keeping a decision", nodes, recording, GOAL_KEEPING_US)


def _series(result: DecideResult) -> tuple[str, int, str]:
    return result.workload, result.nodes, result.kind


def _line(
    name: str, nodes: int, us_per_pod: Sequence[float], goal_us: float | None
) -> str | Compared:
    line = f"{name}, {nodes} nodes: {spread(us_per_pod, digits=0)} µs per pod"
    if goal_us is None:
        return line
    is_met = statistics.median(us_per_pod) <= goal_us
    return Compared(line, f"at most {goal_us:.0f} µs in the median", is_met)
