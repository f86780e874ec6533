"""Asking plugins without a cluster: what a plugin author writes in a first test."""

import math
from typing import Any

import pytest

import lowtide.testing
from lowtide.framework.plugin import (
    Nodes,
    OneNode,
    PluginError,
    Pod,
    PodRejection,
    Rejection,
    filter_each,
    score_each,
)
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.prometheus_query import PrometheusQuery
from lowtide.testing import (
    make_node,
    make_pod,
    make_profile,
    make_state,
    make_values,
    place,
    rejections,
    scores,
)


class Quiet:
    name = "Quiet"

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        return 90 if node.labels.get("quiet") else 10


class NotFull:
    name = "NotFull"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        return "node(s) have a pod" if node.pods else None

    def may_enqueue(self, pod: Pod) -> PodRejection | None:
        return None


NODES = [make_node("a"), make_node("b", labels={"quiet": "yes"}), make_node("c")]


def test_a_plugin_that_only_scores_places_a_pod() -> None:
    decision = place([Quiet()], make_pod(), NODES)
    assert decision.node_name == "b"
    assert {each.node_name: each.total for each in decision.best} == {"b": 90, "a": 10, "c": 10}


def test_a_plugin_reads_what_a_test_makes_up() -> None:
    query = PrometheusQuery(access=PrometheusAccess(addresses=()), promql="node_load1")

    class Idle:
        name = "Idle"
        readings = (query,)

        @score_each
        def score(self, pod: Pod, node: OneNode) -> int:
            load = query.value(node)
            return 50 if math.isnan(load) else round(100 - load)

    readings = {query: make_values({"a": 80.0, "c": 20.0})}
    assert scores(Idle(), make_pod(), make_state(NODES, readings=readings)) == {
        "a": 20,
        "b": 50,
        "c": 80,
    }
    assert place([Idle()], make_pod(), NODES, readings=readings).node_name == "c"


def test_a_plugin_that_only_filters_places_a_pod() -> None:
    decision = place([NotFull()], make_pod(), NODES, [make_pod("p", on="a")])
    assert decision.node_name == "b"
    assert {name: each.reasons for name, each in decision.rejections.items()} == {
        "a": ("node(s) have a pod",)
    }


def test_plugins_together() -> None:
    decision = place([Quiet(), NotFull()], make_pod(), NODES, [make_pod("p", on="b")])
    assert (decision.node_name, decision.feasible_count) == ("a", 2)


def test_equal_nodes_take_turns() -> None:
    chosen = [place([], make_pod(), NODES, turn=turn).node_name for turn in range(4)]
    assert chosen == ["a", "b", "c", "a"]


def test_a_profile_has_each_plugin_where_it_has_a_method() -> None:
    quiet, not_full = Quiet(), NotFull()
    profile = make_profile([quiet, not_full], {"Quiet": 4}, name="mine")
    assert profile.scheduler_name == "mine"
    assert [(each.plugin, each.weight) for each in profile.scorers] == [(quiet, 4)]
    assert {
        point: profile.plugins_for_point(point) for point in ("filter", "preEnqueue", "bind")
    } == {
        "filter": (not_full,),
        "preEnqueue": (not_full,),
        "bind": (),
    }


def test_one_plugin_on_a_state() -> None:
    state = make_state(NODES, [make_pod("p", on="c")])
    assert rejections(NotFull(), make_pod(), state) == {"c": ["node(s) have a pod"]}
    assert scores(Quiet(), make_pod(), state) == {"a": 10, "b": 90, "c": 10}


def test_the_public_face_is_what_it_says() -> None:
    assert set(lowtide.testing.__all__) == {
        "Cluster",
        "check_plugin",
        "ManualClock",
        "make_node",
        "make_pod",
        "make_profile",
        "make_reading",
        "make_state",
        "make_values",
        "place",
        "rejections",
        "scores",
    }
    assert all(hasattr(lowtide.testing, name) for name in lowtide.testing.__all__)


def test_a_plugin_says_nothing_of_pods_that_do_not_concern_it() -> None:
    class OnlyWeb:
        name = "OnlyWeb"

        def concerns(self, pod: Pod) -> bool:
            return pod.name == "web"

        @filter_each
        def filter(self, pod: Pod, node: OneNode) -> str | None:
            return "no"

        @score_each
        def score(self, pod: Pod, node: OneNode) -> int:
            return 7

    state = make_state([make_node("a")])
    assert rejections(OnlyWeb(), make_pod("web"), state) == {"a": ["no"]}
    assert scores(OnlyWeb(), make_pod("web"), state) == {"a": 7}
    assert rejections(OnlyWeb(), make_pod("db"), state) == {}
    assert scores(OnlyWeb(), make_pod("db"), state) is None


class Misspelled(Quiet):
    def filters(self, pod: Pod, nodes: Nodes) -> list[Rejection]:
        return []


def test_a_method_that_nobody_would_call_is_reported() -> None:
    with pytest.raises(
        PluginError, match='plugin Quiet breaks the contract: its public method "filters"'
    ):
        make_profile([Misspelled()])


class Nameless:
    pass


class Low(Quiet):
    scale = "lowest"


class Once(Quiet):
    retry_on = (1,)


class OneReading(Quiet):
    readings = PrometheusQuery(access=PrometheusAccess(addresses=("http://p",)), promql="up")


@pytest.mark.parametrize(
    ("plugin", "told"),
    [
        pytest.param(Quiet, "Quiet is a class; give an instance of it", id="a class"),
        pytest.param(Nameless(), "a plugin of the class Nameless has no `name`", id="nameless"),
        pytest.param(
            Low(),
            "plugin Quiet breaks the contract: its `scale` is 'lowest'; it must be 'highest_best', "
            "'lowest_best' or None",
            id="of an unknown scale",
        ),
        pytest.param(
            Once(),
            "plugin Quiet breaks the contract: its `retry_on` is (1,); it must be changes joined "
            "by |, such as NODE | PODS",
            id="retried on no number",
        ),
        pytest.param(
            OneReading(),
            "plugin Quiet breaks the contract: its `readings` must be several, such as a tuple, "
            "not PrometheusQuery",
            id="with a single reading",
        ),
    ],
)
def test_what_is_given_to_a_profile_must_not_be(plugin: Any, told: str) -> None:
    with pytest.raises(PluginError) as caught:
        make_profile([plugin])
    assert str(caught.value) == told
