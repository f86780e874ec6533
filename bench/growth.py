"""`make bench ONLY=growth`: how a decision's cost grows with the nodes, with the pods on them, and
with the plugins. Measured as in decide; plots draws it."""

from collections.abc import Callable, Iterator, Sequence

from rich.table import Table

from decide import DecideResult, DecideWorkload
from decide_report import KINDS
from report_lines import Report, spread

NODES = 5000
NODE_COUNTS = (100, 1000, 5000, 15_000, 50_000)
POD_COUNTS = (0, 10_000, 30_000, 100_000)
# In the order in which they join: what most clusters would miss first. Those at the end have
# nothing to say of pods without volumes, ports and devices.
PLUGINS = (
    "NetworkTraffic",
    "NodeResourcesFit",
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesBalancedAllocation",
    "PodTopologySpread",
    "InterPodAffinity",
    "ImageLocality",
    "NodeUnschedulable",
    "NodeName",
    "NodePorts",
    "NodeDeclaredFeatures",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
    "DynamicResources",
)
PLUGIN_COUNTS = (1, 2, 5, 10, len(PLUGINS))


AXES: dict[str, Callable[[DecideResult], int]] = {
    "nodes": lambda result: result.nodes,
    "pods": lambda result: result.pods_before,
    "rules": lambda result: result.plugins,
}


def growth_workloads() -> Iterator[tuple[str, list[DecideWorkload]]]:
    """By the name of the benchmark; those of one name are run in turn."""
    for nodes in NODE_COUNTS:
        yield f"growth/nodes/{nodes}", _of_each_kind("growth/nodes", nodes=nodes)
    for pods in POD_COUNTS:
        yield f"growth/pods/{pods}", _of_each_kind("growth/pods", pods_before=pods)
    for plugins in PLUGIN_COUNTS:
        yield (
            f"growth/plugins/{plugins}",
            _of_each_kind("growth/plugins", judging=PLUGINS[:plugins]),
        )


def growth_report(results: Sequence[DecideResult]) -> Report:
    """A table for each of what it grows with: medians of the rounds, lowest and highest."""
    for axis, count_of in AXES.items():
        found = [each for each in results if each.workload == f"growth/{axis}"]
        if found:
            yield _table(axis, [(count_of(each), each) for each in found])


def _of_each_kind(
    name: str,
    *,
    nodes: int = NODES,
    pods_before: int | None = None,
    judging: tuple[str, ...] | None = None,
) -> list[DecideWorkload]:
    return [
        DecideWorkload(
            name,
            nodes,
            kind.pods_on(nodes),
            kind.make_pod,
            kind_name,
            pods_before=pods_before,
            judging=judging,
        )
        for kind_name, kind in KINDS.items()
    ]


def _table(axis: str, counted: Sequence[tuple[int, DecideResult]]) -> Table:
    table = Table(title=f"µs per decision, by {axis}: median (lowest to highest)")
    table.add_column(axis, justify="right")
    for kind in KINDS:
        table.add_column(kind, justify="right")
    for count in sorted({count for count, _ in counted}):
        of_count = [each for number, each in counted if number == count]
        cells = (
            _cell([each.us_per_pod for each in of_count if each.kind == kind]) for kind in KINDS
        )
        table.add_row(f"{count:,}", *cells)
    return table


def _cell(us_per_pod: Sequence[float]) -> str:
    return spread(us_per_pod, digits=0) if us_per_pod else ""
