"""The meter: what it learns from what pods carry, and over how long that is measured."""

from collections.abc import Mapping, Sequence

import msgspec
import pytest
from tests.readings.conftest import NODE_A, NOW, make_series
from tests.readings.conftest import make_meter as meter

from lowtide.objects.pod import Pod
from lowtide.readings.meter import TrafficMeter
from lowtide.readings.request import duration
from lowtide.readings.series import Series
from lowtide.testing import make_pod

A = NODE_A


def of_pods(value: float, at: float = NOW) -> list[Series]:
    return [Series({"namespace": "default", "pod": "web-1"}, value, at)]


def web(name: str = "web-2", *, started: str = "1970-01-01T00:00:00Z") -> Pod:
    """A pod of the StatefulSet web that runs since then."""
    pod = make_pod(name)
    references = [{"kind": "StatefulSet", "name": "web", "controller": True}]
    meta = msgspec.convert(
        {**msgspec.to_builtins(pod.metadata), "ownerReferences": references}, type(pod.metadata)
    )
    status = {"phase": "Running", "startTime": started}
    return msgspec.structs.replace(
        pod, metadata=meta, status=msgspec.convert(status, type(pod.status))
    )


def expected(
    one: TrafficMeter, *polls: Mapping[str, Sequence[Series]]
) -> list[tuple[float, float]]:
    """What is expected of another pod of web after each poll."""
    traffic = {"receive": [make_series(1)]}
    readings = [
        one.take({**traffic, **answers}, [A], [web("web-1")], NOW + 15 * number)
        for number, answers in enumerate(polls)
    ]
    return [tuple(reading.pods.expected_for(web())) for reading in readings]  # type: ignore[misc]


def test_what_pods_carry_is_learned_and_kept_between_its_polls() -> None:
    both = {"pod_receive": of_pods(30), "pod_transmit": of_pods(3)}
    later = {"pod_receive": of_pods(50, NOW + 30), "pod_transmit": of_pods(5, NOW + 30)}
    found = expected(meter(pod_bytes_per_second=7.0), {}, both, {}, later)
    assert found == [(7, 7), (30, 3), (30, 3), (40, 4)]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param("pod_receive", "pod_transmit", id="received, and then what is sent"),
        pytest.param("pod_transmit", "pod_receive", id="sent, and then what is received"),
    ],
)
def test_a_question_that_fails_does_not_mean_that_pods_carry_nothing(first: str, then: str) -> None:
    values = {"pod_receive": 30.0, "pod_transmit": 3.0}
    found = expected(
        meter(pod_bytes_per_second=7.0),
        {first: of_pods(values[first])},
        {then: of_pods(values[then], NOW + 15)},
    )
    assert found == [(7, 7), (30, 3)]


def test_a_question_that_fails_later_keeps_what_was_learned() -> None:
    both = {"pod_receive": of_pods(30), "pod_transmit": of_pods(3)}
    later = {"pod_receive": of_pods(50, NOW + 15)}, {"pod_transmit": of_pods(5, NOW + 30)}
    assert expected(meter(), both, *later) == [(30, 3), (30, 3), (40, 4)]


def test_answers_that_come_before_pods_are_known_teach_at_the_next_poll() -> None:
    one = meter(pod_bytes_per_second=7.0)
    both = {"pod_receive": of_pods(30), "pod_transmit": of_pods(3)}
    one.take({"receive": [make_series(1)], **both}, [A], (), NOW)
    # Over another window since, which the answers are not.
    one.pods_probed([[NOW - 10, NOW]], NOW)
    running = web("web-1", started="1970-01-01T00:14:10Z")  # 150 s before
    later = [one.take({"receive": [make_series(1)]}, [A], [running], NOW + at) for at in (15, 30)]
    assert [tuple(reading.pods.expected_for(web())) for reading in later] == [(60, 6), (60, 6)]


def test_pods_are_measured_when_the_older_of_both_answers_was_given() -> None:
    """The pod ran for 149 s then, which is less than half of the window; and later for 151 s."""
    one = meter(pod_bytes_per_second=7.0)
    running = web("web-1", started="1970-01-01T00:14:10Z")
    traffic = {"receive": [make_series(1, at=NOW + 1)]}
    first = {"pod_receive": of_pods(30, NOW - 1), "pod_transmit": of_pods(3, NOW + 1)}
    then = {"pod_receive": of_pods(30, NOW + 1), "pod_transmit": of_pods(3, NOW + 1)}
    found = [
        one.take({**traffic, **answers}, [A], [running], NOW + 1).pods.expected_for(web())
        for answers in (first, then)
    ]
    scale = 300 / 151
    assert found == [(7, 7), (pytest.approx(30 * scale), pytest.approx(3 * scale))]


def test_no_pod_in_an_answer_teaches_nothing() -> None:
    nothing: dict[str, list[Series]] = {"pod_receive": [], "pod_transmit": []}
    assert expected(meter(pod_bytes_per_second=7.0), nothing) == [(7, 7)]


@pytest.mark.parametrize(
    ("apart", "window_seconds", "want"),
    [
        pytest.param(None, 60, 300, id="five minutes while it is not known how often"),
        pytest.param(None, 600, 600, id="the window of nodes where that is longer"),
        pytest.param(15.0, 60, 60, id="the window of nodes where it holds four scrapes"),
        pytest.param(15.004, 60, 60, id="the same where scrapes are a hair late"),
        pytest.param(60.0, 60, 240, id="four scrapes"),
    ],
)
def test_rates_of_pods_are_taken_over(apart: float | None, window_seconds: int, want: int) -> None:
    one = meter(window_seconds=window_seconds)
    both = {"pod_receive": of_pods(30), "pod_transmit": of_pods(3)}
    assert one.pod_probe(NOW) is None  # no pod is known
    one.take({"receive": [], **both}, [A], (), NOW)
    assert one.pod_probe(NOW) == (
        'container_network_receive_bytes_total{namespace=~"default",pod=~"web\\\\-1",interface!="lo"}[15m]'
    )
    if apart is not None:
        one.pods_probed([[NOW - apart, NOW]], NOW)
        assert one.pod_probe(NOW + 3599) is None
        assert one.pod_probe(NOW + 3600) is not None
    assert one.pod_window_seconds == want
    asked = one.due(NOW + 15, [A])
    assert ("pod_receive" in asked) == (want not in (300, 600))  # at once over another window
    assert f"[{duration(want)}]" in one.due(NOW + 60, [A])["pod_receive"]
