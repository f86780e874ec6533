"""The machine and pods that were promised a node: the place is kept for them, and given back."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from tests.scheduler.conftest import OUTCOME_ERROR, Bench, binds, small_node

from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.scheduler.actions import Action, WriteCondition
from lowtide.scheduler.events import Event, EvictionEnded
from lowtide.testing import make_node, make_pod

BIG = make_pod("big", cpu="800m", priority=10)
LOW = make_pod("low", cpu="800m", on="node-a")


def nominated(pod: Pod, node_name: str) -> Pod:
    """As the watch brings the pod once this is written."""
    return replace(pod, status=replace(pod.status, nominated_node_name=node_name))


def cordoned(node: Node) -> Node:
    return replace(node, spec=replace(node.spec, unschedulable=True))


def asked(actions: Sequence[Action]) -> list[str | None]:
    return [each.nominated_node_name for each in actions if isinstance(each, WriteCondition)]


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
        pytest.param(Deleted(make_pod("promised", cpu="800m")), id="the nominated pod is deleted"),
        pytest.param(
            Modified(make_pod("promised", cpu="800m", gates=["wait"])),
            id="the nomination is removed",
        ),
        pytest.param(
            Modified(make_pod("promised", cpu="800m", on="node-b")),
            id="the nominated pod is bound to another node",
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


def bench_with_older_write() -> Bench:
    """BIG's promise was taken back and made again, and the watch knows of neither."""
    bench = Bench(cordoned(small_node()))
    bench.give(Added(LOW), Added(nominated(BIG, "node-a")))
    assert asked(bench.take_turns()) == [""]
    bench.pass_time(30)
    bench.give(Modified(small_node()))
    assert asked(bench.take_turns()) == ["node-a"]
    return bench


def test_a_promise_outlives_the_echo_of_an_older_write() -> None:
    bench = bench_with_older_write()
    bench.give(Modified(nominated(BIG, "")))
    assert bench.machine.state.nomination_of(BIG.uid) == "node-a"
    bench.give(Added(make_pod("thief", cpu="800m")), Deleted(LOW))
    assert binds(bench.take_turns()) == []
    bench.give(EvictionEnded(BIG.uid, evicted=(LOW,)))
    bench.pass_time(20)
    assert binds(bench.take_turns()) == [("big", "node-a")]


def test_a_promise_ends_when_somebody_takes_it_back_after_it_was_written() -> None:
    bench = bench_with_older_write()
    for name in ("", "node-a", ""):
        bench.give(Modified(nominated(BIG, name)))
    assert bench.machine.state.nominated() == {}


def test_a_promise_taken_back_before_it_was_written_does_not_come_back() -> None:
    bench = Bench(small_node())
    bench.give(Added(LOW), Added(BIG))
    assert asked(bench.take_turns()) == ["node-a"]
    bench.give(EvictionEnded(BIG.uid, error="etcd has no leader"), Modified(cordoned(small_node())))
    bench.pass_time(30)
    assert asked(bench.take_turns()) == [""]
    bench.give(Modified(nominated(BIG, "node-a")))
    assert bench.machine.state.nominated() == {}


def test_a_promise_lost_to_a_pod_that_matters_more_does_not_come_back() -> None:
    bench = Bench(small_node())
    bench.give(Added(LOW), Added(BIG))
    assert asked(bench.take_turns()) == ["node-a"]
    bench.give(EvictionEnded(BIG.uid, error="etcd has no leader"))
    bench.give(Added(make_pod("bigger", cpu="800m", priority=20)))
    bench.take_turns()
    bench.give(Modified(nominated(BIG, "node-a")))
    assert bench.machine.state.nomination_of(BIG.uid) == ""


def test_a_promise_made_after_one_was_lost_outlives_the_echo_of_the_loss() -> None:
    bench = Bench(small_node(), cordoned(small_node("node-b")))
    bench.give(Added(LOW), Added(make_pod("low-b", cpu="800m", on="node-b")))
    bench.give(Added(nominated(BIG, "node-a")))
    bench.take_turns()
    bench.give(EvictionEnded(BIG.uid, error="etcd has no leader"))
    bench.give(Added(make_pod("bigger", cpu="800m", priority=20)))
    bench.take_turns()
    assert bench.machine.state.nomination_of(BIG.uid) == ""
    bench.pass_time(30)
    bench.give(Modified(small_node("node-b")))
    assert asked(bench.take_turns()) == ["node-b"]
    bench.give(Modified(nominated(BIG, "")))
    assert bench.machine.state.nomination_of(BIG.uid) == "node-b"


def test_a_promise_that_was_asked_for_is_not_written_twice() -> None:
    bench = bench_with_older_write()
    bench.give(EvictionEnded(BIG.uid, error="etcd has no leader"))
    bench.pass_time(30)
    assert asked(bench.take_turns()) == [None]


def test_a_promise_that_could_not_be_written_is_asked_for_again() -> None:
    bench = Bench(small_node())
    bench.give(Added(LOW), Added(BIG))
    assert asked(bench.take_turns()) == ["node-a"]
    bench.give(EvictionEnded(BIG.uid, error="etcd has no leader"))
    bench.pass_time(30)
    assert asked(bench.take_turns()) == ["node-a"]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(Deleted(BIG), id="gone"),
        pytest.param(Modified(make_pod("big", cpu="800m", on="node-b")), id="bound"),
    ],
)
def test_what_was_asked_for_is_forgotten_once_the_pod_is(event: Event) -> None:
    bench = Bench(small_node())
    bench.give(Added(LOW), Added(BIG))
    assert asked(bench.take_turns()) == ["node-a"]
    bench.give(event)
    bench.give(Added(nominated(BIG, "node-a")))
    assert bench.machine.state.nomination_of(BIG.uid) == "node-a"
