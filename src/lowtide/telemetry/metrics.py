"""What /metrics tells of what is measured, in every mode that runs on a cluster; app hands in where
the numbers are read."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNumbers:
    """What is known by one kind of measurement."""

    nodes_by_state: Mapping[str, int]  # empty before the first reading
    age_seconds: float | None  # None before the first sample
    polls: Mapping[str, int]  # by result, since the start


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredNumbers:
    traffic: SourceNumbers
    is_traffic_ignored: bool | None  # None before the first reading
    usage: SourceNumbers
    queries: SourceNumbers  # of plugins' own


class MeasuredGauges(Collector):
    """Made at the moment of a scrape."""

    def __init__(self, source: Callable[[], MeasuredNumbers]) -> None:
        self._source = source

    def describe(self) -> Iterator[Metric]:
        # Names only: a registry rejects a second metric that is called the same.
        yield from _gauges(None)

    def collect(self) -> Iterator[Metric]:
        yield from _gauges(self._source())


def _gauges(numbers: MeasuredNumbers | None) -> Iterator[Metric]:
    ignored = GaugeMetricFamily(
        "lowtide_readings_ignored",
        "1 while traffic does not count, as too few nodes have a fresh reading of it",
    )
    if numbers is not None and numbers.is_traffic_ignored is not None:
        ignored.add_metric((), int(numbers.is_traffic_ignored))
    yield ignored
    yield from _source(
        numbers.traffic if numbers else None,
        GaugeMetricFamily(
            "lowtide_reading_nodes",
            "Nodes by the state of their reading of traffic, the worst where there are several",
            labels=("state",),
        ),
        GaugeMetricFamily(
            "lowtide_readings_age_seconds",
            "Seconds since traffic was sampled, of the oldest where several readings count",
        ),
        CounterMetricFamily(
            "lowtide_prometheus_polls", "Polls of Prometheus, by result", labels=("result",)
        ),
    )
    yield from _source(
        numbers.usage if numbers else None,
        GaugeMetricFamily(
            "lowtide_usage_nodes",
            "Nodes whose cpu usage is known by metrics-server, and others",
            labels=("state",),
        ),
        GaugeMetricFamily(
            "lowtide_usage_age_seconds",
            "Seconds since usage was sampled, of the oldest where several readings count",
        ),
        CounterMetricFamily(
            "lowtide_metrics_server_polls", "Polls of metrics-server, by result", labels=("result",)
        ),
    )
    yield from _source(
        numbers.queries if numbers else None,
        GaugeMetricFamily(
            "lowtide_query_nodes",
            "Nodes of which every plugin's own query of Prometheus has a value, and others",
            labels=("state",),
        ),
        GaugeMetricFamily(
            "lowtide_query_age_seconds",
            "Seconds since a plugin's own query was answered, of the oldest where there are "
            "several",
        ),
        CounterMetricFamily(
            "lowtide_query_polls",
            "Polls of Prometheus by plugins' own queries, by result",
            labels=("result",),
        ),
    )


def _source(
    numbers: SourceNumbers | None,
    nodes: GaugeMetricFamily,
    age: GaugeMetricFamily,
    polls: CounterMetricFamily,
) -> Iterator[Metric]:
    if numbers is not None:
        for state, count in numbers.nodes_by_state.items():
            nodes.add_metric((state,), count)
        if numbers.age_seconds is not None:
            age.add_metric((), numbers.age_seconds)
        for result, count in numbers.polls.items():
            polls.add_metric((result,), count)
    yield from (nodes, age, polls)
