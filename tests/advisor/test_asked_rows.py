"""The rows of asked nodes, kept while the table and the list are the same."""

from lowtide.advisor.asked_rows import MOST_LISTS, MOST_NAMES, RowFinder
from lowtide.testing import make_node, make_state


def test_rows_are_kept_for_the_same_list_until_the_table_changes() -> None:
    state = make_state([make_node("a"), make_node("b")])
    lists, names = RowFinder(state), ["b", "a", "c"]
    first = lists.find_rows(names)
    assert (first.known.tolist(), first.unknown) == ([1, 0], [2])
    assert lists.find_rows(names) is first
    assert lists.find_rows(list(names)) is not first
    state.add_node(make_node("c"))
    assert lists.find_rows(names).known.tolist() == [1, 0, 2]
    state.remove_node("a")
    assert lists.find_rows(names).known.tolist() == [1, 0]


def test_few_lists_are_kept() -> None:
    lists = RowFinder(make_state([make_node("a")]))
    many = [["a"] for _ in range(MOST_LISTS + 1)]
    rows = [lists.find_rows(names) for names in many]
    assert lists.find_rows(many[1]) is rows[1]
    assert lists.find_rows(many[0]) is not rows[0]


def test_few_names_are_kept() -> None:
    lists = RowFinder(make_state([make_node("a")]))
    many = [["a"] * (MOST_NAMES // 2) for _ in range(3)]
    rows = [lists.find_rows(names) for names in many]
    assert lists.find_rows(many[1]) is rows[1]
    assert lists.find_rows(many[0]) is not rows[0]
