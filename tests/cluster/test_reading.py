"""A Reading: how much of a pod it has not measured yet."""

import math

import msgspec
import pytest

from lowtide.cluster.reading import Reading, with_precomputed_pods
from lowtide.objects.pod import Pod
from lowtide.testing import make_pod

# In seconds since 1970, as pods say it in words.
EPOCH = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def started(seconds: int | None) -> Pod:
    """A pod that started so many seconds into a minute."""
    status = {} if seconds is None else {"startTime": f"2026-01-01T00:00:{seconds:02}Z"}
    return msgspec.convert({"status": {"phase": "Running", **status}}, Pod)


@pytest.mark.parametrize(
    ("started_at", "sampled_at", "window_seconds", "share"),
    [
        pytest.param(None, 50, 20, 1.0, id="expects all of a pod that has not started"),
        pytest.param(50, math.nan, 20, 0.0, id="expects nothing before the first sample"),
        pytest.param(
            None,
            math.nan,
            20,
            0.0,
            id="expects nothing of a pod that has not started, before the first sample",
        ),
        pytest.param(55, 50, 20, 1.0, id="expects all of a pod that started after the sample"),
        pytest.param(50, 50, 20, 1.0, id="expects all of a pod that started with the sample"),
        pytest.param(45, 50, 20, 0.75, id="misses three quarters"),  # 1 - (50-45)/20
        pytest.param(35, 50, 20, 0.25, id="misses a quarter"),  # 1 - (50-35)/20
        pytest.param(30, 50, 20, 0.0, id="has measured a pod of the window's whole length"),
        pytest.param(1, 50, 20, 0.0, id="has measured an older pod"),
        pytest.param(None, math.inf, 20, 0.0, id="has measured everything if sampled at infinity"),
        pytest.param(50, 50, 0, 0.0, id="without a window, has measured what ran at the sample"),
        pytest.param(51, 50, 0, 1.0, id="without a window, expects all of what started later"),
    ],
)
def test_a_reading(
    started_at: int | None, sampled_at: float, window_seconds: float, share: float
) -> None:
    reading = Reading(sampled_at=EPOCH + sampled_at, window_seconds=window_seconds)
    assert reading.unmeasured_share(started(started_at)) == share


def test_a_pod_that_was_only_made_is_still_to_come() -> None:
    assert Reading(sampled_at=EPOCH, window_seconds=60).unmeasured_share(make_pod()) == 1.0


class ByName:
    """Expects of a pod as many bytes as its name is long, and counts how often it is asked."""

    fields = ("in",)

    def __init__(self) -> None:
        self.asked = 0

    def expected_for(self, pod: Pod) -> tuple[float, ...]:
        self.asked += 1
        return (float(len(pod.name)),)


def test_what_is_missing_of_pods_may_be_worked_out_beforehand() -> None:
    expects, rests = ByName(), []
    young = [make_pod(f"pod-{number}") for number in range(600)]
    old = started(1)
    reading = Reading(expects=expects, sampled_at=EPOCH + 50, window_seconds=20)
    ready = with_precomputed_pods(reading, [*young, old], lambda: rests.append(expects.asked))
    assert rests == [250, 500, 600]
    assert [ready.unmeasured(pod) for pod in (*young, old)] == [
        *((float(len(pod.name)),) for pod in young),
        None,
    ]
    assert expects.asked == 600
    again = make_pod("pod-7", cpu="1")  # of the same uid, but changed since
    assert ready.unmeasured(again) == (5.0,)
    assert expects.asked == 601
