"""Figures from a record of utilisation, by hand."""

import numpy as np
import pytest

from lowtide.simulator.report import Figures, LoadRecord, Moment, figures, median_and_90th


def record(*changes: tuple[float, list[float]], end: float) -> LoadRecord:
    """From 0 s on: [utilisation of each link] from that second on."""
    (_, first), *others = changes
    it = LoadRecord(np.array(first), 100.0)
    for at, utilization in others:
        it.change(np.array(utilization), 100.0 + at)
    it.end(100.0 + end)
    return it


def moment(utilization: list[float], cpu: list[float], pods: list[int]) -> Moment:
    return Moment(1.0, np.array(utilization), np.array(cpu), np.array(pods))


def test_the_peak_is_the_highest_of_any_link_at_any_time() -> None:
    it = record((0, [0.1, 0.2]), (5, [0.7, 0.2]), (6, [0.3, 0.4]), end=10)
    assert it.peak == 0.7
    assert it.course == [(0.0, 0.2), (5.0, 0.7), (6.0, 0.4), (10.0, 0.4)]


@pytest.mark.parametrize(
    ("changes", "end", "p95"),
    [
        # 20 link-seconds: 19 at 0.1, 1 at 0.9
        pytest.param(
            [(0, [0.1, 0.1]), (9, [0.9, 0.1])], 10.0, 0.1, id="leaves out what is short enough"
        ),
        # 20 link-seconds: 18 at 0.1, 2 at 0.9
        pytest.param(
            [(0, [0.1, 0.1]), (8, [0.9, 0.1])], 10.0, 0.9, id="counts what lasts long enough"
        ),
        pytest.param([(0, [0.1, 0.1]), (0, [0.5, 0.5])], 10.0, 0.5, id="weighs by time"),
        pytest.param([(0, [0.5, 0.5])], 0.0, 0.5, id="is of the links where no time passes"),
    ],
)
def test_the_95th_percentile(
    changes: list[tuple[float, list[float]]], end: float, p95: float
) -> None:
    assert record(*changes, end=end).percentile(0.95) == pytest.approx(p95)


@pytest.mark.parametrize(
    ("at_busiest", "fairness", "imbalance", "nodes_used"),
    [
        pytest.param(
            moment([0.5, 0.5], [0.25, 0.25], [1, 1]), 1.0, 1.0, 2, id="is one of equal links"
        ),
        # (0.8 + 0)^2 / (2 * 0.64); 0.5 / 0.25
        pytest.param(
            moment([0.8, 0.0], [0.5, 0.0], [3, 0]), 0.5, 2.0, 1, id="is 1/n where one has all"
        ),
        pytest.param(moment([0, 0], [0, 0], [0, 0]), 1.0, 1.0, 0, id="is one of nothing"),
    ],
)
def test_fairness(at_busiest: Moment, fairness: float, imbalance: float, nodes_used: int) -> None:
    it = record((0, [0.5, 0.5]), end=10)
    it.busiest = at_busiest
    assert figures(it, seed=4, reference=0.4, pending=3) == Figures(
        seed=4,
        peak=0.5,
        peak_over_reference=1.25,
        p95=0.5,
        fairness=pytest.approx(fairness),
        cpu_imbalance=pytest.approx(imbalance),
        nodes_used=nodes_used,
        pending=3,
    )


def test_an_idle_world_is_as_good_as_its_reference() -> None:
    it = record((0, [0.0, 0.0]), end=10)
    it.busiest = moment([0, 0], [0, 0], [0, 0])
    assert figures(it, seed=1, reference=0.0, pending=0).peak_over_reference == 1.0


def test_json_is_rounded() -> None:
    assert Figures(1, 1 / 3, 1.0, 0.25, 2 / 3, 1.5, 7, 0).as_json() == {
        "seed": 1,
        "peak": 0.333333,
        "peak_over_reference": 1.0,
        "p95": 0.25,
        "fairness": 0.666667,
        "cpu_imbalance": 1.5,
        "nodes_used": 7,
        "pending": 0,
    }


def test_median_and_90th_percentile() -> None:
    assert median_and_90th([5, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]) == (6.0, 10.0)
