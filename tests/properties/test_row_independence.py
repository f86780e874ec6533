"""What a plugin answers about a node is the same whichever nodes it is asked about together: only
so may answers be kept, and asked for ahead. And it is the same for all pods of one signature.

Uses the clusters and plugins of test_incremental."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.properties.test_incremental import (
    SIGNATURES,
    FewPodsHere,
    Incremental,
    all_plugins,
    nodes,
    renamed,
    running,
)
from tests.properties.test_usage_kept import samples
from tests.properties.volume_objects import THINGS

from lowtide.app.known_cluster import BelievedCluster
from lowtide.cluster.columns import BoolArray
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.overlay import hypothetical_pod as placed_by_thought
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod, signature_of
from lowtide.plugins import BUILT_IN
from lowtide.plugins.node_label import NodeLabel, NodeLabelArgs
from lowtide.plugins.node_usage import NodeUsage, NodeUsageArgs
from lowtide.readings.usage import UsageSample, usage_reading
from lowtide.testing import make_pod

STEADY = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # a case tells enough, and to make it smaller takes minutes
)
NOW = 1_767_225_600.0
PODS = [*SIGNATURES, make_pod("bound", on="node-3"), make_pod("unbound")]


def every_plugin() -> list[Any]:
    """The last is the one that traffic is measured for."""
    return [
        NodeLabel(NodeLabelArgs(label="disk")),
        NodeUsage(NodeUsageArgs(memory=1)),
        NodeUsage(NodeUsageArgs(unit="millicores")),
        *all_plugins("utilization")[-1:],
        *all_plugins(),
    ]


def judges(plugin: Any) -> bool:
    return hasattr(plugin, "filter") or hasattr(plugin, "score")


def test_every_built_in_plugin_is_among_them() -> None:
    names = {plugin.name for plugin in every_plugin()}
    assert {row.name for row in BUILT_IN if row.plugin is not None and judges(row.plugin)} <= names


# Answers, by row.


def rejected(plugin: Any, pod: Pod, nodes: Nodes) -> list[set[Any]]:
    found: list[set[Any]] = [set() for _ in range(len(nodes))]
    for each in plugin.filter(pod, nodes):
        for position in np.flatnonzero(each.mask):
            found[position].add((each.reason, each.eviction_helps, each.gives_way_after))
    return found


def scored(plugin: Any, pod: Pod, nodes: Nodes) -> list[int | None]:
    raw = plugin.score(pod, nodes)
    return [None] * len(nodes) if raw is None else raw.tolist()


def answers(plugin: Any, pod: Pod, nodes: Nodes, feasible: BoolArray) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    if hasattr(plugin, "filter"):
        found["filter"] = rejected(plugin, pod, nodes)
    if hasattr(plugin, "score"):
        found["score"] = scored(plugin, pod, nodes.with_feasible(feasible))
    return found


def pre_filtered(plugin: Any, pod: Pod, nodes: Nodes) -> Any:
    return plugin.pre_filter(pod, nodes.everything) if hasattr(plugin, "pre_filter") else None


def of_same_signature(pod: Pod) -> Pod:
    """Another name, uid, version, times and status."""
    meta = msgspec.structs.replace(
        renamed(pod, "another").metadata,
        creation_timestamp="2026-01-01T00:00:30Z",
        deletion_timestamp="2026-01-01T00:00:40Z",
    )
    status = msgspec.convert(
        {"phase": "Running", "startTime": "2026-01-01T00:00:20Z"}, type(pod.status)
    )
    return msgspec.structs.replace(pod, metadata=meta, status=status)


def check_rows(
    plugin: Any, pod: Pod, table: Nodes, parts: Sequence[Sequence[int]], feasible: BoolArray
) -> None:
    whole = answers(plugin, pod, table, feasible)
    for part in parts:
        some = table.take(np.array(part, np.intp))
        wanted = {method: [found[at] for at in part] for method, found in whole.items()}
        assert answers(plugin, pod, some, feasible) == wanted, (plugin.name, pod.name, part)


def check_signature(plugin: Any, pod: Pod, table: Nodes, feasible: BoolArray) -> None:
    other = of_same_signature(pod)
    assert signature_of(other) == signature_of(pod)
    assert pre_filtered(plugin, other, table) == pre_filtered(plugin, pod, table)
    wanted = answers(plugin, pod, table, feasible)
    assert answers(plugin, other, table, feasible) == wanted, (plugin.name, pod.name)


def check_unconcerned(plugin: Any, pod: Pod, table: Nodes, feasible: BoolArray) -> None:
    state = table._state
    state.touched = 0
    assert pre_filtered(plugin, pod, table) is None
    of_nobody = {"filter": [set()] * len(table), "score": [None] * len(table)}
    for method, found in answers(plugin, pod, table, feasible).items():
        assert found == of_nobody[method], (plugin.name, pod.name)
    assert state.touched == 0, (plugin.name, pod.name)


def check_ahead(
    plugin: Any, pod: Pod, table: Nodes, rows: Sequence[int], feasible: BoolArray
) -> None:
    """Together with themselves as they would be with more pods of the same signature."""
    times, placed = np.arange(len(rows)) % 3, placed_by_thought(pod)
    together = table.take(np.array(rows, np.intp)).with_copies(placed, times)
    alone = [
        answers(
            plugin,
            pod,
            table.take(np.array([row])).with_copies(placed, times[at : at + 1]),
            feasible,
        )
        for at, row in enumerate(rows)
    ]
    wanted = {method: [each[method][0] for each in alone] for method in alone[0]}
    assert answers(plugin, pod, together, feasible) == wanted, (plugin.name, pod.name, rows)


@st.composite
def partitions(draw: st.DrawFn, count: int) -> list[list[int]]:
    """All positions in another order, and cut in two."""
    permuted = draw(st.permutations(range(count)))
    cut = draw(st.integers(1, count))
    return [part for part in (permuted, permuted[:cut], permuted[cut:]) if part]


def property_of(make_plugins: Callable[[], list[Any]]) -> Callable[[], None]:
    @STEADY
    @given(
        some_nodes=st.lists(nodes, min_size=2, max_size=7, unique_by=lambda node: node.name),
        pods=st.lists(running, max_size=8),
        things=st.lists(st.sampled_from(THINGS), max_size=6),
        traffic=st.none() | st.lists(st.sampled_from([0.0, 3.0, 15.0, 40.0]), max_size=8),
        usage=samples,
        imagined=st.booleans(),
        data=st.data(),
    )
    def holds(
        some_nodes: list[Node],
        pods: list[Pod],
        things: list[Any],
        traffic: list[float] | None,
        usage: dict[str, UsageSample],
        imagined: bool,
        data: st.DataObject,
    ) -> None:
        cluster = Incremental()
        cluster.make_plugins = make_plugins  # type: ignore[misc]
        cluster.start()
        for node in some_nodes:
            cluster.node_comes_or_changes(node)
        for pod in pods:
            cluster.pod_is_bound_or_changes(pod)
        cluster.objects_come_and_change(things)
        state = cluster.state
        if traffic is not None:
            cluster.reading_is_published(dict(zip(state.names, traffic, strict=False)), 15.0)
        for plugin in cluster.plugins:
            if isinstance(plugin, NodeUsage):
                sizes = BelievedCluster(state).allocatable()
                state.publish(plugin.request, usage_reading(plugin.request, usage, sizes, NOW))
        table = state.nodes()
        if imagined:
            placed = [make_pod("imagined", cpu="1", labels={"app": "a"}, host_ports=[80])]
            table = table.with_pods({0: placed}).without({1: [pod.uid for pod in pods]})
        every_row = st.lists(st.booleans(), min_size=state.count, max_size=state.count)
        feasible = np.array(data.draw(every_row), np.bool_)
        parts = data.draw(partitions(state.count))
        ahead = data.draw(st.lists(st.sampled_from(range(state.count)), min_size=1, max_size=9))
        for plugin in filter(judges, cluster.plugins):
            for pod in PODS:
                if hasattr(plugin, "concerns") and not plugin.concerns(pod):
                    check_unconcerned(plugin, pod, table, feasible)
                check_rows(plugin, pod, table, parts, feasible)
                check_ahead(plugin, pod, state.nodes(), ahead, feasible)
                check_signature(plugin, pod, table, feasible)

    return holds


def test_what_is_said_of_a_row_goes_by_the_row_and_the_signature_alone() -> None:
    property_of(every_plugin)()


def test_a_plugin_that_takes_the_asked_rows_for_all_rows_is_caught() -> None:
    def planted() -> list[Any]:
        return [FewPodsHere(), all_plugins()[-1]]

    with pytest.raises(AssertionError, match="FewPodsElsewhere"):
        property_of(planted)()


class ByUid:
    """Scores by what pods of one signature do not share."""

    name = "ByUid"

    def score(self, pod: Pod, nodes: Nodes) -> Any:
        return np.full(len(nodes), len(pod.uid), np.int64)


class Meddles:
    """Says that no pod concerns it, and looks at nodes all the same."""

    name = "Meddles"

    def concerns(self, pod: Pod) -> bool:
        return False

    def filter(self, pod: Pod, nodes: Nodes) -> list[Any]:
        assert len(nodes.unschedulable) == len(nodes)
        return []


@pytest.mark.parametrize("kind", [ByUid, Meddles])
def test_catches(kind: type[Any]) -> None:
    def planted(kind: type[Any]) -> list[Any]:
        return [kind(), all_plugins()[-1]]

    with pytest.raises(AssertionError, match=kind.__name__):
        property_of(partial(planted, kind))()
