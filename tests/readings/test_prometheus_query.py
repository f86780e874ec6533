"""A plugin's own query: which values nodes get of its series, and how a plugin reads them."""

import math
from typing import Any

import numpy as np
import pytest

from lowtide.cluster.reading import Reading
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.prometheus_query import (
    PrometheusQuery,
    query_reading,
    values_by_node,
    without_value,
)
from lowtide.readings.request import MatchLabel
from lowtide.readings.series import Series
from lowtide.testing import make_node, make_state

ACCESS = PrometheusAccess(addresses=("http://prometheus:9090",))
QUERY = PrometheusQuery(access=ACCESS, promql="node_load1")
NODES = [make_node("a", addresses=["10.0.0.1"]), make_node("b", addresses=["10.0.0.2"])]


def series(value: float, **labels: str) -> Series:
    return Series(labels, value, 0.0)


@pytest.mark.parametrize(
    ("found", "want"),
    [
        pytest.param([series(1, node="a"), series(2, node="b")], {"a": 1, "b": 2}, id="by name"),
        pytest.param([series(1, instance="10.0.0.2:9100")], {"b": 1}, id="by address"),
        pytest.param([series(1, instance="x:1", job="n")], {"a": 1}, id="by node_uname_info"),
        pytest.param([series(1, node="c"), series(2)], {}, id="to no node"),
        pytest.param(
            [series(1, node="a"), series(3, node="a"), series(2, node="a")],
            {"a": 3},
            id="the highest of several",
        ),
        pytest.param(
            [series(math.nan, node="a"), series(math.inf, node="b")],
            {},
            id="no number that is none",
        ),
        pytest.param([series(-4, node="a")], {"a": -4}, id="what is below zero too"),
    ],
)
def test_values_come_to_nodes(found: list[Series], want: dict[str, float]) -> None:
    uname = [series(1, instance="x:1", job="n", nodename="a")]
    assert values_by_node(QUERY, found, uname, NODES) == want


@pytest.mark.parametrize(
    ("label", "asks"),
    [("auto", True), ("nodename", True), ("node", False), ("instance", False)],
)
def test_who_is_who_is_asked_only_where_it_matters(label: MatchLabel, asks: bool) -> None:
    query = PrometheusQuery(access=ACCESS, promql="up", match_label=label)
    assert query.asks_who_is_who == asks


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        pytest.param(
            {"promql": " "}, "the promql of a PrometheusQuery must not be empty", id="text"
        ),
        pytest.param(
            {"every_seconds": 0},
            "every_seconds of a PrometheusQuery must be above 0, not 0",
            id="rhythm",
        ),
        pytest.param(
            {"stale_after_seconds": math.nan},
            "stale_after_seconds of a PrometheusQuery must be above 0, not nan",
            id="patience",
        ),
    ],
)
def test_a_query_needs_a(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError) as rejection:
        PrometheusQuery(**{"access": ACCESS, "promql": "up", **fields})
    assert str(rejection.value) == told


def test_a_plugin_reads_one_value_per_node() -> None:
    state = make_state(NODES, readings={QUERY: query_reading({"b": 4.0}, sampled_at=1.0)})
    np.testing.assert_equal(QUERY.values(state.nodes()), [math.nan, 4.0])
    assert QUERY.value(state.nodes().one(1)) == 4.0
    assert math.isnan(QUERY.value(state.nodes().one(0)))


@pytest.mark.parametrize("readings", [{}, {QUERY: query_reading({}, sampled_at=math.nan)}])
def test_where_nothing_is_known_a_plugin_reads_nothing(
    readings: dict[PrometheusQuery, Reading],
) -> None:
    nodes = make_state(NODES, readings=readings).nodes()
    np.testing.assert_equal(QUERY.values(nodes), [math.nan, math.nan])
    assert math.isnan(QUERY.value(nodes.one(0)))


def test_values_that_are_gone_are_not_read_any_more() -> None:
    state = make_state(NODES, readings={QUERY: query_reading({"a": 4.0}, sampled_at=1.0)})
    state.publish(QUERY, query_reading({}, sampled_at=1.0))
    np.testing.assert_equal(QUERY.values(state.nodes()), [math.nan, math.nan])


def test_nodes_without_a_value_are_named() -> None:
    reading = query_reading({"b": 1.0, "gone": 2.0}, sampled_at=1.0)
    assert without_value(reading, ["c", "b", "a"]) == ("a", "c")
