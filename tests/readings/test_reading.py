"""A reading as a whole: for people, as time goes by, and when it is not believed any more."""

import math
from dataclasses import fields
from typing import Any

import pytest
from tests.readings.conftest import NOW, make_request, make_series, read

from lowtide.readings.reading import NodeReading, TrafficReading, aged
from lowtide.readings.series import Series
from lowtide.testing import make_node, make_pod


def four_states() -> TrafficReading:
    """One node of each state, and one that is older than fresh ones usually are."""
    series = [
        make_series(1, node="fresh", at=NOW - 10),
        make_series(2, node="older", at=NOW - 30),
        make_series(3, node="stale", at=NOW - 90),
        make_series(math.nan, node="implausible"),
    ]
    names = ["fresh", "older", "stale", "missing", "implausible"]
    return read({"receive": series}, [make_node(name) for name in names])


def states(reading: TrafficReading) -> dict[str, str]:
    return {name: each.state.value for name, each in reading.by_node()}


def test_a_reading_of_no_nodes() -> None:
    request = make_request()
    reading = read({}, [])
    assert (reading.request, reading.published_at, dict(reading.by_node())) == (request, NOW, {})
    assert math.isnan(reading.sampled_at)
    assert not reading.is_ignored


def test_a_node_may_be_asked_for_by_name() -> None:
    reading = four_states()
    assert reading.node_reading("older") == dict(reading.by_node())["older"]
    assert reading.node_reading("older").value == 2
    assert reading.node_reading("nobody") == NodeReading()


def test_it_was_sampled_when_its_newest_sample_was() -> None:
    assert four_states().sampled_at == NOW - 10 + 10  # the implausible sample is the newest
    series = [make_series(1, node="a", at=NOW - 30), make_series(1, node="b", at=NOW - 20)]
    reading = read({"receive": series}, [make_node(name) for name in "abc"])
    assert (reading.sampled_at, reading.window_seconds) == (NOW - 20, 60)


def test_ageing_turns_fresh_to_stale_and_nothing_else() -> None:
    reading = four_states()
    later = aged(reading, NOW + 40)
    assert states(reading) == {
        "fresh": "fresh",
        "older": "fresh",
        "stale": "stale",
        "missing": "missing",
        "implausible": "implausible",
    }
    assert states(later) == {**states(reading), "older": "stale"}
    assert later.published_at == NOW + 40
    for name in {each.name for each in fields(reading)} - {"state", "published_at"}:
        assert getattr(later, name) is getattr(reading, name)


def test_ageing_goes_on() -> None:
    reading = aged(aged(four_states(), NOW + 40), NOW + 55)
    assert states(reading)["fresh"] == "stale"


# The brake.


def with_fresh(fresh: int, of: int, **fields: Any) -> TrafficReading:
    series = [make_series(1, node=f"n{number}") for number in range(fresh)]
    return read({"receive": series}, [make_node(f"n{number}") for number in range(of)], **fields)


@pytest.mark.parametrize(
    ("fresh", "of", "brake_percent", "is_ignored"),
    [
        pytest.param(4, 4, 50, False, id="is believed when all are fresh"),
        pytest.param(2, 4, 50, False, id="is believed when exactly the share is not fresh"),
        pytest.param(1, 4, 50, True, id="is not believed when more than the share is not"),
        pytest.param(0, 4, 50, True, id="is not believed when none is fresh"),
        pytest.param(0, 4, 100, False, id="is never ignored by a share of all"),
        pytest.param(4, 4, 0, False, id="may have none that is not fresh, and has none"),
        pytest.param(3, 4, 0, True, id="may have none that is not fresh, and has one"),
        pytest.param(71, 100, 29, False, id="counts exactly where 0.29 * 100 is not quite 29"),
        pytest.param(70, 100, 29, True, id="counts exactly beyond it"),
        pytest.param(93, 100, 7, False, id="counts exactly where 0.07 * 100 is more than 7"),
        pytest.param(92, 100, 7, True, id="counts exactly beyond that"),
    ],
)
def test_a_reading(fresh: int, of: int, brake_percent: int, is_ignored: bool) -> None:
    reading = with_fresh(fresh, of, brake_share=brake_percent / 100)
    assert reading.is_ignored == is_ignored


@pytest.mark.parametrize(
    "series",
    [
        pytest.param(make_series(1, at=NOW - 61), id="stale"),
        pytest.param(make_series(math.nan), id="implausible"),
        pytest.param(make_series(1, node="stranger"), id="missing"),
    ],
)
def test_the_brake_counts_a_node_that_is(series: Series) -> None:
    assert read({"receive": [series]}).is_ignored


def test_what_pods_are_expected_to_carry_goes_along() -> None:
    reading = read({"receive": [make_series(1)]}, pod_bytes_per_second=7.0)
    assert reading.pods.expected_for(make_pod()) == (7.0, 7.0)
