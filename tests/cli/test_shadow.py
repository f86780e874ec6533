"""What `lowtide shadow` prints in the end; tests/integration runs it."""

import pytest
from msgspec.structs import replace
from tests.simulator.test_html_report import LINKS
from tests.simulator.test_shadow_report import hottest, shadowed

from lowtide.cli.shadow import print_summary
from lowtide.simulator.shadow_report import ShadowReport


def test_pods_that_are_not_kept_any_more_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    report = ShadowReport(since=0.0, kept_differences=2)
    for name in ("small", "small", "small", "roomy"):
        report.note(shadowed("1", name), 60.0)
    print_summary(report.summary(120.0, nodes=2, pending=0), "table")
    assert "the last 2 of 3 pods that would be elsewhere" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("pods", "nodes", "told"),
    [
        pytest.param(
            0,
            1,
            [
                "0 pods were placed on 1 node in 2.0 minutes.",
                "Nothing to compare: no pod was placed meanwhile.",
            ],
            id="no pod",
        ),
        pytest.param(
            1,
            2,
            ["1 pod was placed on 2 nodes in 2.0 minutes.", "Agreement: 100.0% (1 same)."],
            id="one pod",
        ),
    ],
)
def test_the_first_lines(
    capsys: pytest.CaptureFixture[str], pods: int, nodes: int, told: list[str]
) -> None:
    report = ShadowReport(since=0.0)
    for _ in range(pods):
        report.note(shadowed("1", "roomy"), 60.0)
    print_summary(report.summary(120.0, nodes=nodes, pending=0), "table")
    assert capsys.readouterr().out.splitlines()[:2] == told


def test_what_was_measured_and_what_is_predicted_are_two_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = ShadowReport(since=0.0)
    report.look(hottest(0.86, 0.54))
    measured = replace(LINKS, readings=1)
    summary = report.summary(60.0, nodes=2, pending=0, measured=measured)
    print_summary(summary, "table")
    assert capsys.readouterr().out.splitlines()[2:] == [
        "Hottest link: 81% (node-7); 95th percentile 50%; 1 reading, averages over 1m.",
        "With what was just placed: 86% (at-0.86) -> 54% (at-0.54) predicted; highest 95th "
        "percentile 43% -> 27%.",
    ]
