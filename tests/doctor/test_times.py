"""Scrape intervals, windows, stale samples and clocks."""

import pytest
import yaml
from tests.doctor.conftest import (
    ALL,
    WELL,
    Told,
    exporter_on,
    findings_of,
    fixes_of,
    make_evidence,
    make_request,
    texts_of,
)

from lowtide.doctor.checks import examined


@pytest.mark.parametrize(
    ("measure", "window_seconds", "interval_seconds", "found"),
    [
        pytest.param("rate", 60, 15.0, [], id="is fine with four scrapes in the window"),
        pytest.param(
            "rate",
            60,
            30.0,
            [("note", "scrape-interval", ())],
            id="is noted with fewer, which Lowtide widens by itself",
        ),
        pytest.param(
            "rate",
            60,
            60.0,
            [("fault", "scrape-interval", ())],
            id="is a fault with fewer than two",
        ),
        pytest.param(
            "increase",
            60,
            45.0,
            [("fault", "scrape-interval", ())],
            id="is a fault for increases too",
        ),
        pytest.param("sumOverTime", 60, 45.0, [], id="may be longer for sums"),
        pytest.param(
            "sumOverTime",
            60,
            90.0,
            [("fault", "scrape-interval", ())],
            id="is a fault for sums when it is longer than the window",
        ),
    ],
)
def test_the_scrape_interval(
    measure: str, window_seconds: int, interval_seconds: float, found: Told
) -> None:
    request = make_request(
        measure=measure, window_seconds=window_seconds, learns_from_pods=measure != "sumOverTime"
    )
    evidence = make_evidence(request=request, scrape_interval_seconds=interval_seconds)
    assert findings_of(evidence) == found


def test_the_window_to_paste_holds_four_scrapes() -> None:
    exporters = [exporter_on(number, rate=None) for number in (1, 2, 3)]
    evidence = make_evidence(exporters, scrape_interval_seconds=60.0)
    assert findings_of(evidence) == [("fault", "scrape-interval", ALL)]
    assert texts_of(evidence) == [
        "targets are scraped every 60s, and the window of 1m is shorter than 2 scrapes; so there "
        "is often no value at all; it should be at least 4m"
    ]
    assert yaml.safe_load(fixes_of(evidence)[0]) == {"window": "4m"}


def test_a_window_that_was_widened_is_told() -> None:
    evidence = make_evidence(scrape_interval_seconds=30.0, window_seconds=120)
    assert texts_of(evidence) == [
        "targets are scraped every 30s, and the window of 1m is shorter than 4 scrapes, which is "
        "too few for a good rate; Lowtide takes 2m instead; it should be at least 2m"
    ]


def test_a_target_that_was_scraped_once_is_told() -> None:
    exporters = [*WELL[:2], exporter_on(3, rate=None)]
    evidence = make_evidence(exporters, scrape_interval_seconds=None)
    assert findings_of(evidence) == [("fault", "scrape-interval", ("south",))]


@pytest.mark.parametrize(
    ("age_seconds", "interval_seconds", "verdict"),
    [
        pytest.param(59.0, 15.0, "fresh", id="fresh until a minute has passed"),
        pytest.param(61.0, 15.0, "stale", id="stale after a minute"),
        pytest.param(61.0, 60.0, "fresh", id="fresh where scrapes are a minute apart"),
    ],
)
def test_a_sample_is(age_seconds: float, interval_seconds: float, verdict: str) -> None:
    exporters = [*WELL[:2], exporter_on(3, age_seconds=age_seconds)]
    request = make_request(window_seconds=600)
    evidence = make_evidence(exporters, request=request, scrape_interval_seconds=interval_seconds)
    found = examined(evidence)
    rows = {row.node: (row.state.value, row.age_seconds) for row in found.rows}
    assert rows["south"] == (verdict, age_seconds)
    wanted = [("fault", "stale-samples", ("south",))] if verdict == "stale" else []
    assert findings_of(evidence) == wanted


@pytest.mark.parametrize(
    ("ahead_seconds", "found"),
    [
        pytest.param(4.0, [], id="that differ by seconds are fine"),
        pytest.param(-4.0, [], id="that differ by seconds the other way are fine"),
        pytest.param(90.0, [("note", "clock-skew", ())], id="that are ahead are noted"),
        pytest.param(-30.0, [("note", "clock-skew", ())], id="that are behind are noted"),
        pytest.param(
            -90.0,
            [("fault", "clock-skew", ())],
            id="that are far behind make everything stale, told once",
        ),
    ],
)
def test_clocks(ahead_seconds: float, found: Told) -> None:
    assert findings_of(make_evidence(ahead_seconds=ahead_seconds)) == found
