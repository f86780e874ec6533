"""The offline decider: scenarios answered by the plugins of a configuration."""

import json
import math
from typing import Any

import pytest

from lowtide.app.offline import Decider
from lowtide.app.registry import make_registry, read_config
from lowtide.config.load import load_config
from lowtide.framework.plugin import OneNode, Pod, score_each
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.prometheus_query import PrometheusQuery
from lowtide.scenario.scenario import Scenario, ScenarioError
from lowtide.testing import make_node, make_pod

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
NODES = (make_node("a"), make_node("b"))


def profile(name: str, *, score: str) -> dict[str, Any]:
    """A profile with one score plugin."""
    plugins = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": score, "weight": 2}]}}
    return {"schedulerName": name, "plugins": plugins}


def config(*profiles: dict[str, Any]) -> dict[str, Any]:
    return {**HEADER, "profiles": list(profiles)}


def decider(default: dict[str, Any] | None = None, **plugins: type[Any]) -> Decider:

    loaded = read_config(None) if default is None else load_config(json.dumps(default), file="f")
    return Decider(make_registry(plugins), loaded)


def plugins_in(answer: dict[str, Any]) -> list[str]:
    return list(answer["scores"])


def scenario(**fields: Any) -> Scenario:
    return Scenario(**{"id": "case", "pod": make_pod(), "nodes": NODES, **fields})


def test_a_scenario_without_a_configuration_is_decided_by_the_one_given() -> None:
    default = config(profile("lowtide", score="TaintToleration"))
    asked = scenario(pod=make_pod(cpu="1"))
    assert plugins_in(decider(default).answer(asked)) == ["TaintToleration"]
    assert plugins_in(decider().answer(asked)) == [
        "TaintToleration",
        "NodeResourcesFit",
        "DynamicResources",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
    ]


def test_the_configuration_of_a_scenario_wins() -> None:
    default = config(profile("lowtide", score="NodeResourcesFit"))
    own = config(profile("lowtide", score="TaintToleration"))
    asked = decider(default)
    answers = [asked.answer(each) for each in (scenario(), scenario(config=own), scenario())]
    assert [plugins_in(each) for each in answers] == [
        ["NodeResourcesFit"],
        ["TaintToleration"],
        ["NodeResourcesFit"],
    ]


def test_of_several_profiles_the_pod_names_its_own() -> None:
    asked = decider(
        config(profile("one", score="NodeResourcesFit"), profile("two", score="TaintToleration"))
    )
    answers = [
        asked.answer(scenario(pod=make_pod(scheduler_name=name, cpu="1")))
        for name in ("one", "two")
    ]
    assert [plugins_in(each) for each in answers] == [["NodeResourcesFit"], ["TaintToleration"]]


def test_a_single_profile_serves_a_pod_of_any_scheduler() -> None:
    asked = decider(config(profile("mine", score="NodeResourcesFit")))
    answer = asked.answer(scenario(pod=make_pod(scheduler_name="default-scheduler")))
    assert plugins_in(answer) == ["NodeResourcesFit"]


def test_a_scheduler_that_no_profile_serves_is_told() -> None:
    asked = decider(
        config(profile("one", score="NodeResourcesFit"), profile("two", score="TaintToleration"))
    )
    with pytest.raises(ScenarioError) as rejected:
        asked.answer(scenario(pod=make_pod(scheduler_name="three")))
    assert str(rejected.value) == (
        "case: pod default/pod names scheduler 'three'; the configuration has one, two"
    )


def test_a_bad_configuration_of_a_scenario_is_told() -> None:
    with pytest.raises(ScenarioError, match=r"^case: scenario config.*profils.*did you mean"):
        decider().answer(scenario(config={**HEADER, "profils": []}))


def requiring(operator: str) -> dict[str, Any]:
    expressions = [{"key": "zone", "operator": operator, "values": ["x"]}]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def spreading(operator: str) -> dict[str, Any]:
    selector = {"matchExpressions": [{"key": "app", "operator": operator, "values": ["x"]}]}
    return {"topologyKey": "zone", "maxSkew": 1, "labelSelector": selector}


@pytest.mark.parametrize(
    ("pod", "plugin", "reason"),
    [
        pytest.param(
            make_pod(cpu="much"),
            None,
            "container 'main' resources.requests: 'much' is not a quantity such as 500m, "
            "2, 1.5Gi or 2e3",
            id="quantity",
        ),
        pytest.param(
            make_pod(spec={"affinity": requiring("Near")}),
            "NodeAffinity",
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
            'nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: "Near": not a valid '
            "selector operator; valid are In, NotIn, Exists, DoesNotExist, Gt, Lt",
            id="affinity term",
        ),
        pytest.param(
            make_pod(spec={"topologySpreadConstraints": [spreading("Near")]}),
            "PodTopologySpread",
            "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].operator: "
            '"Near" is not a valid label selector operator',
            id="selector",
        ),
    ],
)
def test_a_pod_is_unschedulable_by_an_invalid(pod: Pod, plugin: str | None, reason: str) -> None:
    answer = decider().answer(scenario(pod=pod))
    verdict = {"code": "UnschedulableAndUnresolvable", "reasons": [reason]}
    assert answer["prefilter"] == verdict | ({"plugin": plugin} if plugin else {})
    assert answer["fit_error"] == f"0/2 nodes are available: {reason}."


def test_the_effective_profile_is_told_with_a_configuration_of_the_scenario() -> None:
    own = config(profile("lowtide", score="TaintToleration"))
    asked = decider()
    assert "profile" not in asked.answer(scenario())
    told = asked.answer(scenario(config=own))["profile"]
    assert list(told) == ["preFilter", "filter", "postFilter", "preScore", "score"]
    assert told["score"] == [["TaintToleration", 2]]
    assert told["postFilter"] == ["DynamicResources", "DefaultPreemption"]
    unread = asked.answer(scenario(config=own, pod=make_pod(cpu="much")))
    assert unread["profile"] == told


def test_a_gated_pod_is_not_decided() -> None:
    answer = decider().answer(scenario(pod=make_pod(gates=["wait"])))
    assert list(answer) == ["id", "preenqueue"]


def test_pods_that_run_take_their_place_and_those_that_ended_do_not() -> None:
    pods = (
        make_pod("running", on="a", cpu="4"),
        make_pod("ended", on="b", cpu="4", phase="Succeeded"),
    )
    answer = decider().answer(scenario(pods=pods, pod=make_pod(cpu="2")))
    assert (answer["best"], answer["filter"]["b"]) == (["b"], "ok")


def test_a_node_that_is_promised_to_a_pending_pod_is_kept_for_it() -> None:
    pending = (make_pod("promised", cpu="3", nominated="a", priority=9),)
    answer = decider().answer(scenario(pending_pods=pending, pod=make_pod(cpu="2")))
    assert answer["best"] == ["b"]


def test_readings_feed_network_traffic() -> None:
    traffic = profile("lowtide", score="NetworkTraffic")
    args = {"prometheusAddress": "http://p", "scoring": "relative"}
    traffic["pluginConfig"] = [{"name": "NetworkTraffic", "args": args}]
    asked = decider(config(traffic))
    answer = asked.answer(scenario(readings={"traffic": {"a": 10, "b": 40}}))
    assert answer["scores"]["NetworkTraffic"] == {
        "a": {"raw": 10, "normalized": 75, "weighted": 150},
        "b": {"raw": 40, "normalized": 0, "weighted": 0},
    }
    assert asked.answer(scenario())["scores"] == {}


LOAD = PrometheusQuery(access=PrometheusAccess(addresses=("http://p",)), promql="node_load1")


class LowLoad:
    name = "LowLoad"
    readings = (LOAD,)

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        return 100 - int(LOAD.value(node))


def test_readings_feed_plugins_own_queries() -> None:
    asked = decider(config(profile("lowtide", score="LowLoad")), LowLoad=LowLoad)
    readings = {"queries": {"node_load1": {"a": 30, "b": 20}}}
    answer = asked.answer(scenario(readings=readings))
    assert (answer["best"], asked.warnings) == (["b"], [])


@pytest.mark.parametrize(
    ("queries", "told"),
    [
        pytest.param(
            {"node_load1": {"a": 1, "b": 1, "c": 1}},
            ["readings.queries['node_load1'] has c, and case has no node of that name"],
            id="has a node that is not there",
        ),
        pytest.param(
            {"node_load1": {"a": 1, "b": 1}, "up": {"a": 1}},
            ["readings.queries has 'up', and no plugin of the profile lowtide asks that"],
            id="has a query that nobody asks",
        ),
    ],
)
def test_it_is_told_when_a_file(queries: dict[str, Any], told: list[str]) -> None:
    asked = decider(config(profile("lowtide", score="LowLoad")), LowLoad=LowLoad)
    asked.answer(scenario(readings={"queries": queries}))
    assert asked.warnings == told


def test_it_is_told_when_a_query_has_no_values() -> None:
    class Calm(LowLoad):
        name = "Calm"

        @score_each
        def score(self, pod: Pod, node: OneNode) -> int:
            return int(math.isnan(LOAD.value(node)))

    asked = decider(config(profile("lowtide", score="Calm")), Calm=Calm)
    assert asked.answer(scenario())["scores"]["Calm"]["a"]["raw"] == 1
    assert asked.warnings == [
        "readings.queries has no 'node_load1', which a plugin of the profile lowtide asks: "
        "no node has a value of it"
    ]


def test_values_that_are_no_numbers_are_rejected() -> None:
    asked = decider(config(profile("lowtide", score="LowLoad")), LowLoad=LowLoad)
    with pytest.raises(ScenarioError) as rejection:
        asked.answer(scenario(readings={"queries": {"up": {"a": "x"}}}))
    assert str(rejection.value) == "case: readings.queries['up'].a is 'x', not a number"


class LikesB:
    name = "LikesB"

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        return 100 if node.name == "b" else 0


def test_a_plugin_of_an_outsider_decides_too() -> None:
    asked = decider(config(profile("lowtide", score="LikesB")), LikesB=LikesB)
    assert asked.answer(scenario())["best"] == ["b"]
