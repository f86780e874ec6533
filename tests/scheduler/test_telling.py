"""The log lines of the scheduler."""

import io
import logging
from collections.abc import Iterator

import pytest

from lowtide.logs import configure_logs
from lowtide.plugins.network_traffic import NetworkTraffic, NetworkTrafficArgs
from lowtide.readings.columns import traffic_columns
from lowtide.readings.reading import NodeReading, State, TrafficReading
from lowtide.scheduler.telling import tell_reading
from lowtide.testing import make_node, make_profile, make_state

# node5, node3 ... of the first NetworkTraffic plugin's own log.
BYTES = {"node5": 312528236767, "node4": 224935743744, "node6": 415270171795}


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What is logged at the default level."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.StringIO()
    configure_logs(verbosity=0, format="text", stream=stream, clock=lambda: 0.0, pid=1)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


def told(rule: NetworkTraffic, log: io.StringIO) -> list[str]:
    state = make_state([make_node(name) for name in BYTES])
    reading = TrafficReading(
        request=rule.request,
        published_at=0.0,
        version=1,
        by_node={
            name: NodeReading(value=float(value), at=0.0, state=State.FRESH)
            for name, value in BYTES.items()
        },
    )
    state.publish(rule.request, *traffic_columns(reading))
    tell_reading(rule.request, [make_profile([rule])], state)
    return [line.partition("] ")[2] for line in log.getvalue().splitlines()]


def test_a_reading_is_told_once_in_the_words_of_the_first_plugins(log: io.StringIO) -> None:
    args = NetworkTrafficArgs(measure="sumOverTime", scoring="relative", log_readings=True)
    assert told(NetworkTraffic(args), log) == [
        "[NetworkTraffic] node 'node5' bandwidth: 312528236767",
        "[NetworkTraffic] node 'node4' bandwidth: 224935743744",
        "[NetworkTraffic] node 'node6' bandwidth: 415270171795",
        "[NetworkTraffic] Nodes final score: [{node5 25} {node4 46} {node6 0}]",
    ]


def test_readings_are_not_told_unless_wanted(log: io.StringIO) -> None:
    assert told(NetworkTraffic(NetworkTrafficArgs(scoring="relative")), log) == []
