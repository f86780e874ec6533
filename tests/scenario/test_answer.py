"""Decisions in the form of recorded ones."""

from typing import Any

import pytest

from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.plugin import PodRejection
from lowtide.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.plugins.taint_toleration import TaintToleration
from lowtide.scenario.answer import answered, gated
from lowtide.testing import make_node, make_pod, place

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


def test_a_gated_pod() -> None:
    assert gated("case", "SchedulingGates", PodRejection("waiting for scheduling gates: [g]")) == {
        "id": "case",
        "preenqueue": {
            "SchedulingGates": {
                "plugin": "SchedulingGates",
                "code": "UnschedulableAndUnresolvable",
                "reasons": ["waiting for scheduling gates: [g]"],
            }
        },
    }


def test_a_placed_pod_with_every_node_and_score() -> None:
    nodes = [make_node("b"), make_node("a", taints=[TAINT]), make_node("c")]
    decision = place([TaintToleration()], make_pod(), nodes)
    score = {"raw": 0, "normalized": 100, "weighted": 100}
    assert answered("case", decision, ["b", "a", "c"]) == {
        "id": "case",
        "prefilter": {"code": "Success"},
        "filter": {
            "a": {
                "plugin": "TaintToleration",
                "code": "UnschedulableAndUnresolvable",
                "reasons": ["node(s) had untolerated taint(s)"],
            },
            "b": "ok",
            "c": "ok",
        },
        "scores": {"TaintToleration": {"b": score, "c": score}},
        "total": {"b": 100, "c": 100},
        "best": ["b", "c"],
    }


def test_a_pod_that_fits_nowhere_with_all_that_refuse_it() -> None:
    rules = [TaintToleration(), NodeResourcesFit(NodeResourcesFitArgs())]
    nodes = [make_node("a", taints=[TAINT], cpu="1"), make_node("b", cpu="1")]
    bound = [make_pod("p", on="b", cpu="1")]
    decision = place(rules, make_pod(cpu="1", host_ports=[80]), nodes, bound)
    assert answered("case", decision, ["a", "b"]) == {
        "id": "case",
        "prefilter": {"code": "Success"},
        "filter": {
            "a": {
                "plugin": "TaintToleration",
                "code": "UnschedulableAndUnresolvable",
                "reasons": ["node(s) had untolerated taint(s)"],
            },
            "b": {
                "plugin": "NodeResourcesFit",
                "code": "Unschedulable",
                "reasons": ["Insufficient cpu"],
            },
        },
        "fit_error": "0/2 nodes are available: 1 Insufficient cpu, "
        "1 node(s) had untolerated taint(s).",
    }


def test_what_other_rules_say_stands_beside() -> None:
    other = NodeRejection("B", ("b2", "b1"), eviction_helps=True)
    by_first = NodeRejection("A", ("a",), eviction_helps=False, also=(other,))
    decision = decision_of(rejections={"n": by_first}, reason_counts={"a": 1})
    assert answered("case", decision, ["n"])["filter"]["n"] == {
        "plugin": "A",
        "code": "UnschedulableAndUnresolvable",
        "reasons": ["a"],
        "also": {"B": {"plugin": "B", "code": "Unschedulable", "reasons": ["b1", "b2"]}},
    }


@pytest.mark.parametrize(
    ("eviction_helps", "code"),
    [
        pytest.param(True, "Unschedulable", id="might be helped by an eviction"),
        pytest.param(False, "UnschedulableAndUnresolvable", id="cannot be helped"),
    ],
)
def test_a_pod_that_is_refused_as_a_whole(eviction_helps: bool, code: str) -> None:
    decision = decision_of(
        pod_rejection=PodRejection("no such volume", eviction_helps),
        rejected_by=frozenset(["VolumeBinding"]),
    )
    assert answered("case", decision, ["n"]) == {
        "id": "case",
        "prefilter": {"code": code, "plugin": "VolumeBinding", "reasons": ["no such volume"]},
        "fit_error": "0/1 nodes are available: no such volume.",
    }


def test_the_nodes_that_a_rule_narrowed_the_search_to() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
        }
    }
    pod = make_pod(spec={"affinity": affinity})
    rules = [NodeAffinity(NodeAffinityArgs())]
    answer = answered("case", place(rules, pod, [make_node("a"), make_node("b")]), ["a", "b"])
    assert (answer["prefilter"], answer["best"]) == ({"code": "Success", "nodes": ["b"]}, ["b"])
    assert answer["filter"]["b"] == "ok"
    assert answer["filter"]["a"]["excluded_by"] == ["NodeAffinity"]


def test_a_nominated_node_is_the_best() -> None:
    nodes = [make_node("a"), make_node("b")]
    decision = place([TaintToleration()], make_pod(nominated="b"), nodes)
    answer = answered("case", decision, ["a", "b"])
    assert (answer["selected_by_nomination"], answer["best"]) == ("b", ["b"])


def decision_of(**fields: Any) -> Decision:
    return Decision(
        pod=make_pod(),
        scheduler_name="lowtide",
        node_name=None,
        node_count=1,
        feasible_count=0,
        **fields,
    )
