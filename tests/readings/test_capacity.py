"""How fast a link is taken to be, and by whose word."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.readings.conftest import NOW, make_request, make_series

from lowtide.objects.node import Node
from lowtide.readings.capacity import (
    SOURCES,
    CapacitySource,
    StatedCapacities,
    annotated_capacity,
    capacities_without_speed,
)
from lowtide.readings.meter import TrafficMeter
from lowtide.readings.peaks import Peaks
from lowtide.readings.request import LinkCapacity
from lowtide.testing import make_node

TYPE = "node.kubernetes.io/instance-type"
OLD_TYPE = "beta.kubernetes.io/instance-type"
SPEED, ANNOTATION, CONFIG, SAME_TYPE, CLUSTER, UNKNOWN = SOURCES

Found = dict[str, tuple[float | None, CapacitySource]]


def node(name: str, kind: str = "", annotated: str = "", label: str = TYPE) -> Node:
    return make_node(
        name,
        labels={label: kind} if kind else {},
        annotations={"lowtide.dev/link-capacity": annotated} if annotated else {},
    )


def known(value: float) -> float | None:
    return None if math.isnan(value) else value


def capacities(
    peaks: Sequence[tuple[Node, float | None]],
    configured: tuple[LinkCapacity, ...] = (),
) -> Found:
    """What is found for nodes whose highest rates so far are these; None where not known."""
    nodes = [each for each, _ in peaks]
    seen = np.array([math.nan if peak is None else peak for _, peak in peaks], np.float64)
    stated, names = StatedCapacities(configured).stated_for(nodes), [each.name for each in nodes]
    highest = Peaks().with_rates(seen, names, stated.kind, stated.kinds)
    found, sources = capacities_without_speed(stated, highest, names)
    return {
        each.name: (known(capacity), SOURCES[source])
        for each, capacity, source in zip(nodes, found.tolist(), sources.tolist(), strict=True)
    }


# By the word of somebody.


@pytest.mark.parametrize(
    ("annotated", "want"),
    [
        pytest.param("10G", 1.25e9, id="is in bits per second"),
        pytest.param("100Mi", 100 * 2**20 / 8, id="may have any unit of a quantity"),
        pytest.param("fast", None, id="is left alone where it cannot be read"),
        pytest.param("0", None, id="is left alone where it is nothing"),
        pytest.param("", None, id="may be missing"),
    ],
)
def test_an_annotation(annotated: str, want: float | None) -> None:
    assert known(annotated_capacity(node("a", annotated=annotated))) == want


def for_labels(bytes_per_second: float, **labels: str) -> LinkCapacity:
    by_key = {"kind": TYPE, "rack": "rack"}
    pairs = ((by_key[key], value) for key, value in labels.items())
    return LinkCapacity(labels=tuple(pairs), bytes_per_second=bytes_per_second)


LARGE = for_labels(1.25e9, kind="large")


@pytest.mark.parametrize(
    ("configured", "labels", "want"),
    [
        pytest.param((LARGE,), {TYPE: "large"}, 1.25e9, id="is for nodes with that label"),
        pytest.param((LARGE,), {TYPE: "small"}, None, id="is not for nodes with another value"),
        pytest.param((LARGE,), {}, None, id="is not for nodes without that label"),
        pytest.param(
            (for_labels(5e9, kind="large", rack="1"), LARGE),
            {TYPE: "large", "rack": "2"},
            1.25e9,
            id="is for nodes that have every label",
        ),
        pytest.param(
            (for_labels(5e9, kind="large", rack="1"), LARGE),
            {TYPE: "large", "rack": "1"},
            5e9,
            id="counts in the order of the configuration",
        ),
    ],
)
def test_a_configured_capacity(
    configured: tuple[LinkCapacity, ...], labels: dict[str, str], want: float | None
) -> None:
    found = capacities([(make_node("a", labels=labels), None)], configured)
    assert found == {"a": (want, UNKNOWN if want is None else CONFIG)}


# By what others were seen to carry.


def test_the_busiest_of_the_same_type_stands_for_a_full_link() -> None:
    found = capacities(
        [
            (node("a", "large"), 10.0),
            (node("b", "large"), 90.0),
            (node("c", "large"), None),
            (node("d", "small"), 7.0),
            (node("e", "small"), 3.0),
            (node("f", "small", label=OLD_TYPE), 1.0),
        ]
    )
    assert found == {
        "a": (90.0, SAME_TYPE),
        "b": (10.0, SAME_TYPE),  # never its own peak
        "c": (90.0, SAME_TYPE),
        "d": (3.0, SAME_TYPE),
        "e": (7.0, SAME_TYPE),
        "f": (7.0, SAME_TYPE),
    }


def test_the_busiest_of_the_cluster_stands_in_where_no_other_of_the_type_was_seen() -> None:
    found = capacities(
        [
            (node("alone", "odd"), 5.0),
            (node("untyped"), 40.0),
            (node("other"), 30.0),
            (node("idle", "idle"), 0.0),
        ]
    )
    assert found == {
        "alone": (40.0, CLUSTER),
        "untyped": (30.0, CLUSTER),
        "other": (40.0, CLUSTER),
        "idle": (40.0, CLUSTER),
    }


def test_equal_peaks_stand_for_each_other() -> None:
    assert capacities([(node("a"), 8.0), (node("b"), 8.0)]) == {
        "a": (8.0, CLUSTER),
        "b": (8.0, CLUSTER),
    }


@pytest.mark.parametrize(
    ("peaks", "want"),
    [
        pytest.param([None, None], [None, None], id="where nothing was ever seen"),
        pytest.param([0.0, 0.0], [None, None], id="where everything was idle"),
        pytest.param([6.0, 0.0], [None, 6.0], id="of the only node that ever carried something"),
    ],
)
def test_a_capacity_is_unknown(peaks: list[float | None], want: list[float | None]) -> None:
    found = capacities([(node("a"), peaks[0]), (node("b"), peaks[1])])
    assert [capacity for capacity, _ in found.values()] == want


def test_no_nodes() -> None:
    assert capacities([]) == {}


# Which word counts.


def measured(
    *rates: dict[str, float], speeds: dict[str, float] | None = None, **node_a: Any
) -> Found:
    """What a meter finds after these polls; b is of a's type, c of none."""
    configured = node_a.pop("configured", ())
    meter = TrafficMeter(make_request(capacities=configured))
    nodes = [node("a", **node_a), node("b", "large"), node("c")]
    for number, by_node in enumerate(rates):
        answers = {
            "receive": [make_series(rate, node=name) for name, rate in by_node.items()],
            "speed": [make_series(rate, node=name) for name, rate in (speeds or {}).items()],
        }
        reading = meter.take(answers, nodes, (), NOW + 15 * number)
    return {
        name: (each.capacity_bytes_per_second, each.capacity_source)
        for name, each in reading.by_node()
    }


RATES = {"a": 10.0, "b": 20.0, "c": 30.0}


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(
            {
                "kind": "large",
                "annotated": "8k",
                "configured": (LARGE,),
                "speeds": {"a": 125e6},
            },
            (125e6, SPEED),
            id="the link's own speed",
        ),
        pytest.param(
            {"kind": "large", "annotated": "8k", "configured": (LARGE,), "speeds": {"a": -125000}},
            (1000.0, ANNOTATION),
            id="then the node's annotation",
        ),
        pytest.param(
            {"kind": "large", "annotated": "?", "configured": (LARGE,)},
            (1.25e9, CONFIG),
            id="then the configuration",
        ),
        pytest.param({"kind": "large"}, (20.0, SAME_TYPE), id="then others of its type"),
        pytest.param({"kind": "small"}, (30.0, CLUSTER), id="then the whole cluster"),
    ],
)
def test_what_counts_first_is(given: dict[str, Any], want: tuple[float, CapacitySource]) -> None:
    assert measured(RATES, **given)["a"] == want


def test_the_highest_rates_are_remembered_over_polls() -> None:
    quiet = {"a": 1.0, "b": 1.0, "c": 1.0}
    found = measured(RATES, quiet, {"a": 2.0, "b": 2.0, "c": 2.0}, kind="large")
    assert found == {"a": (20.0, SAME_TYPE), "b": (10.0, SAME_TYPE), "c": (20.0, CLUSTER)}


def test_a_node_that_is_missing_for_a_while_keeps_its_highest_rate() -> None:
    found = measured(RATES, {"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 1.0})
    assert found["a"] == (30.0, CLUSTER)


def test_the_highest_rate_of_a_type_outlives_its_node() -> None:
    meter = TrafficMeter(make_request())
    here, gone = node("a", "large"), node("b", "large")
    both = [make_series(10, node="a"), make_series(90, node="b")]
    meter.take({"receive": both}, [here, gone], (), NOW)
    reading = meter.take({"receive": [make_series(5, node="a")]}, [here], (), NOW + 15)
    assert reading.node_reading("a").capacity_bytes_per_second == 90
    # A node that is called like the one that is gone is not judged by that one's highest rate.
    later = meter.take({"receive": both}, [here, gone], (), NOW + 30)
    assert [each.capacity_bytes_per_second for _, each in later.by_node()] == [90, 10]


def test_a_rate_that_no_link_carries_stands_for_none() -> None:
    found = measured({"a": 10.0, "b": 1e12, "c": 9.9e11})
    assert found == {"a": (9.9e11, CLUSTER), "b": (9.9e11, CLUSTER), "c": (10.0, CLUSTER)}


def test_the_highest_rate_is_of_the_busiest_link_in_either_direction() -> None:
    """Where both directions count together eth0 carries most, and eth1 most in one direction."""
    receive = [make_series(10), make_series(18, device="eth1"), make_series(1, node="b")]
    transmit = [make_series(10), make_series(0, device="eth1"), make_series(1, node="b")]
    meter = TrafficMeter(make_request(direction="sum"))
    answers = {"receive": receive, "transmit": transmit}
    reading = meter.take(answers, [node("a"), node("b")], (), NOW)
    assert reading.node_reading("a").receive == 10
    assert reading.node_reading("b").capacity_bytes_per_second == 18


def test_what_is_said_is_read_again_when_a_node_changes_comes_or_goes() -> None:
    stated = StatedCapacities((LARGE,))
    one, other, third = node("a", annotated="8k"), node("b", "large"), node("c")
    found = [
        dict(
            zip(
                [each.name for each in nodes],
                stated.stated_for(nodes).capacity.tolist(),
                strict=True,
            )
        )
        for nodes in (
            [one, other],
            [one, other, third],
            [node("a", annotated="16k"), other, third],
            [other, third],
            [],
        )
    ]
    assert found == [
        {"a": 1000, "b": 1.25e9},
        {"a": 1000, "b": 1.25e9, "c": 0},
        {"a": 2000, "b": 1.25e9, "c": 0},
        {"b": 1.25e9, "c": 0},
        {},
    ]


def test_every_source_has_words_for_people() -> None:
    assert [source.value for source in SOURCES] == [
        "link speed",
        "node annotation",
        "configuration",
        "busiest node of its type",
        "busiest node",
        "unknown",
    ]
