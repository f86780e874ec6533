"""The second look at a binding that is about to be sent: has anybody else got in its way?"""

import pytest
from tests.scheduler.conftest import (
    OUTCOME_BOUND,
    OUTCOME_ERROR,
    OUTCOME_GONE,
    Bench,
    binds,
    default_plugins,
    default_profile,
    kinds,
    on,
    small_node,
)

from lowtide.framework.plugin import BindOutcome, Nodes, Pod, Rejection, Wait
from lowtide.framework.profile import Profile
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.scheduler.binding_cycle import CONFIRMED_WITHIN_SECONDS
from lowtide.scheduler.events import BindingLookedUp, Event, PermitAnswered
from lowtide.testing import make_node, make_pod, make_profile

POD = make_pod("web", cpu="500m")
FULL = "node node-a has changed meanwhile: Insufficient cpu"


def foreign(name: str, cpu: str) -> Event:
    return Modified(make_pod(name, cpu=cpu, on="node-a", scheduler_name="other"))


WHAT_OTHERS_DO = pytest.mark.parametrize(
    ("events", "objection"),
    [
        pytest.param([], None, id="nothing has happened"),
        pytest.param(
            [foreign("theirs", "600m")], FULL, id="a pod of another scheduler leaves no room"
        ),
        pytest.param(
            [foreign("theirs", "500m")], None, id="a pod of another scheduler leaves enough room"
        ),
        pytest.param(
            [foreign("theirs", "600m"), Deleted(make_pod("theirs", cpu="600m", on="node-a"))],
            None,
            id="a pod of another scheduler came and went again",
        ),
        pytest.param(
            [Modified(make_pod("theirs", cpu="600m", on="node-b", scheduler_name="other"))],
            None,
            id="a pod of another scheduler went to another node",
        ),
        pytest.param(
            [foreign("theirs", "100m"), foreign("theirs", "600m")],
            FULL,
            id="a pod of another scheduler was resized",
        ),
        pytest.param(
            [Added(small_node(cpu="100m"))], FULL, id="the node was listed again with less room"
        ),
        pytest.param(
            [Deleted(small_node())], "node node-a is gone", id="the node does not exist any more"
        ),
        pytest.param(
            [Modified(make_node("node-a", cpu="1", unschedulable=True))],
            "node node-a has changed meanwhile: node(s) were unschedulable",
            id="the node was cordoned",
        ),
        pytest.param(
            [Modified(make_node("node-a", cpu="1", labels={"new": "label"}))],
            None,
            id="the node changed in something that no plugin reads",
        ),
    ],
)


class Waits:
    """Makes every pod wait in Permit."""

    name = "Waits"

    def permit(self, pod: Pod, node_name: str, nodes: Nodes) -> Wait:
        return Wait(600)


@WHAT_OTHERS_DO
def test_objection(events: list[Event], objection: str | None) -> None:
    bench = Bench(small_node(), small_node("node-b", cpu="100m"))
    assert bench.place(POD) == "node-a"
    bench.give(*events)
    before, position = bench.on_node("node-a"), bench.machine.state.log.position
    assert bench.machine.objection_to(POD) == objection
    assert bench.on_node("node-a") == before
    assert bench.machine.state.log.position == position


@WHAT_OTHERS_DO
def test_objection_to_what_happened_while_the_pod_waited_in_permit(
    events: list[Event], objection: str | None
) -> None:
    bench = Bench(small_node(), small_node("node-b", cpu="100m"), profiles=[waits_in_permit()])
    bench.give(Added(POD))
    bench.take_turns()
    bench.give(*events)
    allowed = bench.give(PermitAnswered(POD.uid, "Waits"))
    assert binds(allowed) == [("web", "node-a")]
    assert bench.machine.objection_to(POD) == objection


def waits_in_permit() -> Profile:
    return default_profile(Waits())


def test_own_pods_are_no_reason_to_object() -> None:
    """The first of them and the second fill the node together; their confirmations come late."""
    bench = Bench(small_node())
    second = make_pod("second", cpu="500m")
    assert (bench.place(POD), bench.place(second)) == ("node-a", "node-a")
    bench.confirm(POD, "node-a")
    assert bench.machine.objection_to(second) is None
    bench.end("second", OUTCOME_BOUND)
    assert bench.machine.objection_to(second) is None


def test_the_first_of_two_that_gives_way_leaves_room_for_the_second() -> None:
    bench = Bench(small_node(cpu="1"))
    second = make_pod("second", cpu="500m")
    for pod in (POD, second):
        bench.place(pod)
    bench.give(foreign("theirs", "500m"))
    reason = bench.machine.objection_to(POD)
    assert reason == FULL
    bench.end("web", BindOutcome(error=reason))
    assert bench.on_node("node-a") == {"second": True, "theirs": False}
    assert bench.machine.objection_to(second) is None


def test_the_pod_that_was_not_bound_is_placed_elsewhere() -> None:
    bench = Bench(small_node())
    bench.place(POD)
    bench.give(foreign("theirs", "600m"), Added(small_node("node-b")))
    reason = bench.machine.objection_to(POD)
    assert reason is not None
    bench.end("web", BindOutcome(error=reason))
    bench.pass_time(10.0)
    bench.take_turns()
    assert (bench.on_node("node-a"), bench.on_node("node-b")) == ({"theirs": False}, {"web": True})
    bench.confirm(on(POD, "node-b"), "node-b")
    assert bench.lengths == {}


EACH_FAILURE = pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(OUTCOME_ERROR, id="an error"),
        pytest.param(OUTCOME_GONE, id="it was gone then"),
    ],
)
NO_LONGER_BOUND: list[list[Event]] = [
    [Modified(on(POD, "node-a")), Modified(POD)],  # the API server was restored from a backup
    [Deleted(POD), Added(POD)],
]
EACH_RETURN = pytest.mark.parametrize("events", NO_LONGER_BOUND, ids=["bound", "deleted"])


def returned(events: list[Event]) -> Bench:
    """The watch shows the pod bound or gone, and then without a node, before its binding ends."""
    bench = Bench(small_node())
    bench.place(POD)
    bench.give(*events)
    assert bench.on_node("node-a") == {"web": True}
    return bench


@EACH_RETURN
@EACH_FAILURE
def test_a_pod_that_is_pending_again_is_tried_again_when_its_binding_fails(
    events: list[Event], outcome: BindOutcome
) -> None:
    bench = returned(events)
    bench.end("web", outcome)
    assert (bench.on_node("node-a"), bench.lengths) == ({}, {"backoff": 1})
    bench.pass_time(60)
    assert binds(bench.take_turns()) == [("web", "node-a")]


@EACH_RETURN
def test_a_pod_that_is_pending_again_is_looked_up_when_its_binding_succeeds(
    events: list[Event],
) -> None:
    bench = returned(events)
    bench.end("web")
    bench.pass_time(CONFIRMED_WITHIN_SECONDS)
    assert kinds(bench.take_turns()) == ["LookUpBinding"]
    bench.give(BindingLookedUp(POD.uid, OUTCOME_ERROR))
    assert (bench.on_node("node-a"), bench.lengths) == ({}, {"backoff": 1})


@EACH_RETURN
def test_a_pod_that_is_pending_again_is_judged_again_before_it_is_bound(
    events: list[Event],
) -> None:
    bench = Bench(small_node())
    bench.place(POD)
    bench.give(events[0], Deleted(POD), Added(make_pod("other", cpu="600m")))
    assert binds(bench.take_turns()) == [("other", "node-a")]
    bench.give(events[1])
    assert bench.machine.objection_to(POD) == FULL


def test_a_pod_that_went_and_came_and_went_is_not_tried_again() -> None:
    bench = returned([Deleted(POD), Added(POD)])
    bench.delete(POD)
    bench.end("web", OUTCOME_ERROR)
    assert (bench.on_node("node-a"), bench.lengths) == ({}, {})


def test_a_pod_of_another_scheduler_that_is_pending_again_is_not_counted() -> None:
    bench, theirs = Bench(small_node()), make_pod("theirs", cpu="1", scheduler_name="other")
    bench.give(Added(on(theirs, "node-a")), Modified(theirs))
    assert bench.on_node("node-a") == {}
    bench.place(POD)


class Stumbles:
    """Raises at these methods, once it is told to."""

    def __init__(self, *methods: str) -> None:
        self.name = "Stumbles"
        self.methods: tuple[str, ...] = methods
        self.is_broken = False

    def pre_filter(self, pod: Pod, nodes: Nodes) -> None:
        self._raise("pre_filter")

    def filter(self, pod: Pod, nodes: Nodes) -> list[Rejection]:
        self._raise("filter")
        return []

    def _raise(self, method: str) -> None:
        if self.is_broken and method in self.methods:
            raise RuntimeError("it has stumbled")


EACH_METHOD = pytest.mark.parametrize("method", ["pre_filter", "filter"])


def broken(method: str, cpu: str) -> tuple[Bench, Stumbles]:
    """A plugin before the others fails at the second look, after a pod of `cpu` has come."""
    plugin = Stumbles(method)
    bench = Bench(small_node(), profiles=[make_profile([plugin, *default_plugins()])])
    bench.place(POD)
    bench.give(foreign("theirs", cpu))
    plugin.is_broken = True
    return bench, plugin


@EACH_METHOD
def test_a_plugin_that_fails_at_the_second_look_does_not_silence_the_others(method: str) -> None:
    bench, _ = broken(method, "600m")
    assert bench.machine.objection_to(POD) == FULL


@EACH_METHOD
def test_a_plugin_that_fails_at_the_second_look_does_not_object_but_leaves_the_doubt(
    method: str,
) -> None:
    bench, plugin = broken(method, "100m")
    record = bench.machine.pods.by_uid[POD.uid]
    assert (bench.machine.objection_to(POD), record.is_doubtful) == (None, True)
    plugin.is_broken = False
    assert (bench.machine.objection_to(POD), record.is_doubtful) == (None, False)
