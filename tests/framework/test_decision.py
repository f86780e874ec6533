"""A Decision: its sentence for a pod that fits nowhere, and its scores."""

import numpy as np
import pytest

from lowtide.framework.decision import Decision, NodeScore, PluginScore, ScoreTable
from lowtide.framework.plugin import PodRejection
from lowtide.testing import make_pod


def nowhere(
    node_count: int,
    reason_counts: dict[str, int] | None = None,
    pod_rejection: PodRejection | None = None,
) -> Decision:
    return Decision(
        pod=make_pod(),
        scheduler_name="lowtide",
        node_name=None,
        node_count=node_count,
        feasible_count=0,
        reason_counts=reason_counts or {},
        pod_rejection=pod_rejection,
    )


@pytest.mark.parametrize(
    ("decision", "sentence"),
    [
        pytest.param(nowhere(0), "no nodes available to schedule pods", id="without nodes"),
        pytest.param(
            nowhere(3, {"Insufficient cpu": 3}),
            "0/3 nodes are available: 3 Insufficient cpu.",
            id="for one reason",
        ),
        pytest.param(
            nowhere(12, {"Too many pods": 2, "Insufficient cpu": 10, "Insufficient memory": 1}),
            "0/12 nodes are available: 1 Insufficient memory, 10 Insufficient cpu, "
            "2 Too many pods.",
            id="for several reasons, sorted as texts with their counts",
        ),
        pytest.param(
            nowhere(5, pod_rejection=PodRejection("pod affinity terms conflict")),
            "0/5 nodes are available: pod affinity terms conflict.",
            id="when the pod itself is rejected",
        ),
    ],
)
def test_fit_error(decision: Decision, sentence: str) -> None:
    assert decision.fit_error == sentence


def test_scores_are_unpacked_best_first() -> None:
    table = ScoreTable(
        node_names=("b", "a"),
        rows=np.array([1, 0]),
        totals=np.array([250, 90]),
        plugins=("Quiet", "Near"),
        weights=(2, 1),
        raw=np.array([[4, 9], [50, 30]]),
        normalized=np.array([[100, 30], [50, 30]]),
    )
    decision = Decision(make_pod(), "lowtide", "b", 2, 2, scores=table)
    assert decision.best == (
        NodeScore("b", 250, {"Quiet": PluginScore(4, 100, 200), "Near": PluginScore(50, 50, 50)}),
        NodeScore("a", 90, {"Quiet": PluginScore(9, 30, 60), "Near": PluginScore(30, 30, 30)}),
    )


def test_a_decision_without_scores_has_no_best() -> None:
    assert nowhere(1).best == ()
