"""The metric of answers that were rejected for their size; the modes hand in where it is read."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from lowtide.app.measuring import Measuring
from lowtide.kube.connection import Connection

Counts = Mapping[str, int]  # by who answered


class RejectedAnswers(Collector):
    """Made at the moment of a scrape."""

    def __init__(self, source: Callable[[], Counts]) -> None:
        self._source = source

    def describe(self) -> Iterator[Metric]:
        # Names only: a registry rejects a second metric that is called the same.
        yield _family({})

    def collect(self) -> Iterator[Metric]:
        yield _family(self._source())


def rejected_by(*connections: Connection, measuring: Measuring, extenders: int = 0) -> Counts:
    return {
        "api-server": sum(connection.intake.rejected for connection in connections),
        "prometheus": measuring.rejected_answers,
        "extender": extenders,
    }


def _family(counts: Counts) -> Metric:
    family = CounterMetricFamily(
        "lowtide_rejected_answers",
        "Answers that were rejected because they are larger than a limit, by who answered",
        labels=("source",),
    )
    for who, count in counts.items():
        family.add_metric((who,), count)
    return family
