"""A traffic reading as columns: what nodes count as that are not trusted, and those that joined."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.readings.conftest import NOW, make_series, read

from lowtide.cluster.reading import Reading
from lowtide.readings.columns import (
    CAPACITY,
    HIGHEST_VALUE,
    IS_GUESSED,
    IS_HOT,
    MAY_BE_HOT,
    RECEIVE_COLUMN,
    SHARE,
    STATE,
    TRANSMIT_COLUMN,
    VALUE_COLUMN,
    published,
)
from lowtide.readings.reading import STATES, State
from lowtide.testing import make_node

NAN = math.nan


def columns(
    receive: Mapping[str, float],
    speeds: Mapping[str, float] | None = None,
    *,
    names: str = "abcd",
    old: str = "",
    **fields: Any,
) -> Reading:
    """Published of nodes that receive so much; the samples of `old` ones are stale."""
    answers = {
        "receive": [
            make_series(value, node=name, at=NOW - (90 if name in old else 0))
            for name, value in receive.items()
        ],
        "speed": [make_series(speed, node=name) for name, speed in (speeds or {}).items()],
    }
    return published(read(answers, [make_node(name) for name in names], **fields))


def values(reading: Reading, *fields: str) -> dict[str, list[float]]:
    return {field: reading.columns[field].tolist() for field in fields}


def test_nodes_that_are_trusted_stand_there_as_they_are() -> None:
    reading = columns({"a": 95.0, "b": 20.0}, {"a": 100.0, "b": 400.0}, names="ab")
    fresh = float(STATES.index(State.FRESH))
    np.testing.assert_equal(
        {field: column.tolist() for field, column in reading.columns.items()},
        {
            VALUE_COLUMN: [95.0, 20.0],
            HIGHEST_VALUE: [95.0, 95.0],
            RECEIVE_COLUMN: [95.0, 20.0],
            TRANSMIT_COLUMN: [NAN, NAN],  # not asked for
            CAPACITY: [100.0, 400.0],
            SHARE: [0.95, 0.05],
            STATE: [fresh, fresh],
            IS_HOT: [1.0, 0.0],
            MAY_BE_HOT: [1.0, 1.0],
            IS_GUESSED: [0.0, 0.0],
        },
    )
    assert list(reading.names) == ["a", "b"]


@pytest.mark.parametrize(
    ("receive", "old", "state"),
    [
        pytest.param({}, "", State.MISSING, id="is missing"),
        pytest.param({"c": 99.0}, "c", State.STALE, id="is stale"),
        pytest.param({"c": NAN}, "", State.IMPLAUSIBLE, id="is implausible"),
    ],
)
def test_average_in_all_but_its_state_is_a_node_that(
    receive: dict[str, float], old: str, state: State
) -> None:
    speeds = {"a": 100.0, "b": 1000.0, "c": 200.0}
    reading = columns({"a": 30.0, "b": 100.0, **receive}, speeds, names="abc", old=old)
    # (30 + 100) / 2; (0.3 + 0.1) / 2; a fifth of its own link
    assert {field: each[2] for field, each in values(reading, *reading.columns).items()} == {
        VALUE_COLUMN: 65.0,
        HIGHEST_VALUE: 100.0,
        RECEIVE_COLUMN: 40.0,
        TRANSMIT_COLUMN: 40.0,
        CAPACITY: 200.0,
        SHARE: 0.2,
        STATE: float(STATES.index(state)),
        IS_HOT: 0.0,
        MAY_BE_HOT: 0.0,
        IS_GUESSED: 0.0,
    }


def test_a_node_that_joined_since_is_average_and_missing() -> None:
    speeds = {"a": 100.0, "b": 1000.0, "c": 200.0}
    reading = columns({"a": 30.0, "b": 100.0}, speeds, names="abc")
    assert reading.of_others == {
        VALUE_COLUMN: 65.0,
        HIGHEST_VALUE: 100.0,
        RECEIVE_COLUMN: 40.0,  # a fifth of the median link
        TRANSMIT_COLUMN: 40.0,
        CAPACITY: 200.0,
        SHARE: 0.2,
        STATE: float(STATES.index(State.MISSING)),
        IS_HOT: 0.0,
        MAY_BE_HOT: 0.0,
        IS_GUESSED: 0.0,
    }


def test_a_stale_node_that_was_hot_is_not() -> None:
    reading = columns({"a": 99.0, "b": 1.0}, {"a": 100.0, "b": 100.0}, names="ab", old="a")
    assert values(reading, IS_HOT) == {IS_HOT: [0.0, 0.0]}


def test_a_node_that_is_hot_does_not_count_while_too_few_are_fresh() -> None:
    reading = columns({"a": 99.0}, {"a": 100.0}, names="abc")
    assert values(reading, IS_HOT) == {IS_HOT: [0.0, 0.0, 0.0]}


def test_a_trusted_node_of_unknown_capacity_counts_as_average_by_share() -> None:
    # Only a ever carried something: its rate stands for the others' links, and not for its own.
    reading = columns({"a": 80.0, "b": 0.0, "c": 0.0}, names="abc")
    assert values(reading, VALUE_COLUMN, CAPACITY, SHARE, RECEIVE_COLUMN) == {
        VALUE_COLUMN: [80.0, 0.0, 0.0],
        CAPACITY: [80.0, 80.0, 80.0],
        SHARE: [0.0, 0.0, 0.0],
        RECEIVE_COLUMN: [0.0, 0.0, 0.0],
    }


def test_without_any_capacity_values_are_known_and_shares_are_not() -> None:
    reading = columns({"a": 0.0, "b": 0.0}, names="ab")
    np.testing.assert_equal(
        values(reading, VALUE_COLUMN, SHARE, CAPACITY),
        {VALUE_COLUMN: [0.0, 0.0], SHARE: [NAN, NAN], CAPACITY: [NAN, NAN]},
    )
    assert math.isnan(reading.of_others[SHARE])


@pytest.mark.parametrize(
    ("receive", "is_trusted"),
    [
        pytest.param({"a": 1.0, "b": 3.0}, True, id="half of the nodes, and none more, fail"),
        pytest.param({"a": 1.0}, False, id="more than half of the nodes fail"),
        pytest.param({}, False, id="every node fails"),
    ],
)
def test_a_reading_is_trusted_or_not_when(receive: dict[str, float], is_trusted: bool) -> None:
    reading = columns(receive, dict.fromkeys("abcd", 10.0))
    # average of a and b: (1 + 3) / 2, (0.1 + 0.3) / 2
    value, share = ([1.0, 3.0, 2.0, 2.0], [0.1, 0.3, 0.2, 0.2]) if is_trusted else ([NAN] * 4,) * 2
    np.testing.assert_equal(
        values(reading, VALUE_COLUMN, SHARE), {VALUE_COLUMN: value, SHARE: share}
    )
    np.testing.assert_equal(
        [reading.of_others[VALUE_COLUMN], reading.of_others[SHARE]],
        [2.0, 0.2] if is_trusted else [NAN, NAN],
    )
    assert values(reading, IS_HOT) == {IS_HOT: [0.0] * 4}


def test_devices_that_only_one_direction_knows_leave_nothing_unknown() -> None:
    both = [make_series(10, node="b")]
    answers = {
        "receive": [make_series(5, device="eth0"), *both],
        "transmit": [make_series(5, device="eth1"), *both],
        "speed": [
            make_series(100, device="eth0"),
            make_series(100, device="eth1"),
            make_series(100, node="b"),
        ],
    }
    nodes = [make_node("a"), make_node("b")]
    reading = published(read(answers, nodes, direction="sum"))
    # Of a neither device has both directions: it counts as b does.
    assert values(reading, SHARE, RECEIVE_COLUMN, TRANSMIT_COLUMN) == {
        SHARE: [0.1, 0.1],
        RECEIVE_COLUMN: [10.0, 10.0],
        TRANSMIT_COLUMN: [10.0, 10.0],
    }


def test_a_share_is_known_although_the_busiest_device_has_no_speed() -> None:
    answers = {
        "receive": [make_series(50), make_series(9, device="eth1"), make_series(0, node="b")],
        "speed": [make_series(10, device="eth1"), make_series(100, node="b")],
    }
    reading = published(read(answers, [make_node("a"), make_node("b")]))
    # Only a ever carried something, so that nothing stands for its eth0; eth1 is used by 9/10.
    assert values(reading, SHARE, CAPACITY, RECEIVE_COLUMN) == {
        SHARE: [0.9, 0.0],
        CAPACITY: [100.0, 100.0],
        RECEIVE_COLUMN: [90.0, 0.0],
    }


def test_what_is_expected_of_pods_goes_along_where_values_are_rates() -> None:
    rates, sums = (columns({"a": 1.0}, names="a", measure=m) for m in ("rate", "sumOverTime"))
    assert rates.expects is not None
    assert (rates.sampled_at, rates.window_seconds, sums.expects) == (NOW, 60.0, None)


def test_no_nodes() -> None:
    reading = columns({}, names="")
    assert {field: len(column) for field, column in reading.columns.items()} == dict.fromkeys(
        reading.columns, 0
    )
    assert math.isnan(reading.of_others[VALUE_COLUMN])


@pytest.mark.parametrize(
    ("speeds", "want"),
    [
        pytest.param("", [1.0, 1.0, 1.0, 1.0, 1.0], id="where nobody says how fast links are"),
        pytest.param("a", [0.0, 1.0, 1.0, 1.0, 1.0], id="for unknown nodes where most are"),
        pytest.param("ab", [0.0, 0.0, 1.0, 0.0, 0.0], id="not for unknown nodes where few are"),
    ],
)
def test_a_capacity_is_a_guess(speeds: str, want: list[float]) -> None:
    """Of a, b and c, which are measured, of d, which is not, and of one that joined since."""
    receive = {"a": 10.0, "b": 20.0, "c": 30.0}
    reading = columns(receive, dict.fromkeys(speeds, 100.0), names="abcd")
    assert [*reading.columns[IS_GUESSED].tolist(), reading.of_others[IS_GUESSED]] == want
