"""The log lines of the scheduler."""

import io
import logging
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from lowtide.framework.decision import Decision, NodeRejection, RuleScore
from lowtide.framework.plugin import BoolArray, IntArray, Nodes, Pod
from lowtide.framework.verdicts import Verdicts
from lowtide.logs import configure_logs
from lowtide.objects.events import Added
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import NetworkTrafficArgs
from lowtide.readings.columns import published
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.decide import decide
from lowtide.scheduler.telling import tell_decision, tell_event, tell_reading
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


class Telling:
    """Normalises by itself, and may fail at it or at telling of it."""

    name = "Telling"
    readings = ("source",)
    tells_readings = True

    def __init__(self, *, fails_in: str = "") -> None:
        self._fails_in = fails_in

    def score(self, pod: Pod, nodes: Nodes, feasible: BoolArray) -> IntArray:
        return np.arange(len(nodes))

    def normalize(self, pod: Pod, nodes: Nodes, raw: IntArray, feasible: BoolArray) -> IntArray:
        if self._fails_in == "normalize":
            raise ZeroDivisionError("no quotient")
        return raw * 100 // int(raw.max())

    def in_words(self, scores: Mapping[str, RuleScore], *, brief: bool = False) -> Iterator[str]:
        if self._fails_in == "in_words":
            raise KeyError("word")
        for name, score in scores.items():
            yield f"{name}: {score.raw} {score.normalized} {score.weighted}{' brief' * brief}"


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        pytest.param(
            Telling(),
            [
                "[Telling] a: 0 0 0 brief",
                "[Telling] b: 1 50 150 brief",
                "[Telling] c: 2 100 300 brief",
            ],
            id="as it is normalised and weighted in decisions",
        ),
        pytest.param(
            Telling(fails_in="normalize"),
            [
                '"A reading cannot be told" '
                "err=\"Telling.normalize failed: ZeroDivisionError('no quotient')\""
            ],
            id="as an error where the rule fails",
        ),
        pytest.param(
            Telling(fails_in="in_words"),
            ['"A reading cannot be told" err="Telling.in_words failed: KeyError(\'word\')"'],
            id="as an error where the rule has no words",
        ),
    ],
)
def test_a_reading_is_told(rule: Telling, want: list[str], log: io.StringIO) -> None:
    state = make_state([make_node(name) for name in "abc"])
    tell_reading("source", [make_profile([rule], weights={"Telling": 3})], state)
    assert [line.partition("] ")[2] for line in log.getvalue().splitlines()] == want


def test_a_reading_of_no_node_is_not_told(log: io.StringIO) -> None:
    tell_reading("source", [make_profile([Telling()])], make_state([]))
    assert log.getvalue() == ""


def test_scores_that_a_rule_cannot_put_into_words_do_not_hinder(log: io.StringIO) -> None:
    configure_logs(verbosity=2, format="text", stream=log, clock=lambda: 0.0, pid=1)
    profile = make_profile([Telling(fails_in="in_words")])
    state = make_state([make_node(name) for name in "abc"])
    decision = decide(make_pod("web"), Verdicts(profile, state), turn=0)
    tell_decision(Decided(decision, attempts=1, first_seen_at=0.0), profile)
    assert [line.partition("] ")[2] for line in log.getvalue().splitlines()] == [
        '"Attempting to schedule pod" pod="default/web"',
        '"Scores cannot be told" err="Telling.in_words failed: KeyError(\'word\')"',
    ]


def test_a_refusal_that_gave_way_is_told(log: io.StringIO) -> None:
    configure_logs(verbosity=2, format="text", stream=log, clock=lambda: 0.0, pid=1)
    decision = Decision(
        make_pod("web"),
        "lowtide",
        node_name="a",
        node_count=1,
        feasible_count=1,
        gave_way=NodeRejection("Busy", ("node(s) were busy",), eviction_helps=False),
    )
    tell_decision(Decided(decision, attempts=1, first_seen_at=0.0), make_profile([]))
    assert [line.partition("] ")[2] for line in log.getvalue().splitlines()] == [
        '"Attempting to schedule pod" pod="default/web"',
        '"A refusal gave way, as no other node was left" pod="default/web" node="a" '
        'plugin="Busy" reasons=["node(s) were busy"]',
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
