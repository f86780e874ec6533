"""Decisions in the form of recorded ones."""

from typing import Any

import pytest

from lowtide.config.types import EnabledPlugin
from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.plugin import Eviction, PodRejection, PostFiltered
from lowtide.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.plugins.taint_toleration import TaintToleration
from lowtide.scenario.answer import answered, effective_profile, gated, rejected_unread
from lowtide.testing import make_node, make_pod, place

NOWHERE = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)."
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


def test_a_pod_that_fits_nowhere_with_all_that_reject_it() -> None:
    plugins = [TaintToleration(), NodeResourcesFit(NodeResourcesFitArgs())]
    nodes = [make_node("a", taints=[TAINT], cpu="1"), make_node("b", cpu="1")]
    bound = [make_pod("p", on="b", cpu="1")]
    decision = place(plugins, make_pod(cpu="1", host_ports=[80]), nodes, bound)
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
        "fit_error": NOWHERE,
        "fit_error_final": NOWHERE,
    }


def test_what_other_plugins_say_stands_beside() -> None:
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
def test_a_pod_that_is_rejected_as_a_whole(eviction_helps: bool, code: str) -> None:
    decision = decision_of(
        pod_rejection=PodRejection("no such volume", eviction_helps),
        rejected_by=frozenset(["VolumeBinding"]),
    )
    assert answered("case", decision, ["n"]) == {
        "id": "case",
        "prefilter": {"code": code, "plugin": "VolumeBinding", "reasons": ["no such volume"]},
        "fit_error": "0/1 nodes are available: no such volume.",
        "fit_error_final": "0/1 nodes are available: no such volume.",
    }


def test_a_pod_whose_spec_cannot_be_read() -> None:
    assert rejected_unread("case", "spec.overhead: 'x' is not a quantity", node_count=3) == {
        "id": "case",
        "prefilter": {
            "code": "UnschedulableAndUnresolvable",
            "reasons": ["spec.overhead: 'x' is not a quantity"],
        },
        "fit_error": "0/3 nodes are available: spec.overhead: 'x' is not a quantity.",
        "fit_error_final": "0/3 nodes are available: spec.overhead: 'x' is not a quantity.",
    }


def test_what_could_be_done_about_it() -> None:
    victims = (make_pod("low", namespace="batch"), make_pod("lower"))
    eviction = Eviction("n", victims, budget_violations=1)
    found = PostFiltered(
        nominated_node_name="n",
        eviction=eviction,
        candidates=(Eviction("z", victims[:1], budget_violations=2), eviction),
        tied_nodes=("n",),
        still_rejected={"y": NodeRejection("A", ("a",), eviction_helps=False)},
    )
    decision = decision_of(reason_counts={"a": 1}, post_filtered=found)
    answer = answered("case", decision, ["n"])
    assert answer["fit_error_final"] == answer["fit_error"] == "0/1 nodes are available: 1 a."
    assert answer["postfilter"] == {
        "status": "Success",
        "message": "",
        "nominated_node": "n",
        "victims": ["batch/low", "default/lower"],
        "tied_nodes": ["n"],
        "candidates": {
            "n": {"victims": ["batch/low", "default/lower"], "pdb_violations": 1},
            "z": {"victims": ["batch/low"], "pdb_violations": 2},
        },
        "dry_run_rejected": {
            "y": {"plugin": "A", "code": "UnschedulableAndUnresolvable", "reasons": ["a"]}
        },
    }


@pytest.mark.parametrize(
    ("is_error", "status"),
    [
        pytest.param(False, "Unschedulable", id="tells that nothing can be done"),
        pytest.param(True, "Error", id="tells that it failed"),
    ],
)
def test_a_plugin_that_is_asked_what_could_be_done(is_error: bool, status: str) -> None:
    decision = decision_of(
        reason_counts={"a": 1},
        post_filtered=PostFiltered("no way", is_error=is_error),
        post_filtered_by="B",
    )
    answer = answered("case", decision, ["n"])
    assert answer["fit_error_final"] == "0/1 nodes are available: 1 a. no way"
    assert answer["postfilter"] == {
        "status": status,
        "plugin": "B",
        "message": "no way",
        "nominated_node": "",
        "victims": [],
    }


def test_the_plugins_of_a_profile() -> None:
    expansion = {
        "queueSort": [EnabledPlugin("PrioritySort")],
        "filter": [EnabledPlugin("NodeName"), EnabledPlugin("TaintToleration")],
        "score": [EnabledPlugin("TaintToleration", 3)],
    }
    assert effective_profile(expansion) == {
        "preFilter": [],
        "filter": ["NodeName", "TaintToleration"],
        "postFilter": [],
        "preScore": [],
        "score": [["TaintToleration", 3]],
    }


def test_the_nodes_that_a_plugin_narrowed_the_search_to() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
        }
    }
    pod = make_pod(spec={"affinity": affinity})
    plugins = [NodeAffinity(NodeAffinityArgs())]
    answer = answered("case", place(plugins, pod, [make_node("a"), make_node("b")]), ["a", "b"])
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
