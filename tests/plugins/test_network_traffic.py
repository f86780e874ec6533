"""NetworkTraffic: prefers nodes whose network is quiet."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import Decision
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.pod import Pod
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import HotNodesArgs, NetworkTrafficArgs, NotFreshArgs
from lowtide.readings.columns import published
from lowtide.readings.meter import TrafficMeter
from lowtide.readings.reading import State
from lowtide.readings.series import Series
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile, make_state, scores

SCORINGS = ["relative", "utilization"]
NOT_FRESH = [State.STALE, State.MISSING, State.IMPLAUSIBLE]


def carrying(bytes_per_second: float, name: str = "pod", **more: Any) -> Pod:
    """A pod that says what it carries in each direction."""
    said = {"lowtide.dev/traffic": f"{bytes_per_second * 8:f}"}
    return make_pod(name, annotations=said, **more)


IDLE = carrying(0)


def fresh(value: float, capacity: float | None = None) -> dict[str, Any]:
    return {"value": value, "capacity": capacity}


def untrusted(value: float, state: State, capacity: float | None = None) -> dict[str, Any]:
    return {"value": value, "capacity": capacity, "state": state.value}


def measured(
    plugin: NetworkTraffic, by_node: Mapping[str, Any] | None, names: str = "abcd"
) -> ClusterState:
    """Nodes with these readings; without `by_node` nothing was published."""
    nodes = [make_node(name) for name in names]
    state = make_state(nodes)
    if by_node is not None:
        reading = replace(traffic_reading(plugin.request, by_node, nodes), sampled_at=0.0)
        state.publish(plugin.request, published(reading))
    return state


def decided(
    scoring: Any,
    by_node: Mapping[str, Any] | None,
    names: str = "abcd",
    *,
    pod: Pod = IDLE,
    **args: Any,
) -> Decision:
    """What the plugin alone decides."""
    plugin = NetworkTraffic(NetworkTrafficArgs(scoring=scoring, **args))
    state = measured(plugin, by_node, names)
    return decide(pod, VerdictCache(make_profile([plugin]), state), turn=0, full=True)


def totals(decision: Decision) -> dict[str, int]:
    return {each.node_name: each.total for each in decision.best}


def raw(decision: Decision) -> dict[str, int]:
    return {each.node_name: each.by_plugin["NetworkTraffic"].raw for each in decision.best}


# Relative to the busiest.


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param(
            {"a": 1, "b": 15, "c": 10, "d": 13},
            # 100 - 100//15, 100 - 1500//15, 100 - 1000//15, 100 - 1300//15
            {"a": 94, "b": 0, "c": 34, "d": 14},
            id="scores small numbers",
        ),
        pytest.param(
            {
                "node5": 312528236767,
                "node3": 327333347411,
                "node1": 321718404122,
                "node4": 224935743744,
                "node6": 415270171795,
                "node2": 270270915134,
            },
            {"node5": 25, "node3": 22, "node1": 23, "node4": 46, "node6": 0, "node2": 35},
            id="scores as the first earlier plugin did",
        ),
        pytest.param(
            {"x": 27938745453, "y": 151099652057},
            {"x": 82, "y": 0},
            id="scores as the second earlier plugin did",
        ),
        pytest.param(
            {"x": 1000000, "y": 1200000, "z": 1400000},
            {"x": 29, "y": 15, "z": 0},
            id="scores as the third earlier plugin did",
        ),
    ],
)
def test_relative_is_the_share_of_the_busiest(values: dict[str, int], want: dict[str, int]) -> None:
    plugin = NetworkTraffic(
        NetworkTrafficArgs(measure="sumOverTime", direction="receive", scoring="relative")
    )
    nodes = [make_node(name) for name in values]
    state = make_state(nodes)
    state.publish(plugin.request, published(traffic_reading(plugin.request, values, nodes)))
    decision = decide(make_pod(), VerdictCache(make_profile([plugin]), state), turn=0, full=True)
    assert totals(decision) == want
    assert raw(decision) == values


def test_relative_takes_traffic_beyond_what_integers_hold() -> None:
    assert totals(decided("relative", {"a": fresh(1e24), "b": fresh(0)}, names="ab")) == {
        "a": 0,
        "b": 100,
    }


@pytest.mark.parametrize("scoring", SCORINGS)
def test_all_zero_is_all_quiet(scoring: str) -> None:
    by_node = {name: fresh(0, capacity=10) for name in "abcd"}
    assert totals(decided(scoring, by_node)) == dict.fromkeys("abcd", 100)


# Nothing is known.


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize(
    "by_node",
    [
        pytest.param(None, id="has none before the first reading"),
        pytest.param({}, id="has none if no node has a value"),
        pytest.param({"a": fresh(5, capacity=10)}, id="has none if too few nodes have a value"),
    ],
)
def test_there_is_no_opinion(by_node: Mapping[str, Any] | None, scoring: str) -> None:
    decision = decided(scoring, by_node)
    assert [each.by_plugin for each in decision.best] == [{}] * 4


def test_utilization_has_no_opinion_without_any_capacity() -> None:
    decision = decided("utilization", {name: fresh(0) for name in "abcd"})
    assert [each.by_plugin for each in decision.best] == [{}] * 4


@pytest.mark.parametrize("scoring", SCORINGS)
def test_there_is_no_opinion_on_a_pod_that_ignores_traffic(scoring: str) -> None:
    pod = make_pod(annotations={"lowtide.dev/traffic": "ignore"})
    by_node = {name: fresh(ord(name), capacity=1000) for name in "abcd"}
    assert [each.by_plugin for each in decided(scoring, by_node, pod=pod).best] == [{}] * 4


# By the use of the link.


def test_utilization_is_the_free_share_of_the_link() -> None:
    decision = decided(
        "utilization",
        {
            "a": fresh(25, capacity=100),
            "b": fresh(25, capacity=1000),
            "c": fresh(1, capacity=1000),
            "d": fresh(0, capacity=100),
        },
    )
    # 100 - 25, 100 - ceil(2.5), 100 - ceil(0.1), 100
    assert totals(decision) == {"a": 75, "b": 97, "c": 99, "d": 100}


@pytest.mark.parametrize("percent", [7, 14, 28, 29, 55, 56, 57, 58])
def test_a_whole_percentage_is_not_rounded_up_to_the_next(percent: int) -> None:
    decision = decided("utilization", {"a": fresh(percent, capacity=100)}, names="a")
    assert totals(decision) == {"a": 100 - percent}


def test_utilization_counts_the_pod_itself() -> None:
    by_node = {"a": fresh(10, capacity=100), "b": fresh(10, capacity=1000)}
    # (10 + 20) of 100, (10 + 20) of 1000
    assert totals(decided("utilization", by_node, names="ab", pod=carrying(20))) == {
        "a": 70,
        "b": 97,
    }


def test_a_pod_of_which_nothing_is_known_is_taken_for_a_share_of_the_median_link() -> None:
    capacities = {"a": 100, "b": 200, "c": 400}
    by_node = {name: fresh(0, capacity=each) for name, each in capacities.items()}
    decision = decided("utilization", by_node, "abc", pod=make_pod(), pod_traffic="10%")
    # 20 of 100, of 200, of 400
    assert totals(decision) == {"a": 80, "b": 90, "c": 95}


def test_utilization_without_a_capacity_takes_the_busiest_other_for_full() -> None:
    plugin = NetworkTraffic(NetworkTrafficArgs())
    by_node = {"a": fresh(5), "b": fresh(20), "c": fresh(0), "d": fresh(10)}
    found = scores(plugin, IDLE, measured(plugin, by_node)) or {}
    # 5 of b's 20, 0 of b's 20, 10 of b's 20; and 20 of d's 10, which is more than full
    assert {name: found[name] for name in "acd"} == {"a": 75, "c": 100, "d": 50}
    assert found["b"] < 20


@pytest.mark.parametrize(
    ("direction", "want"),
    [
        pytest.param("receive", {"a": 90, "b": 60}, id="receive"),
        pytest.param("transmit", {"a": 70, "b": 90}, id="transmit"),
        pytest.param("max", {"a": 70, "b": 60}, id="the larger of both directions"),
        # (10 + 30) / 200, (40 + 10) / 200
        pytest.param("sum", {"a": 80, "b": 75}, id="both directions, of both capacities"),
    ],
)
def test_utilization_by_direction(direction: Any, want: dict[str, int]) -> None:
    by_node = {
        "a": {"receive": 10, "transmit": 30, "capacity": 100},
        "b": {"receive": 40, "transmit": 10, "capacity": 100},
    }
    assert totals(decided("utilization", by_node, names="ab", direction=direction)) == want


def test_utilization_of_an_increase() -> None:
    by_node = {"a": fresh(600, capacity=100), "b": fresh(3000, capacity=100)}
    decision = decided("utilization", by_node, "ab", measure="increase", window="1m")
    # 600 bytes a minute are 10 a second; 3000 are 50
    assert totals(decision) == {"a": 90, "b": 50}


def test_utilization_of_a_query_of_the_users_own() -> None:
    by_node = {"a": fresh(10, capacity=100), "b": fresh(50, capacity=100)}
    decision = decided("utilization", by_node, "ab", query="node:traffic", pod=carrying(20))
    assert totals(decision) == {"a": 70, "b": 30}


# The curve.

shares = st.floats(min_value=0, max_value=1e6) | st.sampled_from([0.0, 0.75, 0.9, 1.0])
odd_shares = shares | st.sampled_from([-1.0, -1e22, 1e22, 5e-324])
hot_nodes = st.tuples(st.integers(0, 100), st.integers(0, 100)).map(
    lambda pair: HotNodesArgs(
        soft_percent=min(pair), hard_percent=max(pair), cooling_percent=min(10, max(pair))
    )
)


def curve(hot_nodes: HotNodesArgs, shares: list[float], pod: Pod = IDLE) -> list[int]:
    """The raw scores of nodes whose links are used that much."""
    plugin = NetworkTraffic(NetworkTrafficArgs(hot_nodes=hot_nodes))
    by_node = {f"n{number}": fresh(share, capacity=1) for number, share in enumerate(shares)}
    nodes = [make_node(name) for name in by_node]
    state = make_state(nodes)
    state.publish(plugin.request, published(traffic_reading(plugin.request, by_node, nodes)))
    found = scores(plugin, pod, state)
    assert found is not None
    return list(found.values())


@settings(max_examples=200, deadline=None, derandomize=True)
@given(hot_nodes, st.lists(odd_shares, min_size=1, max_size=8))
def test_any_share_scores_a_whole_number_from_0_to_100(
    hot_nodes: HotNodesArgs, shares: list[float]
) -> None:
    assert all(0 <= score <= 100 for score in curve(hot_nodes, shares))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(hot_nodes, st.lists(shares, min_size=2, max_size=8))
def test_a_fuller_link_never_scores_higher(hot_nodes: HotNodesArgs, shares: list[float]) -> None:
    found = curve(hot_nodes, sorted(shares))
    assert found == sorted(found, reverse=True)


def test_among_overloaded_links_one_is_better_than_another() -> None:
    found = curve(HotNodesArgs(), [0.5, 0.74, 0.8, 1.0, 1.5, 2.5, 5.0])
    assert found == sorted(set(found), reverse=True)


def test_a_link_beyond_the_soft_threshold_scores_well_below_one_before_it() -> None:
    before, beyond = curve(HotNodesArgs(soft_percent=50), [0.49, 0.51])
    assert before - beyond > 10


# What was placed since.


def test_what_was_just_placed_counts_in_relative_scores() -> None:
    plugin = NetworkTraffic(NetworkTrafficArgs(scoring="relative"))
    state = measured(plugin, {"a": fresh(10), "b": fresh(40)}, names="ab")
    state.assume(carrying(10, "placed"), "a")
    assert scores(plugin, IDLE, state) == {"a": 20, "b": 40}


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param({"direction": "receive"}, 110, id="received traffic"),
        pytest.param({"direction": "transmit"}, 130, id="sent traffic"),
        pytest.param({"direction": "max"}, 130, id="the larger of both directions"),
        pytest.param({"direction": "sum"}, 240, id="adds both directions"),  # 200 + 10 + 30
        # 6000 in a minute, and 10 a second
        pytest.param(
            {"direction": "receive", "measure": "increase"},
            6600,
            id="multiplies by the window for an increase",
        ),
        pytest.param({"query": "x"}, 100, id="adds nothing to a user's own query"),
        pytest.param(
            {"direction": "receive", "measure": "sumOverTime"},
            100,
            id="adds nothing to a measure that is no rate",
        ),
    ],
)
def test_in_relative_scores_a_placed_pod_counts(args: dict[str, Any], want: int) -> None:
    plugin = NetworkTraffic(NetworkTrafficArgs(scoring="relative", **args))
    of_a = 6000 if args.get("measure") == "increase" else 100
    state = measured(plugin, {"a": fresh(of_a)}, names="a")
    said = {"lowtide.dev/traffic": "receive=80,transmit=240"}  # bits: 10 and 30 bytes
    state.assume(make_pod("placed", annotations=said), "a")
    assert scores(plugin, IDLE, state) == {"a": want}


@pytest.mark.parametrize(
    ("direction", "want"),
    [
        pytest.param("receive", {"a": 65, "b": 55}, id="received traffic"),  # 10+20+5, 40+5
        pytest.param("transmit", {"a": 45, "b": 55}, id="sent traffic"),  # 10+40+5, 40+5
        pytest.param("max", {"a": 45, "b": 55}, id="the larger of both directions"),
        pytest.param(
            "sum", {"a": 55, "b": 55}, id="both directions, of both capacities"
        ),  # (35 + 55) / 2
    ],
)
def test_in_shares_a_placed_pod_counts(direction: Any, want: dict[str, int]) -> None:
    plugin = NetworkTraffic(NetworkTrafficArgs(direction=direction))
    state = measured(plugin, {"a": fresh(10, capacity=100), "b": fresh(40, capacity=100)}, "ab")
    said = {"lowtide.dev/traffic": "receive=160,transmit=320"}  # bits: 20 and 40 bytes
    state.assume(make_pod("placed", annotations=said), "a")
    assert scores(plugin, carrying(5), state) == want


def test_the_worst_device_counts_although_another_carries_more() -> None:
    plugin = NetworkTraffic(NetworkTrafficArgs(direction="receive"))

    def series(**values: float) -> list[Series]:
        return [
            Series({"node": "a", "device": device}, value, 0.0) for device, value in values.items()
        ]

    answers = {"receive": series(eth0=30, eth1=6), "speed": series(eth0=100, eth1=10)}
    state = make_state([make_node("a")])
    reading = TrafficMeter(plugin.request).take(answers, [make_node("a")], (), 0.0)
    state.publish(plugin.request, published(reading))
    # eth1 is used by 60 %; eth0, which a pod's traffic is counted on, by 30
    assert scores(plugin, IDLE, state) == {"a": 40}
    assert scores(plugin, carrying(20), state) == {"a": 40}
    assert scores(plugin, carrying(40), state) == {"a": 30}  # 30 + 40


def test_a_burst_is_spread_although_no_new_reading_comes() -> None:
    plugin = NetworkTraffic(NetworkTrafficArgs())
    percent = {"a": 10.0, "b": 20.0, "c": 30.0, "d": 60.0}
    state = measured(plugin, {name: fresh(each, capacity=100) for name, each in percent.items()})
    placed = burst(plugin, state, count=12, each=10 / 2)
    # Filled up to one level: 10 + 5*5 = 35, 20 + 3*5 = 35, 30 + 1*5 = 35; then one more each.
    assert placed == {"a": 6, "b": 4, "c": 2}


def burst(plugin: NetworkTraffic, state: ClusterState, *, count: int, each: float) -> Counter[str]:
    """Pods that carry so much, placed one after the other; how many went where."""
    verdicts = VerdictCache(make_profile([plugin]), state)
    placed: Counter[str] = Counter()
    for number in range(count):
        pod = carrying(each, f"burst-{number}")
        decision = decide(pod, verdicts, turn=number)
        assert decision.node_name is not None
        state.assume(pod, decision.node_name)
        placed[decision.node_name] += 1
    return placed


@pytest.mark.parametrize("state", NOT_FRESH)
@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize(
    "percent",
    [
        pytest.param((10, 30, 50, 70, 90), id="the others are used unevenly"),
        pytest.param((40, 40, 40, 40, 40), id="the others are used alike"),
        pytest.param((0, 0, 0, 0, 100), id="one is full and the others are idle"),
    ],
)
def test_a_node_without_a_reading_draws_no_more_pods_than_the_average_one_when(
    percent: tuple[int, ...], scoring: Any, state: State
) -> None:
    plugin = NetworkTraffic(NetworkTrafficArgs(scoring=scoring))
    by_node: dict[str, Any] = {
        name: fresh(each, capacity=100) for name, each in zip("abcde", percent, strict=True)
    }
    by_node |= {name: untrusted(0, state, capacity=100) for name in "vwxyz"}
    if state is State.MISSING:
        by_node |= {name: {"capacity": 100} for name in "vwxyz"}
    table = measured(plugin, by_node, "abcdevwxyz")
    placed = burst(plugin, table, count=100, each=2)
    of_known = sum(placed[name] for name in "abcde") / 5
    assert max(placed[name] for name in "vwxyz") <= of_known + 1


# Nodes without a fresh reading.


@pytest.mark.parametrize("state", NOT_FRESH)
def test_relative_takes_what_is_not_trusted_for_average(state: State) -> None:
    by_node = {"a": fresh(0), "b": fresh(20), "c": untrusted(1000, state)}
    # c and d count as (0 + 20) / 2 = 10: 100 - 10*100//20
    assert totals(decided("relative", by_node)) == {"a": 100, "b": 0, "c": 50, "d": 50}


@pytest.mark.parametrize("state", NOT_FRESH)
def test_utilization_takes_what_is_not_trusted_for_average(state: State) -> None:
    by_node = {
        "a": fresh(10, capacity=100),
        "b": fresh(300, capacity=1000),
        "c": untrusted(1000, state),
    }
    # c and d count as (10 % + 30 %) / 2 = 20 %
    assert totals(decided("utilization", by_node)) == {"a": 90, "b": 70, "c": 80, "d": 80}


@pytest.mark.parametrize("state", NOT_FRESH)
@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("policy", ["avoid", "reject"])
def test_what_is_to_be_avoided_counts_no_better_than_the_busiest(
    policy: str, scoring: str, state: State
) -> None:
    by_node = {
        "a": fresh(10, capacity=100),
        "b": fresh(50, capacity=100),
        "c": untrusted(0, state, capacity=100),
    }
    plugin = NetworkTraffic(
        NetworkTrafficArgs(scoring=scoring, not_fresh=NotFreshArgs(**{state.value: policy}))  # type: ignore[arg-type]
    )
    found = scores(plugin, IDLE, measured(plugin, by_node, "abc"))
    assert found is not None
    quietness = {name: -each if scoring == "relative" else each for name, each in found.items()}
    assert quietness["a"] > quietness["b"] >= quietness["c"]


@pytest.mark.parametrize("state", NOT_FRESH)
def test_each_state_has_a_policy_of_its_own(state: State) -> None:
    others = {other.value: "avoid" for other in NOT_FRESH if other is not state}
    by_node = {
        "a": fresh(10, capacity=100),
        "b": fresh(50, capacity=100),
        "c": untrusted(0, state, capacity=100),
    }
    plugin = NetworkTraffic(NetworkTrafficArgs(not_fresh=NotFreshArgs(**others)))  # type: ignore[arg-type]
    assert scores(plugin, IDLE, measured(plugin, by_node, "abc")) == {"a": 90, "b": 50, "c": 70}


@pytest.mark.parametrize("scoring", SCORINGS)
def test_a_node_that_joined_since_counts_as_average(scoring: Any) -> None:
    plugin = NetworkTraffic(NetworkTrafficArgs(scoring=scoring))
    state = measured(plugin, {"a": fresh(10, capacity=100), "b": fresh(50, capacity=100)}, "ab")
    state.add_node(make_node("new"))
    want = {"a": 10, "b": 50, "new": 30} if scoring == "relative" else {"a": 90, "b": 50, "new": 70}
    assert scores(plugin, IDLE, state) == want


@pytest.mark.parametrize(
    ("brake_percent", "has_opinion"),
    [
        pytest.param(50, True, id="scores if exactly the brake percentage is not fresh"),
        pytest.param(49, False, id="has no opinion if more nodes are not fresh"),
    ],
)
@pytest.mark.parametrize("scoring", SCORINGS)
def test_the_plugin(scoring: Any, brake_percent: int, has_opinion: bool) -> None:
    args = NetworkTrafficArgs(
        scoring=scoring, not_fresh=NotFreshArgs(missing="avoid", brake_percent=brake_percent)
    )
    plugin = NetworkTraffic(args)
    by_node = {"a": fresh(10, capacity=100), "b": fresh(50, capacity=100)}
    assert (scores(plugin, IDLE, measured(plugin, by_node)) is not None) == has_opinion


@pytest.mark.parametrize("policy", ["avoid", "reject"])
def test_among_nodes_to_be_avoided_what_was_just_placed_counts(policy: Any) -> None:
    plugin = NetworkTraffic(NetworkTrafficArgs(not_fresh=NotFreshArgs(missing=policy)))
    by_node = {name: fresh(10, capacity=100) for name in "ab"}
    by_node |= {name: {"capacity": 100} for name in "cd"}
    state = measured(plugin, by_node, "abcd")
    state.assume(carrying(150, "placed"), "c")
    found = scores(plugin, IDLE, state)
    assert found is not None
    assert found["a"] > found["d"] > found["c"] > 0


# A capacity that is a guess.


@pytest.mark.parametrize(
    ("by_node", "want"),
    [
        pytest.param(
            {"a": fresh(80), "b": fresh(100), "c": fresh(20)},
            # of 100, of 80, of 100
            {"a": 20, "b": 7, "c": 80, "d": 25},
            id="has no soft threshold for a guessed capacity",
        ),
        pytest.param(
            {"a": fresh(80, 100), "b": fresh(100, 100), "c": fresh(20, 100)},
            {"a": 11, "b": 9, "c": 80, "d": 33},
            id="has a soft threshold for a known capacity",
        ),
    ],
)
def test_a_guessed_capacity(by_node: Mapping[str, Any], want: dict[str, int]) -> None:
    plugin = NetworkTraffic(NetworkTrafficArgs())
    assert scores(plugin, IDLE, measured(plugin, by_node)) == want


@pytest.mark.parametrize("amount", ["1e30", "1e100", "9" * 1000])
def test_a_pod_that_states_too_much_traffic_is_placed_and_hurts_nobody(amount: str) -> None:
    plugin = NetworkTraffic(NetworkTrafficArgs())
    state = measured(plugin, dict.fromkeys("abcd", fresh(1e6, 1e9)))
    verdicts = VerdictCache(make_profile([plugin]), state)
    huge = make_pod("huge", annotations={"lowtide.dev/traffic": amount}, priority=5)
    node_name = decide(huge, verdicts, turn=0).node_name
    assert node_name is not None
    state.nominate(huge, node_name)
    assert decide(carrying(1e6), verdicts, turn=0).node_name is not None
    state.assume(huge, node_name)
    assert decide(carrying(1e6), verdicts, turn=0).node_name not in (None, node_name)
