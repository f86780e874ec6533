"""Bindings that were answered with success, but that the watch does not confirm."""

import pytest
from tests.scheduler.conftest import (
    OUTCOME_BOUND,
    OUTCOME_ERROR,
    OUTCOME_GONE,
    Bench,
    binds,
    conditions,
    notes,
    small_node,
)

from lowtide.framework.plugin import BindOutcome
from lowtide.objects.events import Deleted, Modified
from lowtide.scheduler.actions import Action, AttemptFailed, LookUpBinding
from lowtide.scheduler.binding_cycle import (
    CONFIRMED_WITHIN_SECONDS,
    LONGEST_WAIT_SECONDS,
    MOST_READ_AT_ONCE,
)
from lowtide.scheduler.events import BindingLookedUp
from lowtide.testing import make_pod

POD = make_pod("web", cpu="500m")
NOT_BOUND = BindOutcome(error="the pod has no node")


def looked_up(actions: list[Action]) -> list[tuple[str, str]]:
    return [(each.pod.name, each.node_name) for each in actions if isinstance(each, LookUpBinding)]


def answered() -> Bench:
    """The binding of a pod to node-a has ended well, and no watch says so."""
    bench = Bench(small_node())
    bench.place(POD)
    bench.end("web")
    return bench


def due() -> Bench:
    """Its pod is being read."""
    bench = answered()
    bench.pass_time(CONFIRMED_WITHIN_SECONDS)
    assert looked_up(bench.take_turns()) == [("web", "node-a")]
    return bench


def read(bench: Bench, outcome: BindOutcome, name: str = "web") -> list[Action]:
    return bench.give(BindingLookedUp(f"default/{name}", outcome))


def test_a_binding_is_looked_up_once_when_its_time_is_over() -> None:
    bench = answered()
    assert bench.machine.next_change_at() == bench.now + CONFIRMED_WITHIN_SECONDS
    bench.pass_time(CONFIRMED_WITHIN_SECONDS - 1)
    assert bench.take_turns() == []
    bench.pass_time(1)
    assert looked_up(bench.take_turns()) == [("web", "node-a")]
    bench.pass_time(3600)
    assert bench.take_turns() == []
    assert bench.on_node("node-a") == {"web": True}


def test_a_binding_that_the_watch_confirms_is_not_looked_up() -> None:
    bench = answered()
    bench.confirm(POD, "node-a")
    bench.pass_time(3600)
    assert (bench.take_turns(), bench.machine.next_change_at()) == ([], float("inf"))


def test_a_binding_that_the_watch_confirms_before_its_answer_is_not_looked_up() -> None:
    bench = Bench(small_node())
    bench.place(POD)
    bench.confirm(POD, "node-a")
    bench.end("web")
    assert bench.machine.next_change_at() == float("inf")


def test_a_pod_that_is_not_bound_loses_its_room_and_is_tried_again() -> None:
    bench = due()
    actions = read(bench, NOT_BOUND)
    assert [each.error for each in actions if isinstance(each, AttemptFailed)] == [NOT_BOUND.error]
    assert notes(actions) == [("FailedScheduling", NOT_BOUND.error)]
    assert conditions(actions) == [("SchedulerError", NOT_BOUND.error)]
    assert (bench.on_node("node-a"), bench.lengths) == ({}, {"backoff": 1})
    bench.pass_time(3)
    assert binds(bench.take_turns()) == [("web", "node-a")]


def test_a_pod_that_is_not_bound_is_tried_as_the_watch_says_it_is_now() -> None:
    bench = answered()
    changed = make_pod("web", cpu="500m", labels={"new": "label"})
    bench.give(Modified(changed))
    bench.pass_time(CONFIRMED_WITHIN_SECONDS)
    bench.take_turns()
    read(bench, NOT_BOUND)
    assert [each.pod for each in bench.machine.queue] == [changed]


def test_room_of_a_pod_that_is_not_bound_wakes_pods_that_wait_for_it() -> None:
    bench = due()
    bench.give(Modified(make_pod("large", cpu="1")))
    assert binds(bench.take_turns()) == []
    read(bench, NOT_BOUND)
    assert bench.lengths == {"backoff": 2}


@pytest.mark.parametrize("error", [OUTCOME_GONE, BindOutcome("it is elsewhere", is_gone=True)])
def test_a_pod_that_is_gone_or_elsewhere_loses_its_room_and_is_not_tried_again(
    error: BindOutcome,
) -> None:
    bench = due()
    assert read(bench, error) == []
    assert (bench.on_node("node-a"), bench.lengths) == ({}, {})


def test_a_pod_that_is_bound_is_read_again_after_twice_as_long_each_time() -> None:
    bench, waits = due(), []
    for _ in range(6):
        assert read(bench, OUTCOME_BOUND) == []
        waits.append(bench.machine.next_change_at() - bench.now)
        bench.pass_time(waits[-1])
        assert looked_up(bench.take_turns()) == [("web", "node-a")]
    assert waits == [60, 120, 240, 480, LONGEST_WAIT_SECONDS, LONGEST_WAIT_SECONDS]
    assert bench.on_node("node-a") == {"web": True}


def test_only_some_pods_are_read_at_once_and_others_follow() -> None:
    names = [f"pod-{number}" for number in range(MOST_READ_AT_ONCE + 2)]
    bench = Bench(small_node(cpu="16"))
    for name in names:
        bench.place(make_pod(name, cpu="500m"))
        bench.end(name)
    bench.pass_time(CONFIRMED_WITHIN_SECONDS)
    assert [name for name, _ in looked_up(bench.take_turns())] == names[:MOST_READ_AT_ONCE]
    assert (bench.take_turns(), bench.machine.next_change_at()) == ([], float("inf"))
    read(bench, OUTCOME_BOUND, names[1])
    assert looked_up(bench.take_turns()) == [(names[MOST_READ_AT_ONCE], "node-a")]
    read(bench, NOT_BOUND, names[0])
    assert looked_up(bench.take_turns()) == [(names[-1], "node-a")]


def test_a_confirmation_while_the_pod_is_read_outweighs_what_was_read() -> None:
    bench = due()
    bench.confirm(POD, "node-a")
    assert read(bench, NOT_BOUND) == []
    assert (bench.on_node("node-a"), bench.lengths) == ({"web": False}, {})


def test_a_pod_that_is_deleted_while_it_is_read_is_forgotten() -> None:
    bench = due()
    bench.give(Deleted(POD))
    assert read(bench, NOT_BOUND) == []
    assert (bench.on_node("node-a"), bench.lengths) == ({}, {})


def test_what_was_read_changes_nothing_about_a_pod_that_nobody_asked_about() -> None:
    bench = answered()
    assert read(bench, NOT_BOUND) == []
    assert (read(bench, NOT_BOUND, "stranger"), bench.on_node("node-a")) == ([], {"web": True})


def test_a_failed_binding_is_not_looked_up_again() -> None:
    bench = Bench(small_node())
    bench.place(POD)
    bench.end("web", OUTCOME_ERROR)
    bench.give(Deleted(POD))
    assert bench.machine.next_change_at() == float("inf")


def test_a_second_binding_that_is_not_applied_either_is_looked_up_too() -> None:
    bench = due()
    read(bench, NOT_BOUND)
    bench.pass_time(3)
    assert binds(bench.take_turns()) == [("web", "node-a")]
    bench.end("web")
    bench.pass_time(CONFIRMED_WITHIN_SECONDS)
    assert looked_up(bench.take_turns()) == [("web", "node-a")]
    read(bench, NOT_BOUND)
    assert bench.machine.next_change_at() - bench.now > 2  # the backoff grows


def test_other_pods_have_their_turn_while_a_pod_is_read() -> None:
    bench = answered()
    bench.pass_time(CONFIRMED_WITHIN_SECONDS)
    bench.give(Modified(make_pod("next", cpu="100m")))
    actions = bench.take_turns()
    assert (looked_up(actions), binds(actions)) == ([("web", "node-a")], [("next", "node-a")])
