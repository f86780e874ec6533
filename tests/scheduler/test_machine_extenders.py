"""The machine asks extenders in the course of a cycle, and holds what happens meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.scheduler.conftest import (
    Bench,
    binds,
    conditions,
    default_profile,
    notes,
    on,
    small_node,
)

from lowtide.config.types import Extender, ManagedResource
from lowtide.framework.plugin import BindOutcome, Nodes, Pod, Rejection
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.scheduler.actions import Action, AskExtenders, Decided, Evict
from lowtide.scheduler.events import Event, ExtendersAnswered
from lowtide.scheduler.extending import (
    Answer,
    AskFilter,
    AskPreemption,
    AskPriorities,
    ExtenderFailed,
    Filtered,
    Preempted,
    Priorities,
    Question,
)
from lowtide.scheduler.machine import Machine
from lowtide.testing import ManualClock, make_node, make_pod

POD = make_pod("web", cpu="100m")
WEB = make_pod("web", cpu="600m")
BIG = make_pod("big", cpu="800m", priority=10)
LOW = make_pod("low", cpu="800m", on="a")
LOWER = make_pod("lower", cpu="800m", on="b", priority=-1)


PREFERS_A = {
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "preference": {
                        "matchExpressions": [{"key": "disk", "operator": "In", "values": ["a"]}]
                    },
                }
            ]
        }
    }
}


def extender(name: str = "one", **fields: Any) -> Extender:
    return Extender(url_prefix=f"http://{name}", **fields)


FILTERS = extender(filter_verb="filter")
PREFERS = extender("two", prioritize_verb="prioritize", weight=3)
PREEMPTS = extender("three", preempt_verb="preempt")


def bench(*extenders: Extender) -> Bench:
    return Bench(small_node("a"), small_node("b"), extenders=extenders)


def asked(actions: list[Action]) -> list[Question]:
    return [each.question for each in actions if isinstance(each, AskExtenders)]


def asked_about(made: Bench, pod: Any = POD) -> Question:
    made.give(Added(pod))
    (question,) = asked(made.take_turns())
    return question


def answered(made: Bench, answer: Answer) -> list[Action]:
    return made.give(ExtendersAnswered(answer))


def test_an_extender_leaves_nodes_out() -> None:
    made = bench(FILTERS)
    assert asked_about(made) == AskFilter(FILTERS, POD, ("a", "b"))
    assert binds(answered(made, Filtered(("b",), {"a": "too warm"}))) == [("web", "b")]


def test_a_pod_that_no_extender_wants_anywhere_is_told_why() -> None:
    made = bench(FILTERS)
    asked_about(made)
    actions = answered(made, Filtered((), {"a": "too warm"}, {"b": "no such rack"}))
    (_, message), *_ = conditions(actions)
    assert message.startswith("0/2 nodes are available: 1 no such rack, 1 too warm.")
    assert made.lengths == {"unschedulable": 1}


def test_a_node_that_nothing_is_said_of_is_not_counted() -> None:
    made = full(FILTERS, PREEMPTS)
    asked_about(made, make_pod("web", cpu="100m", priority=10))
    actions = answered(made, Filtered(()))
    (_, message), *_ = conditions(actions)
    assert message == (
        "0/2 nodes are available: no new claims to deallocate, preemption: 0/2 nodes are "
        "available: 2 Preemption is not helpful for scheduling."
    )


def test_any_change_wakes_a_pod_that_an_extender_rejected() -> None:
    made = bench(FILTERS)
    asked_about(made)
    answered(made, Filtered((), {"a": "", "b": ""}))
    made.give(Added(make_pod("other", on="a")))
    assert made.lengths == {"backoff": 1}


def test_extenders_add_to_the_ranks() -> None:
    made = bench(PREFERS)
    assert asked_about(made) == AskPriorities((PREFERS,), POD, ("a", "b"))
    actions = answered(made, Priorities(({"b": 10},)))
    assert binds(actions) == [("web", "b")]
    (decided,) = [each for each in actions if isinstance(each, Decided)]
    for node in decided.decision.best:
        assert node.total == sum(score.weighted for score in node.by_plugin.values())
    points = {node.node_name: node.by_plugin["Extender"].raw for node in decided.decision.best}
    assert points == {"a": 0, "b": 300}


@pytest.mark.parametrize(
    "score",
    [
        pytest.param(-100, id="is below the rank of rejected nodes"),
        pytest.param(-(2**62), id="is below the 64-bit range"),
        pytest.param(2**62, id="is above the 64-bit range"),
    ],
)
def test_a_node_that_was_rejected_is_never_chosen_where_the_only_rank(score: int) -> None:
    made = Bench(
        small_node("a"), small_node("b"), small_node("full", cpu="50m"), extenders=(PREFERS,)
    )
    asked_about(made)
    bound = binds(answered(made, Priorities(({"a": score, "b": score},))))
    assert bound in ([("web", "a")], [("web", "b")])


def test_points_are_compared_as_they_are_up_to_61_bits() -> None:
    made = bench(PREFERS)
    asked_about(made)
    actions = answered(made, Priorities(({"a": 10**15, "b": 10**15 + 1},)))
    assert binds(actions) == [("web", "b")]


def test_points_that_are_too_large_may_make_up_for_each_other() -> None:
    other = extender("other", prioritize_verb="p", weight=1)
    made = bench(PREFERS, other)
    asked_about(made)
    said = ({"a": 2**70, "b": 2**70}, {"a": -3 * 2**70, "b": 5 - 3 * 2**70})
    assert binds(answered(made, Priorities(said))) == [("web", "b")]


def test_those_that_may_be_ignored_are_asked_last() -> None:
    may_be_ignored = extender("other", filter_verb="f", ignorable=True)
    made = bench(may_be_ignored, FILTERS)
    assert asked_about(made) == AskFilter(FILTERS, POD, ("a", "b"))
    (second,) = asked(answered(made, Filtered(("b",))))
    assert second == AskFilter(may_be_ignored, POD, ("b",))
    assert binds(answered(made, ExtenderFailed("gone"))) == [("web", "b")]


def test_an_extender_that_fails_fails_the_attempt() -> None:
    made = bench(FILTERS)
    asked_about(made)
    actions = answered(made, ExtenderFailed("no licence"))
    assert notes(actions) == [("FailedScheduling", "no licence")]
    assert conditions(actions) == [("SchedulerError", "no licence")]
    assert made.lengths == {"backoff": 1}


def test_an_extender_is_asked_only_about_pods_that_are_its_business() -> None:
    gpu = extender(filter_verb="filter", managed_resources=(ManagedResource("example.com/gpu"),))
    made = bench(gpu)
    made.give(Added(POD))
    assert [name for name, _ in binds(made.take_turns())] == ["web"]


def test_what_happens_meanwhile_is_seen_after_the_cycle() -> None:
    made = bench(FILTERS)
    asked_about(made)
    assert made.give(Deleted(small_node("b")), Added(make_pod("other", on="a"))) == []
    assert not made.machine.has_work(made.now)
    assert made.machine.state.names == ["a", "b"]
    assert binds(answered(made, Filtered(("b",)))) == [("web", "b")]
    assert made.machine.state.names == ["a"]
    assert made.on_node("a") == {"other": False}


class Slow:
    """Takes a second to see which nodes are cordoned."""

    name = "Slow"

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def filter(self, pod: Pod, nodes: Nodes) -> list[Rejection]:
        self._clock.advance(1.0)
        return [Rejection(nodes.unschedulable, "cordoned")]


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(lambda machine, pod: None, id="no question"),
        pytest.param(
            lambda machine, pod: machine.objection_to(pod), id="the check before its binding"
        ),
        pytest.param(lambda machine, pod: machine.decided_now(pod, 0.0), id="its explanation"),
    ],
)
def test_a_look_at_another_pod_meanwhile_changes_nothing(
    look: Callable[[Machine, Pod], object],
) -> None:
    """In thought, the room of the pod that is looked at is free."""
    clock = ManualClock()
    profile = default_profile(Slow(clock)).timed_by(clock)
    nodes = [make_node(name, cpu="1", labels={"disk": name}) for name in ("a", "b", "c")]
    made = Bench(*nodes, profiles=[profile], extenders=(FILTERS,))
    first, second = (make_pod(name, cpu="600m", spec=PREFERS_A) for name in ("first", "second"))
    asked_about(made, first)
    assert binds(answered(made, Filtered(("a", "b", "c")))) == [("first", "a")]
    made.give(Modified(make_node("a", cpu="1", labels={"disk": "a", "new": "label"})))
    assert asked_about(made, second) == AskFilter(FILTERS, second, ("b", "c"))
    look(made.machine, first)
    actions = answered(made, Filtered(("b", "c")))
    (decided,) = [each for each in actions if isinstance(each, Decided)]
    assert decided.decision.feasible_count == 2
    assert decided.decision.node_name in ("b", "c")
    assert decided.spent.by_plugin["Slow"] == 1.0


def bound_while_asked() -> Bench:
    """`web` is being bound to node a, and an extender is asked about another pod."""
    made = Bench(small_node("a"), extenders=(FILTERS,))
    asked_about(made, WEB)
    assert binds(answered(made, Filtered(("a",)))) == [("web", "a")]
    asked_about(made, make_pod("next", cpu="100m"))
    return made


def foreign(name: str, cpu: str = "600m", node_name: str = "a") -> Pod:
    return make_pod(name, cpu=cpu, on=node_name, scheduler_name="other")


@pytest.mark.parametrize(
    ("event", "objection"),
    [
        pytest.param(Added(foreign("theirs")), "node a is changing", id="takes a pod"),
        pytest.param(Deleted(small_node("a")), "node a is changing", id="goes"),
        pytest.param(Modified(small_node("a", cpu="2")), "node a is changing", id="changes"),
        pytest.param(Modified(small_node("a")), None, id="sends a heartbeat"),
        pytest.param(Added(foreign("theirs", node_name="b")), None, id="is not concerned"),
        pytest.param(Deleted(foreign("theirs")), None, id="loses a pod"),
        pytest.param(Modified(on(WEB, "a")), None, id="has the pod already"),
        pytest.param(Added(make_pod("later")), None, id="is not known to a pod that waits"),
    ],
)
def test_a_binding_is_not_sent_where_meanwhile_the_node(
    event: Event, objection: str | None
) -> None:
    made = bound_while_asked()
    assert made.give(event) == []
    assert made.machine.objection_to(WEB) == objection


def test_a_pod_of_another_scheduler_that_only_changes_its_status_is_no_objection() -> None:
    made = Bench(small_node("a"), extenders=(FILTERS,))
    made.give(Added(foreign("theirs", "100m")))
    asked_about(made, WEB)
    answered(made, Filtered(("a",)))
    asked_about(made, make_pod("next", cpu="100m"))
    made.give(Modified(foreign("theirs", "100m")))
    assert made.machine.objection_to(WEB) is None
    made.give(Modified(foreign("theirs", "600m")))
    assert made.machine.objection_to(WEB) == "node a is changing"


def test_a_binding_that_was_not_sent_is_tried_again() -> None:
    made = bound_while_asked()
    made.give(Added(foreign("theirs")))
    made.end("web", BindOutcome(error=made.machine.objection_to(WEB)))
    answered(made, Filtered(("a",)))
    assert made.on_node("a") == {"theirs": False, "next": True}
    assert made.lengths == {"backoff": 1}


@pytest.mark.parametrize(
    ("events", "lengths"),
    [
        pytest.param([Deleted(POD)], {}, id="is deleted"),
        pytest.param([Modified(on(POD, "b"))], {}, id="is bound by somebody else"),
        pytest.param([Deleted(POD), Added(POD)], {"active": 1}, id="is deleted and comes again"),
    ],
)
def test_nothing_is_decided_about_a_pod_that_meanwhile(
    events: list[Event], lengths: dict[str, int]
) -> None:
    made = bench(FILTERS)
    asked_about(made)
    assert made.give(*events) == []
    assert answered(made, Filtered(("a", "b"))) == []
    assert made.on_node("a") == {}
    assert made.lengths == lengths


def test_a_nominated_node_is_asked_about_alone() -> None:
    made = bench(FILTERS)
    promised = make_pod("web", cpu="100m", nominated="b")
    assert asked_about(made, promised) == AskFilter(FILTERS, promised, ("b",))
    assert binds(answered(made, Filtered(("b",)))) == [("web", "b")]


def test_where_the_nominated_node_is_rejected_all_are_asked_about() -> None:
    made = bench(FILTERS)
    promised = make_pod("web", cpu="100m", nominated="b")
    asked_about(made, promised)
    (again,) = asked(answered(made, Filtered((), {"b": "too warm"})))
    assert again == AskFilter(FILTERS, promised, ("a", "b"))


def full(*extenders: Extender) -> Bench:
    made = bench(*extenders)
    made.give(Added(LOW), Added(LOWER))
    return made


def test_an_extender_chooses_among_evictions() -> None:
    made = full(PREEMPTS)
    question = asked_about(made, BIG)
    assert isinstance(question, AskPreemption)
    found = [(each.node_name, [pod.name for pod in each.victims]) for each in question.evictions]
    assert found == [("a", ["low"]), ("b", ["lower"])]
    actions = answered(made, Preempted({"a": ((LOW.uid,), 0)}))
    assert [each.node_name for each in actions if isinstance(each, Evict)] == ["a"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(Preempted({}), "no candidate node for preemption", id="accepts no eviction"),
        pytest.param(
            Preempted({"a": ((), 0)}),
            'expected at least one victim pod on node "a"',
            id="names a node without victims",
        ),
        pytest.param(
            Preempted({"a": (("7",), 0)}),
            "extender: http://three claims to preempt pod (UID: 7) on node: a, "
            "but the pod is not found on that node",
            id="names a victim that is not on the node",
        ),
        pytest.param(ExtenderFailed("no licence"), "no licence", id="fails"),
    ],
)
def test_nobody_is_evicted_where_the_extender(answer: Answer, said: str) -> None:
    made = full(PREEMPTS)
    asked_about(made, BIG)
    actions = answered(made, answer)
    assert [each for each in actions if isinstance(each, Evict)] == []
    (_, message), *_ = conditions(actions)
    assert message.endswith(f"preemption: {said}")
