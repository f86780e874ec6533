"""The readings of a scenario in every form they may be given."""

import math
from typing import Any

import pytest

from lowtide.readings.access import PrometheusAccess
from lowtide.readings.capacity import CapacitySource
from lowtide.readings.reading import NodeReading, State
from lowtide.readings.request import Direction, TrafficRequest
from lowtide.scenario.readings import traffic_reading
from lowtide.scenario.scenario import ScenarioError
from lowtide.testing import make_node


def request(direction: Direction = "max", **fields: Any) -> TrafficRequest:
    access = PrometheusAccess(addresses=("",))
    return TrafficRequest(access=access, direction=direction, **fields)


def one(given: Any, direction: Direction = "max", **fields: Any) -> NodeReading:
    asked = request(direction, **fields)
    return traffic_reading(asked, {"a": given}, [make_node("a")]).node_reading("a")


def test_plain_values_are_fresh_and_never_judged() -> None:
    given = {"a": 5, "b": 1.5, "c": "7e3", "d": -1}
    reading = traffic_reading(request(), given, [make_node(name) for name in "abcd"])
    assert reading.request == request()
    found = {
        name: (each.value, each.receive, each.transmit, each.at, each.state)
        for name, each in reading.by_node()
    }
    assert found == {
        name: (value, value, value, 0.0, State.FRESH)
        for name, value in (("a", 5.0), ("b", 1.5), ("c", 7000.0), ("d", -1.0))
    }


def test_a_plain_value_of_no_rate_is_told_as_it_is() -> None:
    found = one(312528236767, "receive", measure="sumOverTime")
    assert found == NodeReading(value=312528236767.0, at=0.0, state=State.FRESH)


def test_every_field_may_be_said() -> None:
    given = {
        "receive": 10,
        "transmit": 20,
        "capacity": 125,
        "age_seconds": 3,
        "state": "implausible",
        "expected": 5,
    }
    # What was placed since counts as if it were measured, in each direction.
    assert one(given) == NodeReading(
        value=25.0,
        receive=15.0,
        transmit=25.0,
        capacity_bytes_per_second=125.0,
        capacity_source=CapacitySource.SPEED,
        share=0.2,  # 25 / 125
        at=-3.0,
        state=State.IMPLAUSIBLE,
    )


@pytest.mark.parametrize(
    ("direction", "value"),
    [
        pytest.param("receive", 10.0, id="takes what is received"),
        pytest.param("transmit", 20.0, id="takes what is sent"),
        pytest.param("max", 20.0, id="takes the larger"),
        pytest.param("sum", 30.0, id="takes both together"),
    ],
)
def test_the_direction(direction: Direction, value: float) -> None:
    assert one({"receive": 10, "transmit": 20}, direction).value == value


@pytest.mark.parametrize("direction", ["max", "sum"])
@pytest.mark.parametrize("said", ["receive", "transmit"])
def test_one_direction_stands_for_the_node_where_both_count(
    said: str, direction: Direction
) -> None:
    found = one({said: 10}, direction)
    assert (found.value, found.state) == (10.0, State.FRESH)


@pytest.mark.parametrize(
    ("given", "receive", "transmit"),
    [
        pytest.param({"value": 7}, 7.0, 7.0, id="where nothing else is said"),
        pytest.param({"value": 7, "receive": 3}, 3.0, 7.0, id="where only the other is said"),
    ],
)
def test_a_value_is_that_of_a_direction(given: Any, receive: float, transmit: float) -> None:
    found = one(given)
    assert (found.receive, found.transmit) == (receive, transmit)


def test_a_query_of_the_users_own_is_answered_by_the_value() -> None:
    assert one({"value": 7, "receive": 3}, template="x").value == 7.0
    assert one({"receive": 3}, template="x").state is State.MISSING


@pytest.mark.parametrize(
    ("given", "direction"),
    [
        pytest.param({"transmit": 20}, "receive", id="receives nothing known"),
        pytest.param({"receive": 10}, "transmit", id="sends nothing known"),
        pytest.param({"capacity": 125}, "max", id="has only a capacity"),
        pytest.param({"expected": 5}, "max", id="has only what was placed since"),
        pytest.param({"value": "nan"}, "max", id="has no number"),
        pytest.param({"value": "inf"}, "max", id="has more than any number"),
        pytest.param({}, "sum", id="has nothing at all"),
    ],
)
def test_a_reading_is_missing_for_a_node_that(given: Any, direction: Direction) -> None:
    reading = one(given, direction)
    assert (reading.state, reading.value) == (State.MISSING, None)


def test_nodes_that_are_not_given_are_missing_and_names_without_a_node_are_left_out() -> None:
    reading = traffic_reading(request(), {"b": 5, "gone": 7}, [make_node("a"), make_node("b")])
    assert {name: each.state for name, each in reading.by_node()} == {
        "a": State.MISSING,
        "b": State.FRESH,
    }


@pytest.mark.parametrize("capacity", [0, -125000, "nan", "inf"])
def test_a_capacity_that_is_none_is_not_known(capacity: Any) -> None:
    found = one({"value": 5, "capacity": capacity})
    assert (found.capacity_bytes_per_second, found.share) == (None, None)


@pytest.mark.parametrize(
    ("age_seconds", "state"),
    [
        pytest.param(60, State.FRESH, id="is fresh up to the limit"),
        pytest.param(60.5, State.STALE, id="is stale beyond it"),
    ],
)
def test_an_old_reading(age_seconds: float, state: State) -> None:
    reading = one({"value": 1, "age_seconds": age_seconds})
    assert (reading.at, reading.state) == (-age_seconds, state)


@pytest.mark.parametrize("state", list(State))
def test_a_state_that_is_said_is_the_state(state: State) -> None:
    assert one({"value": 1, "age_seconds": 1000, "state": state.value}).state is state


def test_the_traffic_of_the_scenarios_pods_is_in_what_was_measured() -> None:
    assert traffic_reading(request(), {"a": 5}, [make_node("a")]).sampled_at == math.inf


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        pytest.param("much", "readings.traffic.a is 'much', not a number", id="is not a number"),
        pytest.param([1], "readings.traffic.a is [1], not a number", id="is a list"),
        pytest.param(None, "readings.traffic.a is None, not a number", id="is null"),
        pytest.param(True, "readings.traffic.a is True, not a number", id="is true"),
        pytest.param(
            {"receive": "x"},
            "readings.traffic.a.receive is 'x', not a number",
            id="has a bad field",
        ),
        pytest.param(
            {"recieve": 1},
            "readings.traffic.a has the unknown field 'recieve'; valid are receive, "
            "transmit, capacity, age_seconds, state, expected, value",
            id="has an unknown field",
        ),
        pytest.param(
            {"value": 1, "state": "old"},
            "readings.traffic.a.state is 'old'; valid are fresh, stale, missing, implausible",
            id="has an unknown state",
        ),
    ],
)
def test_a_reading_is_rejected_that(given: Any, sentence: str) -> None:
    with pytest.raises(ScenarioError) as rejected:
        one(given)
    assert str(rejected.value) == sentence


def test_a_reading_of_a_node_that_is_not_there_is_rejected_too() -> None:
    with pytest.raises(ScenarioError):
        traffic_reading(request(), {"gone": "much"}, [make_node("a")])


def test_a_number_of_hundreds_of_digits_is_rejected() -> None:
    with pytest.raises(ScenarioError) as rejected:
        traffic_reading(request(), {"a": 10**400}, [make_node("a")])
    told = "readings.traffic.a has 401 digits, too many for a number"
    assert str(rejected.value) == told
