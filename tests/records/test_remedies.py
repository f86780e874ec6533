"""What would make a pod fit that fits nowhere."""

import pytest
from tests.scheduler.conftest import default_plugins

from lowtide.framework.decision import Decision
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.records.remedies import Remedy, remedies_of
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile, make_state

TAINT = {"key": "gpu", "value": "true", "effect": "NoSchedule"}


def remedies(pod: Pod, *nodes: Node) -> list[Remedy]:
    state = make_state(nodes, [make_pod("there", on=node.name, cpu="500m") for node in nodes[:1]])
    decision: Decision = decide(
        pod, VerdictCache(make_profile(default_plugins()), state), turn=0, full=True
    )
    return remedies_of(decision, state)


def test_the_node_with_most_left_is_named() -> None:
    (found,) = remedies(make_pod("big", cpu="2"), make_node("a", cpu="2"), make_node("b", cpu="1"))
    assert (found.plugin, found.nodes) == ("NodeResourcesFit", 2)
    assert found.message == (
        "2 nodes reject it only by NodeResourcesFit (Insufficient cpu), such as a, b; "
        "a has most cpu left, 1500m, and the pod asks for 2: ask for less, or make room"
    )


@pytest.mark.parametrize(
    ("requests", "reason", "words"),
    [
        (
            {"cpu": "5000"},
            "Insufficient cpu",
            "none has more than 8 cpu in all, and the pod asks for 5000",
        ),
        (
            {"example.com/gpu": "1"},
            "Insufficient example.com/gpu",
            "none has any example.com/gpu, and the pod asks for 1",
        ),
    ],
    ids=["a resource that every node has too little of", "a resource that no node has"],
)
def test_where_no_node_is_large_enough_no_room_can_be_made(
    requests: dict[str, str], reason: str, words: str
) -> None:
    pod = make_pod("big", requests=requests)
    (found,) = remedies(pod, make_node("a", cpu="8"), make_node("b", cpu="4"))
    assert found.message == (
        f"2 nodes reject it only by NodeResourcesFit ({reason}), such as a, b; "
        f"{words}: ask for less, or add a larger node"
    )


def test_what_frees_most_nodes_comes_first_and_what_two_plugins_reject_is_left_out() -> None:
    found = remedies(
        make_pod("big", cpu="2"),
        make_node("tainted", cpu="4", taints=[TAINT]),
        make_node("cordoned-1", unschedulable=True),
        make_node("cordoned-2", unschedulable=True),
        make_node("tainted-and-small", cpu="1", taints=[TAINT]),
    )
    assert [(each.plugin, each.nodes) for each in found] == [
        ("NodeUnschedulable", 2),
        ("TaintToleration", 1),
    ]


def test_a_pod_that_fits_needs_no_remedy() -> None:
    assert remedies(make_pod("web"), make_node("a")) == []


@pytest.mark.parametrize("selector", [{"disk": "ssd"}], ids=["a label that no node has"])
def test_what_no_node_has(selector: dict[str, str]) -> None:
    (found,) = remedies(make_pod("web", node_selector=selector), make_node("a"))
    assert found.plugin == "NodeAffinity"
    assert found.message.endswith("change the pod's node selector or affinity, or label the nodes")
