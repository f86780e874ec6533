"""What `lowtide shadow` prints in the end; tests/integration runs it."""

import pytest
from tests.simulator.test_shadow_report import shadowed

from lowtide.cli.shadow import print_summary
from lowtide.simulator.shadow_report import ShadowReport


def test_pods_that_are_not_kept_any_more_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    report = ShadowReport(since=0.0, kept_differences=2)
    for name in ("small", "small", "small", "roomy"):
        report.note(shadowed("1", name), 60.0)
    print_summary(report.summary(120.0, nodes=2, pending=0), "table")
    assert "the last 2 of 3 pods that would be elsewhere" in capsys.readouterr().out
