"""Which goals of drains are met: none by what was left undone, or not measured."""

from dataclasses import replace

import pytest

from drain import DrainResult
from drain_steady import SteadyResult
from report_lines import Compared
from reports_drain import drain_report, steady_report, traffic_report
from seeds_queries import SeedsResult

LOWTIDE = DrainResult(
    workload="basic",
    nodes=5000,
    pods=3000,
    scheduler="lowtide",
    round=1,
    pods_per_second=900.0,
    pods_per_second_with_events=450.0,
    scheduler_cpu_ms_per_pod=0.5,
    p50_seconds=1.0,
    p99_seconds=2.0,
    rss_mb=150.0,
    scheduler_cpu_ms_per_pod_with_start=1.0,
    api_server_cpu_ms_per_pod=2.0,
    etcd_cpu_ms_per_pod=0.5,
    observer_cpu_ms_per_pod=0.1,
    events=3000,
    unbound=0,
    nodes_used=1000,
    others_cpu_share=0.05,
)
# 900 of 300, 450 of 225, 0.5 of 2.5, 900 of 1000
KUBE_SCHEDULER = replace(
    LOWTIDE,
    scheduler="kube-scheduler",
    pods_per_second=300.0,
    pods_per_second_with_events=225.0,
    scheduler_cpu_ms_per_pod=2.5,
)
NOBODY = replace(LOWTIDE, scheduler="none", pods_per_second=1000.0, events=0)


@pytest.mark.parametrize(
    ("results", "want"),
    [
        pytest.param([NOBODY, LOWTIDE, KUBE_SCHEDULER], [True] * 4, id="all where all is done"),
        pytest.param(
            [NOBODY, replace(LOWTIDE, unbound=1), KUBE_SCHEDULER],
            [False] * 4,
            id="none where a pod was not bound",
        ),
        pytest.param(
            [NOBODY, replace(LOWTIDE, events=2999), KUBE_SCHEDULER],
            [True, False, True, True],
            id="not that of Events where one was not written",
        ),
        pytest.param(
            [NOBODY, replace(LOWTIDE, pods_per_second=899.0), KUBE_SCHEDULER],
            [False, True, True, True],
            id="not that of the pace where it is too slow",
        ),
        pytest.param(
            [replace(LOWTIDE, pods_per_second_with_events=None), KUBE_SCHEDULER],
            [True, None, True, None],
            id="nothing is known where there is nothing to compare with",
        ),
    ],
)
def test_goals_met_by_a_drain(results: list[DrainResult], want: list[bool | None]) -> None:
    assert [line.is_met for line in drain_report(results) if isinstance(line, Compared)] == want


@pytest.mark.parametrize(("unbound", "is_met"), [(0, True), (1, False)])
def test_traffic_counts_where_every_pod_is_bound(unbound: int, is_met: bool) -> None:
    asked = SeedsResult("traffic-queries", 5000, 4, "none", 1, 1.7, 850.0)  # 900 / 1.7 = 529
    lines = traffic_report([NOBODY, replace(LOWTIDE, unbound=unbound), asked])
    assert [line.is_met for line in lines if isinstance(line, Compared)] == [is_met]


def test_the_pace_of_the_machine_is_that_of_kube_scheduler() -> None:
    slow = replace(KUBE_SCHEDULER, scheduler_cpu_ms_per_pod=4.64)
    (line,) = (
        line
        for line in drain_report([LOWTIDE, slow])
        if isinstance(line, str) and "pace of" in line
    )
    assert "4.64 ms of CPU per basic pod, 1.6 times the 2.9" in line  # 4.64 / 2.9
    assert not [line for line in drain_report([LOWTIDE]) if "pace of" in str(line)]


@pytest.mark.parametrize(("unbound", "is_met"), [(0, True), (1, False)])
def test_a_steady_load_is_borne_where_every_pod_is_bound(unbound: int, is_met: bool) -> None:
    ours = SteadyResult("steady", 5000, 2000, "lowtide", 1, 100.0, 0.01, 0.02, 0.1, 1.0, 150.0, 0)
    rounds = [replace(ours, unbound=unbound), replace(ours, scheduler="kube-scheduler")]
    assert [line.is_met for line in steady_report(rounds) if isinstance(line, Compared)] == [is_met]


def test_a_turn_beside_other_programs_is_told() -> None:
    lines = list(drain_report([replace(LOWTIDE, others_cpu_share=0.3)]))
    about = "drain, basic, 5000 nodes, round 1, lowtide"
    assert lines[-1] == (
        f"{about}: 30% of the CPU went to other programs; measure again without them"
    )
    assert not any("other programs" in str(line) for line in drain_report([LOWTIDE]))
