"""Columns of labels: made when asked for, kept true, and no more than there is room for."""

import pytest

from lowtide.cluster.state import ClusterState
from lowtide.objects.node import Node
from lowtide.testing import make_node, make_state

ROWS = 2**20  # of so large a table, 8 columns are kept


def some_nodes() -> list[Node]:
    return [make_node("a", labels={"zone": "x"}), make_node("b"), make_node("c", labels={"k": "v"})]


def table_of(*nodes: Node, capacity: int = 4) -> ClusterState:
    """A table in which there is room for that many rows."""
    state = make_state(nodes)
    state._resize(capacity)
    return state


def values(state: ClusterState, key: str) -> list[str | None]:
    column = state.labels[key]
    numbers = column.column.array[: state.count].tolist()
    return [column.interned.values[number] if number >= 0 else None for number in numbers]


def test_a_column_is_made_of_all_nodes() -> None:
    state = table_of(*some_nodes())
    assert values(state, "zone") == ["x", None, None]
    assert values(state, "nobody has it") == [None, None, None]


@pytest.mark.parametrize(
    ("after", "want"),
    [
        pytest.param({"zone": "y"}, "y", id="another value"),
        pytest.param({"zone": "x", "k": "w"}, "x", id="the same value and another label"),
        pytest.param({"k": "w"}, None, id="another label only"),
        pytest.param({}, None, id="no labels at all"),
    ],
)
def test_a_column_follows_a_node_that_changes_to(after: dict[str, str], want: str | None) -> None:
    state = table_of(*some_nodes())
    values(state, "zone")
    state.update_node(make_node("a", labels=after))
    assert values(state, "zone") == [want, None, None]


def test_in_the_course_of_a_question_no_column_is_let_go() -> None:
    state = table_of(*some_nodes(), capacity=ROWS)
    labels = state.labels
    first = labels["zone"]
    for number in range(20):
        labels[f"key {number}"]
    assert len(list(labels.columns)) == 8
    assert labels["zone"] is first
    assert values(state, "k") == [None, None, "v"]  # made for one look
    assert len(list(labels.columns)) == 8


def test_before_a_question_those_asked_for_longest_ago_make_room() -> None:
    state = table_of(*some_nodes(), capacity=ROWS)
    labels = state.labels
    kept = {key: labels[key] for key in ["zone", *(f"key {number}" for number in range(7))]}
    assert labels["zone"] is kept["zone"]
    state.nodes()
    assert len(list(labels.columns)) == 7
    assert labels["zone"] is kept["zone"]
    assert labels["key 1"] is kept["key 1"]
    assert labels["key 0"] is not kept["key 0"]


def test_values_that_no_node_has_any_more_are_forgotten() -> None:
    state = table_of(*some_nodes())
    column = state.labels["zone"]
    for number in range(1000):
        state.update_node(make_node("b", labels={"zone": f"zone {number}"}))
    state.update_node(make_node("b"))
    assert state.labels["zone"] is column
    assert [value for value in column.interned.values if value is not None] == ["x"]
    assert len(column.interned.values) == 3
