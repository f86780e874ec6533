"""Scenarios from decoded JSON: what is filled in, and what is rejected with a sentence."""

from typing import Any

import pytest

from lowtide.objects.kinds import Namespace
from lowtide.objects.workloads import ReplicaSet, Service
from lowtide.scenario.scenario import Scenario, ScenarioError, scenario_from
from lowtide.testing import make_node, make_pod

POD = {"metadata": {"name": "web"}}


def test_a_whole_scenario() -> None:
    scenario = scenario_from(
        {
            "id": "case-1",
            "pod": {
                "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"},
                "spec": {"schedulerName": "lowtide", "nodeName": None},
                "status": {"phase": "Pending"},
            },
            "nodes": [{"metadata": {"name": "a", "labels": {"kubernetes.io/hostname": "a"}}}],
            "pods": [{"metadata": {"name": "p"}, "spec": {"nodeName": "a"}}],
            "pendingPods": [{"metadata": {"name": "q"}, "status": {"nominatedNodeName": "a"}}],
            "namespaces": [{"metadata": {"name": "shop"}}],
            "services": [{"metadata": {"name": "front"}, "spec": {"selector": {"app": "web"}}}],
            "replicaSets": [{"metadata": {"name": "web-1", "namespace": "shop"}}],
            "config": {"kind": "KubeSchedulerConfiguration"},
            "readings": {"traffic": {"a": 1}},
        },
        name="x.jsonl:1",
    )
    assert (scenario.id, scenario.pod.key, scenario.pod.uid) == ("case-1", "shop/web", "u-1")
    assert scenario.pod.spec == make_pod(spec={"containers": []}).spec
    assert [node.name for node in scenario.nodes] == ["a"]
    assert scenario.nodes[0].labels == make_node("a").labels
    assert [(pod.key, pod.spec.node_name) for pod in scenario.pods] == [("default/p", "a")]
    assert [pod.status.nominated_node_name for pod in scenario.pending_pods] == ["a"]
    assert [(type(each), each.metadata.namespace) for each in scenario.objects] == [
        (Namespace, ""),
        (Service, "default"),
        (ReplicaSet, "shop"),
    ]
    assert scenario.objects[1].spec.selector == {"app": "web"}
    assert scenario.config == {"kind": "KubeSchedulerConfiguration"}
    assert scenario.readings == {"traffic": {"a": 1}}


def test_what_the_api_server_would_fill_in_is_filled_in() -> None:
    scenario = scenario_from({"pod": POD}, name="here")
    pod = scenario.pod
    assert (pod.namespace, pod.uid) == ("default", "default/web")
    assert scenario == Scenario(id="here", pod=pod, where="here")


def test_a_recorded_case_wraps_its_scenario() -> None:
    scenario = scenario_from({"id": "case-7", "scenario": {"pod": POD}, "expected": {}}, name="n")
    assert (scenario.id, scenario.pod.name) == ("case-7", "web")


def test_lists_that_are_null_are_empty() -> None:
    data = {"pod": POD, "nodes": None, "pods": None, "readings": None, "config": None}
    scenario = scenario_from(data, name="n")
    assert scenario == Scenario(id="n", pod=scenario.pod, where="n")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        pytest.param([], "n: a scenario must be an object, not list", id="is not an object"),
        pytest.param({}, "n: the scenario has no 'pod' to place", id="has no pod"),
        pytest.param(
            {"pod": {"metadata": {}}}, "n: pod.metadata.name is missing", id="has a nameless pod"
        ),
        pytest.param(
            {"pod": POD, "nodes": {"a": {}}},
            "n: nodes must be a list, not dict",
            id="has a wrong list",
        ),
        pytest.param(
            {"pod": POD, "pods": 3}, "n: pods must be a list, not int", id="has a number for a list"
        ),
        pytest.param(
            {"pod": POD, "nodes": [{"metadata": {"name": "a"}}, {}]},
            "n: nodes[1].metadata.name is missing",
            id="has a nameless node",
        ),
        pytest.param(
            {"pod": {"metadata": {"name": "web"}, "spec": {"containers": 1}}},
            "n: pod: Expected `array`, got `int` - at `$.spec.containers`",
            id="has a field of the wrong type",
        ),
        pytest.param(
            {"id": "case-9", "scenario": {"nodes": []}},
            "case-9: the scenario has no 'pod' to place",
            id="has a case without a pod",
        ),
        pytest.param(
            {"pod": POD, "readings": [1]},
            "n: readings must be an object, not list",
            id="has a list of readings",
        ),
        pytest.param(
            {"pod": POD, "readings": {"traffic": [1]}},
            "n: readings.traffic must be an object of values by node, not list",
            id="has readings that are not by node",
        ),
        pytest.param(
            {"pod": POD, "readings": {"trafic": {}}},
            "n: readings has the unknown field 'trafic'; valid are traffic, usage, queries",
            id="has a misspelt reading",
        ),
        pytest.param(
            {"pod": POD, "config": "scheduler.yaml"},
            "n: config must be an object, not str",
            id="has a file name for a configuration",
        ),
    ],
)
def test_a_scenario_is_rejected_when_it(data: Any, sentence: str) -> None:
    with pytest.raises(ScenarioError) as rejected:
        scenario_from(data, name="n")
    assert str(rejected.value) == sentence


def test_a_scenario_that_is_no_object_is_told() -> None:
    with pytest.raises(ScenarioError, match=r"^here: 'scenario' must be an object, not int$"):
        scenario_from({"id": "a", "scenario": 5}, name="here")


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        pytest.param(
            "nodez",
            "here: 'nodez' is not a field of a scenario, did you mean \"nodes\"?",
            id="misspelt",
        ),
        pytest.param("weather", "here: 'weather' is not a field of a scenario", id="unheard of"),
    ],
)
def test_an_unknown_part_is_rejected(key: str, sentence: str) -> None:
    with pytest.raises(ScenarioError) as rejection:
        scenario_from({"pod": {"metadata": {"name": "web"}}, key: []}, name="here")
    assert str(rejection.value) == sentence
