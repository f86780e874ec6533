"""The log lines of the scheduler."""

import io
import logging
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest

from lowtide.cluster.reading import Reading
from lowtide.framework.decision import (
    NO_SCORES,
    Decision,
    NodeRejection,
    PluginScore,
    ScoreTable,
)
from lowtide.framework.log_words import LogsScores, LogsVerdicts
from lowtide.framework.plugin import IntArray, Nodes, Pod, Rejection
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.logs import configure_logs
from lowtide.objects.events import Added
from lowtide.objects.quantity import QuantityError
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import NetworkTrafficArgs
from lowtide.plugins.node_usage import NodeUsage, NodeUsageArgs
from lowtide.readings.columns import published
from lowtide.readings.usage import Allocatable, UsageSample, usage_reading
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.decide import decide
from lowtide.scheduler.log_lines import (
    log_decision,
    log_event,
    log_filter,
    log_priorities,
    log_reading,
)
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


def told(plugin: NetworkTraffic, log: io.StringIO) -> list[str]:
    nodes = [make_node(name) for name in BYTES]
    state = make_state(nodes)
    state.publish(plugin.request, published(traffic_reading(plugin.request, BYTES, nodes)))
    log_reading(plugin.request, [make_profile([plugin])], state)
    return lines_of(log)


def lines_of(log: io.StringIO) -> list[str]:
    return [line.partition("] ")[2] for line in log.getvalue().splitlines()]


def test_a_reading_is_told_once_in_the_words_of_the_first_plugins(log: io.StringIO) -> None:
    args = NetworkTrafficArgs(measure="sumOverTime", scoring="relative", log_readings=True)
    assert told(NetworkTraffic(args), log) == [
        "[NetworkTraffic] node 'node5' bandwidth: 312528236767",
        "[NetworkTraffic] node 'node4' bandwidth: 224935743744",
        "[NetworkTraffic] node 'node6' bandwidth: 415270171795",
        "[NetworkTraffic] Nodes final score: [{node5 25} {node4 46} {node6 0}]",
    ]


class Telling(LogsScores):
    """Normalises by itself, and may fail at it or at telling of it."""

    name = "Telling"
    readings = ("source",)
    logs_readings = True

    def __init__(self, *, fails_in: str = "") -> None:
        self._fails_in = fails_in

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        return np.arange(len(nodes))

    def normalize(self, pod: Pod, nodes: Nodes, raw: IntArray) -> IntArray:
        if self._fails_in == "normalize":
            raise ZeroDivisionError("no quotient")
        return raw * 100 // int(raw.max())

    def score_log_lines(
        self, scores: Mapping[str, PluginScore], nodes: Nodes, *, brief: bool = False
    ) -> Iterator[str]:
        if self._fails_in == "score_log_lines":
            raise KeyError("word")
        for name, score in scores.items():
            yield f"{name}: {score.raw} {score.normalized} {score.weighted}{' brief' * brief}"


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        pytest.param(
            Telling(),
            [
                "a: 0 0 0 brief",
                "b: 1 50 150 brief",
                "c: 2 100 300 brief",
            ],
            id="with normalised and weighted scores, as in decisions",
        ),
        pytest.param(
            Telling(fails_in="normalize"),
            [
                '"A plugin cannot log a reading" '
                "err=\"Telling.normalize failed: ZeroDivisionError('no quotient')\""
            ],
            id="as an error if the plugin fails",
        ),
        pytest.param(
            Telling(fails_in="score_log_lines"),
            [
                '"A plugin cannot log a reading" '
                "err=\"Telling.score_log_lines failed: KeyError('word')\""
            ],
            id="as an error where the plugin has no words",
        ),
    ],
)
def test_a_reading_is_told(plugin: Telling, want: list[str], log: io.StringIO) -> None:
    state = make_state([make_node(name) for name in "abc"])
    log_reading("source", [make_profile([plugin], weights={"Telling": 3})], state)
    assert lines_of(log) == want


def test_a_reading_of_no_node_is_not_told(log: io.StringIO) -> None:
    log_reading("source", [make_profile([Telling()])], make_state([]))
    assert log.getvalue() == ""


def test_scores_that_a_plugin_cannot_put_into_words_do_not_hinder(log: io.StringIO) -> None:
    configure_logs(verbosity=2, format="text", stream=log, clock=lambda: 0.0, pid=1)
    profile = make_profile([Telling(fails_in="score_log_lines")])
    state = make_state([make_node(name) for name in "abc"])
    decision = decide(make_pod("web"), VerdictCache(profile, state), turn=0)
    log_decision(Decided(decision, attempts=1, first_seen_at=0.0), profile, state.nodes())
    assert lines_of(log) == [
        '"Attempting to schedule pod" pod="default/web"',
        '"A plugin cannot log its scores" err="Telling.score_log_lines failed: KeyError(\'word\')"',
    ]


def test_a_rejection_that_gave_way_is_told(log: io.StringIO) -> None:
    configure_logs(verbosity=2, format="text", stream=log, clock=lambda: 0.0, pid=1)
    decision = Decision(
        make_pod("web"),
        "lowtide",
        node_name="a",
        node_count=1,
        feasible_count=1,
        gave_way=NodeRejection("Busy", ("node(s) were busy",), eviction_helps=False),
    )
    nodes = make_state([]).nodes()
    log_decision(Decided(decision, attempts=1, first_seen_at=0.0), make_profile([]), nodes)
    assert lines_of(log) == [
        '"Attempting to schedule pod" pod="default/web"',
        '"A rejection gave way, as no other node was left" pod="default/web" node="a" '
        'plugin="Busy" reasons=["node(s) were busy"]',
    ]


def test_a_decision_is_told_as_the_nodes_were_before_it(log: io.StringIO) -> None:
    """The pod is counted on its node by then."""
    configure_logs(verbosity=2, format="text", stream=log, clock=lambda: 0.0, pid=1)
    plugin = NodeUsage(NodeUsageArgs(unit="millicores"))
    state = make_state([make_node("a"), make_node("b")])
    state.publish(plugin.request, usage_of(plugin, {"a": 264.0, "b": 67.0}))
    profile, pod = make_profile([plugin]), make_pod("web", cpu="100m")
    decision = decide(pod, VerdictCache(profile, state), turn=0)
    assert decision.node_name == "b"
    state.assume(pod, "b")
    log_decision(Decided(decision, attempts=1, first_seen_at=0.0), profile, state.nodes())
    assert lines_of(log) == [
        '"Attempting to schedule pod" pod="default/web"',
        "Node [ b ] Cpu Usage Value: 67, Score: 1",
        "Node [ a ] Cpu Usage Value: 264, Score: -196",
        "[NodeUsage] Nodes final score: [{b 100} {a 0}]",
    ]


def usage_of(plugin: NodeUsage, cpu_milli: Mapping[str, float]) -> Reading:
    samples = {name: UsageSample(each, 0.0, at=0.0) for name, each in cpu_milli.items()}
    has = dict.fromkeys(cpu_milli, Allocatable(4000.0, 0.0))
    return usage_reading(plugin.request, samples, has, now=0.0)


# What the extender tells of its answers.


class Judging(LogsVerdicts):
    """Has words for its verdicts, or fails at them."""

    name = "Judging"

    def __init__(self, failure: Exception | None = None) -> None:
        self._failure = failure

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        yield from ()

    def filter_log_lines(self, pod: Pod, nodes: Nodes) -> Iterator[str]:
        if self._failure is not None:
            raise self._failure
        yield from (f"{name} for {pod.name}" for name in nodes.names)


@pytest.mark.parametrize(
    ("verbosity", "at_info", "is_reported"),
    [
        pytest.param(0, True, True, id="by default if the profile asks for it"),
        pytest.param(1, False, False, id="not by default"),
        pytest.param(2, False, True, id="with -v 2"),
    ],
)
def test_answers_are_told(
    verbosity: int, at_info: bool, is_reported: bool, log: io.StringIO
) -> None:
    configure_logs(verbosity=verbosity, format="text", stream=log, clock=lambda: 0.0, pid=1)
    profile = make_profile([Judging(), Telling()], weights={"Telling": 3})
    nodes = make_state([make_node(name) for name in "abc"]).nodes().take(np.array([2, 0]))
    log_filter(make_pod("web"), profile, nodes, at_info=at_info)
    log_priorities(scores_of("Telling", "ca", weight=3), profile, nodes, at_info=at_info)
    assert lines_of(log) == is_reported * [
        "c for web",
        "a for web",
        "c: 0 0 0",
        "a: 1 10 30",
    ]


def scores_of(plugin_name: str, node_names: Sequence[str], *, weight: int = 1) -> ScoreTable:
    """0, 1, 2 and so on; normalised to ten times as much."""
    raw = np.arange(len(node_names))
    totals = 10 * weight * raw
    names, plugins = tuple(node_names), (plugin_name,)
    return ScoreTable(names, raw, totals, plugins, (weight,), raw[None], 10 * raw[None])


@pytest.mark.parametrize(
    ("count", "more"),
    [
        pytest.param(100, [], id="no count of further nodes for 100 nodes"),
        pytest.param(103, ["and 3 more nodes"], id="a count of further nodes after the first 100"),
    ],
)
def test_of_many_nodes_are_told(count: int, more: list[str], log: io.StringIO) -> None:
    profile = make_profile([Judging(), Telling()])
    names = [f"n{number}" for number in range(count)]
    nodes = make_state([make_node(name) for name in names]).nodes()
    log_filter(make_pod("web"), profile, nodes, at_info=True)
    log_priorities(scores_of("Telling", names), profile, nodes, at_info=True)
    assert lines_of(log) == [
        *(f"n{number} for web" for number in range(100)),
        *(f"[Judging] {each}" for each in more),
        *(f"n{number}: {number} {number * 10} {number * 10}" for number in range(100)),
        *(f"[Telling] {each}" for each in more),
    ]


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(KeyError("word"), id="the plugin fails"),
        pytest.param(QuantityError("no"), id="the pod cannot be read"),
    ],
)
def test_verdicts_cannot_be_told_where(failure: Exception, log: io.StringIO) -> None:
    nodes = make_state([make_node("a")]).nodes()
    log_filter(make_pod("web"), make_profile([Judging(failure)]), nodes, at_info=True)
    (line,) = lines_of(log)
    assert line.startswith('"A plugin cannot log its verdicts" err="')


def test_of_scores_that_are_not_there_nothing_is_told(log: io.StringIO) -> None:
    nodes = make_state([make_node("a")]).nodes()
    profile = make_profile([Telling()])
    log_priorities(NO_SCORES, profile, nodes, at_info=True)
    log_priorities(scores_of("Telling", ()), profile, nodes, at_info=True)
    log_priorities(scores_of("Extender", "a"), profile, nodes, at_info=True)
    assert log.getvalue() == ""


def test_readings_are_not_told_unless_wanted(log: io.StringIO) -> None:
    assert told(NetworkTraffic(NetworkTrafficArgs(scoring="relative")), log) == []


@pytest.mark.parametrize(
    ("thing", "want"),
    [
        pytest.param(
            make_pod("web", annotations={"lowtide.dev/traffic": "fast"}),
            'pod="default/web" annotation="lowtide.dev/traffic" value="fast"',
            id="on a pod",
        ),
        pytest.param(
            make_node("a", annotations={"lowtide.dev/link-capacity": "10 Gb"}),
            'node="a" annotation="lowtide.dev/link-capacity" value="10 Gb"',
            id="on a node",
        ),
    ],
)
def test_an_annotation_that_cannot_be_read_is_told(
    thing: object, want: str, log: io.StringIO
) -> None:
    log_event(Added(thing), make_state([]))
    assert "Ignoring an annotation that cannot be read" in log.getvalue()
    assert want in log.getvalue()


@pytest.mark.parametrize("text", ["240M", "receive=240M,transmit=80M", "ignore"])
def test_an_annotation_that_can_be_read_is_not(text: str, log: io.StringIO) -> None:
    log_event(Added(make_pod(annotations={"lowtide.dev/traffic": text})), make_state([]))
    assert log.getvalue() == ""
