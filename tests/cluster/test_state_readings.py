"""ClusterState: what published readings do to the table, and how long changes are remembered."""

import math

import numpy as np

from lowtide.cluster.changes import EVERY_ROW, READING
from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.testing import make_node, make_reading, make_state


def changes(state: ClusterState, since: int) -> list[tuple[int, int]]:
    found = state.log.since(since)
    assert found is not None
    return found


def reading(state: ClusterState) -> dict[str, list[float]]:
    return {field: column.tolist() for field, column in state.nodes().reading("traffic").items()}


def test_before_anything_is_published_there_are_no_columns() -> None:
    assert reading(make_state([make_node("a")])) == {}


def test_a_reading_fills_every_row() -> None:
    state = make_state([make_node("a"), make_node("b")])
    before = state.log.position
    given = make_reading({"a": {"value": 5.0}, "unknown": {"value": 9.0}}, {"value": 7.0})
    state.publish("traffic", given)
    assert reading(state) == {"value": [5.0, 7.0]}
    assert changes(state, before) == [(EVERY_ROW, READING)]


def test_rows_are_found_by_name_whatever_their_order_in_the_reading() -> None:
    state = make_state([make_node("a"), make_node("b"), make_node("c")])
    state.publish("traffic", make_reading({name: {"value": ord(name)} for name in "cba"}))
    assert reading(state) == {"value": [97.0, 98.0, 99.0]}


def test_a_field_that_is_not_said_is_not_a_number() -> None:
    state = make_state([make_node("a"), make_node("b")])
    state.publish("traffic", make_reading({"a": {"value": 5.0}, "b": {"share": 0.5}}))
    nan = math.nan
    np.testing.assert_equal(reading(state), {"value": [5.0, nan], "share": [nan, 0.5]})


def test_a_new_reading_replaces_the_old_one_whole() -> None:
    state = make_state([make_node("a")])
    state.publish("traffic", make_reading({"a": {"value": 5.0, "share": 0.5}}))
    state.publish("traffic", make_reading({"a": {"value": 6.0}}))
    np.testing.assert_equal(reading(state), {"value": [6.0], "share": [math.nan]})


def test_a_reading_of_no_node_leaves_what_others_have() -> None:
    state = make_state([make_node("a")])
    state.publish("traffic", make_reading({"a": {"value": 5.0}}))
    state.publish("traffic", make_reading({}, {"value": 7.0}))
    assert reading(state) == {"value": [7.0]}


def test_a_node_that_comes_later_gets_its_own_value_or_that_of_others() -> None:
    state = make_state([make_node("a")])
    state.publish("traffic", make_reading({"b": {"value": 5.0}}, {"value": 7.0}))
    state.add_node(make_node("b"))
    state.add_node(make_node("c"))
    assert reading(state) == {"value": [7.0, 5.0, 7.0]}


def test_a_node_that_leaves_and_comes_again_has_its_value_again() -> None:
    state = make_state([make_node("a"), make_node("b")])
    state.publish("traffic", make_reading({"a": {"value": 1.0}, "b": {"value": 2.0}}))
    state.remove_node("a")
    assert reading(state) == {"value": [2.0]}
    state.add_node(make_node("a"))
    assert reading(state) == {"value": [2.0, 1.0]}


def test_sources_do_not_mix() -> None:
    state = make_state([make_node("a")])
    state.publish("traffic", make_reading({"a": {"value": 5.0}}))
    state.publish("usage", make_reading({"a": {"cpu": 1.0}}))
    assert reading(state) == {"value": [5.0]}


def test_what_is_too_long_ago_cannot_be_told() -> None:
    state = make_state([make_node("a")])
    for _ in range(1024):
        state.publish("traffic", Reading())
    assert state.log.since(0) is None
    recent = state.log.position - 2
    assert changes(state, recent) == [(EVERY_ROW, READING)] * 2
