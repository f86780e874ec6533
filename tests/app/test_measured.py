"""The numbers of what is measured: the worst of all requests counts."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from lowtide.app.measured import is_any_ignored, query_numbers, traffic_numbers, usage_numbers
from lowtide.cluster.reading import Reading
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.prometheus_query import query_reading
from lowtide.readings.reading import TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.readings.usage import Allocatable, UsageRequest, UsageSample, usage_reading
from lowtide.scenario.readings import traffic_reading
from lowtide.telemetry.metrics import SourceNumbers
from lowtide.testing import make_node

NOW = 1000.0


def traffic(given: Mapping[str, Any], *, sampled_at: float) -> TrafficReading:
    """Of the nodes a, b and c; each was sampled at the same moment."""
    nodes = [make_node(name) for name in "abc"]
    reading = traffic_reading(TrafficRequest(access=PrometheusAccess(addresses=())), given, nodes)
    return replace(
        reading, published_at=NOW, sampled_at=sampled_at, at=reading.at + min(sampled_at, NOW)
    )


def usage(samples: Mapping[str, UsageSample]) -> Reading:
    has = {name: Allocatable(4000, 2**30) for name in "abc"}
    return usage_reading(UsageRequest(), samples, has, NOW)


ALL_FRESH = {"a": 1.0, "b": 1.0, "c": 1.0}


@pytest.mark.parametrize(
    ("readings", "nodes_by_state", "age_seconds"),
    [
        pytest.param([], {}, None, id="of nothing are none"),
        pytest.param(
            [traffic({"a": 1.0, "b": {"state": "implausible"}}, sampled_at=990)],
            {"fresh": 1, "stale": 0, "missing": 1, "implausible": 1},
            10.0,
            id="of one reading are its own",
        ),
        pytest.param(
            [traffic(ALL_FRESH, sampled_at=900)],
            {"fresh": 0, "stale": 3, "missing": 0, "implausible": 0},
            100.0,
            id="age while nothing new is sampled, though it was published just now",
        ),
        pytest.param(
            [traffic(ALL_FRESH, sampled_at=990), traffic({"a": 1.0, "b": 1.0}, sampled_at=960)],
            {"fresh": 2, "stale": 0, "missing": 1, "implausible": 0},
            40.0,
            id="of two readings are the worse ones, each node once",
        ),
        pytest.param(
            [traffic({"a": 1.0, "b": 1.0}, sampled_at=960), traffic(ALL_FRESH, sampled_at=990)],
            {"fresh": 2, "stale": 0, "missing": 1, "implausible": 0},
            40.0,
            id="do not depend on which comes first",
        ),
        pytest.param(
            [traffic({}, sampled_at=math.nan)],
            {"fresh": 0, "stale": 0, "missing": 3, "implausible": 0},
            None,
            id="have no age where nothing was sampled yet",
        ),
        pytest.param(
            [traffic({}, sampled_at=math.nan), traffic(ALL_FRESH, sampled_at=995)],
            {"fresh": 0, "stale": 0, "missing": 3, "implausible": 0},
            5.0,
            id="have the age of what was sampled",
        ),
    ],
)
def test_the_numbers_of_traffic(
    readings: list[TrafficReading],
    nodes_by_state: dict[str, int],
    age_seconds: float | None,
) -> None:
    assert traffic_numbers(readings, {"success": 3}, NOW) == SourceNumbers(
        nodes_by_state=nodes_by_state, age_seconds=age_seconds, polls={"success": 3}
    )


@pytest.mark.parametrize(
    ("readings", "is_ignored"),
    [
        pytest.param([], None, id="is not known without readings"),
        pytest.param([traffic(ALL_FRESH, sampled_at=990)], False, id="is off with fresh nodes"),
        pytest.param(
            [traffic(ALL_FRESH, sampled_at=990), traffic({}, sampled_at=990)],
            True,
            id="is on where one of the readings is ignored",
        ),
        pytest.param([traffic(ALL_FRESH, sampled_at=900)], True, id="comes on by age alone"),
    ],
)
def test_the_brake(readings: list[TrafficReading], is_ignored: bool | None) -> None:
    assert is_any_ignored(readings, NOW) == is_ignored


def sampled(*names: str, at: float) -> dict[str, UsageSample]:
    return {name: UsageSample(cpu_milli=100, memory_bytes=100, at=at) for name in names}


@pytest.mark.parametrize(
    ("readings", "nodes_by_state", "age_seconds"),
    [
        pytest.param([], {}, None, id="of nothing are none"),
        pytest.param([usage({})], {"known": 0, "unknown": 3}, None, id="of no sample have no age"),
        pytest.param(
            [usage(sampled("a", "b", at=990))],
            {"known": 2, "unknown": 1},
            10.0,
            id="tell which nodes are known",
        ),
        pytest.param(
            [usage(sampled("a", "b", "c", at=600))],
            {"known": 0, "unknown": 3},
            400.0,
            id="age while nothing new is sampled",
        ),
        pytest.param(
            [usage(sampled("a", "b", "c", at=990)), usage(sampled("a", at=950))],
            {"known": 1, "unknown": 2},
            50.0,
            id="of two readings are the worse ones",
        ),
    ],
)
def test_the_numbers_of_usage(
    readings: list[Reading], nodes_by_state: dict[str, int], age_seconds: float | None
) -> None:
    assert usage_numbers(readings, ["a", "b", "c"], {"failure": 1}, NOW) == SourceNumbers(
        nodes_by_state=nodes_by_state, age_seconds=age_seconds, polls={"failure": 1}
    )


@pytest.mark.parametrize(
    ("readings", "nodes_by_state", "age_seconds"),
    [
        pytest.param([], {}, None, id="of nothing are none"),
        pytest.param(
            [query_reading({}, sampled_at=math.nan)],
            {"known": 0, "unknown": 3},
            None,
            id="of no answer have no age",
        ),
        pytest.param(
            [
                query_reading({"a": 1.0, "b": 1.0}, sampled_at=995),
                query_reading({"b": 1.0, "c": 1.0, "gone": 1.0}, sampled_at=970),
            ],
            {"known": 1, "unknown": 2},
            30.0,
            id="count a node as known where every query has a value of it",
        ),
    ],
)
def test_the_numbers_of_plugins_own_queries(
    readings: list[Reading], nodes_by_state: dict[str, int], age_seconds: float | None
) -> None:
    assert query_numbers(readings, "abc", {"success": 3}, NOW) == SourceNumbers(
        nodes_by_state=nodes_by_state, age_seconds=age_seconds, polls={"success": 3}
    )
