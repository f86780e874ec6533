"""The machine and pods that were promised a node: the place is kept for them, and given back."""

import pytest
from tests.scheduler.conftest import OUTCOME_ERROR, Bench, binds, small_node

from lowtide.objects.events import Added, Deleted, Modified
from lowtide.scheduler.actions import WriteCondition
from lowtide.scheduler.events import Event
from lowtide.testing import make_node, make_pod


def test_a_place_that_was_promised_is_kept_for_the_pod_it_was_promised_to() -> None:
    bench = Bench(small_node())
    promised = make_pod("promised", cpu="800m", priority=5, nominated="node-a", gates=["wait"])
    bench.give(Added(promised), Added(make_pod("rival", cpu="800m")))
    assert binds(bench.take_turns()) == []
    bench.give(Modified(make_pod("promised", cpu="800m", priority=5, nominated="node-a")))
    assert binds(bench.take_turns()) == [("promised", "node-a")]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(Deleted(make_pod("promised", cpu="800m")), id="the other pod is deleted"),
        pytest.param(
            Modified(make_pod("promised", cpu="800m", gates=["wait"])),
            id="the promise is taken back",
        ),
        pytest.param(
            Modified(make_pod("promised", cpu="800m", on="node-b")), id="it is bound elsewhere"
        ),
    ],
)
def test_a_promised_place_is_free_again_when(event: Event) -> None:
    bench = Bench(small_node())
    bench.give(Added(make_pod("promised", cpu="800m", nominated="node-a", gates=["wait"])))
    bench.give(Added(make_pod("rival", cpu="800m")))
    assert binds(bench.take_turns()) == []
    bench.give(event)
    assert binds(bench.take_turns()) == [("rival", "node-a")]


def test_the_promised_node_is_taken_where_it_is_feasible() -> None:
    bench = Bench(make_node("idle", cpu="64"), small_node("promised-node"))
    assert bench.place(make_pod("web", nominated="promised-node")) == "promised-node"


def test_a_promise_ends_with_a_failed_binding() -> None:
    bench = Bench(small_node())
    promised = make_pod("promised", cpu="800m", nominated="node-a")
    assert bench.place(promised) == "node-a"
    assert bench.machine.state.nominated() == {}
    *_, condition = bench.end("promised", OUTCOME_ERROR)
    assert isinstance(condition, WriteCondition)
    assert condition.nominated_node_name == ""
    bench.give(Added(make_pod("rival", cpu="800m")))
    assert binds(bench.take_turns()) == [("rival", "node-a")]
