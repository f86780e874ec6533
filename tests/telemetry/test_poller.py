"""The poller: what it publishes and says while Prometheus comes and goes."""

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from lowtide.logs import LineHandler, TextFormatter
from lowtide.readings.matching import NodeIdentity
from lowtide.readings.reading import NodeReading, State, TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.telemetry.poller import TrafficPoller
from lowtide.telemetry.prometheus import Prometheus

RECEIVE = 'rate(node_network_receive_bytes_total{device="eth0"}[1m])'
SPEED = 'node_network_speed_bytes{device="eth0"}'


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class FakePrometheus:
    """Answers with the traffic it is given, by node, stamped by the test's clock."""

    def __init__(self, clock: Clock) -> None:
        self.traffic: dict[str, str] = {}
        self.refused: set[str] = set()
        self.asked: list[str] = []
        self.takes_seconds = 0.0
        self._clock = clock

    async def answer(self, request: web.Request) -> web.Response:
        query = str((await request.post())["query"])
        self.asked.append(query)
        if query == RECEIVE:
            self._clock.advance(self.takes_seconds)
        if query in self.refused:
            return web.Response(status=503, text="no thanks")
        rows = [
            {"metric": {"node": node, "device": "eth0"}, "value": [self._clock.now, value]}
            for node, value in self.traffic.items()
            if query == RECEIVE
        ]
        data = {"resultType": "vector", "result": rows}
        return web.json_response({"status": "success", "data": data})

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        application = web.Application()
        application.router.add_post("/api/v1/query", self.answer)
        async with TestServer(application) as server:
            yield f"http://127.0.0.1:{server.port}"


class Bench:
    """A poller, what surrounds it, and what it published."""

    def __init__(self, clock: Clock, fake: FakePrometheus, prometheus: Prometheus) -> None:
        self.clock = clock
        self.fake = fake
        self.published: list[TrafficReading] = []
        self.nodes: Sequence[NodeIdentity] = [NodeIdentity("a"), NodeIdentity("b")]
        self.slept: list[float] = []
        self.request = TrafficRequest(
            prometheus_address=prometheus.address,
            devices=("eth0",),
            window_seconds=60,
            measure="rate",
            direction="receive",
            match_label="node",
            every_seconds=15.0,
            stale_after_seconds=60.0,
        )
        self.poller = TrafficPoller(
            request=self.request,
            prometheus=prometheus,
            identities=lambda: self.nodes,
            publish=self.published.append,
            clock=clock,
            sleep=self.sleep,
        )

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == 3:
            raise asyncio.CancelledError
        self.clock.advance(seconds)

    def states(self) -> list[dict[str, str]]:
        return [
            {name: one.state.value for name, one in reading.by_node.items()}
            for reading in self.published
        ]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    clock = Clock()
    fake = FakePrometheus(clock)
    fake.traffic = {"a": "5", "b": "7"}
    async with fake.serving() as address, Prometheus(address) as prometheus:
        yield Bench(clock, fake, prometheus)


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = LineHandler(stream)
    handler.setFormatter(TextFormatter(clock=lambda: 0.0, pid=1))
    logger = logging.getLogger("telemetry")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(before)


def lines(stream: io.StringIO) -> list[str]:
    return [f"{line[0]} {line.partition('] ')[2]}" for line in stream.getvalue().splitlines()]


async def test_what_is_published(bench: Bench) -> None:
    assert not bench.poller.first_result.is_set()
    await bench.poller.poll()
    assert bench.poller.first_result.is_set()
    fresh = NodeReading(value=5, receive=5, at=1000.0, state=State.FRESH)
    assert bench.published == [
        TrafficReading(
            request=bench.request,
            published_at=1000.0,
            version=1,
            by_node={"a": fresh, "b": msgspec.structs.replace(fresh, value=7.0, receive=7.0)},
        )
    ]
    assert sorted(bench.fake.asked) == sorted([RECEIVE, SPEED])


async def test_run_polls_at_once_and_then_at_the_interval(bench: Bench) -> None:
    with pytest.raises(asyncio.CancelledError):
        await bench.poller.run()
    assert [(one.published_at, one.version) for one in bench.published] == [
        (1000.0, 1),
        (1015.0, 2),
        (1030.0, 3),
    ]
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


async def test_each_outage_has_its_own_two_lines(bench: Bench, log_lines: io.StringIO) -> None:
    for refused in (set[str](), {RECEIVE, SPEED}, set[str](), set[str](), {RECEIVE}, set[str]()):
        bench.fake.refused = refused
        await bench.poller.poll()
        bench.clock.advance(15)
    assert [line[:28] for line in lines(log_lines)] == [
        'W "Prometheus gives no traff',
        'I "Prometheus answers again"',
        'W "Prometheus gives no traff',
        'I "Prometheus answers again"',
    ]


async def test_an_outage_is_said_once_and_its_end_once(
    bench: Bench, log_lines: io.StringIO
) -> None:
    await bench.poller.poll()
    bench.fake.refused = {RECEIVE, SPEED}
    for _ in range(5):
        bench.clock.advance(15)
        await bench.poller.poll()
    bench.fake.refused = set()
    bench.clock.advance(15)
    await bench.poller.poll()
    assert bench.states() == [
        {"a": "fresh", "b": "fresh"},
        {"a": "fresh", "b": "fresh"},
        {"a": "fresh", "b": "fresh"},
        {"a": "fresh", "b": "fresh"},
        {"a": "fresh", "b": "fresh"},  # 60 s
        {"a": "stale", "b": "stale"},  # 75 s
        {"a": "fresh", "b": "fresh"},
    ]
    assert [one.version for one in bench.published] == [1, 2, 3, 4, 5, 6, 7]
    address = bench.request.prometheus_address
    assert lines(log_lines) == [
        'W "Prometheus gives no traffic; earlier readings count until they are stale" '
        f'err="Prometheus at {address} answered HTTP 503 Service Unavailable with '
        '\\"no thanks\\" instead of Prometheus\'s JSON" staleAfterSeconds=60',
        f'I "Prometheus answers again" prometheus="{address}" failedForSeconds=75',
    ]


async def test_an_outage_from_the_start_leaves_every_node_missing(bench: Bench) -> None:
    bench.fake.refused = {RECEIVE, SPEED}
    await bench.poller.poll()
    assert bench.poller.first_result.is_set()
    assert dict(bench.published[0].by_node) == {"a": NodeReading(), "b": NodeReading()}


async def test_a_query_that_fails_alone_does_not_spoil_the_others(
    bench: Bench, log_lines: io.StringIO
) -> None:
    bench.fake.refused = {SPEED}
    await bench.poller.poll()
    bench.fake.traffic["a"] = "6"
    await bench.poller.poll()
    assert [one.by_node["a"].value for one in bench.published] == [5.0, 6.0]
    assert bench.states() == [{"a": "fresh", "b": "fresh"}] * 2
    assert len(lines(log_lines)) == 1


async def test_nodes_without_a_usable_reading_are_named_when_they_change(
    bench: Bench, log_lines: io.StringIO
) -> None:
    bench.fake.traffic = {"a": "NaN"}
    await bench.poller.poll()
    await bench.poller.poll()
    bench.fake.traffic = {"a": "5"}
    await bench.poller.poll()
    bench.fake.traffic = {"a": "5", "b": "7"}
    await bench.poller.poll()
    await bench.poller.poll()
    said = 'W "Nodes without a usable traffic reading"'
    assert lines(log_lines) == [
        f'{said} missing=1 implausible=1 nodes=["b","a"] of=2',
        f'{said} missing=1 nodes=["b"] of=2',
        'I "Every node has a fresh traffic reading" nodes=2',
    ]


async def test_only_a_few_of_many_nodes_are_named(bench: Bench, log_lines: io.StringIO) -> None:
    bench.nodes = [NodeIdentity(f"n{number}") for number in range(8)]
    await bench.poller.poll()
    assert lines(log_lines) == [
        'W "Nodes without a usable traffic reading" missing=8 nodes=["n0","n1","n2","n3","n4"] of=8'
    ]


async def test_the_queries_are_shown_at_verbosity_2(bench: Bench, log_lines: io.StringIO) -> None:
    logging.getLogger("telemetry").setLevel(logging.INFO - 2)
    await bench.poller.poll()
    await bench.poller.poll()
    assert lines(log_lines) == [f"I {RECEIVE}", f"I {SPEED}"] * 2


async def test_a_node_that_joins_is_read_with_the_next_answer(bench: Bench) -> None:
    bench.nodes = [NodeIdentity("a")]
    await bench.poller.poll()
    bench.nodes = [NodeIdentity("b")]
    await bench.poller.poll()
    assert bench.states() == [{"a": "fresh"}, {"b": "fresh"}]
