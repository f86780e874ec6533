"""What the plugins of a profile say together, feasible nodes, reasons and scores."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import NodeRejection
from lowtide.framework.plugin import (
    IntArray,
    Nodes,
    OneNode,
    PluginError,
    Pod,
    PodRejection,
    Rejection,
    Scale,
    filter_each,
)
from lowtide.framework.verdict import Verdict
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.testing import make_node, make_pod, make_profile, make_state

POD = make_pod()


class Rejects:
    """Rejects the nodes that it was given reasons for."""

    def __init__(self, name: str, reasons: dict[str, Sequence[str]], **helps: bool) -> None:
        self.name = name
        self._reasons = reasons
        self._helps = helps

    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
        for reason in dict.fromkeys(r for reasons in self._reasons.values() for r in reasons):
            mask = np.array([reason in self._reasons.get(name, ()) for name in nodes.names])
            yield Rejection(mask, reason, self._helps.get(reason, False))


class Narrows:
    """Leaves these names, or rejects the pod."""

    def __init__(self, name: str, answer: Any) -> None:
        self.name = name
        self._answer = answer

    def pre_filter(self, pod: Pod, nodes: Nodes) -> Any:
        return self._answer


class Scores:
    """Gives nodes the value of their annotation `score`; -1 means no opinion on the pod."""

    def __init__(self, name: str = "", scale: str | None = None) -> None:
        self.name = name or type(self).__name__
        self.scale = scale
        self.judged: list[list[str]] = []

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        self.judged.append(list(nodes.names))
        if pod.labels.get("opinion") == "none":
            return None
        found = [nodes.node(at).metadata.annotations.get("score", "0") for at in range(len(nodes))]
        return np.array(found, np.int64)


def scored(name: str, score: int, **more: Any) -> Any:
    return make_node(name, annotations={"score": str(score)}, **more)


def verdict_of(
    plugins: Sequence[Any], state: ClusterState, pod: Pod = POD, **weights: int
) -> Verdict:
    return VerdictCache(make_profile(plugins, weights), state).verdict_on(pod)


def three() -> ClusterState:
    return make_state([make_node("a"), make_node("b"), make_node("c")])


# Filters.


def test_a_node_is_rejected_by_the_first_plugin_that_rejects_it() -> None:
    plugins = [
        Rejects("First", {"a": ["one"]}),
        Rejects("Second", {"a": ["two"], "b": ["two"]}, two=True),
    ]
    verdict = verdict_of(plugins, three())
    also = NodeRejection("Second", ("two",), eviction_helps=True)
    assert [verdict.rejection_at(row) for row in range(3)] == [
        NodeRejection("First", ("one",), eviction_helps=False, also=(also,)),
        NodeRejection("Second", ("two",), eviction_helps=True),
        None,
    ]
    assert verdict.feasible.tolist() == [False, False, True]
    assert verdict.reason_counts() == {"one": 1, "two": 1}
    assert verdict.rejected_by() == {"First", "Second"}


def test_a_plugin_may_have_several_reasons_for_one_node() -> None:
    verdict = verdict_of([Rejects("Fit", {"a": ["cpu", "memory"], "b": ["cpu"]})], three())
    assert [verdict.rejection_at(row) for row in range(3)] == [
        NodeRejection("Fit", ("cpu", "memory"), eviction_helps=False),
        NodeRejection("Fit", ("cpu",), eviction_helps=False),
        None,
    ]
    assert verdict.reason_counts() == {"cpu": 2, "memory": 1}


@pytest.mark.parametrize(
    ("helps", "wanted"),
    [
        pytest.param({"cpu": True, "memory": True}, True, id="if it helps against every reason"),
        pytest.param({"cpu": True}, False, id="not if it does not help against one reason"),
        pytest.param({}, False, id="not if it helps against no reason"),
    ],
)
def test_eviction_helps(helps: dict[str, bool], wanted: bool) -> None:
    verdict = verdict_of([Rejects("Fit", {"a": ["cpu", "memory"]}, **helps)], three())
    assert verdict.rejection_at(0) == NodeRejection("Fit", ("cpu", "memory"), wanted)


def test_one_reason_of_two_plugins_is_counted_together() -> None:
    plugins = [Rejects("First", {"a": ["full"]}), Rejects("Second", {"b": ["full"]})]
    assert verdict_of(plugins, three()).reason_counts() == {"full": 2}


def test_a_reason_counts_once_per_node_whether_eviction_helps_or_not() -> None:
    class Both:
        name = "Both"

        def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
            yield Rejection(np.array([True, False, False]), "full", eviction_helps=True)
            yield Rejection(np.array([False, True, False]), "full")

    verdict = verdict_of([Both()], three())
    assert verdict.reason_counts() == {"full": 2}
    assert [verdict.rejection_at(row) for row in range(2)] == [
        NodeRejection("Both", ("full",), eviction_helps=True),
        NodeRejection("Both", ("full",), eviction_helps=False),
    ]


def test_without_plugins_every_node_is_feasible_and_worth_one() -> None:
    verdict = verdict_of([], three())
    assert (verdict.feasible.tolist(), verdict.rank().tolist()) == ([True] * 3, [1, 1, 1])
    assert (verdict.reason_counts(), verdict.rejected_by()) == ({}, frozenset())


def test_without_nodes_there_is_nothing() -> None:
    verdict = verdict_of([Rejects("First", {}), Scores()], make_state([]))
    assert (verdict.feasible.tolist(), verdict.rank().tolist()) == ([], [])
    assert (verdict.reason_counts(), verdict.rejected_by()) == ({}, frozenset())


# Pre-filters.


def test_names_narrow_the_nodes_before_any_filter() -> None:
    plugins = [
        Narrows("Affinity", frozenset({"a", "b", "unknown"})),
        Rejects("First", {"a": ["one"], "c": ["one"]}),
    ]
    verdict = verdict_of(plugins, three())
    assert verdict.feasible.tolist() == [False, True, False]
    excluded = "node(s) didn't satisfy plugin(s) [Affinity]"
    assert verdict.rejection_at(2) == NodeRejection(
        "", (excluded,), eviction_helps=False, excluded_by=("Affinity",)
    )
    assert verdict.reason_counts() == {excluded: 1, "one": 1}
    assert verdict.rejected_by() == {"Affinity", "First"}
    assert verdict.narrowed_to == frozenset({"a", "b", "unknown"})


def test_two_plugins_narrow_to_what_both_name() -> None:
    plugins = [Narrows("One", frozenset({"a", "b"})), Narrows("Two", frozenset({"b", "c"}))]
    verdict = verdict_of(plugins, three())
    assert verdict.feasible.tolist() == [False, True, False]
    assert verdict.narrowed_to == frozenset({"b"})
    reason = "node(s) didn't satisfy plugin(s) [One Two]"
    found = [verdict.rejection_at(row) for row in range(3)]
    assert [each and (each.reasons, each.excluded_by) for each in found] == [
        ((reason,), ("Two",)),
        None,
        ((reason,), ("One",)),
    ]


def test_nothing_narrowed() -> None:
    verdict = verdict_of([Narrows("One", None)], three())
    assert (verdict.narrowed_to, verdict.feasible.tolist()) == (None, [True] * 3)


FINAL, FINAL_TOO = PodRejection("never"), PodRejection("never ever")
HELPED, HELPED_TOO = (PodRejection(text, eviction_helps=True) for text in ("full", "fuller"))


@pytest.mark.parametrize(
    ("answers", "wanted"),
    [
        pytest.param([None, FINAL], ("1", FINAL), id="is the only rejection"),
        pytest.param([FINAL, FINAL_TOO], ("0", FINAL), id="is the first that eviction cannot help"),
        pytest.param(
            [HELPED, FINAL],
            ("1", FINAL),
            id="is one that eviction cannot help after one that it can",
        ),
        pytest.param(
            [FINAL, HELPED],
            ("0", FINAL),
            id="is one that eviction cannot help before one that it can",
        ),
        pytest.param(
            [HELPED, HELPED_TOO], ("1", HELPED_TOO), id="is the last if eviction may help all"
        ),
        pytest.param(
            [frozenset("a"), HELPED], ("1", HELPED), id="is reported beside a narrowed search"
        ),
        pytest.param([None, None], None, id="is none if no plugin rejects the pod"),
    ],
)
def test_the_rejection_of_a_pod(answers: list[Any], wanted: Any) -> None:
    plugins = [Narrows(str(number), answer) for number, answer in enumerate(answers)]
    assert verdict_of(plugins, three()).pod_rejection == wanted


# Scores.


def test_the_rank_adds_up_weighted_scores_of_feasible_nodes() -> None:
    plugins = [Rejects("First", {"b": ["one"]}), Scores("X"), Scores("Y", "highest_best")]
    state = make_state([scored("a", 10), scored("b", 100), scored("c", 20)])
    verdict = verdict_of(plugins, state, X=3, Y=2)
    # X: 3*10, 3*20; Y: 2*(10*100//20), 2*(20*100//20)
    assert verdict.rank().tolist() == [30 + 100, -1, 60 + 200]


def test_a_plugin_without_opinion_adds_nothing() -> None:
    state = make_state([scored("a", 10), scored("b", 20)])
    silent = make_pod(labels={"opinion": "none"})
    assert verdict_of([Scores()], state, silent).rank().tolist() == [1, 1]


def test_scores_scale_again_when_the_highest_goes_away() -> None:
    plugin = Scores(scale="lowest_best")
    state = make_state([scored("a", 1), scored("b", 15), scored("c", 10), scored("d", 13)])
    verdicts = VerdictCache(make_profile([plugin]), state)
    assert verdicts.verdict_on(POD).rank().tolist() == [94, 0, 34, 14]
    state.remove_node("b")  # d moves into its row, 13 is the highest
    # 100 - 100//13, 100 - 1300//13, 100 - 1000//13
    assert verdicts.verdict_on(POD).rank().tolist() == [93, 0, 24]
    state.remove_node("c")  # the last row
    assert verdicts.verdict_on(POD).rank().tolist() == [93, 0]


@pytest.mark.parametrize(
    ("score", "ranks"),
    [
        pytest.param(20, [95, 25, 0, 35], id="grows"),  # of 20: 1, 15, 20, 13
        pytest.param(11, [94, 0, 27, 14], id="stays below the highest"),  # 100 - 1100//15 = 27
        pytest.param(15, [94, 0, 0, 14], id="equals the highest"),
    ],
)
def test_only_what_changed_is_scored_again_when_a_score(score: int, ranks: list[int]) -> None:
    plugin = Scores(scale="lowest_best")
    state = make_state([scored("a", 1), scored("b", 15), scored("c", 10), scored("d", 13)])
    verdicts = VerdictCache(make_profile([plugin]), state)
    verdicts.verdict_on(POD).rank()
    state.update_node(scored("c", score))
    assert verdicts.verdict_on(POD).rank().tolist() == ranks
    assert plugin.judged == [["a", "b", "c", "d"], ["c"]]


def test_scores_scale_again_when_the_highest_falls() -> None:
    state = make_state([scored("a", 1), scored("b", 15), scored("c", 10)])
    verdicts = VerdictCache(make_profile([Scores(scale="highest_best")]), state)
    assert verdicts.verdict_on(POD).rank().tolist() == [6, 100, 66]
    state.update_node(scored("b", 2))
    assert verdicts.verdict_on(POD).rank().tolist() == [10, 20, 100]


def test_the_highest_counts_among_feasible_nodes_only() -> None:
    class Cordon:
        name = "Cordon"

        @filter_each
        def filter(self, pod: Pod, node: OneNode) -> str | None:
            return "cordoned" if node.object.spec.unschedulable else None

    state = make_state([scored("a", 1), scored("b", 15), scored("c", 10)])
    verdicts = VerdictCache(make_profile([Cordon(), Scores(scale="highest_best")]), state)
    assert verdicts.verdict_on(POD).rank().tolist() == [6, 100, 66]
    state.update_node(scored("b", 15, unschedulable=True))
    assert verdicts.verdict_on(POD).rank().tolist() == [10, -1, 100]
    state.update_node(scored("b", 15))
    assert verdicts.verdict_on(POD).rank().tolist() == [6, 100, 66]


def test_the_highest_is_looked_for_again_when_its_node_is_rejected_though_its_score_stays() -> None:
    class Vacant:
        name = "Vacant"

        @filter_each
        def filter(self, pod: Pod, node: OneNode) -> str | None:
            return "taken" if node.pods else None

    plugin = Scores(scale="highest_best")
    state = make_state([scored("a", 1), scored("b", 15), scored("c", 10), scored("d", 5)])
    verdicts = VerdictCache(make_profile([Vacant(), plugin]), state)
    assert verdicts.verdict_on(POD).rank().tolist() == [6, 100, 66, 33]
    state.place(make_pod("p", on="b"))
    assert verdicts.verdict_on(POD).rank().tolist() == [10, -1, 100, 50]
    state.remove_pod("default/p")
    assert verdicts.verdict_on(POD).rank().tolist() == [6, 100, 66, 33]
    assert plugin.judged == [["a", "b", "c", "d"]]


class Cordoned:
    name = "Cordoned"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
        yield Rejection(nodes.unschedulable, "cordoned")


def test_a_plugin_that_reads_which_nodes_are_feasible_is_asked_again_when_that_changes() -> None:
    class OfFeasible:
        name = "OfFeasible"

        def score(self, pod: Pod, nodes: Nodes) -> IntArray:
            return np.full(len(nodes), int(nodes.everything.feasible.sum()), np.int64)

    state = three()
    verdicts = VerdictCache(make_profile([Cordoned(), OfFeasible()]), state)
    assert verdicts.verdict_on(POD).rank().tolist() == [3, 3, 3]
    state.update_node(make_node("b", unschedulable=True))
    assert verdicts.verdict_on(POD).rank().tolist() == [2, -1, 2]
    assert verdicts.verdict_on(POD).rank_among(np.array([True, False, False])).ranked.tolist() == [
        1,
        -1,
        -1,
    ]
    state.update_node(make_node("c", labels={"disk": "ssd"}))
    assert verdicts.verdict_on(POD).rank().tolist() == [
        2,
        -1,
        2,
    ]  # asked about all, not about c alone


class ScoresBy:
    """Reads something, and remembers which nodes it was asked about."""

    name = "ScoresBy"

    def __init__(self, read: Callable[[Nodes], Any]) -> None:
        self._read = read
        self.judged: list[str] = []

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        self._read(nodes)
        self.judged.append("".join(nodes.names))
        return np.zeros(len(nodes), np.int64)


@pytest.mark.parametrize(
    ("read", "judged"),
    [
        pytest.param(
            lambda nodes: None, [], id="no row if it does not read which nodes are feasible"
        ),
        pytest.param(
            lambda nodes: nodes.feasible,
            ["b"],
            id="that row if it reads feasibility of its own row",
        ),
        pytest.param(
            lambda nodes: nodes.everything.feasible,
            ["abcd"],
            id="all rows if it reads which nodes are feasible anywhere",
        ),
    ],
)
def test_where_a_node_is_no_longer_feasible_a_plugin_scores_again(
    read: Callable[[Nodes], Any], judged: list[str]
) -> None:
    plugin, state = ScoresBy(read), make_state([make_node(name) for name in "abcd"])
    verdicts = VerdictCache(make_profile([Cordoned(), plugin]), state)
    for is_cordoned in (False, True):
        state.update_node(make_node("b", unschedulable=is_cordoned))
        verdicts.verdict_on(POD).rank()
    assert plugin.judged == ["abcd", *judged]


def test_what_normalize_touches_makes_a_plugin_score_again() -> None:
    class ByPods(ScoresBy):
        def normalize(self, pod: Pod, nodes: Nodes, raw: IntArray) -> IntArray:
            return np.minimum(raw + nodes.pod_count, 100)

    plugin, state = ByPods(lambda nodes: None), three()
    verdicts = VerdictCache(make_profile([plugin]), state)
    assert verdicts.verdict_on(POD).rank().tolist() == [0, 0, 0]
    state.place(make_pod("p", on="b"))
    assert verdicts.verdict_on(POD).rank().tolist() == [0, 1, 0]
    state.remove_pod("default/p")
    assert verdicts.verdict_on(POD).rank().tolist() == [0, 0, 0]


@pytest.mark.parametrize("method", ["filter", "pre_filter"])
def test_which_nodes_are_feasible_is_nothing_that_may_be_asked_in(method: str) -> None:
    class TooEarly:
        name = "TooEarly"

    def read(pod: Pod, nodes: Nodes) -> tuple[Rejection, ...]:
        return (Rejection(~nodes.everything.feasible, "not feasible"),)

    plugin = TooEarly()
    setattr(plugin, method, read)
    with pytest.raises(PluginError, match="only score and normalize may ask which nodes are"):
        verdict_of([plugin], three())


def test_a_rank_among_fewer_nodes_scales_anew_and_keeps_nothing() -> None:
    state = make_state([scored("a", 1), scored("b", 15), scored("c", 10)])
    verdict = verdict_of([Scores(scale="highest_best")], state)
    few = np.array([True, False, True])
    assert verdict.rank_among(few).ranked.tolist() == [10, -1, 100]
    assert verdict.rank().tolist() == [6, 100, 66]
    among = verdict.rank_among(few)
    table = verdict.scores_of(np.array([2, 0]), among.ranked, among)
    assert (table.node_names, table.totals.tolist()) == (("c", "a"), [100, 10])
    assert [column.tolist() for column in (*table.raw, *table.normalized)] == [[10, 1], [100, 10]]


def test_a_plugin_may_normalise_by_itself() -> None:
    class Distance(Scores):
        def normalize(self, pod: Pod, nodes: Nodes, raw: IntArray) -> IntArray:
            return raw - int(raw[nodes.feasible].min())

    state = make_state([scored("a", 500), scored("b", 530), scored("c", 400)])
    verdict = verdict_of([Rejects("First", {"c": ["one"]}), Distance()], state)
    assert verdict.rank().tolist() == [0, 30, -1]


class SaysNothingOfSome:
    """Has an opinion only where so many nodes are feasible, and then prefers the last."""

    name = "SaysNothingOfSome"
    scale: Scale = "lowest_best"

    def __init__(self, fewest: int, most: int) -> None:
        self._wanted = range(fewest, most + 1)

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        if np.count_nonzero(nodes.everything.feasible) not in self._wanted:
            return None
        return 2 - nodes.rows


@pytest.mark.parametrize(
    ("fewest", "most", "ranked", "names"),
    [
        pytest.param(
            1, 2, [0, 50, -1], ("SaysNothingOfSome",), id="has an opinion only about fewer nodes"
        ),
        pytest.param(3, 3, [1, 1, -1], (), id="has no opinion about fewer nodes"),
    ],
)
def test_a_rank_among_fewer_nodes_asks_again_whether_a_plugin_has_an_opinion_that(
    fewest: int, most: int, ranked: list[int], names: tuple[str, ...]
) -> None:
    verdict = verdict_of([SaysNothingOfSome(fewest, most)], three())
    assert verdict.rank().tolist() == ([1, 1, 1] if names else [0, 50, 100])
    among = verdict.rank_among(np.array([True, True, False]))
    table = verdict.scores_of(np.array([1, 0]), among.ranked, among)
    assert (among.ranked.tolist(), table.plugins) == (ranked, names)
    assert verdict.most_points(among) == 100 * len(names)
