"""Recorded readings, judged by another request: what comes out is what that request would have
published, where a node has one link."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.records.kept_decisions import GIGABIT

from lowtide.cluster.reading import Reading
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.columns import IS_HOT, SHARE, VALUE_COLUMN, published
from lowtide.readings.request import TrafficRequest
from lowtide.scenario.readings import traffic_reading
from lowtide.simulator.judged_anew import JudgedAnew, taken_as_recorded
from lowtide.testing import make_node

NODES = [make_node(name) for name in ("one", "two", "three")]
RECORDED = TrafficRequest(access=PrometheusAccess(addresses=("http://there",)))
GIGABITS = {"one": (8.5, 2), "two": (1, 4)}  # receive and transmit; nothing of the third


def asking(**changes: Any) -> TrafficRequest:
    return msgspec.structs.replace(RECORDED, **changes)


def reading(
    request: TrafficRequest, gigabits: Mapping[str, tuple[float, float]] = GIGABITS
) -> Reading:
    by_node = {
        name: {
            "receive": receive * GIGABIT,
            "transmit": transmit * GIGABIT,
            "capacity": 10 * GIGABIT,
        }
        for name, (receive, transmit) in gigabits.items()
    }
    return published(traffic_reading(request, by_node, NODES))


def assert_same(one: Reading, other: Reading) -> None:
    for field in (VALUE_COLUMN, SHARE, IS_HOT, "highest_value"):
        np.testing.assert_allclose(one.columns[field], other.columns[field], err_msg=field)
        assert one.of_others[field] == pytest.approx(other.of_others[field]), field


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"direction": "receive"}, id="receive"),
        pytest.param({"direction": "transmit"}, id="transmit"),
        pytest.param({"direction": "sum"}, id="both together"),
        pytest.param({"hot_share": 0.8}, id="a lower threshold"),
        pytest.param({"direction": "transmit", "hot_share": 0.35}, id="both"),
        pytest.param({"access": PrometheusAccess(addresses=("http://here",))}, id="from elsewhere"),
    ],
)
def test_it_is_as_if_it_had_been_asked_so(changes: dict[str, Any]) -> None:
    request = asking(**changes)
    anew = JudgedAnew(RECORDED, request)
    assert_same(anew.judged(reading(RECORDED)), reading(request))
    assert (taken_as_recorded(RECORDED, request), anew.inexactness) == ([], "")


def test_what_was_hot_is_hot_until_it_has_cooled() -> None:
    anew = JudgedAnew(RECORDED, asking(hot_share=0.8, cooling_share=0.2))
    hot = [
        anew.judged(reading(RECORDED, {"one": (gigabits, 1), "two": (1, 1)})).columns[IS_HOT][0]
        for gigabits in (7, 8, 7, 5, 7)
    ]
    assert hot == [0, 1, 1, 0, 0]


def test_traffic_on_several_links_is_told_of() -> None:
    recorded = reading(RECORDED)
    value = recorded.columns[VALUE_COLUMN] + np.array([1e6, 0.0, 0.0])
    several = replace(recorded, columns={**recorded.columns, VALUE_COLUMN: value})
    anew = JudgedAnew(RECORDED, asking(direction="receive"))
    anew.judged(several)
    assert anew.inexactness == (
        "asks for the direction receive instead of max; on 1 nodes with traffic on several links "
        "only the busiest one is judged by it"
    )


@pytest.mark.parametrize(
    ("recorded", "request_changes", "told"),
    [
        pytest.param(
            RECORDED,
            {"window_seconds": 30, "devices": ("eth0",)},
            ["devices none -> eth0", "window seconds 60 -> 30"],
            id="a window and devices",
        ),
        pytest.param(
            asking(direction="receive"),
            {"direction": "max"},
            ["direction receive -> max"],
            id="a direction that was not asked for",
        ),
    ],
)
def test_what_was_not_recorded_cannot_be_judged(
    recorded: TrafficRequest, request_changes: dict[str, Any], told: list[str]
) -> None:
    assert taken_as_recorded(recorded, asking(**request_changes)) == told
