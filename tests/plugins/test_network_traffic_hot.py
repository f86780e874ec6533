"""NetworkTraffic as a filter: hot nodes, nodes that are not to be trusted, and who may pass."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest
import yaml

from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry
from lowtide.cluster.state import ClusterState
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder
from lowtide.framework.profile import Profile
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.pod import Pod
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import HotNodesArgs, NetworkTrafficArgs, NotFreshArgs
from lowtide.plugins.node_unschedulable import NodeUnschedulable
from lowtide.readings.columns import published
from lowtide.readings.meter import TrafficMeter
from lowtide.readings.reading import State, TrafficReading
from lowtide.readings.series import Series
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile, make_state, rejections

HOT = "node(s) had a hot network link"
NOT_TRUSTED = "node(s) had no fresh traffic reading"
HARD_AT_90 = HotNodesArgs(soft_percent=75, hard_percent=90, cooling_percent=10)


def carrying(percent: float, name: str = "pod", **more: Any) -> Pod:
    """A pod that takes so much of a link of 100 bytes per second."""
    said = {"lowtide.dev/traffic": f"{percent * 8:f}"}
    return make_pod(name, annotations=said, **more)


def plugin_with(**args: Any) -> NetworkTraffic:
    return NetworkTraffic(NetworkTrafficArgs(**{"hot_nodes": HARD_AT_90, **args}))


def reading(plugin: NetworkTraffic, **percent: Any) -> TrafficReading:
    """Of nodes whose links are used by so many percent, or as it is said."""
    by_node = {
        name: {"capacity": 100, **(each if isinstance(each, Mapping) else {"value": each})}
        for name, each in percent.items()
    }
    nodes = [make_node(name) for name in percent]
    return replace(traffic_reading(plugin.request, by_node, nodes), sampled_at=0.0)


def measured(plugin: NetworkTraffic, **percent: Any) -> ClusterState:
    state = make_state([make_node(name) for name in percent])
    state.publish(plugin.request, published(reading(plugin, **percent)))
    return state


def rejected(plugin: NetworkTraffic, state: ClusterState, pod: Pod | None = None) -> dict[str, Any]:
    return rejections(plugin, pod or carrying(0), state)


# Hot nodes.


@pytest.mark.parametrize("scoring", ["utilization", "relative"])
def test_a_node_is_hot_from_the_hard_threshold_on(scoring: str) -> None:
    plugin = plugin_with(scoring=scoring)
    assert rejected(plugin, measured(plugin, a=10, b=89.9, c=90, d=250)) == {"c": [HOT], "d": [HOT]}


def test_the_pod_itself_counts() -> None:
    plugin = plugin_with()
    state = measured(plugin, a=10, b=85)
    assert rejected(plugin, state, carrying(4)) == {}
    assert rejected(plugin, state, carrying(5)) == {"b": [HOT]}
    assert rejected(plugin, state, carrying(80)) == {"a": [HOT], "b": [HOT]}


def test_pods_on_their_way_count() -> None:
    plugin = plugin_with()
    state = measured(plugin, a=10, b=10)
    state.assume(carrying(50, "one"), "a")
    assert rejected(plugin, state, carrying(20)) == {}
    state.assume(carrying(30, "two"), "a")
    assert rejected(plugin, state, carrying(1)) == {"a": [HOT]}
    state.forget("default/one")
    assert rejected(plugin, state, carrying(20)) == {}


def test_a_node_that_was_hot_stays_so_until_it_has_cooled() -> None:
    plugin = plugin_with()
    meter = TrafficMeter(plugin.request)
    state = make_state([make_node("a")])
    found = []
    for number, percent in enumerate([85, 95, 85, 81, 79, 85]):
        now = 1000.0 + 15 * number
        answers = {
            name: [Series({"node": "a", "device": "eth0"}, value, now)]
            for name, value in (("receive", percent), ("transmit", 0.0), ("speed", 100.0))
        }
        taken = meter.take(answers, [make_node("a")], (), now)
        state.publish(plugin.request, published(taken))
        found.append(bool(rejected(plugin, state)))
    assert found == [False, True, True, True, False, False]


@pytest.mark.parametrize(
    "state",
    [
        pytest.param({"value": 99, "state": "stale"}, id="stale"),
        pytest.param({"value": 99, "state": "implausible"}, id="implausible"),
        pytest.param({}, id="missing"),
    ],
)
def test_a_node_without_a_fresh_reading_is_not_hot(state: dict[str, Any]) -> None:
    plugin = plugin_with()
    table = measured(plugin, a=80, b=80, c=state)
    assert rejected(plugin, table, carrying(9)) == {}
    assert rejected(plugin, table, carrying(11)) == {"a": [HOT], "b": [HOT]}


@pytest.mark.parametrize(
    ("args", "is_hot"),
    [
        pytest.param({}, True, id="finds hot links by a rate"),
        pytest.param(
            {"measure": "increase", "window": "1s"}, True, id="finds hot links by an increase"
        ),
        pytest.param(
            {"query": "x"}, True, id="finds hot links by a user's own query with utilization"
        ),
        pytest.param(
            {"query": "x", "scoring": "relative"},
            False,
            id="finds no hot link by a user's own query with relative scoring",
        ),
        pytest.param(
            {"measure": "sumOverTime", "scoring": "relative"},
            False,
            id="finds no hot link by a sum over time",
        ),
    ],
)
def test_a_link_is_hot_by(args: dict[str, Any], is_hot: bool) -> None:
    plugin = plugin_with(**args)
    assert rejected(plugin, measured(plugin, a=95)) == ({"a": [HOT]} if is_hot else {})


def test_nothing_is_hot_before_the_first_reading() -> None:
    plugin = plugin_with()
    assert rejected(plugin, make_state([make_node("a")])) == {}


def test_nothing_is_hot_while_too_few_nodes_are_fresh() -> None:
    plugin = plugin_with(not_fresh=NotFreshArgs(missing="reject"))
    assert rejected(plugin, measured(plugin, a=95, b={}, c={})) == {}


# Nodes that are not to be trusted.


@pytest.mark.parametrize("state", [State.STALE, State.MISSING, State.IMPLAUSIBLE])
@pytest.mark.parametrize("scoring", ["utilization", "relative"])
@pytest.mark.parametrize(
    ("policy", "reasons"),
    [
        pytest.param("neutral", {}, id="rejects no node with neutral"),
        pytest.param("avoid", {}, id="rejects no node with avoid"),
        pytest.param("reject", {"c": [NOT_TRUSTED]}, id="rejects the node with reject"),
    ],
)
def test_the_policy(policy: str, reasons: dict[str, list[str]], scoring: str, state: State) -> None:
    plugin = plugin_with(scoring=scoring, not_fresh=NotFreshArgs(**{state.value: policy}))  # type: ignore[arg-type]
    table = measured(plugin, a=10, b=20, c={"value": 1, "state": state.value})
    assert rejected(plugin, table) == reasons


def test_a_node_that_joined_since_is_missing() -> None:
    plugin = plugin_with(not_fresh=NotFreshArgs(missing="reject"))
    state = measured(plugin, a=10, b=20)
    state.add_node(make_node("new"))
    assert rejected(plugin, state) == {"new": [NOT_TRUSTED]}


# Who may pass.


def owned_by(kind: str) -> Pod:
    pod = carrying(1)
    references = [{"kind": kind, "name": "x", "uid": "x", "controller": True}]
    meta = {**msgspec.to_builtins(pod.metadata), "ownerReferences": references}
    return msgspec.structs.replace(pod, metadata=msgspec.convert(meta, type(pod.metadata)))


@pytest.mark.parametrize(
    ("pod", "passes"),
    [
        pytest.param(owned_by("DaemonSet"), True, id="lets a pod of a DaemonSet"),
        pytest.param(owned_by("ReplicaSet"), False, id="does not let a pod of a ReplicaSet"),
        pytest.param(carrying(1, priority=2_000_000_000), True, id="lets a system-critical pod"),
        pytest.param(
            carrying(1, priority=1_999_999_999),
            False,
            id="does not let a pod of slightly lower priority",
        ),
        pytest.param(
            make_pod(annotations={"lowtide.dev/traffic": "ignore"}),
            True,
            id="lets a pod that ignores traffic",
        ),
        pytest.param(carrying(0), False, id="does not let a pod with 0 expected traffic"),
    ],
)
def test_a_pod_may_go_to_a_hot_node_and_to_one_that_is_not_trusted(pod: Pod, passes: bool) -> None:
    plugin = plugin_with(not_fresh=NotFreshArgs(missing="reject"))
    state = measured(plugin, a=95, b=10, c={})
    want = {} if passes else {"a": [HOT], "c": [NOT_TRUSTED]}
    assert rejected(plugin, state, pod) == want


# It never rejects every node.


@pytest.mark.parametrize(
    ("percent", "cordoned", "chosen"),
    [
        pytest.param({"a": 95, "b": 40, "c": 20}, "", "c", id="chooses a cool node"),
        pytest.param(
            {"a": 300, "b": 95, "c": 500}, "", "b", id="chooses the coolest node if all are hot"
        ),
        pytest.param(
            {"a": 300, "b": 95, "c": 20},
            "c",
            "b",
            id="chooses a hot node if other plugins reject the cool one",
        ),
        pytest.param(
            {"a": 300, "b": 95, "c": 20}, "abc", None, id="chooses none if other plugins reject all"
        ),
        pytest.param(
            {"a": 300, "b": 95, "c": {}},
            "",
            "c",
            id="chooses a node without a fresh reading if the others are hot",
        ),
    ],
)
def test_a_decision(percent: dict[str, Any], cordoned: str, chosen: str | None) -> None:
    plugin = plugin_with()
    state = measured(plugin, **percent)
    for name in cordoned:
        state.update_node(make_node(name, unschedulable=True))
    verdicts = VerdictCache(make_profile([NodeUnschedulable(), plugin]), state)
    assert decide(carrying(1), verdicts, turn=0).node_name == chosen


def test_nodes_that_are_not_trusted_are_taken_when_no_other_is_left() -> None:
    plugin = plugin_with(not_fresh=NotFreshArgs(missing="reject", brake_percent=100))
    state = measured(plugin, a={}, b=95, c={})
    state.update_node(make_node("b", unschedulable=True))
    verdicts = VerdictCache(make_profile([NodeUnschedulable(), plugin]), state)
    assert decide(carrying(1), verdicts, turn=0).node_name in {"a", "c"}


@pytest.mark.parametrize(
    ("waited_seconds", "chosen", "tried_after"),
    [
        pytest.param(0, None, 120.0, id="waits for a cooler node"),
        pytest.param(119, None, 120.0, id="waits until its patience is over"),
        pytest.param(120, "a", float("inf"), id="goes to a hot node when its patience is over"),
    ],
)
def test_with_patience_a_pod(waited_seconds: float, chosen: str | None, tried_after: float) -> None:
    plugin = plugin_with(hot_nodes=HotNodesArgs(patience_seconds=120.0))
    verdicts = VerdictCache(make_profile([plugin]), measured(plugin, a=95, b=400))
    decision = decide(carrying(1), verdicts, turn=0, waited_seconds=waited_seconds)
    assert (decision.node_name, decision.gives_way_after) == (chosen, tried_after)


# Where it is a filter at all.


def profile_of(plugins: dict[str, Any]) -> Profile:
    text = yaml.safe_dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "schedulerName": "quiet",
                    "plugins": plugins,
                    "pluginConfig": [
                        {"name": "NetworkTraffic", "args": {"prometheusAddress": "http://p"}}
                    ],
                }
            ],
        }
    )
    loaded = load_config(text, file="f.yaml")
    return make_registry({}).build(loaded, {Binder: NoBinder()}).profiles["quiet"]


TRAFFIC = {"enabled": [{"name": "NetworkTraffic"}]}


@pytest.mark.parametrize(
    ("plugins", "filters"),
    [
        pytest.param({"score": TRAFFIC}, False, id="does not reject if it only scores"),
        pytest.param({"filter": TRAFFIC}, True, id="rejects if it is enabled as a filter"),
        pytest.param({"multiPoint": TRAFFIC}, True, id="rejects if it is enabled at every point"),
    ],
)
def test_hot_nodes_are_rejected(plugins: dict[str, Any], filters: bool) -> None:
    profile = profile_of(plugins)
    (request,) = profile.readings
    plugin = next(plugin for plugin in profile.plugins if isinstance(plugin, NetworkTraffic))
    assert plugin.request == request
    state = measured(plugin, a=99, b=20)
    decision = decide(
        carrying(1, scheduler_name="quiet"), VerdictCache(profile, state), turn=0, full=True
    )
    assert (set(decision.rejections), decision.node_name) == ({"a"} if filters else set(), "b")


def test_a_capacity_that_is_only_guessed_makes_no_node_hot() -> None:
    plugin = NetworkTraffic(NetworkTrafficArgs())
    nodes = [make_node(name) for name in "abc"]
    state = make_state(nodes)
    readings = {"a": 1000, "b": 1200, "c": 900}
    state.publish(plugin.request, published(traffic_reading(plugin.request, readings, nodes)))
    assert [each.mask.any() for each in plugin.filter(make_pod(), state.nodes())] == [False]
