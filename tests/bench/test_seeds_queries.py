"""What the stand-in for the seeds' plugin asks, and what is made of it."""

import json
import threading
from collections import Counter
from urllib.parse import parse_qs

import pytest

from drain import LOWTIDE, NONE, DrainResult
from realparts.answering import AnsweringServer, Question
from report_lines import Compared
from reports_drain import traffic_report
from seeds_queries import PODS, SeedsResult, ask_like_the_seeds


class FakePrometheus:
    def __init__(self, *, series: int = 1) -> None:
        self.asked: Counter[str] = Counter()
        self._series = series
        self._lock = threading.Lock()

    def __call__(self, question: Question) -> bytes:
        assert question.path == "/api/v1/query"
        (query,) = parse_qs(question.body.decode())["query"]
        with self._lock:
            self.asked[query] += 1
        return json.dumps({"data": {"result": [{}] * self._series}}).encode()


def test_each_scored_node_is_asked_about_for_each_pod() -> None:
    prometheus = FakePrometheus()
    with AnsweringServer(prometheus) as server:
        result = ask_like_the_seeds(server.url, 50, "180s", 2)
    assert prometheus.asked == {
        "sum_over_time(node_network_receive_bytes_total"
        f'{{node="node-{number:05}",device="eth0"}}[180s])': PODS
        for number in range(5)  # a tenth of them
    }
    assert (result.workload, result.scheduler) == ("traffic-queries", NONE)
    assert (result.round, result.pods) == (2, PODS)
    assert result.queries_per_second == pytest.approx(5 * result.pods_per_second)


def test_a_prometheus_without_values_is_no_measure() -> None:
    with (
        AnsweringServer(FakePrometheus(series=0)) as server,
        pytest.raises(ExceptionGroup) as caught,
    ):
        ask_like_the_seeds(server.url, 50, "180s", 1)
    assert caught.group_contains(RuntimeError, match="Prometheus has no value for sum_over_time")


def drained(scheduler: str, number: int, pace: float) -> DrainResult:
    return DrainResult(
        "traffic", 5000, 3000, scheduler, number, pace, pace, *[1.0] * 8, 1, 0, 1, 0.0
    )


@pytest.mark.parametrize(
    ("answered", "is_met"),
    [
        pytest.param(2.0, True, id="300 times and more"),
        pytest.param(2.1, False, id="less"),
    ],
)
def test_the_pace_is_compared_round_by_round(answered: float, is_met: bool) -> None:
    drains = [drained(name, number, 600.0) for name in (NONE, LOWTIDE) for number in (1, 2)]
    asked = [
        SeedsResult("traffic-queries", 5000, 4, NONE, number, answered, 500 * answered)
        for number in (1, 2)
    ]
    lines = [line for line in traffic_report([*drains, *asked]) if isinstance(line, Compared)]
    (line,) = (each for each in lines if "answers the seeds' plugin" in each.found)
    assert f"{500 * answered:.0f} queries a second" in line.found
    assert line.is_met is is_met
