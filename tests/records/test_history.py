"""What the last readings said of a node, bounded."""

import pytest

from lowtide.cluster.reading import Reading
from lowtide.records.history import History, NodeHistory
from lowtide.testing import make_reading


def reading(**receive: float) -> Reading:
    return make_reading(
        {
            name: {"receive": value, "transmit": 1.0, "share": value / 100, "capacity": 100.0}
            for name, value in receive.items()
        }
    )


def test_each_reading_adds_a_point() -> None:
    history = History()
    history.note(reading(a=10.0, b=20.0), 1.0)
    history.note(reading(b=40.0), 2.0)
    found = history.node_history("b")
    assert (found.times, found.receive, found.transmit) == ([1.0, 2.0], [20.0, 40.0], [1.0, 1.0])
    assert (found.share, found.capacity) == (pytest.approx([0.2, 0.4]), 100.0)
    assert history.node_history("a").times == [1.0]
    assert history.node_history("c") == NodeHistory([], [], [], [], None)


def test_the_oldest_go_when_there_are_too_many_or_they_take_too_much() -> None:
    few, small = History(most_readings=2), History(most_bytes=3 * 4 * 3)
    for history in (few, small):
        for second in range(4):
            history.note(reading(a=float(second)), float(second))
    assert few.node_history("a").times == [2.0, 3.0]
    assert small.node_history("a").times == [1.0, 2.0, 3.0]


def test_what_is_no_traffic_is_left_out() -> None:
    history = History()
    history.note(make_reading({"a": {"cpu": 0.5}}), 1.0)
    assert history.node_history("a").times == []
