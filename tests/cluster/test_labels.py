"""Columns of labels: made when asked for, kept true, and no more than there is room for."""

from collections.abc import Sequence

import pytest

from lowtide.cluster.labels import LabelColumns
from lowtide.objects.node import Node
from lowtide.testing import make_node

ROWS = 2**20  # of so large a table, 8 columns are kept


def some_nodes() -> list[Node]:
    return [make_node("a", labels={"zone": "x"}), make_node("b"), make_node("c", labels={"k": "v"})]


def values(
    labels: LabelColumns, key: str, nodes: Sequence[Node], rows: int = 4
) -> list[str | None]:
    column = labels.column(key, capacity=rows, nodes=nodes)
    numbers = column.column.array[: len(nodes)].tolist()
    return [column.interned.values[number] if number >= 0 else None for number in numbers]


def test_a_column_is_made_of_all_nodes() -> None:
    labels = LabelColumns()
    assert values(labels, "zone", some_nodes()) == ["x", None, None]
    assert values(labels, "nobody has it", some_nodes()) == [None, None, None]


@pytest.mark.parametrize(
    ("after", "want"),
    [
        pytest.param({"zone": "y"}, "y", id="another value"),
        pytest.param({"zone": "x", "k": "w"}, "x", id="the same value and another label"),
        pytest.param({"k": "w"}, None, id="another label only"),
        pytest.param({}, None, id="no label"),
    ],
)
def test_a_column_is_kept_true_for_a_node_with(after: dict[str, str], want: str | None) -> None:
    labels, nodes = LabelColumns(), some_nodes()
    values(labels, "zone", nodes)
    labels.replace(0, nodes[0].labels, after)
    assert values(labels, "zone", nodes) == [want, None, None]


def test_in_the_course_of_a_question_no_column_is_let_go() -> None:
    labels, nodes = LabelColumns(), some_nodes()
    first = labels.column("zone", capacity=ROWS, nodes=nodes)
    for number in range(20):
        labels.column(f"key {number}", capacity=ROWS, nodes=nodes)
    assert len(list(labels.columns)) == 8
    assert labels.column("zone", capacity=ROWS, nodes=nodes) is first
    assert values(labels, "k", nodes, ROWS) == [None, None, "v"]  # made for one look
    assert len(list(labels.columns)) == 8


def test_before_a_question_those_asked_for_longest_ago_make_room() -> None:
    labels, nodes = LabelColumns(), some_nodes()
    keys = ["zone", *(f"key {number}" for number in range(7))]
    kept = {key: labels.column(key, capacity=ROWS, nodes=nodes) for key in keys}
    labels.column("zone", capacity=ROWS, nodes=nodes)
    labels.make_room(ROWS)
    assert len(list(labels.columns)) == 7
    assert labels.column("zone", capacity=ROWS, nodes=nodes) is kept["zone"]
    assert labels.column("key 1", capacity=ROWS, nodes=nodes) is kept["key 1"]
    assert labels.column("key 0", capacity=ROWS, nodes=nodes) is not kept["key 0"]


def test_values_that_no_node_has_any_more_are_forgotten() -> None:
    labels, nodes = LabelColumns(), some_nodes()
    column = labels.column("zone", capacity=4, nodes=nodes)
    before: dict[str, str] = {}
    for number in range(1000):
        after = {"zone": f"zone {number}"}
        labels.replace(1, before, after)
        before = after
    labels.replace(1, before, {})
    assert [value for value in column.interned.values if value is not None] == ["x"]
    assert len(column.interned.values) == 3
