"""Why a pod went where it went, from records and from what would be decided now."""

import msgspec
import pytest
from tests.records.kept_decisions import Keeping
from tests.records.test_flips import QUIET, ROOMY, record

from lowtide.objects.node import Node
from lowtide.records.explaining import PluginComparison, UnknownNodeError, WhyNot, explained
from lowtide.records.record import DecisionRecord
from lowtide.testing import make_node, make_pod

POD = "default/web"


def test_a_node_that_was_kept_is_compared_from_the_record() -> None:
    found = explained(POD, [record(QUIET, ROOMY)], [], node_name="roomy")
    assert found.why_not == WhyNot(
        "roomy",
        "quiet",
        comparison=[PluginComparison("Traffic", 810, 720), PluginComparison("Fit", 20, 100)],
        total=820,
        chosen_total=830,
    )
    assert found.change_messages == [
        "had Traffic given roomy 82 points of 100 instead of 80, it would have been best",
        "with the weight 2 instead of 1 for Fit roomy would have been best",
        "with the weight 7 instead of 9 for Traffic roomy would have been best",
    ]


def test_a_node_that_was_not_kept_takes_a_running_scheduler() -> None:
    with pytest.raises(
        UnknownNodeError, match="the record says nothing of node far: it keeps the best 2"
    ):
        explained(POD, [record(QUIET, ROOMY)], [], node_name="far")


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ((make_node("a", cpu="1"),), "the only node was rejected: 1 Insufficient cpu"),
        (
            (
                make_node("a", unschedulable=True),
                make_node("b", cpu="1"),
                make_node("c", cpu="1"),
            ),
            "all 3 nodes were rejected: 2 Insufficient cpu, 1 node(s) were unschedulable",
        ),
    ],
    ids=["one node", "several nodes, the commonest reason first"],
)
def test_a_record_that_rejects_every_node_tells_of_each(
    nodes: tuple[Node, ...], words: str
) -> None:
    rejected = Keeping(*nodes).record(make_pod("huge", cpu="64"))
    found = explained("default/huge", [rejected], [], node_name="a")
    assert found.why_not == WhyNot("a", None, all_rejected=words)


def test_a_record_that_rejects_the_pod_itself_tells_why() -> None:
    rejected = msgspec.structs.replace(
        record(), nodes=2, message="0/2 nodes are available: no such claim."
    )
    found = explained(POD, [rejected], [], node_name="a").why_not
    assert found is not None
    assert found.all_rejected == "0/2 nodes are available: no such claim."


def test_a_running_scheduler_judges_any_node_now() -> None:
    keeping = Keeping(make_node("a"), make_node("b"), make_node("small", cpu="100m"))
    pod = make_pod("web", cpu="1")
    kept = keeping.decide(pod)
    machine = keeping.bench.machine
    records, now = [DecisionRecord.from_kept(each) for each in kept], machine.decided_now(pod, 0.0)

    def why_not(node_name: str) -> WhyNot | None:
        return explained(
            POD, records, [], node_name=node_name, now=now, state=machine.state
        ).why_not

    rejected = why_not("small")
    assert rejected is not None
    assert (rejected.rejections, rejected.is_current) == (
        ["NodeResourcesFit: Insufficient cpu"],
        True,
    )
    with pytest.raises(UnknownNodeError, match="no node is called nowhere"):
        why_not("nowhere")


def test_a_victim_is_told_for_whom_it_made_room() -> None:
    keeping = Keeping(make_node("a", cpu="1"))
    keeping.bench.place(make_pod("small", cpu="800m"))
    keeping.bench.end("small")
    keeping.bench.confirm(make_pod("small", cpu="800m"), "a")
    by = keeping.record(make_pod("important", cpu="800m", priority=10))
    assert explained("default/small", [], [by]).preempted_by == by
    assert explained("default/other", [], [by]).preempted_by is None


def test_of_a_record_alone_it_is_said_what_it_cannot_tell_and_who_can() -> None:
    keeping = Keeping(make_node("a", cpu="1"), make_node("b", unschedulable=True))
    pod = make_pod("huge", cpu="64")
    rejected = keeping.record(pod)
    found = explained("default/huge", [rejected], [])
    assert found.hints == [
        "NodeResourcesFit rejects nodes: ask for less, or make room",
        "NodeUnschedulable rejects nodes: uncordon them",
    ]
    assert found.no_remedies_reason is not None
    assert found.no_remedies_reason.endswith("ask the running process while the pod waits")
    machine = keeping.bench.machine
    now = machine.decided_now(pod, 0.0)
    with_state = explained("default/huge", [rejected], [], now=now, state=machine.state)
    assert (with_state.hints, with_state.no_remedies_reason) == ([], None)
    assert with_state.remedies


def test_a_pod_that_has_a_node_needs_no_remedy() -> None:
    found = explained(POD, [record(QUIET, ROOMY)], [])
    assert (found.hints, found.no_remedies_reason) == ([], None)


@pytest.mark.parametrize(
    "known",
    [
        pytest.param({"neutral_reason": "too late"}, id="where the answer was neutral"),
        pytest.param({"actual_node": "a"}, id="where another scheduler has placed it"),
    ],
)
def test_there_is_nothing_to_remedy(known: dict[str, str]) -> None:
    told = msgspec.structs.replace(record(), **known)
    assert explained(POD, [told], []).no_remedies_reason is None
