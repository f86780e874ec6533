"""The machine makes room for pods that matter more: others are evicted, and nobody twice."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from tests.scheduler.conftest import (
    Bench,
    binds,
    conditions,
    default_plugins,
    kinds,
    notes,
    on,
    small_node,
)

from lowtide.framework.plugin import PostFiltered
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.pod import Pod, PodCondition
from lowtide.objects.policy import PodDisruptionBudget
from lowtide.scheduler.actions import Action, Evict, WriteCondition, WriteKubeEvent
from lowtide.scheduler.events import Event, EvictionEnded
from lowtide.testing import make_node, make_pod, make_profile

BIG = make_pod("big", cpu="800m", priority=10)
LOW = make_pod("low", cpu="800m", on="node-a")
FULL = "0/1 nodes are available: 1 Insufficient cpu."
TERMINATING = (
    f"{FULL} no new claims to deallocate, "
    "preemption: not eligible due to a terminating pod on the nominated node."
)


def evictions(actions: Sequence[Action]) -> list[tuple[str, str, list[str]]]:
    """For whom, from which node, whom."""
    return [
        (each.pod.name, each.node_name, [victim.name for victim in each.victims])
        for each in actions
        if isinstance(each, Evict)
    ]


def nominations(actions: Sequence[Action]) -> list[tuple[str, str | None]]:
    return [
        (each.pod.name, each.nominated_node_name)
        for each in actions
        if isinstance(each, WriteCondition)
    ]


def ended(pod: Pod = BIG, *, evicted: Sequence[Pod] = (LOW,), error: str = "") -> EvictionEnded:
    return EvictionEnded(pod.uid, evicted=tuple(evicted), error=error or None)


def going(pod: Pod) -> Pod:
    """As the watch brings a victim that has been told to go."""
    condition = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler")
    return replace(
        pod,
        metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z"),
        status=replace(pod.status, conditions=[condition]),
    )


def full_bench() -> Bench:
    """A node that LOW fills, and BIG has had its turn."""
    bench = Bench(small_node())
    bench.give(Added(LOW), Added(BIG))
    bench.take_turns()
    return bench


def test_pods_that_matter_less_are_evicted_and_the_node_is_promised() -> None:
    bench = full_bench()
    assert kinds(bench.actions) == ["WriteKubeEvent", "WriteCondition", "Evict"]
    assert notes(bench.actions) == [("FailedScheduling", FULL)]
    assert nominations(bench.actions) == [("big", "node-a")]
    assert evictions(bench.actions) == [("big", "node-a", ["low"])]
    assert list(bench.machine.state.nominated()) == ["node-a"]


def test_a_victim_is_told_who_took_its_place() -> None:
    bench = full_bench()
    assert bench.give(ended()) == [
        WriteKubeEvent(
            LOW,
            "Normal",
            "Preempted",
            "Preempting",
            "Preempted by pod default/big on node node-a",
            "lowtide",
            related=BIG,
        )
    ]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([ended(), Deleted(LOW)], id="is deleted at once"),
        pytest.param([Deleted(LOW), ended()], id="is gone before its deletion is answered"),
        pytest.param([ended(), Modified(going(LOW)), Deleted(LOW)], id="terminates slowly"),
        pytest.param(
            [EvictionEnded(BIG.uid, gone=frozenset({LOW.uid})), Deleted(LOW)],
            id="was already gone",
        ),
    ],
)
def test_the_pod_has_its_node_once_the_victim(events: list[Event]) -> None:
    bench = full_bench()
    wanted = []
    for event in events:
        bench.give(event)
        bench.pass_time(20)
        wanted += bench.take_turns()
    assert (binds(wanted), evictions(wanted)) == ([("big", "node-a")], [])


def test_a_victim_is_told_although_it_went_before_its_deletion_was_answered() -> None:
    bench = full_bench()
    bench.delete(LOW)
    assert [reason for reason, _ in notes(bench.give(ended()))] == ["Preempted"]


def test_a_victim_that_the_server_does_not_know_is_not_waited_for() -> None:
    bench = full_bench()
    bench.give(EvictionEnded(BIG.uid, gone=frozenset({LOW.uid})))
    bench.pass_time(400)
    assert evictions(bench.take_turns()) == [("big", "node-a", ["low"])]


def test_a_budget_that_changes_wakes_nobody() -> None:
    bench = Bench(small_node())
    term = {"labelSelector": {"matchLabels": {"app": "none"}}, "topologyKey": "zone"}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    bench.give(Added(make_pod("lonely", spec={"affinity": {"podAffinity": terms}})))
    bench.take_turns()
    bench.give(Added(PodDisruptionBudget(metadata=ObjectMeta(name="web", namespace="default"))))
    bench.pass_time(20)
    assert (bench.take_turns(), bench.lengths) == ([], {"unschedulable": 1})


def test_a_terminating_victim_is_waited_for() -> None:
    bench = full_bench()
    bench.give(ended(), Modified(going(LOW)))
    bench.pass_time(400)
    assert notes(bench.take_turns()) == [("FailedScheduling", TERMINATING)]


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([], id="while the deletion is under way"),
        pytest.param([ended()], id="before the watch shows the deletion"),
    ],
)
def test_nobody_else_is_evicted_meanwhile(before: list[Event]) -> None:
    bench = full_bench()
    bench.give(*before)
    bench.give(Added(make_node("node-b", cpu="1")), Added(make_pod("low-b", cpu="1", on="node-b")))
    bench.pass_time(400)
    assert bench.take_turns() == []
    assert bench.lengths == {"gated": 1}


def test_an_eviction_that_fails_is_tried_again_after_a_while() -> None:
    bench = full_bench()
    bench.give(ended(evicted=(), error="pod default/low was not evicted: etcd has no leader"))
    assert bench.take_turns() == []
    bench.pass_time(3)
    assert evictions(bench.take_turns()) == [("big", "node-a", ["low"])]


def test_a_victim_that_goes_already_is_not_evicted_again() -> None:
    bench = Bench(small_node())
    leaving = make_pod("low", cpu="800m", on="node-a", deleted=True)
    bench.give(Added(leaving), Added(BIG))
    assert nominations(bench.take_turns()) == [("big", "node-a")]
    assert evictions(bench.actions) == []
    bench.give(Deleted(leaving))
    bench.pass_time(20)
    assert binds(bench.take_turns()) == [("big", "node-a")]


def test_a_pod_that_matters_less_loses_its_promise_and_looks_elsewhere() -> None:
    bench = Bench(small_node(cpu="2"))
    middle = make_pod("middle", cpu="1", priority=5, nominated="node-a", gates=["wait"])
    bench.give(
        Added(on(LOW, "node-a")), Added(middle), Added(make_pod("huge", cpu="2", priority=9))
    )
    (evict,) = [each for each in bench.take_turns() if isinstance(each, Evict)]
    assert (evict.pod.name, [pod.name for pod in evict.nominated]) == ("huge", ["middle"])
    assert bench.machine.state.nomination_of(middle.uid) == ""
    assert bench.machine.state.nomination_of(evict.pod.uid) == "node-a"


def test_a_promise_that_is_not_written_yet_outlives_other_news_of_the_pod() -> None:
    bench = full_bench()
    bench.give(ended(), Modified(replace(BIG, metadata=replace(BIG.metadata, generation=2))))
    assert bench.machine.state.nomination_of(BIG.uid) == "node-a"


def test_a_promise_is_taken_back_when_no_eviction_helps() -> None:
    bench = Bench(small_node())
    bench.give(Added(make_pod("huge", cpu="8", priority=9, nominated="node-a")))
    assert nominations(bench.take_turns()) == [("huge", "")]
    assert bench.machine.state.nominated() == {}


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([Deleted(BIG), ended()], id="is deleted"),
        pytest.param([ended(), Deleted(BIG)], id="is deleted after the eviction was written"),
        pytest.param([Modified(on(BIG, "node-b")), ended()], id="is bound by another scheduler"),
        pytest.param(
            [ended(), Modified(on(BIG, "node-b"))], id="is bound after the eviction was written"
        ),
    ],
)
def test_nothing_holds_a_pod_that_comes_again_after_it(events: list[Event]) -> None:
    bench = full_bench()
    bench.give(*events, Added(BIG))
    assert bench.lengths == {"active": 1}
    assert evictions(bench.take_turns()) == [("big", "node-a", ["low"])]


def test_a_pod_that_is_deleted_meanwhile_is_forgotten() -> None:
    bench = full_bench()
    bench.delete(BIG)
    assert notes(bench.give(ended())) == [
        ("Preempted", "Preempted by pod default/big on node node-a")
    ]
    assert (bench.lengths, bench.machine.state.nominated()) == ({}, {})
    bench.give(Added(BIG), Deleted(LOW))
    assert binds(bench.take_turns()) == [("big", "node-a")]


class EvictsWrongly:
    name = "EvictsWrongly"

    def post_filter(self, pod: Pod, nodes: Any, rejected: Any) -> PostFiltered:
        return PostFiltered(eviction=("node-a", ()))  # type: ignore[arg-type]


def test_an_eviction_of_another_type_fails_the_attempt() -> None:
    others = [each for each in default_plugins() if not hasattr(each, "post_filter")]
    bench = Bench(small_node(), profiles=[make_profile([*others, EvictsWrongly()])])
    bench.give(Added(make_pod("big", cpu="8")))
    bench.take_turns()
    ((reason, message),) = conditions(bench.actions)
    assert (reason, bench.lengths) == ("SchedulerError", {"backoff": 1})
    assert message.startswith("EvictsWrongly.post_filter returned PostFiltered(")
