"""The readings of a scenario in every form they may be given."""

import math
from typing import Any

import pytest

from lowtide.readings.reading import NodeReading, State
from lowtide.readings.request import Direction, TrafficRequest
from lowtide.scenario.readings import traffic_reading
from lowtide.scenario.scenario import ScenarioError


def request(direction: Direction = "max") -> TrafficRequest:
    return TrafficRequest(
        prometheus_address="",
        devices=(),
        window_seconds=60,
        measure="rate",
        direction=direction,
        stale_after_seconds=60.0,
    )


def one(given: Any, direction: Direction = "max") -> NodeReading:
    return traffic_reading(request(direction), {"a": given}).by_node["a"]


def test_plain_values_are_fresh_and_never_judged() -> None:
    reading = traffic_reading(request(), {"a": 5, "b": 1.5, "c": "7e3", "d": -1})
    assert (reading.request, reading.version) == (request(), 1)
    assert reading.by_node == {
        name: NodeReading(value=value, at=0.0, state=State.FRESH)
        for name, value in (("a", 5.0), ("b", 1.5), ("c", 7000.0), ("d", -1.0))
    }


def test_every_field_may_be_said() -> None:
    given = {
        "receive": 10,
        "transmit": 20,
        "capacity": 125,
        "age_seconds": 3,
        "state": "implausible",
        "expected": 4,
    }
    assert one(given) == NodeReading(
        value=20.0,
        receive=10.0,
        transmit=20.0,
        capacity_bytes_per_second=125.0,
        at=-3.0,
        state=State.IMPLAUSIBLE,
        expected=4.0,
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


@pytest.mark.parametrize(
    ("given", "direction"),
    [
        pytest.param({"transmit": 20}, "receive", id="receives nothing known"),
        pytest.param({"receive": 10}, "transmit", id="sends nothing known"),
        pytest.param({"capacity": 125}, "max", id="has only a capacity"),
        pytest.param({}, "sum", id="has nothing at all"),
    ],
)
def test_a_reading_is_missing_for_a_node_that(given: Any, direction: Direction) -> None:
    reading = one(given, direction)
    assert (reading.state, math.isnan(reading.value)) == (State.MISSING, True)


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


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        pytest.param("much", "readings.traffic.a is 'much', not a number", id="is not a number"),
        pytest.param([1], "readings.traffic.a is [1], not a number", id="is a list"),
        pytest.param(None, "readings.traffic.a is None, not a number", id="is null"),
        pytest.param(
            {"receive": "x"},
            "readings.traffic.a.receive is 'x', not a number",
            id="has a bad field",
        ),
        pytest.param(
            {"recieve": 1},
            "readings.traffic.a has 'recieve'; it may have receive, transmit, capacity, "
            "age_seconds, state, expected, value",
            id="has an unknown field",
        ),
        pytest.param(
            {"value": 1, "state": "old"},
            "readings.traffic.a.state is 'old'; right would be fresh, stale, missing, implausible",
            id="has an unknown state",
        ),
    ],
)
def test_a_reading_is_refused_that(given: Any, sentence: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        one(given)
    assert str(refused.value) == sentence
