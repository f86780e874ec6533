"""The machine and plugins that make pods wait on their node before they are bound."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.scheduler.conftest import (
    Bench,
    binds,
    conditions,
    default_profile,
    notes,
    small_node,
)

from lowtide.framework.asking import NOTHING_SPENT
from lowtide.framework.plugin import Allow, Pod, Reject, Wait
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.scheduler.actions import Action, Decided, Evict
from lowtide.scheduler.events import Event, EvictionEnded, PermitAnswered
from lowtide.testing import ManualClock, make_pod

WEB = make_pod("web", cpu="800m")


class Says:
    """Answers for each pod by its name; others it allows."""

    retry_on = 0

    def __init__(self, name: str, **answers: Any) -> None:
        self.name = name
        self._answers = answers
        self.undone: list[str] = []

    def permit(self, pod: Pod, node_name: str, nodes: Any) -> Any:
        return self._answers.get(pod.name, Allow())

    def reserve(self, pod: Pod, node_name: str, nodes: Any) -> None:
        return None

    def unreserve(self, pod: Pod, node_name: str) -> None:
        self.undone.append(pod.name)


def waiting(*plugins: Says) -> Bench:
    bench = Bench(small_node(), profiles=[default_profile(*plugins)])
    bench.give(Added(WEB))
    assert binds(bench.take_turns()) == []
    assert (bench.on_node("node-a"), bench.lengths) == ({"web": True}, {})
    return bench


def test_a_pod_is_bound_when_every_plugin_lets_it_go() -> None:
    bench = waiting(Says("Gang", web=Wait(30)), Says("Quota", web=Wait(30)))
    assert bench.give(PermitAnswered(WEB.uid, "Gang")) == []
    assert binds(bench.give(PermitAnswered(WEB.uid, "Quota"))) == [("web", "node-a")]
    assert bench.machine.binding_count == 1


def test_waiting_is_not_a_binding_under_way() -> None:
    assert waiting(Says("Gang", web=Wait(30))).machine.binding_count == 0


def test_a_pod_that_is_rejected_gives_its_place_back_and_is_told() -> None:
    plugin = Says("Gang", web=Wait(30))
    bench = waiting(plugin)
    told = bench.give(PermitAnswered(WEB.uid, "Gang", "the others are gone"))
    assert notes(told) == [("FailedScheduling", "0/1 nodes are available: 1 the others are gone.")]
    assert (bench.on_node("node-a"), plugin.undone) == ({}, ["web"])
    assert bench.lengths == {"unschedulable": 1}


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        pytest.param(None, "None", id="nothing"),
        pytest.param(False, "False", id="a boolean"),
        pytest.param(Allow, "<class 'lowtide.framework.plugin.Allow'>", id="a class"),
        pytest.param(Allow(also="default/db"), "Allow(also='default/db')", id="a uid alone"),  # type: ignore[arg-type]
        pytest.param(Allow(also=None), "Allow(also=None)", id="no uids"),  # type: ignore[arg-type]
        pytest.param(
            Allow(also=frozenset([5])),  # type: ignore[list-item]
            "Allow(also=frozenset({5}))",
            id="a uid that is a number",
        ),
        pytest.param(
            Reject(None),  # type: ignore[arg-type]
            "Reject(reason=None, also=frozenset())",
            id="a rejection without a reason",
        ),
        pytest.param(Wait(-1), "Wait(seconds=-1)", id="a time that has passed"),
        pytest.param(Wait("1m"), "Wait(seconds='1m')", id="a time in words"),  # type: ignore[arg-type]
    ],
)
def test_a_pod_is_not_bound_on_an_answer_that_is_none(answer: Any, shown: str) -> None:
    bench = Bench(small_node(), profiles=[default_profile(Says("Gang", web=answer))])
    bench.give(Added(WEB))
    assert binds(bench.take_turns()) == []
    ((reason, message),) = conditions(bench.actions)
    assert (reason, bench.lengths) == ("SchedulerError", {"backoff": 1})
    assert message == (
        f"Gang.permit answers with {shown}; it must be Allow(), Reject(reason) or Wait(seconds), "
        "with uids in a frozenset and seconds of 0 or more"
    )


class Stumbles:
    """Raises at one pod."""

    name = "Stumbles"

    def filter(self, pod: Pod, nodes: Any) -> Any:
        if pod.name == "bad":
            raise RuntimeError("it has stumbled")
        return ()


def test_a_rejection_outside_of_a_turn_does_not_tell_how_long_another_turn_took() -> None:
    clock = ManualClock(0.0)

    def looked_at() -> float:
        clock.advance(1.0)
        return clock()

    profile = default_profile(Says("Gang", web=Wait(30)), Stumbles()).timed_by(looked_at)
    bench = Bench(small_node(), profiles=[profile])
    bench.give(Added(WEB), Added(make_pod("bad")))
    bench.take_turns()
    told = bench.give(PermitAnswered(WEB.uid, "Gang", "the others are gone"))
    (decided,) = [each for each in told if isinstance(each, Decided)]
    assert decided.spent == NOTHING_SPENT


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        pytest.param(30, "30s", id="as long as the plugin said"),
        pytest.param(90.5, "1m30.5s", id="minutes and parts of a second"),
        pytest.param(0.25, "250ms", id="less than a second"),
        pytest.param(86400, "15m0s", id="15 minutes at most"),
    ],
)
def test_a_pod_waits(seconds: float, want: str) -> None:
    bench = waiting(Says("Gang", web=Wait(seconds)), Says("Patient", web=Wait(seconds + 1)))
    at = bench.machine.next_change_at()
    assert at == bench.now + min(seconds, 900)
    bench.pass_time(min(seconds, 900) - 0.01)
    assert not bench.machine.has_work(bench.now)
    bench.pass_time(0.02)
    reason = f"rejected due to timeout after waiting {want} at plugin Gang"
    text = f"0/1 nodes are available: 1 {reason}."
    assert notes(bench.take_turns()) == [("FailedScheduling", text)]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(Deleted(WEB), id="is deleted"),
        pytest.param(Modified(make_pod("web", cpu="800m", deleted=True)), id="is to be deleted"),
    ],
)
def test_the_place_is_free_again_when_the_waiting_pod(event: Event) -> None:
    plugin = Says("Gang", web=Wait(30))
    bench = waiting(plugin)
    bench.give(event)
    assert (bench.on_node("node-a"), plugin.undone) == ({}, ["web"])
    bench.give(Added(make_pod("next", cpu="800m")))
    assert binds(bench.take_turns()) == [("next", "node-a")]
    assert bench.give(PermitAnswered(WEB.uid, "Gang")) == []


def test_the_newest_form_of_a_waiting_pod_is_bound() -> None:
    bench = waiting(Says("Gang", web=Wait(30)))
    changed = make_pod("web", cpu="800m", labels={"new": "yes"})
    bench.give(Modified(changed))
    (bind,) = bench.give(PermitAnswered(WEB.uid, "Gang"))
    assert bind.pod == changed  # type: ignore[union-attr]


def test_one_answer_may_let_waiting_pods_go() -> None:
    plugin = Says("Gang", web=Wait(30), last=Allow(also=frozenset([WEB.uid])))
    bench = Bench(small_node(cpu="2"), profiles=[default_profile(plugin)])
    bench.give(Added(WEB))
    assert binds(bench.take_turns()) == []
    bench.give(Added(make_pod("last", cpu="800m")))
    assert binds(bench.take_turns()) == [("last", "node-a"), ("web", "node-a")]


class Raises:
    name = "Raises"

    def permit(self, pod: Pod, node_name: str, nodes: Any) -> Any:
        if pod.name == "friend":
            raise RuntimeError("it has stumbled")
        return Allow()


def test_a_waiting_pod_may_go_although_a_later_plugin_fails_at_the_one_that_allowed_it() -> None:
    gang = Says("Gang", web=Wait(30), friend=Allow(also=frozenset([WEB.uid])))
    bench = Bench(small_node(), profiles=[default_profile(gang, Raises())])
    bench.give(Added(WEB))
    bench.take_turns()
    bench.give(Added(make_pod("friend", cpu="100m")))
    assert binds(bench.take_turns()) == [("web", "node-a")]
    assert bench.lengths == {"backoff": 1}


def test_one_answer_may_reject_waiting_pods() -> None:
    plugin = Says("Gang", web=Wait(30), last=Reject("too few", also=frozenset([WEB.uid])))
    bench = Bench(small_node(cpu="2"), profiles=[default_profile(plugin)])
    bench.give(Added(WEB))
    bench.take_turns()
    bench.give(Added(make_pod("last", cpu="800m")))
    told = [note for _, note in notes(bench.take_turns())]
    assert told == ["0/1 nodes are available: 1 too few."] * 2
    assert bench.on_node("node-a") == {}


def test_a_waiting_pod_that_matters_less_loses_its_place_without_being_deleted() -> None:
    bench = waiting(Says("Gang", web=Wait(30)))
    bench.give(Added(make_pod("big", cpu="800m", priority=9)))
    told = bench.take_turns()
    assert [each for each in told if isinstance(each, Evict)] == []
    assert (
        "Preempted",
        "Preempted by pod default/big on node node-a (in kube-scheduler memory).",
    ) in notes(told)
    bench.pass_time(20)
    assert binds([*told, *bench.take_turns()]) == [("big", "node-a")]


def test_a_pod_waits_for_its_other_victims_where_one_of_them_only_waited() -> None:
    """The place that the waiting pod loses wakes it, but the other victim has not gone."""
    low = make_pod("low", cpu="800m", on="node-a")
    plugin = Says("Gang", web=Wait(30))
    bench = Bench(small_node(cpu="2"), profiles=[default_profile(plugin)])
    bench.give(Added(low), Added(WEB))
    bench.take_turns()
    big = make_pod("big", cpu="1800m", priority=9)
    bench.give(Added(big))
    bench.take_turns()
    assert [each.decision.pod.name for each in decisions(bench.actions)] == ["web", "big"]
    assert bench.lengths == {"gated": 1, "backoff": 1}
    bench.give(EvictionEnded(big.uid, evicted=(low,)), Deleted(low))
    assert binds(bench.take_turns()) == [("big", "node-a")]


def decisions(actions: Sequence[Action]) -> list[Decided]:
    return [each for each in actions if isinstance(each, Decided)]
