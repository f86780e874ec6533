"""Which nodes have something: columns follow what is told, and the rows of the nodes."""

from lowtide.cluster.columns import BoolArray
from lowtide.cluster.indexes.volumes import NodesWith
from lowtide.cluster.state import ClusterState
from lowtide.testing import make_node, make_state


def watched(*names: str) -> tuple[ClusterState, NodesWith[str]]:
    """An index of a state with these nodes that hears of those that come."""
    state = make_state(map(make_node, names))
    nodes_with: NodesWith[str] = NodesWith(state)
    state._hear_node_added += (nodes_with,)
    return state, nodes_with


def where(nodes_with: NodesWith[str], key: str) -> list[bool]:
    column: BoolArray = nodes_with.where[key].array
    assert not column[2:].any()
    return column[:2].tolist()


def test_a_column_is_kept_true_after_its_first_use() -> None:
    _, nodes_with = watched("a", "b")
    nodes_with.replace("a", set(), {"x", "y"})
    nodes_with.replace("unknown", set(), {"x"})
    column = nodes_with.where["x"]
    assert where(nodes_with, "x") == [True, False]
    nodes_with.replace("a", {"x", "y"}, {"y"})
    nodes_with.replace("b", set(), {"x"})
    assert where(nodes_with, "x") == [False, True]
    assert nodes_with.where["x"] is column
    assert where(nodes_with, "y") == [True, False]
    assert (nodes_with.names("x"), nodes_with.names("z")) == ({"b", "unknown"}, set())


def test_a_node_that_comes_later_has_what_was_told_of_it() -> None:
    state, nodes_with = watched("first")
    for key in ("x", "y"):
        assert where(nodes_with, key) == [False, False]
    nodes_with.replace("a", set(), {"x"})
    state.add_node(make_node("a"))
    assert where(nodes_with, "x") == [False, True]
    assert where(nodes_with, "y") == [False, False]


def test_nothing_is_kept_of_what_no_node_has() -> None:
    _, nodes_with = watched("a")
    nodes_with.replace("a", set(), {"x"})
    nodes_with.replace("a", {"x"}, set())
    assert nodes_with._names == {}


def test_columns_that_were_let_go_are_made_anew() -> None:
    _, nodes_with = watched("a")
    assert where(nodes_with, "x") == [False, False]
    nodes_with.let_columns_go()
    assert list(nodes_with.columns) == []
    nodes_with.replace("a", set(), {"x"})
    assert where(nodes_with, "x") == [True, False]
