"""decide: rejections that give way when nothing else is left."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.plugin import IntArray, Nodes, Pod, Rejection
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile, make_state


class Busy:
    """Rejects these nodes until a pod has waited for so long."""

    name = "Busy"

    def __init__(self, names: str, after: float) -> None:
        self._names = names
        self._after = after

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        mask = np.array([name in self._names for name in nodes.names])
        yield Rejection(mask, "node(s) were busy", gives_way_after=self._after)


class Crowded:
    """Rejects nodes that hold a pod, also one that is only promised to them."""

    name = "Crowded"

    def __init__(self, after: float) -> None:
        self._after = after

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        yield Rejection(nodes.pod_count > 0, "crowded", gives_way_after=self._after)


class Closed:
    name = "Closed"

    def __init__(self, names: str) -> None:
        self._names = names

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        yield Rejection(np.array([name in self._names for name in nodes.names]), "closed")


class ByName:
    """Prefers names late in the alphabet."""

    name = "ByName"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        return np.array([ord(name) - ord("a") for name in nodes.names], np.int64)


def three() -> ClusterState:
    return make_state([make_node(name) for name in "abc"])


def decided(
    *plugins: Any, state: ClusterState | None = None, pod: Pod | None = None, **options: Any
) -> Decision:
    verdicts = VerdictCache(make_profile([*plugins, ByName()]), state or three())
    return decide(pod or make_pod(), verdicts, **{"turn": 0, **options})


@pytest.mark.parametrize(
    ("plugins", "waited_seconds", "chosen"),
    [
        pytest.param(
            [Busy("bc", 0)], 0, "a", id="avoids rejected nodes while another node is left"
        ),
        pytest.param(
            [Busy("bc", 60)], 1e9, "a", id="avoids rejected nodes however long the pod waited"
        ),
        pytest.param(
            [Busy("abc", 0)], 0, "c", id="takes the best node if rejections give way at once"
        ),
        pytest.param(
            [Busy("abc", 60)], 59.9, None, id="takes no node before the rejections give way"
        ),
        pytest.param(
            [Busy("abc", 60)], 60, "c", id="takes the best node once the rejections give way"
        ),
        pytest.param(
            [Closed("bc"), Busy("abc", 0)],
            0,
            "a",
            id="takes only a node that no other plugin rejects",
        ),
        pytest.param(
            [Closed("abc"), Busy("abc", 0)],
            0,
            None,
            id="takes no node if other plugins reject them all",
        ),
    ],
)
@pytest.mark.parametrize("full", [False, True], ids=["briefly", "in full"])
def test_a_decision(
    plugins: list[Any], waited_seconds: float, chosen: str | None, full: bool
) -> None:
    assert decided(*plugins, waited_seconds=waited_seconds, full=full).node_name == chosen


@pytest.mark.parametrize(
    ("plugins", "waited_seconds", "after"),
    [
        pytest.param([Busy("abc", 60)], 10, 60.0, id="when the rejections give way"),
        pytest.param([Closed("abc")], 10, math.inf, id="never if no rejection gives way"),
        pytest.param(
            [Closed("abc"), Busy("abc", 60)], 10, math.inf, id="never if giving way would not help"
        ),
    ],
)
def test_a_pod_without_a_node_is_worth_another_try(
    plugins: list[Any], waited_seconds: float, after: float
) -> None:
    decision = decided(*plugins, waited_seconds=waited_seconds)
    assert (decision.node_name, decision.gives_way_after) == (None, after)


def test_the_sentence_counts_what_would_give_way() -> None:
    decision = decided(Closed("a"), Busy("abc", 60))
    assert (decision.fit_error, decision.rejected_by) == (
        "0/3 nodes are available: 1 closed, 2 node(s) were busy.",
        frozenset({"Closed", "Busy"}),
    )


def test_only_what_gave_way_is_scored_and_nothing_is_told_of_its_rejection() -> None:
    decision = decided(Closed("c"), Busy("abc", 0), full=True)
    assert [(each.node_name, each.total) for each in decision.best] == [("b", 1), ("a", 0)]
    busy = NodeRejection("Busy", ("node(s) were busy",), eviction_helps=False)
    assert decision.rejections == {
        "c": NodeRejection("Closed", ("closed",), eviction_helps=False, also=(busy,))
    }


@pytest.mark.parametrize(
    ("waited_seconds", "chosen"),
    [
        pytest.param(59, None, id="stands before its time to give way"),
        pytest.param(60, "a", id="gives way at its time"),
    ],
)
@pytest.mark.parametrize("full", [False, True], ids=["briefly", "in full"])
def test_a_rejection_for_the_sake_of_a_promised_pod(
    waited_seconds: float, chosen: str | None, full: bool
) -> None:
    state = make_state([make_node("a")])
    state.nominate(make_pod("promised", priority=9), "a")
    decision = decided(Crowded(60), state=state, waited_seconds=waited_seconds, full=full)
    after = 60.0 if chosen is None else math.inf
    assert (decision.node_name, decision.gives_way_after) == (chosen, after)
    assert list(decision.rejections) == (["a"] if full and chosen is None else [])


BUSY = NodeRejection("Busy", ("node(s) were busy",), eviction_helps=False)
CROWDED = NodeRejection("Crowded", ("crowded",), eviction_helps=False)


@pytest.mark.parametrize(
    ("plugins", "pod", "gave_way"),
    [
        pytest.param([Busy("abc", 0)], make_pod(), BUSY, id="of the best of several nodes"),
        pytest.param([Busy("abc", 0), Closed("bc")], make_pod(), BUSY, id="of the only node left"),
        pytest.param([Busy("abc", 0)], make_pod(nominated="a"), BUSY, id="of a nominated node"),
        pytest.param([Busy("bc", 0)], make_pod(), None, id="none, if no rejection had to give way"),
        pytest.param(
            [Closed("abc"), Busy("abc", 0)], make_pod(), None, id="none, if the pod fits nowhere"
        ),
    ],
)
@pytest.mark.parametrize("full", [False, True], ids=["briefly", "in full"])
def test_a_decision_says_which_rejection_gave_way(
    plugins: list[Any], pod: Pod, gave_way: NodeRejection | None, full: bool
) -> None:
    assert decided(*plugins, pod=pod, full=full).gave_way == gave_way


def test_a_decision_says_that_a_rejection_for_the_sake_of_a_promised_pod_gave_way() -> None:
    state = make_state([make_node("a")])
    state.nominate(make_pod("promised", priority=9), "a")
    assert decided(Crowded(0), state=state).gave_way == CROWDED


def test_a_nominated_node_that_gave_way_is_taken() -> None:
    pod = make_pod(nominated="a")
    decision = decided(Busy("abc", 0), pod=pod, full=True)
    assert (decision.node_name, decision.by_nomination) == ("a", True)
