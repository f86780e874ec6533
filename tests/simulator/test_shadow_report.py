"""What shadow mode has found so far."""

from tests.scheduler.test_shadow import placed_by_another, shadow_of

from lowtide.scheduler.shadow import Shadowed
from lowtide.simulator.predicted_links import Hottest
from lowtide.simulator.shadow_report import LinkPeaks, ShadowReport
from lowtide.testing import make_node, make_pod


def shadowed(cpu: str, node_name: str) -> Shadowed:
    shadow = shadow_of(make_node("roomy", cpu="8"), make_node("small", cpu="2"))
    found = placed_by_another(shadow, make_pod("web", cpu=cpu), node_name)
    assert found is not None
    return found


def hottest(share: float, predicted: float) -> Hottest:
    return Hottest(share, f"at-{share}", predicted, f"at-{predicted}", share / 2, predicted / 2)


def test_agreement_is_counted_and_differences_are_told() -> None:
    report = ShadowReport(since=10.0)
    assert report.note(shadowed("1", "roomy"), 11.0) is None
    different = report.note(shadowed("1", "small"), 12.0)
    rejected = report.note(shadowed("3", "small"), 13.0)
    assert different is not None
    assert rejected is not None
    assert (different.predicted_node, different.agreement) == ("roomy", "different")
    assert different.reason == "NodeResourcesFit"
    assert different.points is not None
    assert different.points > 0
    assert rejected.reason == "NodeResourcesFit: Insufficient cpu"
    summary = report.summary(20.0, nodes=2, pending=4)
    assert (summary.pods, summary.agreed, summary.pending) == (3, 1, 4)
    assert summary.agreement == {
        "same": 1,
        "as good": 0,
        "different": 1,
        "rejected there": 1,
        "nowhere": 0,
        "failed": 0,
    }
    assert summary.differences == [different, rejected]


def test_the_highest_that_was_seen_stays() -> None:
    report = ShadowReport(since=0.0)
    report.look(None)
    for each in (hottest(0.5, 0.4), hottest(0.8, 0.5), hottest(0.3, 0.6)):
        report.look(each)
    assert report.summary(1.0, nodes=1, pending=0).links == LinkPeaks(
        readings=3,
        hottest=0.8,
        hottest_node="at-0.8",
        predicted_hottest=0.6,
        predicted_hottest_node="at-0.6",
        highest_p95=0.4,
        predicted_highest_p95=0.3,
    )


def test_nothing_seen_has_no_share() -> None:
    summary = ShadowReport(since=0.0).summary(1.0, nodes=0, pending=0)
    assert (summary.agreed_share, summary.links, summary.pods) == (None, None, 0)
