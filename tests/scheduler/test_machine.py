"""The machine, as lists of events in and actions out: pods that are placed, and their bindings."""

from collections import Counter

import pytest
from tests.scheduler.conftest import (
    OUTCOME_BOUND,
    OUTCOME_CONFLICT,
    OUTCOME_ERROR,
    OUTCOME_GONE,
    START,
    Bench,
    all_listed,
    binds,
    conditions,
    default_plugins,
    default_profile,
    kinds,
    notes,
    on,
    small_node,
)

from lowtide.framework.decision import Decision
from lowtide.framework.plugin import BindOutcome, Nodes, Pod, PodRejection, Queued
from lowtide.objects.events import Added, Listed, Modified, Unavailable
from lowtide.objects.kinds import Namespace
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.pod import signature_of
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import NetworkTrafficArgs
from lowtide.readings.columns import published
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.actions import AttemptFailed, Bind, Decided, WriteCondition, WriteKubeEvent
from lowtide.scheduler.events import BindingEnded, ReadingPublished, Turn
from lowtide.scheduler.machine import Machine
from lowtide.testing import make_node, make_pod, make_profile

POD = make_pod("web", cpu="500m")
ASSIGNED = ("Scheduled", "Successfully assigned default/web to node-a")


# A pod is placed.


def test_a_pod_is_placed_bound_and_confirmed() -> None:
    profile = default_profile()
    bench = Bench(small_node(), profiles=[profile])
    assert bench.give(Added(POD)) == []
    assert bench.give(Turn()) == [
        Decided(
            Decision(
                pod=POD,
                scheduler_name="lowtide",
                node_name="node-a",
                node_count=1,
                feasible_count=1,
                signature=signature_of(POD),
            ),
            attempts=1,
            first_seen_at=START,
        ),
        Bind(POD, "node-a", profile),
    ]
    assert (bench.on_node("node-a"), bench.machine.binding_count) == ({"web": True}, 1)
    assert bench.end("web") == [
        WriteKubeEvent(POD, "Normal", "Scheduled", "Binding", ASSIGNED[1], "lowtide")
    ]
    assert (bench.on_node("node-a"), bench.machine.binding_count) == ({"web": True}, 0)
    assert bench.confirm(POD, "node-a") == []
    assert (bench.on_node("node-a"), bench.lengths) == ({"web": False}, {})
    assert bench.take_turns() == []


def test_an_assumed_pod_takes_its_place_at_once() -> None:
    bench = Bench(small_node())
    bench.give(Added(make_pod("first", cpu="800m")), Added(make_pod("second", cpu="800m")))
    assert binds(bench.take_turns()) == [("first", "node-a")]
    assert bench.lengths == {"unschedulable": 1}


def test_the_watch_may_confirm_before_the_binding_is_answered() -> None:
    bench = Bench(small_node())
    bench.place(POD)
    assert bench.confirm(POD, "node-a") == []
    assert notes(bench.end("web")) == [ASSIGNED]
    assert (bench.on_node("node-a"), bench.lengths) == ({"web": False}, {})


def test_nothing_is_placed_before_everything_that_exists_is_known() -> None:
    machine = Machine({"lowtide": default_profile()})
    machine.step(Added(small_node()), START)
    machine.step(Added(POD), START)
    has_work = [machine.has_work(START)]
    listed = all_listed()
    for each in listed:
        machine.step(each, START)
        has_work.append(machine.has_work(START))
    assert (has_work, machine.is_synced) == ([*([False] * len(listed)), True], True)
    assert {"Node", "Pod"} <= {each.kind for each in listed}


@pytest.mark.parametrize(
    ("kind", "is_synced"),
    [
        pytest.param("Service", True, id="is skipped if only some plugins need the kind"),
        pytest.param("Node", False, id="keeps the machine waiting if it is Node"),
    ],
)
def test_a_kind_that_cannot_be_listed(kind: str, is_synced: bool) -> None:
    machine = Machine({"lowtide": default_profile()})
    for listed in all_listed():
        if listed.kind != kind:
            machine.step(listed, START)
    assert not machine.is_synced
    machine.step(Unavailable(kind, 403, "no right"), START)
    assert machine.is_synced == is_synced


def test_a_turn_without_a_pod_does_nothing() -> None:
    assert Bench(small_node()).give(Turn()) == []


def test_pods_that_run_already_are_counted_not_placed() -> None:
    bench = Bench(small_node())
    bench.give(Added(make_pod("running", on="node-a", cpu="800m", scheduler_name="other")))
    assert bench.take_turns() == []
    bench.give(Added(POD))
    assert binds(bench.take_turns()) == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_gives_its_place_back(phase: str) -> None:
    bench = Bench(small_node())
    bench.give(Added(make_pod("job", on="node-a", cpu="800m")), Added(POD))
    bench.take_turns()
    bench.give(Modified(make_pod("job", on="node-a", cpu="800m", phase=phase)))
    assert (binds(bench.take_turns()), bench.on_node("node-a")) == (
        [("web", "node-a")],
        {"web": True},
    )


def test_a_pending_pod_that_has_ended_is_not_placed() -> None:
    bench = Bench(small_node())
    bench.give(Added(POD), Modified(make_pod("web", cpu="500m", phase="Failed")))
    assert (bench.take_turns(), bench.lengths) == ([], {})


def test_pods_of_other_schedulers_are_not_ours() -> None:
    bench = Bench(small_node())
    bench.give(Added(make_pod(scheduler_name="default-scheduler")))
    assert (bench.take_turns(), bench.lengths) == ([], {})


def test_each_profile_places_its_own_pods_by_its_own_plugins() -> None:
    one, other = (default_profile(name=name) for name in ("one", "other"))
    other = make_profile(
        [plugin for plugin in default_plugins() if plugin.name != "NodeResourcesFit"], name="other"
    )
    bench = Bench(small_node(), profiles=[one, other])
    for name in ("one", "other", "third"):
        bench.give(Added(make_pod(f"of-{name}", cpu="2", scheduler_name=name)))
    actions = bench.take_turns()
    assert [action for action in actions if isinstance(action, Bind)] == [
        Bind(make_pod("of-other", cpu="2", scheduler_name="other"), "node-a", other)
    ]
    assert [
        (action.decision.scheduler_name, action.decision.node_name)
        for action in actions
        if isinstance(action, Decided)
    ] == [("one", None), ("other", "node-a")]
    (event,) = [action for action in actions if isinstance(action, WriteKubeEvent)]
    assert event.scheduler_name == "one"


def test_equal_nodes_take_turns() -> None:
    bench = Bench(*(make_node(f"node-{number}", cpu="64", memory="64Gi") for number in range(10)))
    bench.give(*(Added(make_pod(f"pod-{number}")) for number in range(100)))
    went_to = Counter(node_name for _, node_name in binds(bench.take_turns()))
    assert len(went_to) == 10
    assert all(5 <= count <= 15 for count in went_to.values()), went_to


def test_nodes_that_stay_equal_take_turns_one_by_one() -> None:
    plugins = [plugin for plugin in default_plugins() if not hasattr(plugin, "score")]
    bench = Bench(
        *(make_node(f"n{number}") for number in range(4)), profiles=[make_profile(plugins)]
    )
    bench.give(*(Added(make_pod(f"pod-{number}")) for number in range(6)))
    nodes = [node_name for _, node_name in binds(bench.take_turns())]
    assert nodes == ["n0", "n1", "n2", "n3", "n0", "n1"]


def test_a_published_reading_is_what_the_next_pod_is_placed_by() -> None:
    plugin = NetworkTraffic(NetworkTrafficArgs(prometheus_address="http://p", scoring="relative"))
    profile = make_profile([*default_plugins(), plugin], weights={"NetworkTraffic": 100})
    nodes = [make_node("a"), make_node("b")]
    bench = Bench(*nodes, profiles=[profile])
    went_to = []
    for number, given in enumerate([{"a": 5.0, "b": 1.0}, {"a": 1.0, "b": 5.0}]):
        reading = published(traffic_reading(plugin.request, given, nodes))
        bench.give(ReadingPublished(plugin.request, reading))
        went_to.append(bench.place(make_pod(f"pod-{number}")))
    assert went_to == ["b", "a"]


# Pods and nodes that go in the middle.


def test_a_pod_that_is_deleted_before_its_turn_has_none() -> None:
    bench = Bench(small_node())
    bench.give(Added(POD))
    bench.delete(POD)
    assert (bench.take_turns(), bench.lengths) == ([], {})


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        pytest.param(OUTCOME_BOUND, [ASSIGNED], id="gets its Event if the binding succeeds"),
        pytest.param(OUTCOME_GONE, [], id="gets no report if the binding finds it gone"),
        pytest.param(OUTCOME_CONFLICT, [], id="is not tried again after a conflict"),
        pytest.param(OUTCOME_ERROR, [], id="is not tried again after an error"),
    ],
)
def test_a_pod_that_is_deleted_while_its_binding_is_under_way(
    outcome: BindOutcome, told: list[tuple[str, str]]
) -> None:
    bench = Bench(small_node())
    bench.place(POD)
    assert bench.delete(POD) == []
    assert bench.on_node("node-a") == {}
    ended = bench.end("web", outcome)
    assert (notes(ended), conditions(ended)) == (told, [])
    bench.pass_time(400)
    assert (bench.take_turns(), bench.lengths, bench.machine.binding_count) == ([], {}, 0)


def test_a_pod_that_is_deleted_after_its_binding_gives_its_place_back() -> None:
    bench = Bench(small_node())
    bench.place(POD)
    bench.end("web")
    bench.confirm(POD, "node-a")
    bench.delete(on(POD, "node-a"))
    assert (bench.on_node("node-a"), bench.lengths) == ({}, {})


def test_a_pod_of_the_same_name_is_another_pod() -> None:
    bench = Bench(small_node())
    bench.place(POD)
    again = make_pod("web", uid="second", cpu="100m")
    bench.delete(POD)
    bench.give(Added(again))
    assert binds(bench.take_turns()) == [("web", "node-a")]
    assert bench.end("web", OUTCOME_ERROR) == []
    assert notes(bench.give(BindingEnded("second", OUTCOME_BOUND))) == [ASSIGNED]
    assert bench.on_node("node-a") == {"web": True}


def test_a_node_that_is_deleted_while_a_binding_to_it_is_under_way() -> None:
    bench = Bench(small_node("node-a"))
    bench.place(POD)
    bench.delete(small_node("node-a"))
    bench.give(Added(small_node("node-b")))
    assert kinds(bench.end("web", OUTCOME_ERROR)) == [
        "AttemptFailed",
        "WriteKubeEvent",
        "WriteCondition",
    ]
    bench.pass_time(10)
    assert binds(bench.take_turns()) == [("web", "node-b")]
    assert (bench.on_node("node-a"), bench.on_node("node-b")) == ({}, {"web": True})


def test_a_node_that_comes_back_still_has_its_pods() -> None:
    bench = Bench(small_node())
    bench.place(make_pod("big", cpu="800m"))
    bench.delete(small_node())
    bench.give(Added(small_node()), Added(POD))
    assert (bench.on_node("node-a"), binds(bench.take_turns())) == ({"big": True}, [])


def test_a_pod_that_is_being_deleted_is_skipped_with_an_event() -> None:
    bench = Bench(small_node())
    terminating = make_pod("web", deleted=True)
    bench.give(Added(terminating))
    assert bench.give(Turn()) == [
        WriteKubeEvent(
            terminating,
            "Warning",
            "FailedScheduling",
            "Scheduling",
            "skip schedule deleting pod: default/web",
            "lowtide",
        )
    ]
    assert bench.lengths == {}


# How a binding ends.


@pytest.mark.parametrize("outcome", [OUTCOME_ERROR, OUTCOME_CONFLICT])
def test_a_binding_that_fails_is_forgotten_told_and_tried_again(outcome: BindOutcome) -> None:
    bench = Bench(small_node())
    bench.place(POD)
    error = outcome.error or ""
    assert bench.end("web", outcome) == [
        AttemptFailed(POD, error),
        WriteKubeEvent(POD, "Warning", "FailedScheduling", "Scheduling", error, "lowtide"),
        WriteCondition(POD, "SchedulerError", error),
    ]
    assert (bench.on_node("node-a"), bench.lengths) == ({}, {"backoff": 1})
    assert bench.take_turns() == []
    bench.pass_time(2)
    assert binds(bench.take_turns()) == [("web", "node-a")]


def test_a_binding_of_a_pod_that_is_gone_is_forgotten() -> None:
    bench = Bench(small_node())
    bench.place(POD)
    assert bench.end("web", OUTCOME_GONE) == []
    bench.pass_time(400)
    assert (bench.on_node("node-a"), bench.lengths, bench.take_turns()) == ({}, {}, [])


def test_a_failed_binding_makes_room_for_a_pod_that_waits() -> None:
    bench = Bench(small_node())
    bench.place(make_pod("big", cpu="800m"))
    bench.give(Added(make_pod("other", cpu="800m")))
    bench.take_turns()
    bench.end("big", OUTCOME_ERROR)
    assert binds(bench.take_turns()) == [("other", "node-a")]


@pytest.mark.parametrize("outcome", [OUTCOME_CONFLICT, OUTCOME_ERROR, OUTCOME_GONE])
def test_a_pod_that_somebody_else_bound_elsewhere_stays_where_it_is(outcome: BindOutcome) -> None:
    bench = Bench(small_node("node-a"))
    bench.place(POD)
    bench.give(Added(small_node("node-b")))
    bench.confirm(POD, "node-b")
    assert (bench.on_node("node-a"), bench.on_node("node-b")) == ({}, {"web": False})
    assert bench.end("web", outcome) == []
    bench.pass_time(400)
    assert (bench.on_node("node-b"), bench.lengths) == ({"web": False}, {})
    assert bench.take_turns() == []


def test_a_pod_that_somebody_else_bound_leaves_the_queue() -> None:
    bench = Bench(small_node())
    bench.give(Added(POD))
    bench.confirm(POD, "node-a")
    assert (bench.take_turns(), bench.on_node("node-a")) == ([], {"web": False})


def test_an_outcome_is_heard_once() -> None:
    bench = Bench(small_node())
    bench.place(POD)
    bench.end("web")
    assert (bench.end("web"), bench.end("web", OUTCOME_ERROR), bench.end("stranger")) == (
        [],
        [],
        [],
    )
    assert bench.on_node("node-a") == {"web": True}


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_late_word_of_the_pending_pod_does_not_bind_it_twice(is_answered: bool) -> None:
    bench = Bench(small_node("node-a"), small_node("node-b"))
    bench.place(POD)
    if is_answered:
        bench.end("web")
    bench.give(Modified(make_pod("web", cpu="500m", labels={"late": "word"})))
    bench.pass_time(20)
    assert (bench.take_turns(), bench.lengths) == ([], {})


def test_a_pod_that_changed_while_its_binding_failed_is_tried_as_it_is_now() -> None:
    bench = Bench(small_node())
    bench.place(POD)
    changed = make_pod("web", cpu="500m", labels={"a": "b"})
    bench.give(Modified(changed))
    assert bench.lengths == {}
    bench.end("web", OUTCOME_ERROR)
    assert bench.lengths == {"backoff": 1}
    bench.pass_time(2)
    (bind,) = [action for action in bench.take_turns() if isinstance(action, Bind)]
    assert bind.pod == changed


# Objects that plugins depend on.


class OnlyKnownNamespaces:
    name = "OnlyKnownNamespaces"
    kinds = (Namespace,)

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | None:
        is_known = ("", pod.namespace) in nodes.objects(Namespace)
        return None if is_known else PodRejection("unknown namespace")


def test_objects_that_a_plugin_depends_on_are_waited_for_and_wake_its_pods() -> None:
    profile = default_profile(OnlyKnownNamespaces())
    bench = Bench(small_node(), profiles=[profile], unlisted=["Namespace"])
    bench.give(Added(POD))
    names = ("InterPodAffinity", "OnlyKnownNamespaces")
    assert bench.machine.plugins_by_kind[Namespace] == names
    assert (bench.machine.is_synced, bench.take_turns()) == (False, [])
    bench.give(Listed("Namespace"))
    assert conditions(bench.take_turns()) == [
        (
            "Unschedulable",
            "0/1 nodes are available: unknown namespace. no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        )
    ]
    bench.give(Added(Namespace(metadata=ObjectMeta(name="default"))))
    assert binds(bench.take_turns()) == [("web", "node-a")]


class NeverContent(OnlyKnownNamespaces):
    name = "NeverContent"

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | None:
        super().pre_filter(pod, nodes)
        return PodRejection("never")


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({}, 0, id="wake no pod if only the version changed"),
        pytest.param({"team": "a"}, 1, id="wake the pods of a plugin that reads what changed"),
    ],
)
def test_objects_that_come_again(labels: dict[str, str], want: int) -> None:
    bench = Bench(small_node(), profiles=[default_profile(NeverContent())])
    first = Namespace(metadata=ObjectMeta(name="default", resource_version="1"))
    again = ObjectMeta(name="default", resource_version="2", generation=2, labels=labels)
    bench.give(Added(first), Listed("Namespace"), Added(POD))
    bench.take_turns()
    assert bench.machine.queue.lengths()["unschedulable"] == 1
    bench.give(Modified(Namespace(metadata=again)))
    assert 1 - bench.machine.queue.lengths()["unschedulable"] == want


class SortsByName:
    """Fails at a pod while it is in `bad`."""

    name = "SortsByName"

    def __init__(self, *bad: str) -> None:
        self.bad = set(bad)

    def sort_key(self, queued: Queued) -> str:
        if queued.pod.name in self.bad:
            raise RuntimeError("it has stumbled")
        return queued.pod.name


def sorted_by(sorter: SortsByName) -> Bench:
    others = [each for each in default_plugins() if not hasattr(each, "sort_key")]
    return Bench(small_node(), profiles=[make_profile([sorter, *others])])


def test_a_pod_whose_sort_key_fails_meets_an_error_and_is_tried_again() -> None:
    sorter = SortsByName("web")
    bench = sorted_by(sorter)
    bench.give(Added(make_pod("db")), Added(make_pod("web")))
    assert bench.lengths == {"active": 2}
    assert binds(bench.take_turns()) == [("db", "node-a")]
    error = "SortsByName.sort_key failed: RuntimeError('it has stumbled')"
    assert conditions(bench.actions) == [("SchedulerError", error)]
    assert bench.lengths == {"backoff": 1}
    bench.pass_time(10)
    assert binds(bench.take_turns()) == []
    sorter.bad.clear()
    bench.pass_time(10)
    assert binds(bench.take_turns()) == [("web", "node-a")]


def test_a_pod_whose_sort_key_fails_during_its_backoff_is_not_lost() -> None:
    sorter = SortsByName()
    bench = sorted_by(sorter)
    bench.give(Added(make_pod("web", cpu="2")))
    bench.take_turns()
    sorter.bad.add("web")
    bench.give(Modified(small_node(cpu="4")))
    assert bench.lengths == {"backoff": 1}
    bench.take_turns()
    assert conditions(bench.actions)[-1][0] == "SchedulerError"
    sorter.bad.clear()
    bench.pass_time(60)
    assert binds(bench.take_turns()) == [("web", "node-a")]
