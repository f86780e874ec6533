"""Lines that compare with a goal, and what is said of all of them in the end."""

import pytest

from decide import DecideResult
from decide_report import decide_report
from growth import growth_report
from page import PageResult, page_report
from preempt import PreemptResult, preempt_report
from ready import ReadyResult
from ready_report import ready_report
from recorded import RecordedResult
from replay import ReplayResult, replay_report
from report_lines import Compared, Report, closing, spread
from reports import recorded_report

MET = Compared("page: p95 61 ms", "under 100 ms", is_met=True)
MISSED = Compared("replay: 61.0 s at the longest", "under 60 s", is_met=False)
UNKNOWN = Compared("drain: CPU per pod", "at most 0.33", is_met=None)


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param([1.0, 4.0, 2.0], "2.00 (1.00 to 4.00)", id="has lowest and highest"),
        pytest.param([1.0], "1.00", id="of one round is that round's figure"),
    ],
)
def test_spread(values: list[float], want: str) -> None:
    assert spread(values) == want


@pytest.mark.parametrize(
    ("compared", "want"),
    [
        pytest.param([], [], id="nothing where nothing had a goal"),
        pytest.param([MET], ["goals: 1 met, none missed"], id="that all are met"),
        pytest.param(
            [MISSED, MET, MET],
            [
                "goals: 2 met, 1 missed:",
                "  replay: 61.0 s at the longest; the goal, under 60 s, is MISSED",
            ],
            id="each that is missed",
        ),
    ],
)
def test_in_the_end_is_said(compared: list[Compared], want: list[str]) -> None:
    assert list(closing(compared)) == want


def test_what_was_not_measured_is_not_among_what_is_met() -> None:
    assert list(closing([MET, UNKNOWN], ["page"])) == [
        "goals: 1 met, 0 missed, 1 not measured, 1 benchmarks failed:",
        "  drain: CPU per pod; the goal, at most 0.33, is NOT MEASURED",
        "  page: it failed, see above",
    ]


def decided(us_per_pod: float) -> DecideResult:
    return DecideResult(
        workload="decide/one-shape",
        nodes=5000,
        pods=1000,
        scheduler="lowtide",
        round=1,
        kind="",
        us_per_pod=us_per_pod,
        p50_us=us_per_pod,
        p99_us=us_per_pod,
        max_us=us_per_pod,
        recording_us_per_pod=9.0,
        pods_before=10_000,
        plugins=17,
        p50_us_by_plugin={},
    )


def started_in(seconds: float) -> ReadyResult:
    return ReadyResult("ready", 5000, 30_000, "lowtide", 1, 1.0, seconds, 1.0, 250.0, 1.0, 1.0, 1.0)


def replayed_in(seconds: float) -> ReplayResult:
    return ReplayResult("replay/check", 5000, 10_000, "lowtide", 1, seconds, 0, 1.0)


@pytest.mark.parametrize(
    ("report", "want"),
    [
        pytest.param(decide_report([decided(99.0)]), [True, True], id="decide"),
        pytest.param(decide_report([decided(101.0)]), [False, True], id="slow decide"),
        pytest.param(growth_report([decided(99.0)]), [], id="growth has none"),
        pytest.param(ready_report([started_in(4.9)]), [True, True], id="ready"),
        pytest.param(ready_report([started_in(5.1)]), [False, True], id="late ready"),
        pytest.param(
            preempt_report(
                [PreemptResult("preempt", 5000, "lowtide", "host port", 10, 1, 51.0, 60.0)]
            ),
            [False],
            id="slow preempt",
        ),
        pytest.param(
            page_report([PageResult("page", 5000, "lowtide", "regroup", 1, 40.0, 99.0, 120.0)]),
            [True],
            id="page",
        ),
        pytest.param(replay_report([replayed_in(61.0)]), [False], id="slow replay"),
        pytest.param(
            recorded_report([RecordedResult("recorded", "lowtide", 100, 1, 89.0)]),
            [True],
            id="recorded",
        ),
    ],
)
def test_goals_of(report: Report, want: list[bool]) -> None:
    assert [line.is_met for line in report if isinstance(line, Compared)] == want
