"""The poller: what it publishes and says while Prometheus comes and goes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.reading import NodeReading, State, TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.telemetry.poller import TrafficPoller
from lowtide.telemetry.prometheus import Prometheus
from lowtide.testing import ManualClock, make_node, make_pod

BY_DEVICE = "max by (node, kubernetes_node, nodename, instance, job, device)"
COUNTER = 'node_network_receive_bytes_total{device="eth0"}'
RECEIVE = f"{BY_DEVICE} (rate({COUNTER}[1m]) and {COUNTER})"
SPEED, FLAGS, PARENT, NUMBER = (
    f'{BY_DEVICE} (node_network_{metric}{{device="eth0"}})'
    for metric in ("speed_bytes", "flags", "iface_link", "iface_id")
)
POD_RECEIVE, POD_TRANSMIT = (
    f"sum by (namespace, pod) (rate(container_network_{direction}_bytes_total"
    '{pod!="",interface!="lo"}[5m]))'
    for direction in ("receive", "transmit")
)
EVERYTHING = {RECEIVE, SPEED, FLAGS, PARENT, NUMBER, POD_RECEIVE, POD_TRANSMIT}

LogLines = Callable[[], list[str]]
Result = TypeVar("Result")


class FakePrometheus:
    """Answers with the traffic it is given, by node, stamped by the test's clock."""

    def __init__(self, clock: ManualClock) -> None:
        self.traffic: dict[str, str] = {}
        self.pod_traffic: dict[str, str] = {}
        self.scrapes_are_apart: float = 15.0
        self.least_window = ""  # over another there are no rates
        self.rejected: set[str] = set()
        self.asked: list[str] = []
        self.takes_seconds = 0.0
        self.while_asked: Callable[[], None] = lambda: None
        self.ahead_seconds = 0.0
        self._clock = clock

    @property
    def _now(self) -> float:
        return self._clock.now + self.ahead_seconds

    async def answer(self, request: web.Request) -> web.Response:
        query = str((await request.post())["query"])
        self.asked.append(query)
        if "node_network_receive" in query and not query.endswith("[15m]"):
            self._clock.advance(self.takes_seconds)
            self.while_asked()
        if query in self.rejected or ("probe" in self.rejected and query.endswith("[15m]")):
            return web.Response(status=503, text="no thanks")
        if query.endswith("[15m]"):
            return _success("matrix", self._samples())
        return _success("vector", self._vector(query))

    def _vector(self, query: str) -> list[dict[str, Any]]:
        if "rate(node_network_receive" in query:
            if self.least_window not in query:
                return []
            return self._of_devices()
        if "speed" in query and self.least_window:
            return self._of_devices()
        if "container_network" in query:
            return [
                {
                    "metric": {"namespace": "default", "pod": pod},
                    "value": [self._now, value],
                }
                for pod, value in self.pod_traffic.items()
            ]
        return []

    def _of_devices(self) -> list[dict[str, Any]]:
        return [
            {
                "metric": {"node": node, "instance": f"{node}:9100", "device": "eth0"},
                "value": [self._now, value],
            }
            for node, value in self.traffic.items()
        ]

    def _samples(self) -> list[dict[str, Any]]:
        times = [self._now - self.scrapes_are_apart * back for back in (3, 2, 1, 0)]
        return [{"metric": {}, "values": [[at, "1"] for at in times]}]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        application = web.Application()
        application.router.add_post("/api/v1/query", self.answer)
        async with TestServer(application) as server:
            yield f"http://127.0.0.1:{server.port}"


def _success(kind: str, rows: list[dict[str, Any]]) -> web.Response:
    data = {"resultType": kind, "result": rows}
    return web.json_response({"status": "success", "data": data})


class Bench:
    """A poller, what surrounds it, and what it published."""

    def __init__(self, clock: ManualClock, fake: FakePrometheus, prometheus: Prometheus) -> None:
        self.clock = clock
        self.fake = fake
        self.published: list[TrafficReading] = []
        self.nodes: Sequence[Node] = [make_node("a"), make_node("b")]
        self.pods: list[Pod] = []
        self.slept: list[float] = []
        self.while_off_thread: Callable[[], None] = lambda: None
        self.steady_behind_seconds = 0.0
        self.request = TrafficRequest(
            access=PrometheusAccess(addresses=(prometheus.address,)),
            devices=("eth0",),
            direction="receive",
            match_label="node",
        )
        self.poller = TrafficPoller(
            request=self.request,
            prometheus=prometheus,
            nodes=lambda: self.nodes,
            pods=lambda: self.pods,
            publish=self.publish,
            clock=clock,
            steady_clock=lambda: clock.now - self.steady_behind_seconds,
            sleep=self.sleep,
            off_thread=self.off_thread,
        )

    async def publish(self, reading: TrafficReading) -> None:
        self.published.append(reading)

    async def off_thread(self, work: Callable[[], Result], /) -> Result:
        self.while_off_thread()
        return work()

    async def poll(self, times: int = 1, *, every_seconds: float = 0.0) -> None:
        for _ in range(times):
            await self.poller.poll()
            self.clock.advance(every_seconds)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == 3:
            raise asyncio.CancelledError
        self.clock.advance(seconds)

    def asked(self) -> list[str]:
        """What was asked since the last look, the probe left out."""
        found = [query for query in self.fake.asked if not query.endswith("[15m]")]
        self.fake.asked.clear()
        return sorted(found)

    def states(self) -> list[dict[str, str]]:
        return [
            {name: one.state.value for name, one in reading.by_node()} for reading in self.published
        ]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    clock = ManualClock(1000.0)
    fake = FakePrometheus(clock)
    fake.traffic = {"a": "5", "b": "7"}
    async with fake.serving() as address:
        access = PrometheusAccess(addresses=(address,))
        async with Prometheus(access, clock=clock) as prometheus:
            yield Bench(clock, fake, prometheus)


# What is asked and published.


async def test_what_is_published(bench: Bench) -> None:
    assert not bench.poller.first_result.is_set()
    await bench.poll()
    assert bench.poller.first_result.is_set()
    (reading,) = bench.published
    assert (reading.request, reading.published_at) == (bench.request, 1000.0)
    found = {
        name: (each.value, each.receive, each.at, each.state) for name, each in reading.by_node()
    }
    assert found == {
        "a": (5.0, 5.0, 1000.0, State.FRESH),
        "b": (7.0, 7.0, 1000.0, State.FRESH),
    }
    assert bench.poller.polls == {"success": 1}


async def test_only_what_is_due_is_asked(bench: Bench) -> None:
    await bench.poll(every_seconds=15)
    assert bench.asked() == sorted(EVERYTHING)
    await bench.poll(every_seconds=45)
    assert bench.asked() == [RECEIVE]
    await bench.poll()
    assert bench.asked() == sorted([RECEIVE, POD_RECEIVE, POD_TRANSMIT])


async def test_run_polls_at_once_and_then_at_the_interval(bench: Bench) -> None:
    with pytest.raises(asyncio.CancelledError):
        await bench.poller.run()
    assert [one.published_at for one in bench.published] == [1000.0, 1015.0, 1030.0]
    assert bench.slept == [15.0, 15.0, 15.0]


@pytest.mark.parametrize(
    ("takes_seconds", "want"),
    [
        pytest.param(4.0, [11.0, 11.0, 11.0], id="sleeps for what the poll left of the interval"),
        pytest.param(20.0, [0.0, 0.0, 0.0], id="polls again at once when it is late"),
    ],
)
async def test_slow_polls(bench: Bench, takes_seconds: float, want: list[float]) -> None:
    bench.fake.takes_seconds = takes_seconds
    with pytest.raises(asyncio.CancelledError):
        await bench.poller.run()
    assert bench.slept == want


async def test_a_node_that_joins_is_read_with_the_next_answer(bench: Bench) -> None:
    bench.nodes = [make_node("a")]
    await bench.poll()
    bench.nodes = [make_node("b")]
    await bench.poll()
    assert bench.states() == [{"a": "fresh"}, {"b": "fresh"}]


async def test_a_node_that_joins_while_prometheus_is_asked_is_asked_about_next_time(
    bench: Bench,
) -> None:
    bench.nodes = [make_node("a")]
    await bench.poll()
    bench.asked()

    def join() -> None:
        bench.nodes = [make_node("a"), make_node("b")]

    bench.fake.while_asked = join
    await bench.poll(2)
    assert bench.states()[1:] == [{"a": "fresh"}, {"a": "fresh", "b": "fresh"}]
    assert bench.asked() == sorted([RECEIVE, RECEIVE, SPEED, FLAGS, PARENT, NUMBER])


def running_pod(name: str) -> Pod:
    status = {"phase": "Running", "startTime": "1970-01-01T00:00:00Z"}
    pod = make_pod(name)
    return msgspec.structs.replace(pod, status=msgspec.convert(status, type(pod.status)))


async def test_what_pods_carry_is_learned(bench: Bench) -> None:
    bench.pods = [running_pod("web")]
    bench.fake.pod_traffic = {"web": "30"}
    await bench.poll()
    assert bench.published[0].pods.expected_for(make_pod("other")) == (30.0, 30.0)


async def test_pods_that_go_while_the_reading_is_made_are_learned_from(bench: Bench) -> None:
    bench.pods = [running_pod("web")]
    bench.fake.pod_traffic = {"web": "30"}
    bench.while_off_thread = bench.pods.clear
    await bench.poll()
    assert bench.published[0].pods.expected_for(make_pod("other")) == (30.0, 30.0)


async def test_an_error_while_the_reading_is_made_arrives(bench: Bench) -> None:
    def fail() -> None:
        raise RuntimeError("nobody expects this")

    bench.while_off_thread = fail
    with pytest.raises(RuntimeError, match=r"^nobody expects this$"):
        await bench.poll()
    assert bench.published == []


# Prometheus fails.


async def test_each_outage_has_its_own_two_lines(bench: Bench, log_lines: LogLines) -> None:
    for rejected in (set[str](), EVERYTHING, set[str](), set[str](), {RECEIVE}, set[str]()):
        bench.fake.rejected = rejected
        await bench.poll(every_seconds=15)
    assert [line[:28] for line in log_lines()] == [
        'W "Prometheus gives no traff',
        'I "Prometheus answers again"',
        'W "Prometheus gives no traff',
        'I "Prometheus answers again"',
    ]


async def test_an_outage_is_said_once_and_its_end_once(bench: Bench, log_lines: LogLines) -> None:
    await bench.poll(every_seconds=15)
    bench.fake.rejected = EVERYTHING
    await bench.poll(5, every_seconds=15)
    bench.fake.rejected = set()
    await bench.poll()
    assert bench.states() == [
        {"a": "fresh", "b": "fresh"},
        {"a": "fresh", "b": "fresh"},
        {"a": "fresh", "b": "fresh"},
        {"a": "fresh", "b": "fresh"},
        {"a": "fresh", "b": "fresh"},  # 60 s
        {"a": "stale", "b": "stale"},  # 75 s
        {"a": "fresh", "b": "fresh"},
    ]
    assert [one.published_at for one in bench.published] == [1000 + 15 * n for n in range(7)]
    assert bench.poller.polls == {"success": 2, "failure": 5}
    (address,) = bench.request.access.addresses
    assert log_lines() == [
        'W "Prometheus gives no traffic; earlier readings count until they are stale" '
        f'err="Prometheus at {address} answered HTTP 503 Service Unavailable with '
        '\\"no thanks\\" instead of Prometheus\'s JSON" staleAfterSeconds=60',
        'W "Too few nodes have a fresh traffic reading: traffic does not count until more do" '
        "fresh=0 of=2",
        f'I "Prometheus answers again" prometheus="{address}" failedForSeconds=75',
        "I Enough nodes have a fresh traffic reading: traffic counts again",
    ]


async def test_an_outage_from_the_start_leaves_every_node_missing(bench: Bench) -> None:
    bench.fake.rejected = EVERYTHING
    await bench.poll()
    assert bench.poller.first_result.is_set()
    assert dict(bench.published[0].by_node()) == {"a": NodeReading(), "b": NodeReading()}


async def test_a_query_that_fails_alone_does_not_spoil_the_others(
    bench: Bench, log_lines: LogLines
) -> None:
    bench.fake.rejected = {SPEED}
    await bench.poll(every_seconds=60)
    bench.fake.traffic["a"] = "6"
    await bench.poll(2, every_seconds=60)
    assert [one.node_reading("a").value for one in bench.published] == [5.0, 6.0, 6.0]
    assert bench.states() == [{"a": "fresh", "b": "fresh"}] * 3
    (line,) = log_lines()
    assert line.startswith('W "Prometheus does not answer a question beside" err=')
    assert line.endswith(' asked="speed"')


async def test_each_question_beside_is_told_of_once_as_long_as_the_same_ones_fail(
    bench: Bench, log_lines: LogLines
) -> None:
    for rejected in (
        {SPEED, POD_RECEIVE},
        {SPEED, POD_RECEIVE},
        {SPEED},
        set[str](),
        {POD_RECEIVE},
    ):
        bench.fake.rejected = rejected
        await bench.poll(4, every_seconds=15)  # all of them are asked in that time
    asked = [line.partition("asked=")[2].partition(" ")[0] for line in log_lines()]
    assert asked == ['"speed"', '"pod_receive"', '"pod_receive"']


async def test_while_no_traffic_is_given_nothing_is_said_of_questions_beside(
    bench: Bench, log_lines: LogLines
) -> None:
    bench.fake.rejected = EVERYTHING
    await bench.poll(3)
    (line,) = log_lines()
    assert line.startswith('W "Prometheus gives no traffic" err=')


# Nodes without a usable reading.


async def test_nodes_without_a_usable_reading_are_named_when_they_change(
    bench: Bench, log_lines: LogLines
) -> None:
    bench.nodes = [make_node(name) for name in "abcde"]
    everything = {"a": "5", "b": "7", "c": "1", "d": "1", "e": "1"}
    for traffic in (
        {**everything, "a": "NaN", "b": None},
        {**everything, "a": "NaN", "b": None},
        {**everything, "b": None},
        everything,
        everything,
    ):
        bench.fake.traffic = {name: value for name, value in traffic.items() if value}
        await bench.poll()
    said = 'W "Nodes without a usable traffic reading"'
    assert log_lines() == [
        f'{said} missing=1 implausible=1 nodes=["b","a"] of=5',
        f'{said} missing=1 nodes=["b"] of=5',
        'I "Every node has a fresh traffic reading" nodes=5',
    ]


async def test_only_a_few_of_many_nodes_are_named(bench: Bench, log_lines: LogLines) -> None:
    bench.nodes = [make_node(f"n{number}") for number in range(8)]
    await bench.poll()
    assert log_lines()[-1] == (
        'W "Nodes without a usable traffic reading" missing=8 nodes=["n0","n1","n2","n3","n4"] of=8'
    )


async def test_the_brake_is_told_of_once_and_its_end_once(
    bench: Bench, log_lines: LogLines
) -> None:
    bench.nodes = [make_node(name) for name in "abc"]
    for names in ("abc", "a", "a", "ab", "abc"):
        bench.fake.traffic = dict.fromkeys(names, "5")
        await bench.poll()
    assert [line for line in log_lines() if "ough nodes" in line or "few nodes" in line] == [
        'W "Too few nodes have a fresh traffic reading: traffic does not count until more do" '
        "fresh=1 of=3",
        "I Enough nodes have a fresh traffic reading: traffic counts again",
    ]


# How often targets are scraped.


async def test_a_window_that_is_too_short_is_widened_with_one_warning(
    bench: Bench, log_lines: LogLines
) -> None:
    bench.fake.scrapes_are_apart = 30.0
    bench.fake.least_window = "[2m]"
    await bench.poll(every_seconds=15)
    wider = RECEIVE.replace("1m", "2m")
    assert bench.states() == [
        {"a": "missing", "b": "missing"},
        {"a": "fresh", "b": "fresh"},  # asked again at once
    ]
    assert bench.asked() == sorted([*EVERYTHING, wider])
    await bench.poll(every_seconds=3600)
    assert bench.asked() == [wider]
    await bench.poll()  # it is probed again
    assert log_lines() == [
        'W "The window is shorter than four scrapes, too short for a rate; it is widened" '
        'window="1m" widenedTo="2m"'
    ]


async def test_scrapes_are_probed_once_an_hour(bench: Bench, log_lines: LogLines) -> None:
    def probes() -> int:
        return sum(query.endswith("[15m]") for query in bench.fake.asked)

    found = []
    for _ in range(3):
        await bench.poll(every_seconds=1800)
        found.append(probes())
    assert (found, log_lines()) == ([1, 1, 2], [])


async def test_a_probe_that_fails_is_repeated_without_a_word(
    bench: Bench, log_lines: LogLines
) -> None:
    bench.fake.rejected = {"probe"}
    await bench.poll(2)
    bench.fake.rejected = set()
    await bench.poll(2)
    assert sum(query.endswith("[15m]") for query in bench.fake.asked) == 3
    assert log_lines() == []


async def test_the_queries_are_shown_at_verbosity_2(bench: Bench, log_lines: LogLines) -> None:
    logging.getLogger("telemetry").setLevel(logging.INFO - 2)
    await bench.poll(2)
    assert log_lines() == [
        *(f"I {query}" for query in (RECEIVE, SPEED, FLAGS, PARENT, NUMBER)),
        *(f"I {query}" for query in (POD_RECEIVE, POD_TRANSMIT)),
        f"I {RECEIVE}",
    ]


async def test_the_window_of_pods_goes_by_how_often_kubelets_are_scraped(bench: Bench) -> None:
    bench.fake.pod_traffic = {"web": "30"}
    await bench.poll(every_seconds=60)
    assert POD_RECEIVE in bench.asked()
    bench.fake.scrapes_are_apart = 30.0
    await bench.poll()
    assert POD_RECEIVE.replace("5m", "1m") in bench.asked()


# Our clock is set.


async def test_a_clock_that_is_set_back_stops_nothing(bench: Bench) -> None:
    await bench.poll(every_seconds=15)
    bench.asked()
    bench.clock.advance(-7200)
    bench.steady_behind_seconds = -7200
    bench.fake.ahead_seconds = 7200
    await bench.poll(every_seconds=45)
    bench.fake.rejected = EVERYTHING
    await bench.poll(every_seconds=61)
    assert bench.asked() == sorted([RECEIVE, RECEIVE, POD_RECEIVE, POD_TRANSMIT])
    await bench.poll()
    assert bench.states() == [
        *([{"a": "fresh", "b": "fresh"}] * 3),
        {"a": "stale", "b": "stale"},
    ]
