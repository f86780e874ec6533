"""A histogram like prometheus_client's, but for one thread only: without the locks, which take most
of an observation's time. Used by metrics."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


@dataclass(slots=True)
class _Seen:
    counts: list[int]  # by bucket, not cumulative
    total: float = 0.0


class Histogram(Collector):
    """With labels, only label values that were seen are exported; without, zeros at once."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str] = (),
        *,
        buckets: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = labels
        self._bounds = (*map(float, buckets), math.inf)
        self._seen: dict[tuple[str, ...], _Seen] = {}
        if not labels:
            self._seen[()] = self._nothing_seen()
        registry.register(self)

    def observe(self, amount: float, *labels: str) -> None:
        seen = self._seen.get(labels)
        if seen is None:
            if len(labels) != len(self._labels):
                raise ValueError(f"{self._name} has the labels {self._labels}, not {labels}")
            seen = self._seen[labels] = self._nothing_seen()
        seen.counts[bisect_left(self._bounds, amount)] += 1
        seen.total += amount

    def describe(self) -> Iterator[HistogramMetricFamily]:
        yield self._family()

    def collect(self) -> Iterator[HistogramMetricFamily]:
        family = self._family()
        bounds = list(map(floatToGoString, self._bounds))
        for labels, seen in self._seen.items():
            up_to_bounds = zip(bounds, accumulate(seen.counts), strict=True)
            family.add_metric(labels, list(up_to_bounds), seen.total)
        yield family

    def _nothing_seen(self) -> _Seen:
        return _Seen([0] * len(self._bounds))

    def _family(self) -> HistogramMetricFamily:
        return HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
