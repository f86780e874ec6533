"""Which nodes have something: columns follow what is told, and the rows of the nodes."""

import numpy as np

from lowtide.cluster.nodes_with import NodesWith


def test_a_column_is_kept_true_after_its_first_use() -> None:
    row_of = {"a": 0, "b": 1}
    nodes_with: NodesWith[str] = NodesWith(row_of)
    nodes_with.replace("a", set(), {"x", "y"})
    nodes_with.replace("unknown", set(), {"x"})
    column = nodes_with.column("x", 4)
    assert column.tolist() == [True, False, False, False]
    nodes_with.replace("a", {"x", "y"}, {"y"})
    nodes_with.replace("b", set(), {"x"})
    assert column.tolist() == [False, True, False, False]
    assert nodes_with.column("y", 4).tolist() == [True, False, False, False]
    assert (nodes_with.names("x"), nodes_with.names("z")) == ({"b", "unknown"}, set())


def test_a_node_that_comes_later_has_what_was_told_of_it() -> None:
    row_of: dict[str, int] = {}
    nodes_with: NodesWith[str] = NodesWith(row_of)
    for key in ("x", "y"):
        assert not nodes_with.column(key, 2).any()
    nodes_with.replace("a", set(), {"x"})
    row_of["a"] = 1
    nodes_with.fill(1, "a")
    assert nodes_with.column("x", 2).tolist() == [False, True]
    assert not nodes_with.column("y", 2).any()


def test_nothing_is_kept_of_what_no_node_has() -> None:
    nodes_with: NodesWith[str] = NodesWith({"a": 0})
    nodes_with.replace("a", set(), {"x"})
    nodes_with.replace("a", {"x"}, set())
    assert nodes_with._names == {}


def test_columns_that_were_let_go_are_made_anew() -> None:
    nodes_with: NodesWith[str] = NodesWith({"a": 0})
    assert np.array_equal(nodes_with.column("x", 2), [False, False])
    nodes_with.let_columns_go()
    assert list(nodes_with.columns) == []
    nodes_with.replace("a", set(), {"x"})
    assert nodes_with.column("x", 2).tolist() == [True, False]
