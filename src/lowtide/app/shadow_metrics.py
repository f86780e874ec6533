"""What /metrics tells of a shadow: how often it agrees, and how busy the hottest link is and
would be."""

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lowtide.simulator.shadow_report import ShadowSummary


class ShadowNumbers(Collector):
    """Made at the moment of a scrape."""

    def __init__(self, summary: Callable[[], ShadowSummary]) -> None:
        self._summary = summary

    def describe(self) -> Iterator[Metric]:
        # Names only: a registry rejects a second metric that is called the same.
        yield from _metrics(None)

    def collect(self) -> Iterator[Metric]:
        yield from _metrics(self._summary())


def _metrics(summary: ShadowSummary | None) -> Iterator[Metric]:
    compared = CounterMetricFamily(
        "lowtide_shadow_pods",
        "Pods that others placed, by what the plugins say to that; same and as good are agreement",
        labels=("agreement",),
    )
    pending = GaugeMetricFamily("lowtide_shadow_pending_pods", "Pods that have no node yet")
    hottest = GaugeMetricFamily(
        "lowtide_shadow_hottest_link_share",
        "Used part of the busiest link's capacity, with what was just placed and is not measured "
        "yet, as it is, and as it would be had the pods gone where the plugins say",
        labels=("placement",),
    )
    if summary is not None:
        for agreement, count in summary.agreement.items():
            compared.add_metric((agreement,), count)
        pending.add_metric((), summary.pending)
        if summary.now is not None:
            hottest.add_metric(("actual",), summary.now.share)
            hottest.add_metric(("predicted",), summary.now.predicted_share)
    yield compared
    yield pending
    yield hottest
