"""decide: which node, what is kept of the others, and what is left out."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import Decision, NodeRejection, NodeScore, PluginScore
from lowtide.framework.plugin import (
    IntArray,
    Nodes,
    OneNode,
    Pod,
    PodRejection,
    Rejection,
    filter_each,
)
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.pod import signature_of
from lowtide.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile, make_state


class ByName:
    """Scores each node what it is told; counts how often it is asked."""

    name = "ByName"
    scale = None

    def __init__(self, **scores: int) -> None:
        self._scores = scores
        self.asked = 0

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        self.asked += 1
        return np.array([self._scores.get(name, 0) for name in nodes.names], np.int64)


class Only:
    """Rejects every node but these."""

    name = "Only"

    def __init__(self, *names: str) -> None:
        self._names = names

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        return None if node.name in self._names else "not one of them"


class RejectsPods:
    name = "RejectsPods"

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection:
        return PodRejection("nobody wants it")


class RejectsNothing:
    """Stands for the filters that every profile has."""

    name = "RejectsNothing"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        return iter(())


def three() -> ClusterState:
    return make_state([make_node("a"), make_node("b"), make_node("c")])


def decided(
    *plugins: Any,
    pod: Pod | None = None,
    state: ClusterState | None = None,
    weights: Mapping[str, int] | None = None,
    **options: Any,
) -> Decision:
    verdicts = VerdictCache(make_profile([RejectsNothing(), *plugins], weights), state or three())
    return decide(pod or make_pod(), verdicts, **{"turn": 0, **options})


def by_name(name: str, score: int) -> NodeScore:
    return NodeScore(name, score, {"ByName": PluginScore(score, score, score)})


def test_the_node_with_the_highest_total_is_chosen_and_the_best_are_kept_in_order() -> None:
    decision = decided(ByName(a=10, b=30, c=20))
    assert (decision.node_name, decision.node_count, decision.feasible_count) == ("b", 3, 3)
    assert decision.best == (by_name("b", 30), by_name("c", 20), by_name("a", 10))


def test_raw_normalised_and_weighted_scores_are_kept_apart() -> None:
    plugin = ByName(a=10, b=40)
    plugin.scale = "highest_best"  # type: ignore[assignment]
    decision = decided(plugin, weights={"ByName": 3}, keep=2)
    assert decision.best == (
        NodeScore("b", 300, {"ByName": PluginScore(40, 100, 300)}),
        NodeScore("a", 75, {"ByName": PluginScore(10, 25, 75)}),
    )


def test_only_the_best_are_kept_and_equal_ones_in_the_order_of_the_table() -> None:
    decision = decided(ByName(a=10, b=30, c=10), keep=2)
    assert [node.node_name for node in decision.best] == ["b", "a"]


def test_twenty_are_kept_unless_all_are_asked_for() -> None:
    state = make_state([make_node(f"n{number}") for number in range(50)])
    assert len(decided(ByName(n49=1), state=state).best) == 20
    assert len(decided(ByName(n49=1), state=state, full=True).best) == 50


def test_nodes_that_were_rejected_are_not_among_the_best() -> None:
    decision = decided(Only("a", "c"), ByName(a=1, b=99, c=2))
    assert (decision.node_name, decision.feasible_count, decision.rejections) == ("c", 2, {})
    assert [node.node_name for node in decision.best] == ["c", "a"]


def test_a_single_feasible_node_is_chosen_without_scoring() -> None:
    scorer = ByName(b=5)
    assert decided(Only("b"), scorer) == Decision(
        pod=make_pod(),
        scheduler_name="lowtide",
        node_name="b",
        node_count=3,
        feasible_count=1,
        signature=signature_of(make_pod()),
    )
    assert scorer.asked == 0


def test_in_full_a_single_feasible_node_is_scored_and_the_others_explained() -> None:
    rejected = NodeRejection("Only", ("not one of them",), eviction_helps=False)
    decision = decided(Only("b"), ByName(b=5), full=True)
    assert (decision.best, decision.rejections) == (
        (by_name("b", 5),),
        {"a": rejected, "c": rejected},
    )


def test_no_feasible_node_is_told_by_reasons_and_plugins() -> None:
    decision = decided(Only(), ByName(a=1))
    assert (decision.node_name, decision.rejected_by, decision.reason_counts) == (
        None,
        frozenset(["Only"]),
        {"not one of them": 3},
    )
    assert decision.fit_error == "0/3 nodes are available: 3 not one of them."


def test_a_rejected_pod_is_told_by_the_plugin_that_rejected_it() -> None:
    decision = decided(RejectsPods(), ByName(a=1))
    assert (decision.node_name, decision.pod_rejection, decision.rejected_by) == (
        None,
        PodRejection("nobody wants it"),
        frozenset(["RejectsPods"]),
    )
    assert decision.fit_error == "0/3 nodes are available: nobody wants it."


def test_without_nodes_there_is_nothing_to_choose() -> None:
    decision = decided(ByName(), state=make_state([]))
    assert (decision.node_name, decision.node_count, decision.fit_error) == (
        None,
        0,
        "no nodes available to schedule pods",
    )


# Ties.


def test_equals_take_turns() -> None:
    nodes = [decided(ByName(a=7, b=7, c=7), turn=turn).node_name for turn in range(7)]
    assert nodes == ["a", "b", "c", "a", "b", "c", "a"]


# Nominations.


def test_the_nominated_node_is_taken_first_without_scoring() -> None:
    scorer = ByName(a=99)
    decision = decided(scorer, pod=make_pod(nominated="c"))
    assert (decision.node_name, decision.by_nomination, decision.best) == ("c", True, ())
    assert scorer.asked == 0


def test_in_full_the_nominated_node_is_taken_and_every_score_kept() -> None:
    decision = decided(ByName(a=99, b=1), pod=make_pod(nominated="c"), full=True)
    assert (decision.node_name, decision.by_nomination) == ("c", True)
    assert decision.best == (by_name("a", 99), by_name("b", 1), by_name("c", 0))


@pytest.mark.parametrize(
    "nominated",
    [
        pytest.param("b", id="is not feasible"),
        pytest.param("nowhere", id="is not known"),
    ],
)
def test_another_node_is_found_when_the_nominated_one(nominated: str) -> None:
    decision = decided(Only("a", "c"), ByName(c=5), pod=make_pod(nominated=nominated))
    assert (decision.node_name, decision.by_nomination) == ("c", False)


def promised(*, priority: int = 0, uid: str = "rival") -> ClusterState:
    """One node with one cpu, promised to a pod of that priority that asks for most of it."""
    state = make_state([make_node("a", cpu="1"), make_node("b", cpu="100m")])
    state.nominate(make_pod("rival", uid=uid, cpu="800m", priority=priority), "a")
    return state


def fit() -> NodeResourcesFit:
    return NodeResourcesFit(NodeResourcesFitArgs())


@pytest.mark.parametrize(
    ("state", "node_name"),
    [
        pytest.param(promised(priority=5), None, id="is kept for a pod of higher priority"),
        pytest.param(promised(priority=0), None, id="is kept for a pod of the same priority"),
        pytest.param(promised(priority=-1), "a", id="is not kept for a pod of lower priority"),
        pytest.param(
            promised(uid="default/pod"), "a", id="is not kept free of the nominated pod itself"
        ),
    ],
)
def test_a_promised_place(state: ClusterState, node_name: str | None) -> None:
    decision = decided(fit(), pod=make_pod(cpu="500m"), state=state)
    assert decision.node_name == node_name
    if node_name is None:
        assert decision.reason_counts == {"Insufficient cpu": 2}
        assert decision.rejected_by == frozenset(["NodeResourcesFit"])


def test_a_promise_leaves_the_state_and_the_verdicts_as_they_were() -> None:
    state = promised()
    verdicts = VerdictCache(make_profile([fit()]), state)
    pod = make_pod(cpu="500m")
    assert decide(pod, verdicts, turn=0).node_name is None
    state.drop_nomination("rival")
    assert decide(pod, verdicts, turn=0).node_name == "a"


def test_in_full_a_node_rejected_for_a_promise_is_explained() -> None:
    decision = decided(fit(), pod=make_pod(cpu="500m"), state=promised(), full=True)
    # Pods could be evicted from the first; the second is too small for good.
    assert decision.rejections == {
        "a": NodeRejection("NodeResourcesFit", ("Insufficient cpu",), eviction_helps=True),
        "b": NodeRejection("NodeResourcesFit", ("Insufficient cpu",), eviction_helps=False),
    }


def test_a_node_that_a_pre_filter_left_out_is_not_judged_beside_its_promised_pods() -> None:
    names = [{"key": "metadata.name", "operator": "In", "values": ["b"]}]
    required = {"nodeSelectorTerms": [{"matchFields": names}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    pod = make_pod(cpu="9", spec={"affinity": affinity})
    state = make_state([make_node("a"), make_node("b")])
    state.nominate(make_pod("rival", cpu="4"), "a")
    plugins = [NodeAffinity(NodeAffinityArgs()), NodeResourcesFit(NodeResourcesFitArgs())]
    decision = decide(pod, VerdictCache(make_profile(plugins), state), turn=0)
    assert decision.fit_error == (
        "0/2 nodes are available: 1 Insufficient cpu, "
        "1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
