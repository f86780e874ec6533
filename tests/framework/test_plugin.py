"""What plugins answer with, where nothing more is said; `filter_each` and `score_each` lift a judge
of one node."""

from typing import Any

import numpy as np
import pytest

from lowtide.framework.plugin import (
    NODE,
    PODS,
    READING,
    Allow,
    OneNode,
    PluginError,
    Pod,
    PostFiltered,
    Reject,
    Rejection,
    Reserved,
    filter_each,
    score_each,
)
from lowtide.testing import make_node, make_pod, make_state, place, rejections, scores


class SameRack:
    name = "SameRack"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        """Rejects other racks."""
        if "rack" not in node.labels:
            return "node(s) have no rack"
        return None if node.labels["rack"] == pod.labels["rack"] else "node(s) in another rack"

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        return node.allocatable("cpu") // 100 - 10 * len(node.pods)


class Evicts:
    name = "Evicts"

    @filter_each(eviction_helps=True)
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        return "node(s) are busy" if node.pods else None


def state() -> Any:
    return make_state(
        [
            make_node("a", labels={"rack": "1"}),
            make_node("b", cpu="2"),
            make_node("c", labels={"rack": "2"}),
            make_node("d", labels={"rack": "2"}),
        ],
        [make_pod("p", on="c")],
    )


POD = make_pod(labels={"rack": "1"})


def test_a_lifted_filter_gives_one_rejection_per_reason() -> None:
    found = list(SameRack().filter(POD, state().nodes()))
    assert [(each.mask.tolist(), each.reason, each.eviction_helps) for each in found] == [
        ([False, True, False, False], "node(s) have no rack", False),
        ([False, False, True, True], "node(s) in another rack", False),
    ]


def test_a_lifted_filter_that_rejects_nothing_yields_nothing() -> None:
    assert list(Evicts().filter(POD, make_state([make_node("a")]).nodes())) == []


def test_a_lifted_filter_can_say_that_eviction_helps() -> None:
    (found,) = Evicts().filter(POD, state().nodes())
    assert (found.mask.tolist(), found.eviction_helps) == ([False, False, True, False], True)


def test_a_lifted_score() -> None:
    # 4000/100 = 40, 2000/100 = 20, one pod takes 10
    assert scores(SameRack(), POD, state()) == {"a": 40, "b": 20, "c": 30, "d": 40}


def test_lifted_methods_judge_taken_rows() -> None:
    nodes = state().nodes().take(np.array([3, 1]))
    assert SameRack().score(POD, nodes).tolist() == [40, 20]
    assert [each.mask.tolist() for each in SameRack().filter(POD, nodes)] == [
        [True, False],
        [False, True],
    ]


def test_a_lifted_method_keeps_its_name_and_text() -> None:
    assert (SameRack.filter.__name__, SameRack.filter.__doc__) == ("filter", "Rejects other racks.")


def test_lifted_plugins_decide() -> None:
    decision = place([SameRack()], POD, [make_node("a", labels={"rack": "1"}), make_node("b")])
    assert decision.node_name == "a"
    assert rejections(SameRack(), POD, state()) == {
        "b": ["node(s) have no rack"],
        "c": ["node(s) in another rack"],
        "d": ["node(s) in another rack"],
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(0.5, "0.5", id="a float"),
        pytest.param(None, "None", id="nothing"),
        pytest.param("7", "'7'", id="a text"),
        pytest.param(2**63, "9223372036854775808", id="a number beyond int64"),
    ],
)
def test_a_lifted_score_must_be_a_whole_number(value: Any, shown: str) -> None:
    class Odd:
        name = "Odd"

        @score_each
        def score(self, pod: Pod, node: OneNode) -> int:
            answer: int = value if node.name == "b" else 1
            return answer

    with pytest.raises(PluginError) as caught:
        scores(Odd(), POD, state())
    assert str(caught.value) == (
        f"Odd scored node b {shown}; a score is a whole number of at most 63 bits"
    )


def test_a_lifted_score_may_be_a_numpy_integer() -> None:
    class Counts:
        name = "Counts"

        @score_each
        def score(self, pod: Pod, node: OneNode) -> Any:
            return np.uint8(len(node.pods))

    assert scores(Counts(), POD, state()) == {"a": 0, "b": 0, "c": 1, "d": 0}


@pytest.mark.parametrize("answer", [True, False, 7])
def test_a_lifted_filter_must_answer_with_a_reason(answer: Any) -> None:
    class Odd:
        name = "Odd"

        @filter_each
        def filter(self, pod: Pod, node: OneNode) -> Any:
            return answer if node.name == "b" else None

    with pytest.raises(PluginError) as caught:
        rejections(Odd(), POD, state())
    assert str(caught.value) == (
        f"Odd answers with {answer!r} about node b; it must return a reason as a string, or None"
    )


class Heat:
    name = "Heat"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        return "hot" if node.reading("heat").get("heat", 0) > 1 else None


@pytest.mark.parametrize(
    ("method", "touched"),
    [
        pytest.param(SameRack().filter, NODE, id="of node labels touches the node"),
        pytest.param(SameRack().score, NODE | PODS, id="of pods touches the pods too"),
        pytest.param(Heat().filter, NODE | READING, id="of readings touches readings"),
    ],
)
def test_a_lifted_judge(method: Any, touched: int) -> None:
    """Of its own row alone."""
    state_ = state()
    list(method(POD, state_.nodes()))
    assert state_.touched == touched


def test_a_rejection_says_that_eviction_does_not_help_unless_told() -> None:
    assert not Rejection(np.ones(1, np.bool_), "why").eviction_helps


def test_an_answer_is_about_the_pod_alone_unless_it_names_others() -> None:
    assert (Allow().also, Reject("why").also) == (frozenset(), frozenset())


def test_a_reservation_changes_no_objects_and_remembers_nothing_unless_told() -> None:
    assert (tuple(Reserved().objects), Reserved().memory) == ((), None)


def test_what_can_be_done_for_a_pod_is_nothing_unless_told() -> None:
    answer = PostFiltered()
    assert (answer.eviction, answer.nominated_node_name, answer.is_error) == (None, None, False)
