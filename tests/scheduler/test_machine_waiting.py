"""The machine and pods that cannot be placed now: what is told, and what brings them back."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from tests.scheduler.conftest import (
    OUTCOME_ERROR,
    Bench,
    binds,
    conditions,
    default_profile,
    kinds,
    notes,
    small_node,
)

from lowtide.framework.change import Change
from lowtide.framework.plugin import (
    Allow,
    IntArray,
    Nodes,
    OneNode,
    PluginError,
    Pod,
    PodRejection,
    Reject,
    Rejection,
    filter_each,
)
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.node import Node
from lowtide.objects.pod import PodCondition
from lowtide.scheduler.actions import (
    AttemptFailed,
    Decided,
    PluginFailed,
    WriteCondition,
    WriteKubeEvent,
)
from lowtide.scheduler.events import Event, Turn
from lowtide.testing import make_node, make_pod

BIG = make_pod("big", cpu="2")
TOO_BIG = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
    "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


class BadHint:
    """Rejects every node, and raises when asked whether a change may help."""

    name = "BadHint"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        yield Rejection(np.ones(len(nodes), np.bool_), "not today")

    def may_help(self, pod: Pod, change: Change) -> bool:
        raise RuntimeError("no idea")


def test_a_hint_that_fails_wakes_the_pod_and_is_reported_once_at_the_next_turn() -> None:
    bench = Bench(small_node(), profiles=[default_profile(BadHint())])
    bench.give(*(Added(make_pod(name, labels={"app": name})) for name in ("one", "two", "three")))
    bench.take_turns()
    assert bench.lengths == {"unschedulable": 3}
    # Two changes, of which each is asked about for pods of three signatures.
    assert bench.give(Added(small_node("node-b")), Added(small_node("node-c"))) == []
    assert bench.lengths == {"backoff": 3}
    text = "BadHint.may_help failed: RuntimeError('no idea')"
    failed, *others = bench.give(Turn())
    assert failed == PluginFailed("BadHint", text)
    later = [*others, *bench.take_turns()]
    assert [each for each in later if isinstance(each, PluginFailed)] == []
    bench.give(Added(small_node("node-d")))
    assert bench.give(Turn())[0] == failed


# What is told.


def test_a_pod_that_fits_nowhere_is_told_by_an_event_and_a_condition() -> None:
    bench = Bench(small_node())
    bench.give(Added(BIG))
    decided, *told = bench.give(Turn())
    assert isinstance(decided, Decided)
    assert decided.decision.node_name is None
    assert told == [
        WriteKubeEvent(BIG, "Warning", "FailedScheduling", "Scheduling", TOO_BIG, "lowtide"),
        WriteCondition(BIG, "Unschedulable", TOO_BIG),
    ]
    assert bench.lengths == {"unschedulable": 1}


def test_a_condition_that_the_pod_has_already_is_not_written_again() -> None:
    bench = Bench(small_node())
    condition = PodCondition(
        type="PodScheduled", status="False", reason="Unschedulable", message=TOO_BIG
    )
    told = replace(BIG, status=replace(BIG.status, conditions=[condition]))
    bench.give(Added(told))
    assert kinds(bench.take_turns()) == ["WriteKubeEvent"]


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param(
            {"reason": "Unschedulable", "message": "0/9 nodes are available: 9 busy."},
            id="has another message",
        ),
        pytest.param({"reason": "SchedulerError", "message": TOO_BIG}, id="has another reason"),
        pytest.param(
            {"reason": "Unschedulable", "message": TOO_BIG, "status": "True"},
            id="has the status True",
        ),
        pytest.param(
            {"reason": "Unschedulable", "message": TOO_BIG, "type": "Ready"}, id="has another type"
        ),
    ],
)
def test_a_condition_is_written_when_the_one_of_the_pod(condition: dict[str, str]) -> None:
    bench = Bench(small_node())
    said = {"type": "PodScheduled", "status": "False", **condition}
    before = msgspec.convert(said, PodCondition)
    bench.give(Added(replace(BIG, status=replace(BIG.status, conditions=[before]))))
    assert conditions(bench.take_turns()) == [("Unschedulable", TOO_BIG)]


def test_the_condition_that_we_wrote_comes_back_and_wakes_nothing() -> None:
    bench = Bench(small_node())
    bench.give(Added(BIG))
    bench.take_turns()
    condition = PodCondition(type="PodScheduled", status="False", message=TOO_BIG)
    bench.give(Modified(replace(BIG, status=replace(BIG.status, conditions=[condition]))))
    assert (bench.take_turns(), bench.lengths) == ([], {"unschedulable": 1})


def test_without_any_node_a_pod_is_tried_again_after_a_while() -> None:
    bench = Bench()
    bench.give(Added(BIG))
    text = "no nodes available to schedule pods"
    actions = bench.take_turns()
    assert (notes(actions), conditions(actions)) == (
        [("FailedScheduling", text)],
        [("Unschedulable", text)],
    )
    assert bench.lengths == {"backoff": 1}
    bench.give(Added(make_node()))
    assert bench.take_turns() == []
    bench.pass_time(2)
    assert binds(bench.take_turns()) == [("big", "node")]


# What brings a pod back.


TAINTED = make_node("node-a", taints=[{"key": "k", "effect": "NoSchedule"}])
FULL = make_pod("full", on="node-a", cpu="900m")


@pytest.mark.parametrize(
    ("pod", "node", "event"),
    [
        pytest.param(BIG, small_node(), Added(small_node("b", cpu="4")), id="a node is added"),
        pytest.param(BIG, small_node(), Modified(small_node(cpu="4")), id="the node grows"),
        pytest.param(
            make_pod("big"), TAINTED, Modified(make_node("node-a")), id="the node loses its taint"
        ),
        pytest.param(
            make_pod("big"),
            make_node("node-a", unschedulable=True),
            Modified(make_node("node-a")),
            id="the node is uncordoned",
        ),
        pytest.param(
            make_pod("big", node_selector={"disk": "ssd"}),
            make_node("node-a"),
            Modified(make_node("node-a", labels={"disk": "ssd"})),
            id="the node gets the label it asks for",
        ),
        pytest.param(make_pod("big", cpu="1"), small_node(), Deleted(FULL), id="a pod is deleted"),
        pytest.param(
            make_pod("big", cpu="600m"),
            small_node(),
            Modified(make_pod("full", on="node-a", cpu="100m")),
            id="a running pod shrinks",
        ),
        pytest.param(
            BIG, small_node(), Modified(make_pod("big", cpu="50m")), id="the pod itself shrinks"
        ),
        pytest.param(
            make_pod("big"),
            TAINTED,
            Modified(make_pod("big", tolerations=[{"operator": "Exists"}])),
            id="the pod itself gets a toleration",
        ),
    ],
)
def test_a_rejected_pod_is_placed_when(pod: Pod, node: Node, event: Event) -> None:
    bench = Bench(node)
    bench.give(Added(FULL), Added(pod))
    assert binds(bench.take_turns()) == []
    assert bench.lengths == {"unschedulable": 1}
    bench.give(event)
    assert [name for name, _ in binds(bench.take_turns())] == ["big"]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(Added(make_pod("new", on="node-a")), id="another pod is bound"),
        pytest.param(
            Added(make_pod("theirs", scheduler_name="other")),
            id="a pod of another scheduler is created",
        ),
        pytest.param(Modified(small_node()), id="a node only sends a heartbeat"),
        pytest.param(Deleted(small_node("other")), id="an unknown node is deleted"),
        pytest.param(
            Modified(make_pod("big", cpu="2", nominated="node-a")),
            id="only the pod's status changes",
        ),
    ],
)
def test_a_rejected_pod_stays_parked_when(event: Event) -> None:
    bench = Bench(small_node())
    bench.give(Added(BIG))
    bench.take_turns()
    bench.give(event)
    assert (bench.lengths, bench.take_turns()) == ({"unschedulable": 1}, [])


def test_a_rejected_pod_is_tried_every_five_minutes_at_least() -> None:
    bench = Bench(small_node())
    bench.give(Added(BIG))
    bench.take_turns()
    bench.pass_time(300)
    (decided, *_) = bench.take_turns()
    assert isinstance(decided, Decided)
    assert (decided.attempts, decided.first_seen_at) == (2, 1000.0)


def test_a_gated_pod_waits_without_a_word() -> None:
    bench = Bench(small_node())
    bench.give(Added(make_pod("web", gates=["wait"])))
    assert (bench.take_turns(), bench.lengths) == ([], {"gated": 1})
    bench.give(Modified(make_pod("web")))
    assert binds(bench.take_turns()) == [("web", "node-a")]


# Plugins that fail, and pods that cannot be read.


class Failing:
    """Breaks its contract at the point it is told."""

    name = "Failing"

    def __init__(self, fails_at: str) -> None:
        self._fails_at = fails_at

    def _check(self, point: str, pod: Pod) -> None:
        if point == self._fails_at and pod.labels.get("fails") == "yes":
            raise PluginError("Failing broke its contract")

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        self._check("filter", pod)
        return iter(())

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        self._check("score", pod)
        return None

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> PodRejection | None:
        self._check("reserve", pod)
        return None

    def unreserve(self, pod: Pod, node_name: str) -> None:
        pass

    def permit(self, pod: Pod, node_name: str, nodes: Nodes) -> Allow:
        self._check("permit", pod)
        return Allow()


@pytest.mark.parametrize("point", ["filter", "score", "reserve", "permit"])
def test_a_plugin_that_breaks_its_contract_is_told_and_the_pod_tried_again(point: str) -> None:
    profile = default_profile(Failing(point))
    bench = Bench(make_node("node-a"), make_node("node-b"), profiles=[profile])
    pod = make_pod("web", labels={"fails": "yes"})
    bench.give(Added(pod), Added(make_pod("fine")))
    text = "Failing broke its contract"
    told = bench.give(Turn())
    assert [action for action in told if not isinstance(action, Decided)] == [
        AttemptFailed(pod, text),
        WriteKubeEvent(pod, "Warning", "FailedScheduling", "Scheduling", text, "lowtide"),
        WriteCondition(pod, "SchedulerError", text),
    ]
    assert (bench.machine.state.placed_count, bench.machine.binding_count) == (0, 0)
    assert [name for name, _ in binds(bench.take_turns())] == ["fine"]
    assert bench.lengths == {"backoff": 1}
    bench.give(Modified(make_pod("web")))
    bench.pass_time(2)
    assert [name for name, _ in binds(bench.take_turns())] == ["web"]


def test_a_pod_that_cannot_be_read_is_parked_and_the_others_are_placed() -> None:
    bench = Bench(small_node())
    bad = make_pod("bad", cpu="much")
    bench.give(Added(bad), Added(make_pod("fine")))
    first = bench.give(Turn())
    (note,), (condition,) = notes(first), conditions(first)
    assert (note, condition) == (
        ("FailedScheduling", condition[1]),
        ("Unschedulable", condition[1]),
    )
    assert "'much' is not a quantity" in condition[1]
    assert binds(bench.take_turns()) == [("fine", "node-a")]
    bench.give(Added(make_node("node-b")))
    assert bench.lengths == {"unschedulable": 1}
    bench.give(Modified(make_pod("bad", cpu="100m")))
    assert [name for name, _ in binds(bench.take_turns())] == ["bad"]


def with_operator(operator: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "app", "operator": operator, "values": ["x"]}]}


def requiring(operator: str) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [with_operator(operator)]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def spreading(operator: str) -> dict[str, Any]:
    constraint = {"topologyKey": "zone", "maxSkew": 1, "labelSelector": with_operator(operator)}
    return {"topologySpreadConstraints": [constraint]}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param(
            requiring("Near"),
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
            "nodeSelectorTerms[0].matchExpressions[0].operator: ",
            id="affinity term",
        ),
        pytest.param(
            spreading("Near"),
            "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].operator: ",
            id="selector",
        ),
    ],
)
def test_the_others_are_placed_beside_a_pod_with_an_invalid(spec: Any, field: str) -> None:
    bench = Bench(small_node())
    bench.give(Added(make_pod("bad", spec=spec)), Added(make_pod("fine")))
    ((reason, message),) = conditions(bench.give(Turn()))
    assert (reason, message.split(field)[0]) == ("Unschedulable", "0/1 nodes are available: ")
    assert binds(bench.take_turns()) == [("fine", "node-a")]
    assert bench.lengths == {"unschedulable": 1}


# Reserve and permit.


class Recording:
    """Reserves and permits, or rejects; keeps in one list what it was asked."""

    def __init__(
        self,
        name: str,
        asked: list[str],
        *,
        reserve_rejects: str | None = None,
        permit_rejects: str | None = None,
    ) -> None:
        self.name = name
        self._asked = asked
        self._reserve_rejects = reserve_rejects
        self._permit_rejects = permit_rejects

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> PodRejection | None:
        self._asked.append(f"{self.name} reserves {node_name} for {pod.name}")
        return PodRejection(self._reserve_rejects) if self._reserve_rejects else None

    def unreserve(self, pod: Pod, node_name: str) -> None:
        self._asked.append(f"{self.name} unreserves")

    def permit(self, pod: Pod, node_name: str, nodes: Nodes) -> Allow | Reject:
        self._asked.append(f"{self.name} is asked")
        return Reject(self._permit_rejects) if self._permit_rejects else Allow()


def bench_with(*plugins: Any) -> Bench:
    return Bench(make_node("node-a"), profiles=[default_profile(*plugins)])


RESERVED = ["One reserves node-a for web", "Two reserves node-a for web"]
TAKEN_BACK = ["Two unreserves", "One unreserves"]


def test_reserve_goes_in_order_and_permit_after_it() -> None:
    asked: list[str] = []
    bench = bench_with(Recording("One", asked), Recording("Two", asked))
    assert bench.place(make_pod("web")) == "node-a"
    assert asked == [*RESERVED, "One is asked", "Two is asked"]
    bench.end("web")
    assert asked[4:] == []


def test_a_failed_binding_takes_reservations_back_in_reverse_order() -> None:
    asked: list[str] = []
    bench = bench_with(Recording("One", asked), Recording("Two", asked))
    bench.place(make_pod("web"))
    bench.end("web", OUTCOME_ERROR)
    assert asked[4:] == TAKEN_BACK


def test_a_pod_whose_reservation_is_rejected_is_parked() -> None:
    asked: list[str] = []
    bench = bench_with(
        Recording("One", asked), Recording("Two", asked, reserve_rejects="no volume for it")
    )
    bench.give(Added(make_pod("web")))
    actions = bench.take_turns()
    text = "0/1 nodes are available: 1 no volume for it."
    assert (binds(actions), notes(actions), conditions(actions)) == (
        [],
        [("FailedScheduling", text)],
        [("Unschedulable", text)],
    )
    assert asked == [*RESERVED, *TAKEN_BACK]
    assert (bench.on_node("node-a"), bench.lengths) == ({}, {"unschedulable": 1})


def test_a_pod_that_is_not_permitted_is_parked_by_the_plugin_that_rejected() -> None:
    asked: list[str] = []
    bench = bench_with(Recording("One", asked, permit_rejects="not today"), Recording("Two", asked))
    bench.give(Added(make_pod("web")))
    decided, *told = bench.take_turns()
    assert isinstance(decided, Decided)
    assert (decided.decision.node_name, decided.decision.fit_error) == (
        None,
        "0/1 nodes are available: 1 not today.",
    )
    assert kinds(told) == ["WriteKubeEvent", "WriteCondition"]
    assert asked == [*RESERVED, "One is asked", *TAKEN_BACK]
    (queued,) = bench.machine.queue
    assert queued.rejected_by == frozenset(["One"])
    bench.give(Added(make_node("node-b")))
    assert bench.lengths == {"backoff": 1}


# What wakes a pod.


class NeedsCompany:
    """Reads the pods of other nodes: rejects while no pod of app `first` runs anywhere."""

    name = "NeedsCompany"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        whole = nodes.everything
        runs = any(
            each.labels.get("app") == "first" for at in range(len(whole)) for each in whole.pods(at)
        )
        if pod.labels.get("app") == "second" and not runs:
            yield Rejection(np.ones(len(nodes), np.bool_), "no company")


def test_a_pod_that_waits_for_another_wakes_when_our_own_placement_is_confirmed() -> None:
    bench = Bench(small_node(cpu="4"), profiles=[default_profile(NeedsCompany())])
    bench.give(Added(make_pod("second", labels={"app": "second"})))
    bench.take_turns()
    assert bench.lengths == {"unschedulable": 1}
    first = make_pod("first", labels={"app": "first"})
    node_name = bench.place(first)
    bench.end("first")
    bench.confirm(first, node_name)
    assert binds(bench.take_turns()) == [("second", "node-a")]


class NeedsNeighbour:
    """Rejects nodes without a pod of app `first`."""

    name = "NeedsNeighbour"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        is_there = any(each.labels.get("app") == "first" for each in node.pods)
        return None if is_there else "no neighbour"


def test_a_pod_that_waits_for_another_on_the_same_node_wakes_when_that_comes() -> None:
    bench = Bench(small_node(cpu="4"), profiles=[default_profile(NeedsNeighbour())])
    bench.give(Added(make_pod("second")))
    assert binds(bench.take_turns()) == []
    bench.give(Added(make_pod("first", on="node-a", labels={"app": "first"})))
    assert binds(bench.take_turns()) == [("second", "node-a")]


def test_a_pod_whose_port_is_taken_everywhere_wakes_when_a_node_comes() -> None:
    bench = Bench(small_node())
    bench.give(Added(make_pod("holder", on="node-a", host_ports=[80])))
    bench.give(Added(make_pod("web", host_ports=[80])))
    bench.take_turns()
    assert bench.lengths == {"unschedulable": 1}
    bench.give(Added(small_node("node-b")))
    assert binds(bench.take_turns()) == [("web", "node-b")]


class RejectsAll:
    name = "RejectsAll"

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> PodRejection:
        return PodRejection("not now")


def test_pods_rejected_after_the_choice_do_not_wake_each_other_for_ever() -> None:
    bench = Bench(small_node(), profiles=[default_profile(RejectsAll())])
    bench.give(Added(make_pod("one")), Added(make_pod("other")))
    for _ in range(2):
        bench.give(Turn())
    assert (bench.lengths, bench.machine.has_work(bench.now)) == ({"unschedulable": 2}, False)


def test_a_pod_that_the_server_set_back_to_pending_is_placed_again() -> None:
    bench = Bench(small_node())
    bench.give(Added(make_pod("web", on="node-a", cpu="800m")))
    bench.give(Modified(make_pod("web", cpu="800m")))
    assert bench.on_node("node-a") == {}
    assert binds(bench.take_turns()) == [("web", "node-a")]


# Plugins that fail.


class Fails:
    name = "Fails"

    def __init__(self, method: str) -> None:
        def fail(*arguments: object) -> None:
            raise KeyError("rack")

        setattr(self, method, fail)


@pytest.mark.parametrize("method", ["pre_filter", "filter", "score", "reserve", "permit"])
def test_a_plugin_that_raises_anything_costs_only_an_attempt(method: str) -> None:
    bench = Bench(
        small_node("node-a"), small_node("node-b"), profiles=[default_profile(Fails(method))]
    )
    bench.give(Added(make_pod("web")))
    actions = bench.take_turns()
    message = f"Fails.{method} failed: KeyError('rack')"
    assert conditions(actions) == [("SchedulerError", message)]
    assert (bench.lengths, bench.on_node("node-a")) == ({"backoff": 1}, {})


class ReservesOnly:
    name = "ReservesOnly"

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> None:
        return None


def test_a_plugin_that_reserves_needs_no_unreserve() -> None:
    bench = Bench(small_node(), profiles=[default_profile(ReservesOnly())])
    bench.place(make_pod("web"))
    bench.end("web", OUTCOME_ERROR)
    assert (bench.lengths, bench.on_node("node-a")) == ({"backoff": 1}, {})


class OnlyUsed:
    """Rejects nodes without pods; says nothing about what to retry on."""

    name = "OnlyUsed"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        yield Rejection(nodes.pod_count == 0, "empty node")


def test_an_arriving_pod_wakes_what_a_plugin_rejected_that_read_the_pods_of_a_node() -> None:
    bench = Bench(small_node(), profiles=[default_profile(OnlyUsed())])
    bench.give(Added(make_pod("follower")))
    assert not binds(bench.take_turns())
    bench.give(Added(make_pod("first", on="node-a")))
    bench.pass_time(20)  # longer than the backoff
    assert binds(bench.take_turns()) == [("follower", "node-a")]
