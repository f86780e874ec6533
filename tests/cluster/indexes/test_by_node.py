"""Numbers by key and node: columns follow what is told, and the rows of the nodes."""

from lowtide.cluster.indexes.by_node import ByNode
from lowtide.cluster.state import ClusterState
from lowtide.testing import make_node, make_state


def numbers_in(*names: str) -> tuple[ClusterState, ByNode[str]]:
    """Of a table with these nodes, and no numbers yet."""
    state = make_state(map(make_node, names))
    return state, ByNode(state)


def column(by_node: ByNode[str], key: str) -> list[int]:
    """Its first two rows; there is nothing in the others."""
    array = by_node.columns[key].array
    assert not array[2:].any()
    first: list[int] = array[:2].tolist()
    return first


def test_a_column_is_kept_true_after_its_first_use() -> None:
    _, by_node = numbers_in("a", "b")
    by_node.replace("a", (), {"x": 3, "y": 1})
    by_node.replace("unknown", (), {"x": 5})
    kept = by_node.columns["x"]
    assert column(by_node, "x") == [3, 0]
    by_node.replace("a", {"x", "y"}, {"y": 2})
    by_node.add("x", "b", 4)
    by_node.add("x", "b", -1)
    assert column(by_node, "x") == [0, 3]
    assert by_node.columns["x"] is kept
    assert column(by_node, "y") == [2, 0]
    assert (by_node["x"], by_node["z"]) == ({"b": 3, "unknown": 5}, {})


def test_a_node_that_comes_later_has_what_was_told_of_it() -> None:
    state, by_node = numbers_in("first")
    assert column(by_node, "x") == [0, 0]
    assert column(by_node, "y") == [0, 0]
    by_node.replace("a", (), {"x": 1})
    state.add_node(make_node("a"))
    by_node.node_added(1, "a")
    assert column(by_node, "x") == [0, 1]
    assert column(by_node, "y") == [0, 0]


def test_nothing_is_kept_of_what_no_node_has() -> None:
    _, by_node = numbers_in("a")
    by_node.replace("a", (), {"x": 1})
    by_node.replace("a", {"x"}, {})
    by_node.add("y", "a", 1)
    by_node.add("y", "a", -1)
    assert by_node._numbers == {}


def test_columns_that_were_dropped_are_made_anew() -> None:
    _, by_node = numbers_in("a")
    assert column(by_node, "x") == [0, 0]
    by_node.columns.clear()
    by_node.replace("a", (), {"x": 1})
    assert column(by_node, "x") == [1, 0]
