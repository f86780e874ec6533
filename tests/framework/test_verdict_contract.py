"""What a plugin may not answer: it is rejected, and the plugin is named."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import NodeScore, PluginScore
from lowtide.framework.plugin import (
    IntArray,
    Nodes,
    OneNode,
    PluginError,
    Pod,
    Rejection,
    filter_each,
)
from lowtide.framework.verdict import Verdict
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.plugins.node_unschedulable import NodeUnschedulable
from lowtide.testing import make_node, make_pod, make_profile, make_state


def verdict_of(plugins: Sequence[Any], state: ClusterState) -> Verdict:
    return VerdictCache(make_profile(plugins), state).verdict_on(make_pod())


def three() -> ClusterState:
    return make_state([make_node("a"), make_node("b"), make_node("c")])


class Answers:
    """A plugin whose answers are as they are given."""

    name = "Answers"

    def __init__(self, **answers: Any) -> None:
        for method, answer in answers.items():
            setattr(self, method, lambda *_, answer=answer: answer)


def masked(mask: Any) -> list[Rejection]:
    return [Rejection(mask, "why")]


def whole(*values: int) -> IntArray:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(
            Answers(filter=masked(np.array([True]))),
            "Answers returned the mask array([ True]); it must be 3 booleans, one per node",
            id="returns too few booleans",
        ),
        pytest.param(
            Answers(filter=masked(whole(1, 0, 1))),
            "Answers returned the mask array([1, 0, 1]); it must be 3 booleans, one per node",
            id="returns numbers for booleans",
        ),
        pytest.param(
            Answers(filter=masked([True, False, True])),
            "Answers returned the mask [True, False, True]; it must be 3 booleans, one per node",
            id="returns a list of booleans",
        ),
        pytest.param(
            Answers(filter=masked(np.ones((3, 1), np.bool_))),
            "Answers returned the mask array([[ True],\n       [ True],\n       [ True]]); "
            "it must be 3 booleans, one per node",
            id="returns booleans in two dimensions",
        ),
        pytest.param(
            Answers(filter=None),
            "Answers.filter returned None; it must yield Rejection(mask, reason), or nothing",
            id="returns None for no rejection",
        ),
        pytest.param(
            Answers(filter="busy"),
            "Answers.filter returned 'busy'; it must yield Rejection(mask, reason), or nothing",
            id="returns a bare reason",
        ),
        pytest.param(
            Answers(pre_filter=["a"]),
            "Answers.pre_filter returned ['a']; "
            "it must be a PodRejection, a frozenset of node names or None",
            id="returns a list of node names",
        ),
        pytest.param(
            Answers(score=whole(1, 2)),
            "Answers: 2 scores for 3 nodes; they must be one per node",
            id="returns too few scores",
        ),
        pytest.param(
            Answers(score=np.ones((3, 2), np.int64)),
            "Answers: scores of the shape (3, 2) for 3 nodes; they must be one per node",
            id="returns scores in two dimensions",
        ),
        pytest.param(
            Answers(score=np.array([0.5, 1, 2])),
            "Answers returned float64 scores; they must be int64",
            id="returns floats as scores",
        ),
        pytest.param(
            Answers(score=np.array([1, 2, 3], np.int32)),
            "Answers returned int32 scores; they must be int64",
            id="returns scores of 32 bits",
        ),
        pytest.param(
            Answers(score=[1, 2, 3]),
            "Answers returned the scores [1, 2, 3]; they must be an int64 array, one per node",
            id="returns a list of scores",
        ),
        pytest.param(
            Answers(score=whole(1, 101, 3)),
            "plugin 'Answers' returns an invalid score 101, "
            "it should in the range of [0, 100] after normalizing",
            id="returns a score above 100",
        ),
        pytest.param(
            Answers(score=whole(1, -1, 3)),
            "plugin 'Answers' returns an invalid score -1, "
            "it should in the range of [0, 100] after normalizing",
            id="returns a score below 0",
        ),
        pytest.param(
            Answers(score=whole(1, 2, 3), normalize=np.array([0.5, 1, 2])),
            "Answers returned float64 scores; they must be int64",
            id="normalizes to floats",
        ),
        pytest.param(
            Answers(score=whole(1, 2, 3), normalize=whole(1)),
            "Answers: 1 scores for 3 nodes; they must be one per node",
            id="normalizes to too few scores",
        ),
        pytest.param(
            Answers(score=whole(1, 2, 3), normalize=whole(1, 2, 300)),
            "plugin 'Answers' returns an invalid score 300, "
            "it should in the range of [0, 100] after normalizing",
            id="normalizes to a score above 100",
        ),
    ],
)
def test_a_plugin_is_named_when_it_answers_with(plugin: Any, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        verdict_of([plugin], three()).rank()
    assert str(caught.value) == message


def test_a_score_out_of_range_is_rejected_among_fewer_nodes_too() -> None:
    class Grows:
        name = "Grows"

        def score(self, pod: Pod, nodes: Nodes) -> IntArray:
            return np.full(len(nodes), 5, np.int64)

        def normalize(self, pod: Pod, nodes: Nodes, raw: IntArray) -> IntArray:
            return raw * (1 if nodes.feasible.all() else 100)

    verdict = verdict_of([Grows()], three())
    with pytest.raises(PluginError, match="plugin 'Grows' returns an invalid score 500"):
        verdict.rank_among(np.array([True, False, False]))


def test_a_score_out_of_range_does_not_matter_where_the_node_is_rejected() -> None:
    plugin = Answers(filter=masked(np.array([False, True, False])), score=whole(1, 500, 3))
    assert verdict_of([plugin], three()).rank().tolist() == [1, -1, 3]


class Crowd:
    """So many points for each pod, and at most two pods."""

    def __init__(self, name: str, points: int) -> None:
        self.name = name
        self._points = points
        self.asked: list[int] = []  # about so many nodes

    def filter(self, pod: Pod, nodes: Nodes) -> list[Rejection]:
        return [Rejection(nodes.pod_count > 2, "a crowd")]

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        self.asked.append(len(nodes))
        return self._points * nodes.pod_count


def ranks_with_pods(points: int, *counts: int) -> list[int]:
    """Of the first nodes, judged when they were empty, and again with so many pods on them; nobody
    is asked about the others again."""
    state = make_state([make_node(f"n{number}") for number in range(16)])
    one, two = Crowd("One", 10), Crowd("Two", points)
    verdicts = VerdictCache(make_profile([one, two], {"One": 3}), state)
    verdicts.verdict_on(make_pod()).rank()
    for row, count in enumerate(counts):
        for number in range(count):
            state.place(make_pod(f"p{row}-{number}", on=f"n{row}"))
    ranked = verdicts.verdict_on(make_pod()).rank()[: len(counts)].tolist()
    assert one.asked == two.asked == [16, len(counts)]
    return ranked


def test_scores_of_few_rows_count_as_given_times_their_weight() -> None:
    # 3 * 10 + 40 a pod
    assert ranks_with_pods(40, 1, 2, 1) == [70, 140, 70]


def test_a_score_out_of_range_does_not_matter_where_one_of_few_rows_is_rejected() -> None:
    assert ranks_with_pods(40, 1, 3, 1) == [70, -1, 70]


def test_a_score_out_of_range_is_rejected_of_few_rows_too() -> None:
    with pytest.raises(PluginError, match="plugin 'Two' returns an invalid score 102"):
        ranks_with_pods(51, 1, 2, 1)


@pytest.mark.parametrize("method", ["pre_filter", "filter", "score"])
def test_a_plugin_is_named_when_it_fails_in(method: str) -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError("no quotient")

    plugin = Answers()
    setattr(plugin, method, fails)
    with pytest.raises(PluginError) as caught:
        verdict_of([plugin], three()).rank()
    assert str(caught.value) == f"Answers.{method} failed: ZeroDivisionError('no quotient')"


def test_reasons_that_differ_from_node_to_node_are_rejected() -> None:
    class Chatty:
        name = "Chatty"

        @filter_each
        def filter(self, pod: Pod, node: OneNode) -> str | None:
            return f"{node.name} is not nice"

    state = make_state([make_node(f"n{number}") for number in range(65)])
    with pytest.raises(PluginError) as caught:
        verdict_of([Chatty()], state)
    assert str(caught.value) == (
        "Chatty gives more than 64 different reasons for one pod; leave node names out of reasons"
    )


class Stretched:
    """From the lowest to the highest feasible score, which there have to be."""

    name = "Stretched"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        return np.array([10 * ord(name) for name in nodes.names], np.int64)

    def normalize(self, pod: Pod, nodes: Nodes, raw: IntArray) -> IntArray:
        lowest, highest = raw[nodes.feasible].min(), raw[nodes.feasible].max()
        stretched: IntArray = (raw - lowest) * 100 // max(1, highest - lowest)
        return stretched


def test_a_plugin_is_not_asked_to_normalize_where_no_node_is_feasible() -> None:
    state = make_state([make_node(name, unschedulable=True) for name in "abc"])
    verdicts = VerdictCache(make_profile([NodeUnschedulable(), Stretched()]), state)
    verdict = verdicts.verdict_on(make_pod())
    assert verdict.rank().tolist() == [-1, -1, -1]
    assert verdict.rank_among(np.array([True, True, True])).ranked.tolist() == [0, 50, 100]
    assert verdict.rank_among(np.array([True, True, False])).ranked.tolist() == [0, 100, -1]
    for name in "bc":
        state.update_node(make_node(name))
    assert verdicts.verdict_on(make_pod()).rank().tolist() == [-1, 0, 100]


def test_the_raw_scores_told_are_those_among_the_feasible_nodes() -> None:
    class CountsFeasible:
        name = "CountsFeasible"

        def score(self, pod: Pod, nodes: Nodes) -> IntArray:
            return np.full(len(nodes), np.count_nonzero(nodes.everything.feasible), np.int64)

    verdict = verdict_of([CountsFeasible()], three())
    feasible = np.array([True, True, False])
    among = verdict.rank_among(feasible)
    scores = verdict.scores_of(np.array([0, 1]), among.ranked, among)
    one = PluginScore(raw=2, normalized=2, weighted=2)
    assert scores.unpacked() == (
        NodeScore("a", 2, {"CountsFeasible": one}),
        NodeScore("b", 2, {"CountsFeasible": one}),
    )
