"""The histogram against prometheus_client's own."""

import prometheus_client
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from lowtide.scheduler.histogram import Histogram

BUCKETS = (0.001, 1, 16.384, 2_000_000)


def told(registry: CollectorRegistry) -> list[str]:
    lines = generate_latest(registry).decode().splitlines()
    return [line for line in lines if "_created" not in line]


@pytest.mark.parametrize(
    "amounts",
    [
        pytest.param([], id="nothing was seen"),
        pytest.param([0.0005, 0.5, 2, 20.0, 3e6], id="one in each bucket"),
        pytest.param([0.001, 1, 1.0, 16.384], id="a bound belongs to the bucket below it"),
    ],
)
def test_it_tells_what_prometheus_clients_tells(amounts: list[float]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    plain = Histogram("h", "What it is", buckets=BUCKETS, registry=ours)
    labelled = Histogram("by", "By what", ("a", "b"), buckets=BUCKETS, registry=ours)
    their_plain = prometheus_client.Histogram("h", "What it is", buckets=BUCKETS, registry=theirs)
    their_labelled = prometheus_client.Histogram(
        "by", "By what", ("a", "b"), buckets=BUCKETS, registry=theirs
    )
    for amount in amounts:
        plain.observe(amount)
        their_plain.observe(amount)
        for labels in (("x", "y"), ("y", "x")):
            labelled.observe(amount, *labels)
            their_labelled.labels(*labels).observe(amount)
    assert told(ours) == told(theirs)


def test_a_registry_rejects_a_second_one_of_the_same_name() -> None:
    registry = CollectorRegistry()
    Histogram("h", "What it is", buckets=BUCKETS, registry=registry)
    with pytest.raises(ValueError, match="h"):
        Histogram("h", "What it is", buckets=BUCKETS, registry=registry)


def test_labels_are_as_many_as_were_said() -> None:
    histogram = Histogram("h", "What", ("a", "b"), buckets=BUCKETS, registry=CollectorRegistry())
    with pytest.raises(ValueError, match=r"h has the labels \('a', 'b'\), not \('x',\)"):
        histogram.observe(1.0, "x")
