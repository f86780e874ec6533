"""What would make a pod fit that fits nowhere."""

import pytest
from tests.scheduler.conftest import default_rules

from lowtide.framework.decision import Decision
from lowtide.framework.verdicts import Verdicts
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.records.remedies import Remedy, remedies_of
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile, make_state

TAINT = {"key": "gpu", "value": "true", "effect": "NoSchedule"}


def remedies(pod: Pod, *nodes: Node) -> list[Remedy]:
    state = make_state(nodes, [make_pod("there", on=node.name, cpu="500m") for node in nodes[:1]])
    decision: Decision = decide(
        pod, Verdicts(make_profile(default_rules()), state), turn=0, full=True
    )
    return remedies_of(decision, state)


def test_the_node_with_most_left_is_named() -> None:
    (found,) = remedies(make_pod("big", cpu="2"), make_node("a", cpu="1"), make_node("b", cpu="1"))
    assert (found.rule, found.nodes) == ("NodeResourcesFit", 2)
    assert found.in_words == (
        "2 nodes refuse it only by NodeResourcesFit (Insufficient cpu), such as a, b; "
        "b has most cpu left, 1, and the pod asks for 2: ask for less, or make room"
    )


def test_what_frees_most_nodes_comes_first_and_what_two_rules_refuse_is_left_out() -> None:
    found = remedies(
        make_pod("big", cpu="2"),
        make_node("tainted", cpu="4", taints=[TAINT]),
        make_node("cordoned-1", unschedulable=True),
        make_node("cordoned-2", unschedulable=True),
        make_node("tainted-and-small", cpu="1", taints=[TAINT]),
    )
    assert [(each.rule, each.nodes) for each in found] == [
        ("NodeUnschedulable", 2),
        ("TaintToleration", 1),
    ]


def test_a_pod_that_fits_needs_no_remedy() -> None:
    assert remedies(make_pod("web"), make_node("a")) == []


@pytest.mark.parametrize("selector", [{"disk": "ssd"}], ids=["a label that no node has"])
def test_what_no_node_has(selector: dict[str, str]) -> None:
    (found,) = remedies(make_pod("web", node_selector=selector), make_node("a"))
    assert found.rule == "NodeAffinity"
    assert found.in_words.endswith("change the pod's node selector or affinity, or label the nodes")
