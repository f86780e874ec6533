"""The gauges of what is measured, as a scrape finds them."""

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from lowtide.telemetry.metrics import MeasuredGauges, MeasuredNumbers, SourceNumbers

NUMBERS = MeasuredNumbers(
    traffic=SourceNumbers(
        nodes_by_state={"fresh": 10, "stale": 2},
        age_seconds=7.5,
        polls={"success": 5, "failure": 1},
    ),
    is_traffic_ignored=True,
    usage=SourceNumbers(
        nodes_by_state={"known": 11, "unknown": 1}, age_seconds=20.0, polls={"success": 6}
    ),
    queries=SourceNumbers(
        nodes_by_state={"known": 9, "unknown": 3}, age_seconds=4.0, polls={"failure": 2}
    ),
)


def samples(numbers: MeasuredNumbers) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(MeasuredGauges(lambda: numbers))
    lines = generate_latest(registry).decode().splitlines()
    told = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in told}


def test_everything_that_is_known_is_told() -> None:
    assert samples(NUMBERS) == {
        'lowtide_reading_nodes{state="fresh"}': 10,
        'lowtide_reading_nodes{state="stale"}': 2,
        "lowtide_readings_age_seconds": 7.5,
        "lowtide_readings_ignored": 1,
        'lowtide_prometheus_polls_total{result="success"}': 5,
        'lowtide_prometheus_polls_total{result="failure"}': 1,
        'lowtide_usage_nodes{state="known"}': 11,
        'lowtide_usage_nodes{state="unknown"}': 1,
        "lowtide_usage_age_seconds": 20.0,
        'lowtide_metrics_server_polls_total{result="success"}': 6,
        'lowtide_query_nodes{state="known"}': 9,
        'lowtide_query_nodes{state="unknown"}': 3,
        "lowtide_query_age_seconds": 4.0,
        'lowtide_query_polls_total{result="failure"}': 2,
    }


def test_before_the_first_reading_nothing_is_told() -> None:
    nothing = SourceNumbers(nodes_by_state={}, age_seconds=None, polls={})
    unknown = MeasuredNumbers(
        traffic=nothing, is_traffic_ignored=None, usage=nothing, queries=nothing
    )
    assert samples(unknown) == {}
