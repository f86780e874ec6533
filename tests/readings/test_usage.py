"""Usage: from what metrics-server says to a reading of the nodes."""

import math
from typing import Any

import msgspec
import pytest

from lowtide.cluster.reading import Reading
from lowtide.objects.node_metrics import NodeMetrics
from lowtide.readings.usage import (
    Allocatable,
    PodRequests,
    UsageRequest,
    UsageSample,
    sample_of,
    usage_reading,
    without_usage,
)
from lowtide.testing import make_node, make_pod, make_state

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
GIB = 2**30
FOUR_CORES = Allocatable(4000.0, 8.0 * GIB)
REQUEST = UsageRequest()
UNKNOWN = "unknown"


def metrics(**fields: Any) -> NodeMetrics:
    usage = {"cpu": "264m", "memory": "1Gi"}
    whole = {"timestamp": "2026-01-01T00:00:00Z", "window": "20.05s", "usage": usage, **fields}
    return msgspec.convert(whole, NodeMetrics)


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({}, (264, GIB, NOW, 20.05), id="reads all of it"),
        pytest.param(
            {"usage": {"cpu": "66123456n", "memory": "1234Ki"}},
            (67, 1234 * 1024, NOW, 20.05),
            id="rounds nanocores up, as kube does",
        ),
        pytest.param(
            {"usage": {"cpu": "much"}},
            (UNKNOWN, UNKNOWN, NOW, 20.05),
            id="does not know what is not said or not a quantity",
        ),
        pytest.param(
            {"timestamp": "soon", "window": "wide"},
            (264, GIB, UNKNOWN, 60.0),
            id="takes a minute for the window that is not said",
        ),
    ],
)
def test_sample(fields: dict[str, Any], want: tuple[Any, ...]) -> None:
    sample = msgspec.structs.astuple(sample_of(metrics(**fields)))
    assert tuple(UNKNOWN if math.isnan(each) else each for each in sample) == want


def plain(reading: Reading, field: str) -> dict[str, Any]:
    values = reading.columns[field].tolist()
    found = dict(zip(reading.names, values, strict=True))
    found["others"] = reading.of_others[field]
    return {name: UNKNOWN if math.isnan(each) else each for name, each in found.items()}


def read(samples: dict[str, UsageSample], nodes: str = "abc") -> Reading:
    return usage_reading(REQUEST, samples, dict.fromkeys(nodes, FOUR_CORES), NOW)


@pytest.mark.parametrize(
    ("sample", "want"),
    [
        pytest.param(UsageSample(100, at=NOW), 100, id="takes a new sample"),
        pytest.param(UsageSample(100, at=NOW - 300), 100, id="takes one of five minutes"),
        pytest.param(UsageSample(100, at=NOW - 301), UNKNOWN, id="takes no older one"),
        pytest.param(UsageSample(100, at=NOW + 9), 100, id="takes one of a clock ahead of ours"),
        pytest.param(UsageSample(100), UNKNOWN, id="takes none without a time"),
        pytest.param(UsageSample(-1, at=NOW), UNKNOWN, id="takes no negative amount"),
        pytest.param(UsageSample(0, at=NOW), 0, id="takes nothing for nothing"),
    ],
)
def test_what_is_trusted(sample: UsageSample, want: Any) -> None:
    assert plain(read({"a": sample}), "cpu_milli") == {"a": want, "others": UNKNOWN}


def test_the_average_is_over_known_nodes_with_a_usage() -> None:
    samples = {
        "a": UsageSample(1000, 4 * GIB, at=NOW),
        "b": UsageSample(2000, 2 * GIB, at=NOW),
        "c": UsageSample(4000, 8 * GIB, at=NOW - 1000),
        "gone": UsageSample(9000, GIB, at=NOW),
    }
    reading = read(samples)
    fields = ("neutral_cpu_milli", "neutral_cpu_share", "neutral_memory_share")
    averages = {field: set(plain(reading, field).values()) for field in fields}
    # (1000 + 2000) / 2, (25 % + 50 %) / 2, (50 % + 25 %) / 2
    assert averages == {
        "neutral_cpu_milli": {1500.0},
        "neutral_cpu_share": {0.375},
        "neutral_memory_share": {0.375},
    }


def test_a_node_that_has_nothing_is_no_part_of_the_average() -> None:
    allocatable = {"a": FOUR_CORES, "b": Allocatable(0.0, 0.0)}
    samples = {"a": UsageSample(1000, GIB, at=NOW), "b": UsageSample(5, GIB, at=NOW)}
    reading = usage_reading(REQUEST, samples, allocatable, NOW)
    assert reading.of_others["neutral_cpu_share"] == 0.25


def test_without_samples_nothing_is_known_and_pods_that_run_count_as_measured() -> None:
    reading = read({})
    known = {field: value for field, value in reading.of_others.items() if not math.isnan(value)}
    assert known == {"expected_cpu_milli": 0.0, "expected_memory_bytes": 0.0}
    assert (reading.names, reading.sampled_at, reading.window_seconds) == ((), NOW, 60.0)


def test_the_time_is_that_of_most_nodes() -> None:
    samples = {
        "a": UsageSample(1, at=NOW - 10, window_seconds=15),
        "b": UsageSample(1, at=NOW - 12, window_seconds=16),
        "c": UsageSample(1, at=NOW - 250, window_seconds=40),
    }
    reading = read(samples)
    assert (reading.sampled_at, reading.window_seconds) == (NOW - 12, 16)


def test_a_clock_ahead_of_ours_does_not_measure_pods_of_the_future() -> None:
    assert read({"a": UsageSample(1, at=NOW + 100)}).sampled_at == NOW


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod(cpu="250m", memory="1Gi"), (250, GIB), id="its requests"),
        pytest.param(make_pod(), (100, 200 * 2**20), id="kube's default where it asks for nothing"),
        pytest.param(make_pod(cpu="much"), (0, 0), id="nothing where it cannot be read"),
    ],
)
def test_a_pod_is_expected_to_use(pod: Any, want: tuple[int, int]) -> None:
    assert PodRequests().expected_for(pod) == want


def test_what_was_placed_counts_until_it_is_measured() -> None:
    state = make_state([make_node("a"), make_node("b")])
    state.assume(make_pod("new", cpu="300m", memory="1Gi"), "a")
    reading = read({"a": UsageSample(1000, GIB, at=NOW)}, nodes="ab")
    state.publish(REQUEST, reading)
    columns = state.nodes().reading(REQUEST)
    assert columns["expected_cpu_milli"].tolist() == [300, 0]
    assert columns["expected_memory_bytes"].tolist() == [GIB, 0]


def test_nodes_without_usage_are_named() -> None:
    samples = {
        "b": UsageSample(1, at=NOW),
        "c": UsageSample(1, at=NOW - 1000),
        "gone": UsageSample(at=NOW),
    }
    assert without_usage(read(samples), ["d", "c", "b"]) == ("c", "d")
