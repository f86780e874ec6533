"""What /metrics tells of a shadow."""

from prometheus_client import CollectorRegistry

from lowtide.app.shadow_metrics import ShadowNumbers
from lowtide.simulator.predicted_links import Hottest
from lowtide.simulator.shadow_report import ShadowSummary


def told(summary: ShadowSummary) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(ShadowNumbers(lambda: summary))
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def test_agreement_and_the_hottest_link_are_told() -> None:
    summary = ShadowSummary(
        since=0.0,
        until=1.0,
        nodes=2,
        pods=3,
        agreed=2,
        agreement={"same": 2, "different": 1},
        pending=4,
        now=Hottest(0.8, "a", 0.5, "b", 0.7, 0.4),
    )
    assert told(summary) == {
        "lowtide_shadow_pods_total same": 2.0,
        "lowtide_shadow_pods_total different": 1.0,
        "lowtide_shadow_pending_pods": 4.0,
        "lowtide_shadow_hottest_link_share actual": 0.8,
        "lowtide_shadow_hottest_link_share predicted": 0.5,
    }


def test_before_anything_is_measured_nothing_is_told_of_links() -> None:
    summary = ShadowSummary(
        since=0.0, until=0.0, nodes=0, pods=0, agreed=0, agreement={}, pending=0
    )
    assert told(summary) == {"lowtide_shadow_pending_pods": 0.0}
