"""Readings as they would have been with pods on other nodes: what a node carries, and whether it is
hot by that."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.records.kept_decisions import GIGABIT
from tests.simulator.test_rerun import started

from lowtide.cluster.reading import Reading
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.columns import IS_HOT, RECEIVE_COLUMN, SHARE, published
from lowtide.readings.demand import Owners, Traffic
from lowtide.readings.request import TrafficRequest
from lowtide.scenario.readings import traffic_reading
from lowtide.simulator.moved_reading import HotNodes, MovedPod, moved_reading
from lowtide.testing import make_node, make_pod

NODES = [make_node("one"), make_node("two")]
REQUEST = TrafficRequest(
    access=PrometheusAccess(addresses=("http://there",)), hot_share=0.8, cooling_share=0.2
)
POD = started(make_pod(annotations={"lowtide.dev/traffic": "1G"}), "two", at=0.0)
HERE = MovedPod(POD, "two", "one")
GONE = MovedPod(POD, "one", "two")


def reading(gigabits: float, *, is_hot: bool = False) -> Reading:
    """Of the first node; the second has as much as the pod."""
    by_node = {
        node.name: {"receive": each * GIGABIT, "transmit": 0.0, "capacity": 10 * GIGABIT}
        for node, each in zip(NODES, (gigabits, 1.0), strict=True)
    }
    made = published(traffic_reading(REQUEST, by_node, NODES))
    return replace(
        made,
        columns={**made.columns, IS_HOT: np.array([float(is_hot), 0.0])},
        sampled_at=1000.0,
        window_seconds=60.0,
        expects=Owners().expectation(Traffic(0.0, 0.0)),
    )


def test_what_was_measured_of_a_pod_goes_with_it() -> None:
    moved = moved_reading(reading(5), REQUEST, [HERE])
    assert moved.columns[RECEIVE_COLUMN] == pytest.approx([6 * GIGABIT, 0.0])
    assert moved.columns[SHARE] == pytest.approx([0.6, 0.0])


@pytest.mark.parametrize(
    ("course", "want"),
    [
        pytest.param(
            [(reading(7.5), [HERE]), (reading(6), [HERE]), (reading(4.5), [HERE])],
            [1, 1, 0],
            id="is hot by what came here, until that has cooled",
        ),
        pytest.param(
            [(reading(7.5), [HERE]), (reading(7), []), (reading(5), []), (reading(7), [])],
            [1, 1, 0, 0],
            id="has not cooled when what came here goes",
        ),
        pytest.param(
            [
                (reading(8.5, is_hot=True), [GONE]),
                (reading(7.5, is_hot=True), []),
                (reading(8.5, is_hot=True), []),
                (reading(7.5, is_hot=True), [GONE]),
            ],
            [0, 0, 1, 1],
            id="was hot then by what is elsewhere here",
        ),
        pytest.param(
            [(reading(7), []), (reading(7, is_hot=True), []), (reading(7), [])],
            [0, 1, 0],
            id="is as recorded where nothing is elsewhere",
        ),
    ],
)
def test_a_node(course: Sequence[tuple[Reading, list[MovedPod]]], want: list[int]) -> None:
    nodes = HotNodes(REQUEST)
    hot = [
        nodes.judged(then, moved_reading(then, REQUEST, pods)).columns[IS_HOT][0]
        for then, pods in course
    ]
    assert hot == want
