"""From links to a reading: arithmetic, states, shares, and which nodes are hot."""

import math
from typing import Any

import numpy as np
import pytest
from tests.readings.conftest import NODE_A, NOW, make_request, make_series, read, read_one

from lowtide.readings.capacity import CapacitySource
from lowtide.readings.meter import TrafficMeter
from lowtide.readings.reading import NodeReading, State
from lowtide.readings.request import Direction
from lowtide.readings.series import Series
from lowtide.testing import make_node, make_pod

FRESH: dict[str, Any] = {"at": NOW, "state": State.FRESH}
BY_SPEED = CapacitySource.SPEED


# Values.


@pytest.mark.parametrize(
    ("direction", "want"),
    [
        pytest.param("receive", {"value": 5, "receive": 3}, id="takes receive"),
        pytest.param("transmit", {"value": 7, "transmit": 4}, id="takes transmit"),
        pytest.param(
            "max", {"value": 7, "receive": 3, "transmit": 4}, id="takes the larger for max"
        ),
        pytest.param("sum", {"value": 12, "receive": 3, "transmit": 4}, id="adds both for the sum"),
    ],
)
def test_direction(direction: Direction, want: dict[str, Any]) -> None:
    """The value is summed over devices; rates are of the device that carries most."""
    everything = {
        "receive": [make_series(2), make_series(3, device="eth1")],
        "transmit": [make_series(3), make_series(4, device="eth1")],
    }
    answers = {name: everything[name] for name in everything if direction in (name, "max", "sum")}
    assert read_one(answers, direction=direction) == NodeReading(**want, **FRESH)


def test_the_larger_direction_is_that_of_the_node_not_of_each_device() -> None:
    answers = {
        "receive": [make_series(10), make_series(1, device="eth1")],
        "transmit": [make_series(1), make_series(8, device="eth1")],
    }
    # max(10 + 1, 1 + 8) = 11, and not 10 + 8
    assert read_one(answers, direction="max").value == 11


def test_an_increase_is_told_as_it_is_and_counts_as_a_rate() -> None:
    answers = {"receive": [make_series(600)], "speed": [make_series(100)]}
    found = read_one(answers, measure="increase", window_seconds=60)
    # 600 bytes in 60 s are 10 a second, a tenth of the link
    assert found == NodeReading(
        value=600,
        receive=10,
        capacity_bytes_per_second=100,
        capacity_source=BY_SPEED,
        share=0.1,
        **FRESH,
    )


def test_a_sum_over_time_is_no_rate_and_has_no_share() -> None:
    answers = {"receive": [make_series(600)], "speed": [make_series(100)]}
    found = read_one(answers, measure="sumOverTime")
    assert (found.value, found.receive, found.share) == (600, None, None)


@pytest.mark.parametrize("direction", ["receive", "transmit", "max", "sum"])
def test_a_query_of_the_users_own_stands_for_both_directions(direction: Direction) -> None:
    answers = {
        "value": [Series({"node": "a"}, 30.0, NOW)],
        "speed": [Series({"node": "a"}, 120.0, NOW)],
    }
    assert read_one(answers, template="x", direction=direction) == NodeReading(
        value=30,
        receive=30,
        transmit=30,
        capacity_bytes_per_second=120,
        capacity_source=BY_SPEED,
        share=0.25,
        **FRESH,
    )


def test_uname_answers_join_traffic_to_nodes() -> None:
    labels = {"instance": "x:9100", "job": "n"}
    answers = {
        "receive": [Series({**labels, "device": "eth0"}, 5.0, NOW)],
        "uname": [Series({**labels, "nodename": "a"}, 1.0, NOW)],
    }
    assert read_one(answers).value == 5


# Shares.


@pytest.mark.parametrize(
    ("receive", "transmit", "speeds", "direction", "share"),
    [
        pytest.param({"eth0": 30}, {"eth0": 60}, {"eth0": 100}, "max", 0.6, id="max"),
        pytest.param({"eth0": 30}, {"eth0": 60}, {"eth0": 100}, "receive", 0.3, id="receive"),
        pytest.param({"eth0": 30}, {"eth0": 60}, {"eth0": 100}, "transmit", 0.6, id="transmit"),
        # a link carries its speed in each direction at once: (30 + 60) / (2 * 100)
        pytest.param({"eth0": 30}, {"eth0": 60}, {"eth0": 100}, "sum", 0.45, id="sum"),
        pytest.param(
            {"eth0": 60, "eth1": 9},
            {"eth0": 1, "eth1": 1},
            {"eth0": 1000, "eth1": 10},
            "max",
            0.9,
            id="the worst device, although another carries more",
        ),
        pytest.param(
            {"eth0": 50, "eth1": 9},
            {"eth0": 1, "eth1": 1},
            {"eth1": 10},
            "max",
            0.9,
            id="a device without a speed where no other node was seen",
        ),
        pytest.param({"eth0": 250}, {"eth0": 1}, {"eth0": 100}, "max", 2.5, id="more than full"),
        pytest.param({"eth0": 0}, {"eth0": 0}, {"eth0": 100}, "max", 0.0, id="idle"),
        pytest.param({"eth0": 5}, {"eth0": 5}, {}, "max", None, id="unknown without a capacity"),
    ],
)
def test_the_share_is_that_of(
    receive: dict[str, float],
    transmit: dict[str, float],
    speeds: dict[str, float],
    direction: Direction,
    share: float | None,
) -> None:
    answers = {
        name: [make_series(value, device=device) for device, value in values.items()]
        for name, values in (("receive", receive), ("transmit", transmit), ("speed", speeds))
    }
    assert read_one(answers, direction=direction).share == share


def test_the_capacity_is_that_of_the_device_that_carries_most() -> None:
    answers = {
        "receive": [make_series(60), make_series(9, device="eth1")],
        "speed": [make_series(1000), make_series(10, device="eth1")],
    }
    found = read_one(answers)
    assert (found.value, found.receive, found.capacity_bytes_per_second, found.share) == (
        69,
        60,
        1000,
        0.9,
    )


def test_devices_without_a_speed_share_what_is_known_of_the_node() -> None:
    node = make_node("a", annotations={"lowtide.dev/link-capacity": "800"})
    answers = {
        "receive": [make_series(20), make_series(30, device="eth1")],
        "speed": [make_series(1000), make_series(-125000, device="eth1")],
    }
    found = read(answers, [node]).node_reading("a")
    # eth1 carries most: 30 of the annotation's 100 bytes per second
    assert (found.capacity_bytes_per_second, found.capacity_source, found.share) == (
        100,
        CapacitySource.ANNOTATION,
        0.3,
    )


def test_a_node_that_is_not_measured_has_the_speed_of_its_fastest_device() -> None:
    found = read_one({"receive": [], "speed": [make_series(100), make_series(30, device="eth1")]})
    assert found == NodeReading(capacity_bytes_per_second=100, capacity_source=BY_SPEED)


# States.


@pytest.mark.parametrize(
    ("series", "want"),
    [
        pytest.param(
            [make_series(0)],
            NodeReading(value=0, receive=0, **FRESH),
            id="takes zero for an idle node",
        ),
        pytest.param(
            [make_series(5, at=NOW - 60)],
            NodeReading(value=5, receive=5, at=NOW - 60, state=State.FRESH),
            id="holds a sample fresh to the last second",
        ),
        pytest.param(
            [make_series(5, at=NOW - 60.5)],
            NodeReading(value=5, receive=5, at=NOW - 60.5, state=State.STALE),
            id="calls an older sample stale and keeps its value",
        ),
        pytest.param(
            [make_series(6), make_series(5, device="eth1", at=NOW - 61)],
            NodeReading(value=11, receive=6, at=NOW - 61, state=State.STALE),
            id="is as old as its oldest device",
        ),
        pytest.param(
            [make_series(5, at=NOW + 3600)],
            NodeReading(value=5, receive=5, **FRESH),
            id="does not believe a sample from the future to be younger than now",
        ),
        pytest.param([], NodeReading(), id="misses a node without series"),
        pytest.param(
            [make_series(5, node="b")], NodeReading(), id="misses a node when only others answered"
        ),
        *(
            pytest.param(
                [make_series(5), make_series(value, device="eth1")],
                NodeReading(receive=5, at=NOW, state=State.IMPLAUSIBLE),
                id=f"finds {value} implausible, beside whatever else",
            )
            for value in (math.nan, math.inf, -math.inf, -1.0)
        ),
        pytest.param(
            [make_series(math.nan)],
            NodeReading(at=NOW, state=State.IMPLAUSIBLE),
            id="finds a device alone implausible",
        ),
    ],
)
def test_state(series: list[Series], want: NodeReading) -> None:
    assert read_one({"receive": series}) == want


@pytest.mark.parametrize("answered", ["receive", "transmit"])
@pytest.mark.parametrize("direction", ["max", "sum"])
def test_a_node_without_one_of_two_directions_is_missing(
    direction: Direction, answered: str
) -> None:
    answers: dict[str, list[Series]] = {"receive": [], "transmit": []}
    answers[answered] = [make_series(5)]
    found = read_one(answers, direction=direction)
    assert (found.value, found.at, found.state) == (None, None, State.MISSING)


def test_nodes_that_a_series_may_belong_to_are_implausible_unless_they_have_their_own() -> None:
    nodes = [
        make_node("a", addresses=["10.0.0.1"]),
        make_node("b", addresses=["10.0.0.1"]),
        make_node("c"),
    ]
    shared = Series({"instance": "10.0.0.1:9100", "device": "eth0"}, 7.0, NOW)
    reading = read({"receive": [shared, make_series(5, node="b")]}, nodes)
    states = {name: (each.value, each.state) for name, each in reading.by_node()}
    assert states == {
        "a": (None, State.IMPLAUSIBLE),
        "b": (5, State.FRESH),
        "c": (None, State.MISSING),
    }


# Pods that nothing is known of.


@pytest.mark.parametrize(
    ("speeds", "fields", "want"),
    [
        pytest.param([100, 1000, 200], {"pod_share": 0.1}, 20, id="a share of the median link"),
        pytest.param([], {"pod_share": 0.1}, 0, id="nothing where no link is known"),
        pytest.param([100], {"pod_bytes_per_second": 7.0}, 7, id="what the request says"),
    ],
)
def test_a_pod_that_nothing_is_known_of_is_taken_for(
    speeds: list[float], fields: dict[str, Any], want: float
) -> None:
    nodes = [make_node(name) for name in "abc"]
    answers = {
        "receive": [make_series(0, node=name) for name in "abc"],
        "speed": [
            make_series(speed, node=name) for name, speed in zip("abc", speeds, strict=False)
        ],
    }
    assert read(answers, nodes, **fields).pods.expected_for(make_pod()) == (want, want)


# Hot nodes.


def hot_after(*percent: float | None) -> list[bool]:
    """Whether node a is hot after each of these shares of its link, None where there is no
    answer for it; 90 is hot, 80 is cool."""
    meter = TrafficMeter(make_request(hot_share=0.9, cooling_share=0.1))
    found = []
    for number, each in enumerate(percent):
        now = NOW + 15 * number
        answers = {
            "receive": [] if each is None else [make_series(each, at=now)],
            "speed": [make_series(100.0, at=now)],
        }
        found.append(meter.take(answers, [NODE_A], (), now).node_reading("a").is_hot)
    return found


@pytest.mark.parametrize(
    ("percent", "is_hot"),
    [
        pytest.param([89.9, 90, 95], [False, True, True], id="hot from the threshold on"),
        pytest.param([95, 85, 80], [True, True, True], id="hot until it has cooled well below"),
        pytest.param([95, 79.9, 85], [True, False, False], id="cool from then on"),
        pytest.param([95, 79.9, 90], [True, False, True], id="hot again at the threshold"),
        pytest.param([85, 85, 85], [False, False, False], id="cool where it never was hot"),
        pytest.param(
            [95, None, 85], [True, False, True], id="not cooled by a gap between readings"
        ),
        pytest.param([95, None, 79], [True, False, False], id="cool where it cooled in a gap"),
    ],
)
def test_a_node_is(percent: list[float | None], is_hot: list[bool]) -> None:
    assert hot_after(*percent) == is_hot


def test_only_a_fresh_reading_makes_a_node_hot() -> None:
    answers = {"receive": [make_series(95, at=NOW - 61)], "speed": [make_series(100)]}
    assert not read_one(answers).is_hot


def test_each_node_is_hot_by_itself_and_one_that_goes_is_forgotten() -> None:
    meter = TrafficMeter(make_request())
    a, b = NODE_A, make_node("b")

    def hot(nodes: list[Any], **percent: float) -> list[str]:
        answers = {
            "receive": [make_series(each, node=name) for name, each in percent.items()],
            "speed": [make_series(100.0, node=name) for name in percent],
        }
        reading = meter.take(answers, nodes, (), NOW)
        return [reading.names[at] for at in np.flatnonzero(reading.is_hot).tolist()]

    assert hot([a, b], a=95, b=85) == ["a"]
    assert hot([b], b=85) == []
    assert hot([a, b], a=85, b=85) == []


def test_where_nodes_are_compared_with_the_busiest_a_pod_is_taken_for_a_part_of_that() -> None:
    answers = {
        "receive": [make_series(100), make_series(600, node="b")],
        "transmit": [make_series(0), make_series(0, node="b")],
        "speed": [make_series(1000), make_series(9000, node="b")],
    }
    nodes = [make_node("a"), make_node("b")]
    reading = read(answers, nodes, is_relative=True)
    assert reading.pods.expected_for(make_pod()) == (30, 30)  # 5 % of 600
