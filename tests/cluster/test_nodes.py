"""Nodes: some rows of the table, and rows as they would be with pods added or removed."""

from typing import Any

import numpy as np
import pytest

from lowtide.cluster.nodes import Nodes
from lowtide.cluster.placed import HostPort
from lowtide.objects.kinds import Namespace
from lowtide.objects.matching import matches_requirement
from lowtide.objects.meta import LabelRequirement, ObjectMeta
from lowtide.objects.node import Taint
from lowtide.testing import make_node, make_pod, make_reading, make_state

MIB = 1024 * 1024


def four() -> Nodes:
    """Nodes a to d; p and q run on b, r on d."""
    return make_state(
        [
            make_node("a", cpu="1", labels={"zone": "x"}),
            make_node("b", cpu="2", labels={"zone": "y"}, unschedulable=True),
            make_node("c", cpu="3", taints=[{"key": "t", "effect": "NoSchedule"}]),
            make_node("d", cpu="4", labels={"zone": "x"}),
        ],
        [
            make_pod("p", on="b", cpu="1", memory="1Mi", host_ports=[80]),
            make_pod("q", on="b", cpu="500m", memory="1Mi"),
            make_pod("r", on="d", cpu="250m", memory="1Mi", host_ports=[443]),
        ],
    ).nodes()


def face(nodes: Nodes) -> dict[str, Any]:
    """Everything a plugin can read, as plain values."""
    return {
        "rows": nodes.rows.tolist(),
        "names": list(nodes.names),
        "unschedulable": nodes.unschedulable.tolist(),
        "taints": nodes.by_taints(len).tolist(),
        "zone x": nodes.label_matches(LabelRequirement("zone", "In", ["x"])).tolist(),
        "named b": nodes.is_named("b").tolist(),
        "cpu": nodes.allocatable("cpu").tolist(),
        "asked": nodes.requested("cpu").tolist(),
        "asked pods": nodes.requested("pods").tolist(),
        "nonzero": [nodes.nonzero_requested(name).tolist() for name in ("cpu", "memory")],
        "count": nodes.pod_count.tolist(),
        "pods": [[pod.name for pod in nodes.pods(at)] for at in range(len(nodes))],
        "port 80": nodes.uses_port(HostPort("TCP", 80, "0.0.0.0")).tolist(),
        "objects": [nodes.node(at).name for at in range(len(nodes))],
    }


def test_whether_all_nodes_have_a_label_follows_the_nodes() -> None:
    state = make_state([make_node("a", labels={"zone": "x"}), make_node("b", labels={"zone": ""})])
    assert state.nodes().all_labelled("zone")
    state.update_node(make_node("b"))
    assert not state.nodes().all_labelled("zone")
    assert not state.nodes().take(np.array([0])).all_labelled("zone")  # it is about the whole table
    state.remove_node("b")
    assert state.nodes().all_labelled("zone")
    state.add_node(make_node("c", labels={"zone": "x"}))
    state.remove_node("a")
    assert state.nodes().all_labelled("zone")
    assert not state.nodes().all_labelled("rack")


WHOLE = {
    "rows": [0, 1, 2, 3],
    "names": ["a", "b", "c", "d"],
    "unschedulable": [False, True, False, False],
    "taints": [0, 0, 1, 0],
    "zone x": [True, False, False, True],
    "named b": [False, True, False, False],
    "cpu": [1000, 2000, 3000, 4000],
    "asked": [0, 1500, 0, 250],
    "asked pods": [0, 2, 0, 1],
    "nonzero": [[0, 1500, 0, 250], [0, 2 * MIB, 0, MIB]],
    "count": [0, 2, 0, 1],
    "pods": [[], ["p", "q"], [], ["r"]],
    "port 80": [False, True, False, False],
    "objects": ["a", "b", "c", "d"],
}


def taken(whole: dict[str, Any], positions: list[int]) -> dict[str, Any]:
    columns = {key: column for key, column in whole.items() if key != "nonzero"}
    some = {key: [column[at] for at in positions] for key, column in columns.items()}
    some["nonzero"] = [[column[at] for at in positions] for column in whole["nonzero"]]
    return some


def test_the_whole_table() -> None:
    assert face(four()) == WHOLE
    assert len(four()) == 4


@pytest.mark.parametrize("positions", [[], [2], [3, 1], [0, 1, 2, 3], [1, 1]])
def test_taking_positions(positions: list[int]) -> None:
    assert face(four().take(np.array(positions, np.intp))) == taken(WHOLE, positions)


def test_taking_from_what_was_taken() -> None:
    nodes = four().take(np.array([3, 1, 0])).take(np.array([1, 2]))
    assert face(nodes) == taken(WHOLE, [1, 0])


def with_one_more(whole: dict[str, Any], at: int) -> dict[str, Any]:
    """The face with `new` (2 cpu, 4Mi, port 80) added at one position."""
    expected = {key: list(column) for key, column in whole.items()}
    cpu, memory = (list(column) for column in whole["nonzero"])
    expected["asked"][at] += 2000
    expected["asked pods"][at] += 1
    expected["count"][at] += 1
    cpu[at] += 2000
    memory[at] += 4 * MIB
    expected["nonzero"] = [cpu, memory]
    expected["pods"][at] = [*expected["pods"][at], "new"]
    expected["port 80"][at] = True
    return expected


NEW = make_pod("new", cpu="2", memory="4Mi", host_ports=[80])


def test_a_pod_is_added_to_one_position_only() -> None:
    nodes = four()
    assert face(nodes.with_pods({3: [NEW]})) == with_one_more(WHOLE, 3)
    assert face(nodes) == WHOLE


def test_pods_are_added_to_several_positions_each_on_its_own() -> None:
    nodes = four().with_pods({0: [NEW], 3: [NEW]})
    assert face(nodes) == with_one_more(with_one_more(WHOLE, 0), 3)


def test_an_overlay_follows_its_row_when_positions_are_taken() -> None:
    nodes = four().with_pods({3: [NEW]}).take(np.array([2, 3, 1]))
    assert face(nodes) == taken(with_one_more(WHOLE, 3), [2, 3, 1])


def test_an_overlay_stays_behind_when_its_row_is_not_taken() -> None:
    nodes = four().with_pods({3: [NEW]}).take(np.array([0, 1]))
    assert face(nodes) == taken(WHOLE, [0, 1])


def test_an_overlay_counts_positions_of_what_was_taken() -> None:
    nodes = four().take(np.array([3, 2])).with_pods({1: [NEW]})
    assert face(nodes) == with_one_more(taken(WHOLE, [3, 2]), 1)


def test_pods_are_taken_away() -> None:
    nodes = four().without({1: ["default/p"]})
    assert face(nodes) == {
        **WHOLE,
        "asked": [0, 500, 0, 250],
        "asked pods": [0, 1, 0, 1],
        "nonzero": [[0, 500, 0, 250], [0, MIB, 0, MIB]],
        "count": [0, 1, 0, 1],
        "pods": [[], ["q"], [], ["r"]],
        "port 80": [False, False, False, False],
    }


def test_taking_away_what_is_not_there_changes_nothing() -> None:
    assert face(four().without({0: ["default/p"], 1: ["default/unknown"]})) == WHOLE


def test_taking_away_twice_counts_once() -> None:
    once = four().without({1: ["default/p"]})
    assert face(once.without({1: ["default/p"]})) == face(once)


def test_what_was_taken_away_can_be_put_back() -> None:
    nodes = four()
    back = nodes.without({3: ["default/r"]}).with_pods({3: nodes.pods(3)})
    assert face(back) == WHOLE


def test_what_was_added_can_be_taken_away_again() -> None:
    assert face(four().with_pods({1: [NEW]}).without({1: [NEW.uid]})) == WHOLE


def test_what_was_put_back_can_be_taken_away_again() -> None:
    nodes = four()
    without = nodes.without({1: ["default/p"]})
    back = without.with_pods({1: [pod for pod in nodes.pods(1) if pod.name == "p"]})
    assert face(back.without({1: ["default/p"]})) == face(without)


@pytest.mark.parametrize(
    ("wanted", "used"),
    [
        pytest.param(HostPort("TCP", 80, "10.0.0.9"), [False, True, False, True], id="address"),
        pytest.param(HostPort("UDP", 80, "0.0.0.0"), [False] * 4, id="another protocol"),
        pytest.param(HostPort("TCP", 443, "0.0.0.0"), [False, False, False, True], id="it keeps"),
        pytest.param(HostPort("TCP", 81, "0.0.0.0"), [False] * 4, id="another port"),
    ],
)
def test_ports_beside_an_overlay(wanted: HostPort, used: list[bool]) -> None:
    nodes = four().with_pods({3: [NEW]})
    assert nodes.uses_port(wanted).tolist() == used
    backwards = np.array([3, 2, 1, 0])
    assert nodes.take(backwards).uses_port(wanted).tolist() == used[::-1]


def test_ports_held_on_nodes_that_are_not_known_do_not_matter() -> None:
    state = make_state([make_node("a")], [make_pod("p", on="unknown", host_ports=[80])])
    assert state.nodes().uses_port(HostPort("TCP", 80, "0.0.0.0")).tolist() == [False]


@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [2, 2, 0], [1], []])
@pytest.mark.parametrize("values", [["x"], ["x", "y"], ["nowhere"], ["1"], []])
@pytest.mark.parametrize(
    "operator", ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "unheard of"]
)
def test_labels_match_as_each_node_by_itself(
    operator: str, values: list[str], rows: list[int]
) -> None:
    requirement = LabelRequirement("zone", operator, values)
    state = make_state(
        [make_node(name, labels={"zone": zone}) for name, zone in zip("abd", "xyx", strict=True)]
    )
    state.add_node(make_node("e", labels={"zone": "2"}))
    state.add_node(make_node("c"))
    state.nodes().label_matches(requirement)
    state.remove_node("b")  # its value is no node's any more, and its row is another's
    nodes = state.nodes().take(np.array(rows, np.intp))
    assert nodes.label_matches(requirement).tolist() == [
        matches_requirement(requirement, nodes.node(at).labels.get("zone"))
        for at in range(len(rows))
    ]


@pytest.mark.parametrize(
    ("names", "want"),
    [
        pytest.param(["a"], [False, True, False, True], id="one"),
        pytest.param(["a", "d", "nobody"], [True, True, False, True], id="one of several"),
        pytest.param(["nobody"], [False] * 4, id="an unknown node"),
        pytest.param([], [False] * 4, id="none"),
    ],
)
def test_every_position_is_named_by(names: list[str], want: list[bool]) -> None:
    assert four().take(np.array([3, 0, 1, 0])).is_named(*names).tolist() == want


def test_a_judge_of_taints_is_asked_once_per_list_of_them() -> None:
    asked: list[tuple[str, ...]] = []

    def judge(taints: tuple[Taint, ...]) -> int:
        asked.append(tuple(taint.key for taint in taints))
        return len(asked)

    assert four().by_taints(judge).tolist() == [1, 1, 2, 1]
    assert asked == [(), ("t",)]


def test_plugins_cannot_write_into_the_table() -> None:
    nodes = four()
    with pytest.raises(ValueError, match="read-only"):
        nodes.allocatable("cpu")[0] = 9
    assert face(nodes) == WHOLE


def test_one_node() -> None:
    nodes = four().with_pods({1: [NEW]})
    one = nodes.one(1)
    assert (one.name, one.labels["zone"], one.object) == ("b", "y", nodes.node(1))
    assert [pod.name for pod in one.pods] == ["p", "q", "new"]
    assert (one.allocatable("cpu"), one.requested("cpu"), one.requested("pods")) == (2000, 3500, 3)


def test_the_reading_of_taken_rows_and_of_one_node() -> None:
    state = make_state([make_node("a"), make_node("b")])
    state.publish("traffic", make_reading({"b": {"value": 5.0}}, {"value": 7.0}))
    nodes = state.nodes().take(np.array([1, 0]))
    assert nodes.reading("traffic")["value"].tolist() == [5.0, 7.0]
    assert nodes.one(1).reading("traffic") == {"value": 7.0}
    assert nodes.reading("usage") == {}


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        pytest.param(None, [0, 1, 3, None], id="in the whole table"),
        pytest.param([3, 0], [1, None, 0, None], id="in a view of some rows"),
        pytest.param([], [None, None, None, None], id="in an empty view"),
    ],
)
def test_the_position_of_a_name(rows: list[int] | None, want: list[int | None]) -> None:
    nodes = four() if rows is None else four().take(np.array(rows, np.intp))
    assert [nodes.position_of(name) for name in ("a", "b", "d", "nobody")] == want


@pytest.mark.parametrize("positions", [None, [0, 2]], ids=["whole", "some"])
def test_no_plugin_can_write_into_what_others_read(positions: list[int] | None) -> None:
    feasible, rows = np.array([True, False, True, False]), np.array([0, 2])
    nodes = four().with_feasible(feasible)
    if positions is not None:
        nodes = nodes.take(rows)
    for each in (nodes.feasible, nodes.rows):
        with pytest.raises(ValueError, match="read-only"):
            each |= True
    assert (feasible.tolist(), rows.tolist()) == ([True, False, True, False], [0, 2])
    rows[0] = 1  # whoever made the view still may


def test_a_plugin_cannot_sort_the_names_of_nodes() -> None:
    state = make_state([make_node("b"), make_node("a")])
    nodes = state.nodes()
    assert not hasattr(nodes.names, "sort")
    assert nodes.names is nodes.everything.names is state.nodes().names  # not copied for each read
    assert nodes.take(np.array([1])).names == ("a",)
    state.remove_node("b")
    assert state.nodes().names == ("a",)
    state.add_node(make_node("c"))
    assert state.nodes().names == ("a", "c")
    state.remove_node("a")
    state.add_node(make_node("d"))
    assert state.nodes().names == ("c", "d")


def test_a_plugin_cannot_change_the_known_objects() -> None:
    state = make_state([make_node("a")])
    state.put_object(Namespace(ObjectMeta(name="blue")))
    nodes: Any = state.nodes()
    volumes = nodes.volumes.of_class("")
    for each in (nodes.objects(Namespace), nodes.objects_in(Namespace, ""), volumes):
        with pytest.raises((TypeError, AttributeError)):
            each.clear()
    assert nodes.objects(Namespace) == {("", "blue"): Namespace(ObjectMeta(name="blue"))}
