"""The log lines of the scheduler."""

import io
import logging
from collections.abc import Iterator

import pytest

from lowtide.logs import configure_logs
from lowtide.objects.events import Added
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import NetworkTrafficArgs
from lowtide.readings.columns import published
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.telling import tell_event, tell_reading
from lowtide.testing import make_node, make_pod, make_profile, make_state

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
    nodes = [make_node(name) for name in BYTES]
    state = make_state(nodes)
    state.publish(rule.request, published(traffic_reading(rule.request, BYTES, nodes)))
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


@pytest.mark.parametrize(
    ("thing", "want"),
    [
        pytest.param(
            make_pod("web", annotations={"lowtide.dev/traffic": "fast"}),
            'pod="default/web" annotation="lowtide.dev/traffic" value="fast"',
            id="a pod's",
        ),
        pytest.param(
            make_node("a", annotations={"lowtide.dev/link-capacity": "10 Gb"}),
            'node="a" annotation="lowtide.dev/link-capacity" value="10 Gb"',
            id="a node's",
        ),
    ],
)
def test_an_annotation_that_cannot_be_read_is_told(
    thing: object, want: str, log: io.StringIO
) -> None:
    tell_event(Added(thing), make_state([]))
    assert "An annotation cannot be read, and does not count" in log.getvalue()
    assert want in log.getvalue()


@pytest.mark.parametrize("text", ["240M", "receive=240M,transmit=80M", "ignore"])
def test_an_annotation_that_can_be_read_is_not(text: str, log: io.StringIO) -> None:
    tell_event(Added(make_pod(annotations={"lowtide.dev/traffic": text})), make_state([]))
    assert log.getvalue() == ""
