"""ClusterState: what events and assumptions do to the table and to the log of changes."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from lowtide.cluster.changes import LABELS, NODE, PODS, READING, ROW, TERMS
from lowtide.cluster.placed import HostPort
from lowtide.cluster.pod_selection import PodSelection, labels_required
from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.objects.meta import LabelRequirement, ObjectMeta
from lowtide.objects.node import Node, NodeSpec, Taint
from lowtide.objects.pod import Pod
from lowtide.testing import make_node, make_pod, make_reading, make_state

GPU = "example.com/gpu"
MIB = 1024 * 1024


def table(state: ClusterState) -> dict[str, dict[str, Any]]:
    """What plugins read of each node, in the order of the rows."""
    nodes = state.nodes()
    return {
        name: {
            "cpu": int(nodes.allocatable("cpu")[at]),
            "gpu": int(nodes.allocatable(GPU)[at]),
            "asked": int(nodes.requested("cpu")[at]),
            "nonzero": int(nodes.nonzero_requested("memory")[at]) // MIB,
            "pods": [pod.name for pod in nodes.pods(at)],
            "count": int(nodes.pod_count[at]),
            "cordoned": bool(nodes.unschedulable[at]),
            "taints": int(nodes.by_taints(len)[at]),
        }
        for at, name in enumerate(nodes.names)
    }


def row(**different: Any) -> dict[str, Any]:
    return {
        "cpu": 4000,
        "gpu": 0,
        "asked": 0,
        "nonzero": 0,
        "pods": [],
        "count": 0,
        "cordoned": False,
        "taints": 0,
        **different,
    }


def changes(state: ClusterState, since: int) -> list[tuple[int, int]]:
    found = state.log.since(since)
    assert found is not None
    return found


def zone_is(state: ClusterState, value: str) -> list[bool]:
    matches: list[bool] = (
        state.nodes().label_matches(LabelRequirement("zone", "In", [value])).tolist()
    )
    return matches


# Nodes.


def test_nodes_take_rows_in_the_order_they_come() -> None:
    state = make_state(
        [
            make_node("a", example_com__gpu=2, taints=[{"key": "t", "effect": "NoSchedule"}]),
            make_node("b", cpu="2", unschedulable=True),
        ]
    )
    assert table(state) == {"a": row(gpu=2, taints=1), "b": row(cpu=2000, cordoned=True)}
    assert changes(state, 0) == [(0, ROW), (1, ROW)]
    assert (state.row_of("b"), state.row_of("c")) == (1, None)


def test_a_node_that_is_added_again_is_updated() -> None:
    state = make_state([make_node("a"), make_node("a", cpu="2")])
    assert table(state) == {"a": row(cpu=2000)}
    assert changes(state, 0) == [(0, ROW), (0, NODE)]


def test_a_node_that_is_updated_before_it_was_added_is_added() -> None:
    state = ClusterState()
    state.update_node(make_node("a"))
    assert table(state) == {"a": row()}
    assert changes(state, 0) == [(0, ROW)]


def test_an_update_replaces_everything_that_the_node_said() -> None:
    state = make_state(
        [make_node("a", example_com__gpu=2, taints=[{"key": "t", "effect": "NoSchedule"}])],
        [make_pod("p", on="a", cpu="1", memory="1Mi")],
    )
    state.update_node(make_node("a", cpu="8", unschedulable=True))
    assert table(state) == {
        "a": row(cpu=8000, cordoned=True, asked=1000, nonzero=1, pods=["p"], count=1)
    }


def heartbeat(node: Node) -> Node:
    return msgspec.structs.replace(
        node, metadata=msgspec.structs.replace(node.metadata, resource_version="99")
    )


def test_a_heartbeat_is_kept_and_changes_nothing() -> None:
    state = make_state([make_node("a")])
    before = state.log.position
    later = heartbeat(make_node("a"))
    state.update_node(later)
    assert changes(state, before) == []
    assert state.node_at(0) is later


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(make_node("a", labels={"zone": "b"}), id="labels"),
        pytest.param(make_node("a", annotations={"speed": "1"}), id="annotations"),
        pytest.param(make_node("a", unschedulable=True), id="a cordon"),
        pytest.param(make_node("a", addresses=["10.0.0.1"]), id="addresses"),
        pytest.param(make_node("a", cpu="5"), id="allocatable"),
    ],
)
def test_a_node_changes_for_plugins_by(after: Node) -> None:
    state = make_state([make_node("a")])
    before = state.log.position
    state.update_node(after)
    assert changes(state, before) == [(0, NODE)]


def test_a_node_has_nothing_of_a_resource_that_cannot_be_read() -> None:
    read = table(make_state([make_node("a", cpu="0", example_com__gpu=2)]))
    assert table(make_state([make_node("a", cpu="lots", example_com__gpu=2)])) == read


@pytest.mark.parametrize(
    ("gone", "order", "changed_row"),
    [
        pytest.param("a", ["c", "b"], 0, id="moves the last row into the gap"),
        pytest.param("b", ["a", "c"], 1, id="moves the last row into a gap beside it"),
        pytest.param("c", ["a", "b"], 2, id="moves nothing if it was the last row"),
    ],
)
def test_removing_a_node(gone: str, order: list[str], changed_row: int) -> None:
    names = ["a", "b", "c"]
    cpus = dict(zip(names, ["1", "2", "3"], strict=True))
    state = make_state(
        [make_node(name, cpu=cpus[name], labels={"zone": name}) for name in names],
        [make_pod(f"on-{name}", on=name, cpu=cpus[name], memory=0) for name in names],
    )
    zone_is(state, "a")
    state.publish("traffic", make_reading({name: {"value": float(cpus[name])} for name in names}))
    before = state.log.position
    state.remove_node(gone)
    assert table(state) == {
        name: row(
            cpu=int(cpus[name]) * 1000, asked=int(cpus[name]) * 1000, pods=[f"on-{name}"], count=1
        )
        for name in order
    }
    assert [state.row_of(name) for name in order] == [0, 1]
    assert state.row_of(gone) is None
    assert zone_is(state, "c") == [name == "c" for name in order]
    assert state.nodes().reading("traffic")["value"].tolist() == [float(cpus[n]) for n in order]
    assert changes(state, before) == [(changed_row, ROW)]


def test_a_new_node_finds_nothing_left_in_the_row_of_one_that_went() -> None:
    state = make_state(
        [
            make_node("a"),
            make_node("b", example_com__gpu=2, unschedulable=True, labels={"zone": "x"}),
        ],
        [make_pod("p", on="b", cpu="1")],
    )
    zone_is(state, "x")
    state.remove_node("b")
    state.add_node(make_node("c"))
    assert table(state) == {"a": row(), "c": row()}
    assert zone_is(state, "x") == [False, False]


def test_removing_an_unknown_node_changes_nothing() -> None:
    state = make_state([make_node("a")])
    before = state.log.position
    state.remove_node("b")
    assert (table(state), changes(state, before)) == ({"a": row()}, [])


def test_the_table_grows() -> None:
    state = make_state([make_node("first", labels={"zone": "x"})])
    zone_is(state, "x")
    state.publish("traffic", make_reading({"first": {"value": 1.0}}, {"value": 2.0}))
    for number in range(200):
        state.add_node(make_node(f"n{number}", cpu=number + 1))
    nodes = state.nodes()
    assert nodes.allocatable("cpu").tolist() == [4000, *(1000 * (n + 1) for n in range(200))]
    assert zone_is(state, "x") == [True] + [False] * 200
    assert nodes.reading("traffic")["value"].tolist() == [1.0] + [2.0] * 200


def test_a_table_that_was_very_large_gives_its_room_back() -> None:
    taint = {"key": "first", "effect": "NoSchedule"}
    state = make_state([make_node("first", labels={"zone": "x"}, taints=[taint])])
    state.place(make_pod("p", on="first", cpu="1", memory="1Mi"))
    state.publish("traffic", make_reading({"first": {"value": 1.0}}, {"value": 2.0}))
    for number in range(20_000):
        taints = [Taint(str(number))] if number % 10 == 0 else []
        state.add_node(Node(ObjectMeta(f"n{number}"), NodeSpec(taints=taints)))
    assert len(state.pod_count.array) == 32_768
    for number in range(20_000):
        state.remove_node(f"n{number}")
    assert len(state.pod_count.array) == 16_384
    # Renumbered when 8192 nodes were left.
    assert len(state.node_columns.taints.interned.values) < 1000
    assert table(state) == {
        "first": row(taints=1, asked=1000, nonzero=1, pods=["p"], count=1),
    }
    assert zone_is(state, "x") == [True]
    state.add_node(make_node("second"))
    assert state.nodes().reading("traffic")["value"].tolist() == [1.0, 2.0]


def test_columns_are_made_anew_after_many_rows_went_at_once() -> None:
    names = [f"n{number}" for number in range(100)]
    state = make_state(
        [make_node(name, labels={"zone": name[-1]}) for name in names],
        [make_pod(f"on-{name}", on=name, cpu="1", memory=0) for name in names],
    )
    assert zone_is(state, "7") == [name[-1] == "7" for name in names]
    before = table(state)
    for name in names[:80]:
        state.remove_node(name)
    assert list(state.labels.columns) == []
    assert table(state) == {name: before[name] for name in state.names}
    assert zone_is(state, "7") == [name[-1] == "7" for name in state.names]


def test_columns_stay_while_rows_go_one_by_one() -> None:
    state = make_state(make_node(f"n{number}") for number in range(100))
    zone_is(state, "x")
    (column,) = state.labels.columns
    for number in range(90):
        state.remove_node(f"n{number}")
        assert zone_is(state, "x") == [False] * (99 - number)
    assert list(state.labels.columns) == [column]


def test_the_log_is_no_longer_than_the_table_needs() -> None:
    state = make_state([make_node("a")])
    for number in range(10_000):
        state.update_node(make_node("a", labels={"number": str(number)}))
    assert state.log.position == 10_001
    kept = next(n for n in range(10_001) if state.log.since(n) is not None)
    assert 10_001 - 16 * 64 <= kept <= 10_001 - 8 * 64


# Labels.


def test_a_label_column_is_made_at_first_use_and_kept_true() -> None:
    state = make_state([make_node("a", labels={"zone": "x"}), make_node("b")])
    assert zone_is(state, "x") == [True, False]
    state.update_node(make_node("b", labels={"zone": "x"}))
    state.update_node(make_node("a", labels={"zone": "y"}))
    state.add_node(make_node("c", labels={"zone": "x"}))
    assert zone_is(state, "x") == [False, True, True]


# Pods.


def test_pods_count_where_they_run() -> None:
    state = make_state(
        [make_node("a"), make_node("b")],
        [make_pod("p", on="a", cpu="1", memory="5Mi"), make_pod("q", on="a", cpu="500m")],
    )
    assert table(state) == {
        "a": row(asked=1500, nonzero=205, pods=["p", "q"], count=2),
        "b": row(),
    }
    assert changes(state, 2) == [(0, PODS), (0, PODS)]
    assert (state.placed_count, state.assumed_count) == (2, 0)


def test_pods_that_come_before_their_node_count_when_it_comes() -> None:
    state = make_state([], [make_pod("p", on="a", cpu="1", memory="1Mi", host_ports=[80])])
    assert changes(state, 0) == []
    state.add_node(make_node("a"))
    assert table(state) == {"a": row(asked=1000, nonzero=1, pods=["p"], count=1)}


def test_pods_of_a_node_that_went_count_again_when_it_returns() -> None:
    state = make_state([make_node("a")], [make_pod("p", on="a", cpu="1", memory="1Mi")])
    state.remove_node("a")
    state.add_node(make_node("a"))
    assert table(state) == {"a": row(asked=1000, nonzero=1, pods=["p"], count=1)}


def test_a_pod_that_went_while_its_node_was_away_is_gone() -> None:
    state = make_state([make_node("a")], [make_pod("p", on="a", cpu="1")])
    state.remove_node("a")
    state.remove_pod("default/p")
    state.add_node(make_node("a"))
    assert table(state) == {"a": row()}


def test_a_pod_that_changes_counts_as_it_is_now() -> None:
    state = make_state([make_node("a")], [make_pod("p", on="a", cpu="1", memory="1Mi")])
    state.place(make_pod("p", on="a", cpu="3", memory="2Mi"))
    assert table(state) == {"a": row(asked=3000, nonzero=2, pods=["p"], count=1)}


def test_a_pod_that_only_changes_its_status_is_kept_and_changes_nothing() -> None:
    state = make_state([make_node("a")], [make_pod("p", on="a", cpu="1")])
    before = state.log.position
    later = make_pod("p", on="a", cpu="1", phase="Running")
    state.place(later)
    assert changes(state, before) == []
    assert state.nodes().pods(0) == [later]


def test_a_pod_goes() -> None:
    state = make_state([make_node("a")], [make_pod("p", on="a", cpu="1")])
    before = state.log.position
    removed = state.remove_pod("default/p")
    assert removed is not None
    assert removed.pod.name == "p"
    assert table(state) == {"a": row()}
    assert changes(state, before) == [(0, PODS)]
    assert state.remove_pod("default/p") is None


# Assumptions.


def pending() -> Pod:
    return make_pod("p", cpu="1", memory="1Mi")


def test_an_assumed_pod_counts_at_once() -> None:
    state = make_state([make_node("a"), make_node("b")])
    state.assume(pending(), "b")
    assert table(state) == {"a": row(), "b": row(asked=1000, nonzero=1, pods=["p"], count=1)}
    assert (state.placed_count, state.assumed_count) == (1, 1)


def test_a_pod_is_assumed_once() -> None:
    state = make_state([make_node("a")])
    state.assume(pending(), "a")
    with pytest.raises(ValueError, match="cannot assume pod default/p on a: it is already on a"):
        state.assume(pending(), "a")


def test_a_forgotten_pod_leaves_nothing() -> None:
    state = make_state([make_node("a")])
    state.assume(pending(), "a")
    state.forget("default/p")
    assert table(state) == {"a": row()}
    assert state.placed("default/p") is None


def test_confirming_an_assumption_changes_no_row() -> None:
    state = make_state([make_node("a")])
    state.assume(pending(), "a")
    before = state.log.position
    state.place(make_pod("p", on="a", cpu="1", memory="1Mi"))
    assert changes(state, before) == []
    assert state.assumed_count == 0
    assert table(state) == {"a": row(asked=1000, nonzero=1, pods=["p"], count=1)}


def test_a_confirmed_pod_is_not_forgotten() -> None:
    state = make_state([make_node("a")])
    state.assume(pending(), "a")
    state.place(make_pod("p", on="a", cpu="1", memory="1Mi"))
    state.forget("default/p")
    assert table(state) == {"a": row(asked=1000, nonzero=1, pods=["p"], count=1)}


def test_forgetting_an_unknown_pod_changes_nothing() -> None:
    state = make_state([make_node("a")])
    state.forget("default/p")
    assert changes(state, 1) == []


def test_a_pod_bound_elsewhere_than_assumed_moves() -> None:
    state = make_state([make_node("a"), make_node("b")])
    state.assume(make_pod("p", cpu="1", memory="1Mi", host_ports=[80]), "a")
    before = state.log.position
    state.place(make_pod("p", on="b", cpu="1", memory="1Mi", host_ports=[80]))
    assert table(state) == {"a": row(), "b": row(asked=1000, nonzero=1, pods=["p"], count=1)}
    assert changes(state, before) == [(0, PODS), (1, PODS)]
    assert state.host_ports.holders[HostPort("TCP", 80, "0.0.0.0")] == {"b": 1}


# Ports.


def test_ports_are_counted_per_address_and_given_back() -> None:
    def holder(name: str, ip: str) -> Pod:
        port = {"hostPort": 53, "protocol": "UDP", "hostIP": ip}
        return make_pod(name, on="a", spec={"containers": [{"name": "c", "ports": [port]}]})

    state = make_state([make_node("a")], [holder("p", ""), holder("q", "10.0.0.1")])
    everywhere, somewhere = (HostPort("UDP", 53, ip) for ip in ("0.0.0.0", "10.0.0.1"))
    holders = state.host_ports.holders
    assert (holders[everywhere], holders[somewhere]) == ({"a": 1}, {"a": 1})
    assert holders[HostPort("TCP", 53, "0.0.0.0")] == {}
    state.place(holder("r", "10.0.0.1"))
    state.remove_pod("default/p")
    assert (holders[everywhere], holders[somewhere]) == ({}, {"a": 2})
    state.remove_pod("default/q")
    state.remove_pod("default/r")
    assert holders[somewhere] == {}


# Nominations.


def test_a_nomination_moves_and_ends_when_the_pod_is_assumed() -> None:
    state = make_state([make_node("a"), make_node("b")])
    pod = pending()
    state.nominate(pod, "a")
    state.nominate(pod, "b")
    assert state.nominated() == {"b": {pod.uid: pod}}
    state.assume(pod, "a")
    assert state.nominated() == {}


def test_a_nomination_is_dropped() -> None:
    state = make_state([make_node("a")])
    pod, other = pending(), make_pod("q")
    state.nominate(pod, "a")
    state.nominate(other, "a")
    state.drop_nomination(pod.uid)
    state.drop_nomination("unknown")
    assert state.nominated() == {"a": {other.uid: other}}


def test_a_nomination_is_known_by_its_pod_until_the_node_goes() -> None:
    state = make_state([make_node("a")])
    pod = make_pod()
    assert state.nomination_of(pod.uid) == ""
    state.nominate(pod, "a")
    assert state.nomination_of(pod.uid) == "a"
    state.remove_node("a")
    assert (state.nomination_of(pod.uid), state.nominated()) == ("", {})


# A bound pod gets labels, as by the API server those of its node's zone.

ZONED = {"app": "web", "topology.kubernetes.io/zone": "z"}


def test_a_pod_that_is_bound_and_labelled_changes_for_plugins_by_its_labels_alone() -> None:
    state = make_state([make_node("a")])
    state.assume(make_pod("p", cpu="1", labels={"app": "web"}), "a")
    zoned = PodSelection.from_requirements(
        labels_required(ZONED), namespaces=["default"], counts_terminating=True
    )
    assert state.nodes().pods_matching(zoned).tolist() == [0]
    before, seen = state.log.position, table(state)
    state.place(make_pod("p", on="a", cpu="1", labels=ZONED))
    assert changes(state, before) == [(0, LABELS)]
    assert state.nodes().pods_matching(zoned).tolist() == [1]
    assert table(state) == seen
    assert state.nodes().pods(0)[0].labels == ZONED
    placed = state.placed("default/p")
    assert placed is not None
    assert not placed.is_assumed
    state.remove_pod("default/p")
    assert state.nodes().pods_matching(zoned).tolist() == [0]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"cpu": "2"}, id="requests"),
        pytest.param({"annotations": {"a": "b"}}, id="annotations"),
        pytest.param({"priority": 3}, id="priority"),
    ],
)
def test_a_pod_changes_for_plugins_in_everything_where_its_labels_change_and(
    more: dict[str, Any],
) -> None:
    state = make_state([make_node("a")], [make_pod("p", on="a")])
    before = state.log.position
    state.place(make_pod("p", on="a", labels=ZONED, **more))
    assert changes(state, before) == [(0, PODS), (0, PODS)]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"volumes": [{"name": "v", "emptyDir": {}}]}, id="volumes"),
        pytest.param(
            {"affinity": {"podAffinity": {}, "podAntiAffinity": {}}}, id="affinity to pods"
        ),
    ],
)
def test_what_is_kept_of_a_pod_by_its_labels_is_made_anew_where_it_has(
    spec: dict[str, Any],
) -> None:
    state = make_state([make_node("a")], [make_pod("p", on="a", spec=spec)])
    before = state.log.position
    state.place(make_pod("p", on="a", labels=ZONED, spec=spec))
    assert changes(state, before) == [(0, PODS), (0, PODS)]


def test_without_a_pod_the_table_reads_as_if_it_was_on_no_node() -> None:
    nodes = [make_node("a"), make_node("b")]
    pod, other = make_pod("pod", on="a", cpu="1"), make_pod("other", on="a", cpu="500m")
    state = make_state(nodes, [pod, other])
    before, position = table(state), state.log.position
    without = state.without(pod.uid)
    assert table(without) == table(make_state(nodes, [other]))
    # Wherever the row is, and in the table around any face.
    faced = without.nodes().take(np.array([1, 0, 0]))
    assert faced.requested("cpu").tolist() == [0, 500, 500]
    assert faced.everything.requested("cpu").tolist() == [500, 0]
    # Pods that are added hypothetically, or removed, come on top.
    assert faced.with_pods({1: [pod]}).requested("cpu").tolist() == [0, 1500, 500]
    assert faced.without({2: {pod.uid, other.uid}}).requested("cpu").tolist() == [0, 500, 0]
    assert list(faced.hypothetical_pods()) == []
    assert list(faced.differences()) == [(1, pod, -1), (2, pod, -1)]
    assert (table(state), state.log.position) == (before, position)


def test_without_a_pod_that_has_no_node_it_is_the_same() -> None:
    state = make_state([make_node("a")])
    assert state.without("unknown") is state


class FailedError(Exception):
    pass


class Unexpectable:
    """An expectation that fails for every pod with this label."""

    fields = ("x",)

    def expected_for(self, pod: Pod) -> tuple[float, ...]:
        if pod.labels.get("fails"):
            raise FailedError
        return (1.0,)


FAILING = {"fails": "yes"}


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(lambda state: state.place(make_pod("p", on="a", labels=FAILING)), id="added"),
        pytest.param(lambda state: state.assume(make_pod("p", labels=FAILING), "a"), id="assumed"),
        pytest.param(
            lambda state: state.place(make_pod("there", on="a", labels=FAILING)), id="relabelled"
        ),
    ],
)
def test_a_row_is_logged_even_if_an_index_fails(event: Callable[[ClusterState], None]) -> None:
    reading = Reading(("a",), {"x": np.zeros(1)}, expects=Unexpectable(), sampled_at=1.0)
    state = make_state([make_node("a")], [make_pod("there", on="a")])
    state.publish("source", reading)
    before = state.log.position
    with pytest.raises(FailedError):
        event(state)
    assert state.log.since(before) == [(0, PODS | READING | TERMS)]
    assert state.log.last_arrival(0) is None  # no lookahead expected this
    assert state.log.versions[0] == state.log.position
