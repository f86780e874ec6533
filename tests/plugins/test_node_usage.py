"""NodeUsage: prefers nodes that use little."""

import math
from typing import Any

import numpy as np
import pytest

from lowtide.cluster.changes import ANY_ROW, FEASIBLE, NODE, READING
from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import Decision, PluginScore
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.plugins.node_unschedulable import NodeUnschedulable
from lowtide.plugins.node_usage import NodeUsage, NodeUsageArgs
from lowtide.readings.usage import Allocatable, UsageRequest, UsageSample, usage_reading
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile, make_state

NOW = 1_767_225_600.0
GIB = 2**30
SEED = {"k8s-master": 264.0, "k8s-node1": 87.0, "k8s-node2": 67.0}


def used(cpu_milli: float = math.nan, memory_bytes: float = math.nan) -> UsageSample:
    return UsageSample(cpu_milli, memory_bytes, at=NOW)


def publish(plugin: NodeUsage, state: ClusterState, samples: dict[str, UsageSample]) -> None:
    nodes = state.nodes()
    has = zip(nodes.allocatable("cpu").tolist(), nodes.allocatable("memory").tolist(), strict=True)
    allocatable = {name: Allocatable(*each) for name, each in zip(nodes.names, has, strict=True)}
    state.publish(plugin.request, usage_reading(plugin.request, samples, allocatable, NOW))


def decided(plugin: NodeUsage, state: ClusterState, *others: Any) -> Decision:
    verdicts = VerdictCache(make_profile([plugin, *others]), state)
    return decide(make_pod(), verdicts, turn=0, full=True)


def scores_of(decision: Decision) -> dict[str, tuple[int, int]]:
    """Raw and normalised."""
    by_plugin = {each.node_name: each.by_plugin for each in decision.best}
    return {
        name: (plugins["NodeUsage"].raw, plugins["NodeUsage"].normalized)
        for name, plugins in by_plugin.items()
        if "NodeUsage" in plugins
    }


def scored(samples: dict[str, UsageSample] | None, **args: Any) -> dict[str, tuple[int, int]]:
    """What the plugin alone says of nodes with 4 cores and 8 GiB; None: nothing was published."""
    plugin, state = (
        NodeUsage(NodeUsageArgs(**args)),
        make_state([make_node(name) for name in "abc"]),
    )
    if samples is not None:
        publish(plugin, state, samples)
    return scores_of(decided(plugin, state))


# Millicores.


def test_millicores_are_the_distance_from_the_lowest() -> None:
    plugin = NodeUsage(NodeUsageArgs(unit="millicores"))
    state = make_state([make_node(name) for name in SEED])
    publish(plugin, state, {name: used(cpu_milli) for name, cpu_milli in SEED.items()})
    # 67 - 264 + 1, 67 - 87 + 1, 67 - 67 + 1; of the 197 between best and worst: 0, 177, 197
    assert scores_of(decided(plugin, state)) == {
        "k8s-master": (-196, 0),
        "k8s-node1": (-19, 89),
        "k8s-node2": (1, 100),
    }


def test_millicores_count_from_the_lowest_node_that_is_left() -> None:
    plugin = NodeUsage(NodeUsageArgs(unit="millicores"))
    nodes = [make_node(name, unschedulable=name == "k8s-node2") for name in SEED]
    state = make_state(nodes)
    publish(plugin, state, {name: used(cpu_milli) for name, cpu_milli in SEED.items()})
    decision = decided(plugin, state, NodeUnschedulable())
    assert scores_of(decision) == {"k8s-master": (-176, 0), "k8s-node1": (1, 100)}


@pytest.mark.parametrize(
    ("samples", "want"),
    [
        pytest.param(
            {"a": used(50), "b": used(50), "c": used(50)},
            {"a": (1, 100), "b": (1, 100), "c": (1, 100)},
            id="scores equal nodes 100",
        ),
        pytest.param(
            {"a": used(0), "b": used(100)},
            {"a": (1, 100), "b": (-99, 0), "c": (-49, 50)},
            id="counts a node without a value as average",
        ),
        pytest.param(None, {}, id="has no opinion before the first reading"),
        pytest.param({}, {}, id="has no opinion if no node has a value"),
        pytest.param({"a": used(memory_bytes=5)}, {}, id="has no opinion without CPU values"),
    ],
)
def test_millicores(
    samples: dict[str, UsageSample] | None, want: dict[str, tuple[int, int]]
) -> None:
    assert scored(samples, unit="millicores") == want


# Shares.


@pytest.mark.parametrize(
    ("samples", "args", "want"),
    [
        pytest.param(
            {"a": used(1000), "b": used(2000), "c": used(400)},
            {},
            # of 4000: 25 %, 50 %, 10 %; 100 - 25*100/50, 100 - 50*100/50, 100 - 10*100/50
            {"a": (250_000, 50), "b": (500_000, 0), "c": (100_000, 80)},
            id="scores CPU by default, in millionths of allocatable",
        ),
        pytest.param(
            {"a": used(4000, GIB), "b": used(0, 2 * GIB), "c": used(0, 4 * GIB)},
            {"cpu": 0, "memory": 1},
            {"a": (125_000, 75), "b": (250_000, 50), "c": (500_000, 0)},
            id="scores memory alone",
        ),
        pytest.param(
            {"a": used(4000, 0), "b": used(0, 8 * GIB), "c": used(2000, 4 * GIB)},
            {"cpu": 3, "memory": 1},
            # (3*1 + 0)/4, (0 + 1)/4, (3*0.5 + 0.5)/4
            {"a": (750_000, 0), "b": (250_000, 67), "c": (500_000, 34)},
            id="mixes both by their weights",
        ),
        pytest.param(
            {"a": used(1000), "b": used(3000)},
            {},
            {"a": (250_000, 67), "b": (750_000, 0), "c": (500_000, 34)},
            id="counts a node without a value as average",
        ),
        pytest.param(
            {"a": used(1000, 8 * GIB), "b": used(3000), "c": used(math.nan, 4 * GIB)},
            {"memory": 1},
            # cpu 25 %, 75 %, average 50 %; memory 100 %, average 75 %, 50 %
            {"a": (625_000, 17), "b": (750_000, 0), "c": (500_000, 34)},
            id="fills in each resource on its own",
        ),
        pytest.param(
            {"a": used(1000), "b": used(2000), "c": used(3000)},
            {"memory": 1},
            {"a": (250_000, 67), "b": (500_000, 34), "c": (750_000, 0)},
            id="ignores a resource without any value",
        ),
        pytest.param(
            {"a": used(0), "b": used(0), "c": used(0)},
            {},
            {"a": (0, 100), "b": (0, 100), "c": (0, 100)},
            id="scores idle nodes 100",
        ),
        pytest.param(None, {}, {}, id="has no opinion before the first reading"),
        pytest.param({}, {}, {}, id="has no opinion if no node has a value"),
        pytest.param(
            {"a": used(1)}, {"cpu": 0, "memory": 1}, {}, id="has no opinion without memory values"
        ),
    ],
)
def test_share(
    samples: dict[str, UsageSample] | None,
    args: dict[str, int],
    want: dict[str, tuple[int, int]],
) -> None:
    assert scored(samples, **args) == want


def test_a_large_node_may_use_more() -> None:
    plugin = NodeUsage(NodeUsageArgs())
    state = make_state([make_node("large", cpu="8"), make_node("small", cpu="1")])
    publish(plugin, state, {"large": used(264), "small": used(87)})
    assert decided(plugin, state).node_name == "large"  # 3.3 % of it, and 8.7 %


def test_a_node_that_has_no_cpu_counts_as_full() -> None:
    plugin = NodeUsage(NodeUsageArgs())
    state = make_state([make_node("a"), make_node("b", cpu="0")])
    publish(plugin, state, {"a": used(2000), "b": used(5)})
    assert scores_of(decided(plugin, state)) == {"a": (500_000, 50), "b": (1_000_000, 0)}


# What was just placed.


@pytest.mark.parametrize("unit", ["share", "millicores"])
def test_pods_that_were_just_placed_count_by_their_requests(unit: Any) -> None:
    plugin = NodeUsage(NodeUsageArgs(unit=unit))
    state = make_state([make_node("a"), make_node("b")])
    publish(plugin, state, {"a": used(1000), "b": used(2500)})
    verdicts = VerdictCache(make_profile([plugin]), state)
    chosen = []
    for number in range(4):
        pod = make_pod(f"new-{number}", cpu="1")
        decision = decide(pod, verdicts, turn=0)
        assert decision.node_name is not None
        state.assume(pod, decision.node_name)
        chosen.append(decision.node_name)
    # 1000 + 1000 + 1000 on a is more than the 2500 on b
    assert chosen == ["a", "a", "b", "a"]


def test_a_pod_that_asks_for_nothing_counts_as_kube_counts_it() -> None:
    plugin = NodeUsage(NodeUsageArgs(unit="millicores"))
    state = make_state([make_node("a"), make_node("b")])
    publish(plugin, state, {"a": used(10), "b": used(20)})
    state.assume(make_pod("new"), "a")
    assert scores_of(decided(plugin, state)) == {"a": (20 - 110 + 1, 0), "b": (1, 100)}


def test_what_is_placed_on_a_node_without_a_usage_counts_too() -> None:
    plugin = NodeUsage(NodeUsageArgs(unit="millicores"))
    state = make_state([make_node("a"), make_node("unknown")])
    publish(plugin, state, {"a": used(100)})
    state.assume(make_pod("new", cpu="50m"), "unknown")
    assert scores_of(decided(plugin, state)) == {"a": (1, 100), "unknown": (-49, 0)}


def test_a_pod_on_the_best_node_changes_the_millicores_of_all_nodes() -> None:
    plugin, state = NodeUsage(NodeUsageArgs(unit="millicores")), make_state(map(make_node, "abcd"))
    publish(plugin, state, {name: used(100 * at) for at, name in enumerate("abcd", start=1)})
    verdicts = VerdictCache(make_profile([plugin]), state)
    raw = []
    for _ in range(2):
        found = decide(make_pod(), verdicts, turn=0, full=True)
        raw.append({name: score for name, (score, _) in sorted(scores_of(found).items())})
        state.place(make_pod("new", on="a", cpu="250m"))
    assert raw == [
        {"a": 1, "b": -99, "c": -199, "d": -299},
        {"a": -149, "b": 1, "c": -99, "d": -199},
    ]


# Args and words.


def test_the_request_follows_from_the_args() -> None:
    plain = NodeUsage(NodeUsageArgs())
    assert plain.request == UsageRequest(every_seconds=15.0, stale_after_seconds=300.0)
    assert plain.readings == (plain.request,)
    slow = NodeUsage(NodeUsageArgs(poll_interval_seconds=120.0))
    assert slow.request == UsageRequest(every_seconds=120.0, stale_after_seconds=480.0)


@pytest.mark.parametrize(
    ("unit", "touched"),
    [
        pytest.param("share", NODE | READING, id="reads only the node's own row for shares"),
        pytest.param(
            "millicores",
            READING | (NODE | READING | FEASIBLE) << ANY_ROW,
            id="reads all feasible nodes for millicores",
        ),
    ],
)
def test_what_is_touched(unit: str, touched: int) -> None:
    plugin, state = (
        NodeUsage(NodeUsageArgs(unit=unit)),
        make_state([make_node("a"), make_node("b")]),
    )  # type: ignore[arg-type]
    publish(plugin, state, {"a": used(500)})
    state.touched = 0
    assert plugin.score(make_pod(), state.nodes().with_feasible(np.ones(2, np.bool_))) is not None
    assert state.touched == touched


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param({}, [], id="accepts the defaults"),
        pytest.param({"unit": "millicores"}, [], id="accepts millicores"),
        pytest.param({"cpu": 0, "memory": 2}, [], id="accepts memory alone"),
        pytest.param(
            {"cpu": 0},
            [("cpu", "is 0, and so is memory: one of them must be at least 1")],
            id="rejects args without any resource",
        ),
        pytest.param(
            {"unit": "millicores", "memory": 1},
            [("unit", "millicores counts cpu alone: leave cpu and memory out, or write share")],
            id="rejects millicores with memory",
        ),
        pytest.param(
            {"poll_interval_seconds": 0.5},
            [("pollInterval", "must be at least 1s, not 0.5s")],
            id="rejects too short a poll interval",
        ),
        pytest.param(
            {"poll_interval_seconds": 90_000.0},
            [("pollInterval", "must be at most 24h, not 25h")],
            id="rejects too long a poll interval",
        ),
    ],
)
def test_args(args: dict[str, Any], want: list[tuple[str, str]]) -> None:
    assert list(NodeUsageArgs(**args).problems()) == want


# What is logged.


def in_words(state: ClusterState, raw: dict[str, int], plugin: NodeUsage) -> list[str]:
    scores = {name: PluginScore(one, 50, 50) for name, one in raw.items()}
    return list(plugin.score_log_lines(scores, state.nodes()))


def test_shares_in_words() -> None:
    plugin, state = NodeUsage(NodeUsageArgs()), make_state([make_node("a"), make_node("b")])
    assert in_words(state, {"a": 66_000, "b": 16_750}, plugin) == [
        "[NodeUsage] node 'a' usage: 6.60 %",
        "[NodeUsage] node 'b' usage: 1.68 %",
        "[NodeUsage] Nodes final score: [{a 50} {b 50}]",
    ]


@pytest.mark.parametrize(
    ("samples", "placed", "want"),
    [
        pytest.param(
            {"a": used(264.0)}, [], "264, Score: -196", id="logs the measured use and the score"
        ),
        pytest.param(
            {"a": used(264.4)},
            [make_pod("new", on="a", cpu="250m")],
            "264 + 250 of pods just placed, Score: -196",
            id="logs pods just placed too",
        ),
        pytest.param(
            {"b": used(100.0)},
            [],
            "unknown, counted as 100, Score: -196",
            id="logs that a node has no value",
        ),
        pytest.param({}, [], "unknown, Score: -196", id="logs that no node has a value"),
        pytest.param(None, [], "unknown, Score: -196", id="logs without any reading"),
    ],
)
def test_millicores_in_words(
    samples: dict[str, UsageSample] | None, placed: list[Any], want: str
) -> None:
    plugin = NodeUsage(NodeUsageArgs(unit="millicores"))
    state = make_state([make_node("a"), make_node("b")], placed)
    if samples is not None:
        publish(plugin, state, samples)
    assert in_words(state, {"a": -196}, plugin) == [
        f"Node [ a ] Cpu Usage Value: {want}",
        "[NodeUsage] Nodes final score: [{a 50}]",
    ]


def test_a_node_that_is_gone_is_unknown() -> None:
    plugin, state = NodeUsage(NodeUsageArgs(unit="millicores")), make_state([make_node("b")])
    publish(plugin, state, {"b": used(100.0)})
    assert in_words(state, {"a": 1}, plugin)[0] == "Node [ a ] Cpu Usage Value: unknown, Score: 1"
