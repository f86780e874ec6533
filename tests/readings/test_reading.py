"""From answers to readings: arithmetic, states, capacity, and how they age."""

import math
from collections.abc import Sequence

import pytest

from lowtide.readings.matching import NodeIdentity
from lowtide.readings.reading import NodeReading, State, TrafficReading, age, assemble
from lowtide.readings.request import Direction, TrafficRequest
from lowtide.readings.series import Series

NODE = NodeIdentity("a")
NOW = 1000.0


def make_request(direction: Direction = "receive") -> TrafficRequest:
    return TrafficRequest(
        prometheus_address="http://127.0.0.1:9090",
        devices=(),
        window_seconds=60,
        measure="rate",
        direction=direction,
        stale_after_seconds=60.0,
    )


def make_series(
    value: float, *, node: str = "a", device: str = "eth0", at: float = NOW, job: str = "n"
) -> Series:
    return Series({"node": node, "device": device, "job": job}, value, at)


def read_one(
    answers: dict[str, list[Series]],
    *,
    direction: Direction = "receive",
    identities: Sequence[NodeIdentity] = (NODE,),
) -> NodeReading:
    return assemble(make_request(direction), answers, identities, NOW).by_node["a"]


@pytest.mark.parametrize(
    ("direction", "want"),
    [
        pytest.param("receive", NodeReading(value=5, receive=5), id="takes receive"),
        pytest.param("transmit", NodeReading(value=7, transmit=7), id="takes transmit"),
        pytest.param(
            "max", NodeReading(value=7, receive=5, transmit=7), id="takes the larger for max"
        ),
        pytest.param("sum", NodeReading(value=12, receive=5, transmit=7), id="adds both for sum"),
    ],
)
def test_direction(direction: Direction, want: NodeReading) -> None:
    everything = {
        "receive": [make_series(2), make_series(3, device="eth1")],
        "transmit": [make_series(3), make_series(4, device="eth1")],
    }
    answers = {name: everything[name] for name in everything if direction in (name, "max", "sum")}
    found = read_one(answers, direction=direction)
    assert found == NodeReading(
        value=want.value, receive=want.receive, transmit=want.transmit, at=NOW, state=State.FRESH
    )


@pytest.mark.parametrize(
    ("series", "want"),
    [
        pytest.param(
            [make_series(0)],
            NodeReading(value=0, receive=0, at=NOW, state=State.FRESH),
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
            [make_series(5), make_series(5, device="eth1", at=NOW - 61)],
            NodeReading(value=10, receive=10, at=NOW - 61, state=State.STALE),
            id="is as old as its oldest device",
        ),
        pytest.param(
            [make_series(5, at=NOW + 3600)],
            NodeReading(value=5, receive=5, at=NOW, state=State.FRESH),
            id="does not believe a sample from the future to be younger than now",
        ),
        pytest.param([], NodeReading(state=State.MISSING), id="misses a node without series"),
        pytest.param(
            [make_series(5, node="b")],
            NodeReading(state=State.MISSING),
            id="misses a node when only others answered",
        ),
        *(
            pytest.param(
                [make_series(5), make_series(value, device="eth1")],
                NodeReading(at=NOW, state=State.IMPLAUSIBLE),
                id=f"finds {value} implausible, beside whatever else",
            )
            for value in (math.nan, math.inf, -math.inf, -1.0)
        ),
    ],
)
def test_state(series: list[Series], want: NodeReading) -> None:
    assert read_one({"receive": series}) == want


@pytest.mark.parametrize(
    ("series", "want"),
    [
        pytest.param(
            [make_series(5, job="n"), make_series(5, job="m")], 5, id="counts a device once"
        ),
        pytest.param(
            [make_series(5, job="n"), make_series(9, job="m")], 9, id="takes the larger value"
        ),
        pytest.param(
            [make_series(5, job="n"), make_series(9, job="m", at=NOW - 10)],
            5,
            id="takes the fresher value before the larger",
        ),
        pytest.param(
            [make_series(5, job="n", at=NOW - 10), make_series(math.nan, job="m")],
            5,
            id="takes the sound value before the fresher",
        ),
        pytest.param(
            [
                make_series(1, job="n"),
                make_series(2, job="n", device="eth1"),
                make_series(4, job="m"),
                make_series(1, job="m", device="eth1"),
            ],
            6,  # 4 of eth0 by m + 2 of eth1 by n
            id="chooses for each device by itself",
        ),
    ],
)
def test_doubly_scraped(series: list[Series], want: float) -> None:
    assert read_one({"receive": series}).value == want


def test_a_node_without_one_of_two_directions_is_missing() -> None:
    found = read_one({"receive": [make_series(5)], "transmit": []}, direction="max")
    assert found == NodeReading(receive=5, state=State.MISSING)


def test_nodes_that_a_series_may_belong_to_are_implausible_unless_they_have_their_own() -> None:
    identities = [
        NodeIdentity("a", "", ("10.0.0.1",)),
        NodeIdentity("b", "", ("10.0.0.1",)),
        NodeIdentity("c"),
    ]
    shared = Series({"instance": "10.0.0.1:9100", "device": "eth0"}, 7.0, NOW)
    reading = assemble(
        make_request(), {"receive": [shared, make_series(5, node="b")]}, identities, NOW
    )
    assert dict(reading.by_node) == {
        "a": NodeReading(state=State.IMPLAUSIBLE),
        "b": NodeReading(value=5, receive=5, at=NOW, state=State.FRESH),
        "c": NodeReading(state=State.MISSING),
    }


@pytest.mark.parametrize(
    ("speeds", "want"),
    [
        pytest.param([], None, id="knows no capacity without speeds"),
        pytest.param([make_series(125e6)], 125e6, id="takes the speed of the one device"),
        pytest.param(
            [make_series(125e6), make_series(1250e6, device="eth1")],
            1375e6,
            id="adds the speeds of devices",
        ),
        pytest.param(
            [make_series(125e6, job="n"), make_series(125e6, job="m")],
            125e6,
            id="counts a doubly scraped speed once",
        ),
        pytest.param([make_series(-125000)], None, id="does not believe a virtual device"),
        pytest.param([make_series(0)], None, id="does not believe zero"),
        pytest.param([make_series(math.nan)], None, id="does not believe NaN"),
        pytest.param([make_series(1e12)], None, id="does not believe a terabyte per second"),
        pytest.param(
            [make_series(-125000), make_series(125e6, device="eth1")],
            125e6,
            id="leaves out the speed it does not believe",
        ),
    ],
)
def test_capacity(speeds: list[Series], want: float | None) -> None:
    found = read_one({"receive": [make_series(5)], "speed": speeds})
    assert found == NodeReading(
        value=5, receive=5, capacity_bytes_per_second=want, at=NOW, state=State.FRESH
    )


def test_uname_answers_join_traffic_to_nodes() -> None:
    labels = {"instance": "x:9100", "job": "n"}
    answers = {
        "receive": [Series({**labels, "device": "eth0"}, 5.0, NOW)],
        "uname": [Series({**labels, "nodename": "a"}, 1.0, NOW)],
    }
    assert read_one(answers).value == 5


def test_whole_reading() -> None:
    request = make_request()
    assert assemble(request, {}, [], NOW, version=7) == TrafficReading(
        request=request, published_at=NOW, version=7, by_node={}
    )


def test_ageing_turns_fresh_to_stale_and_nothing_else() -> None:
    reading = TrafficReading(
        request=make_request(),
        published_at=NOW,
        version=3,
        by_node={
            "fresh": NodeReading(value=1, at=NOW - 10, state=State.FRESH),
            "older": NodeReading(value=2, at=NOW - 30, state=State.FRESH),
            "stale": NodeReading(value=3, at=NOW - 90, state=State.STALE),
            "missing": NodeReading(),
            "implausible": NodeReading(at=NOW - 90, state=State.IMPLAUSIBLE),
        },
    )
    assert age(reading, NOW + 40) == TrafficReading(
        request=reading.request,
        published_at=NOW + 40,
        version=4,
        by_node=dict(reading.by_node)
        | {"older": NodeReading(value=2, at=NOW - 30, state=State.STALE)},
    )
    assert age(reading, NOW + 40, version=9).version == 9
