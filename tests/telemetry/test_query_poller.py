"""The poller of a plugin's own query: what it asks, publishes and says while Prometheus comes and
goes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import web
from tests.telemetry.conftest import FakePrometheus, Said

from lowtide.cluster.reading import Reading
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.prometheus_query import PrometheusQuery
from lowtide.readings.request import MatchLabel
from lowtide.telemetry.prometheus import Prometheus
from lowtide.telemetry.query_poller import WHO_IS_WHO, QueryPoller
from lowtide.testing import ManualClock, make_node

PROMQL = "max by (instance, job) (node_load1)"
REJECTED = Said('{"status":"error","errorType":"execution","error":"no"}', status=500)


def vector(*found: tuple[dict[str, str], float]) -> Said:
    result = [{"metric": labels, "value": [0, str(value)]} for labels, value in found]
    body = {"status": "success", "data": {"resultType": "vector", "result": result}}
    return Said(json.dumps(body))


class Bench:
    """A poller, the Prometheus it asks, and what it published."""

    def __init__(self, server: FakePrometheus, url: str, label: MatchLabel = "auto") -> None:
        self.server = server
        self.clock = ManualClock(1000.0)
        self.load: Said | dict[str, float] = {"a": 0.5, "b": 2.0}
        self.published: list[Reading] = []
        self.slept: list[float] = []
        self.nodes = [make_node("a"), make_node("b")]
        access = PrometheusAccess(addresses=(url,))
        self.prometheus = Prometheus(access, clock=self.clock)
        self.poller = QueryPoller(
            query=PrometheusQuery(
                access=access,
                promql=PROMQL,
                every_seconds=30.0,
                stale_after_seconds=60.0,
                match_label=label,
            ),
            prometheus=self.prometheus,
            nodes=lambda: self.nodes,
            publish=self.published.append,
            clock=self.clock,
            steady_clock=self.clock,
            sleep=self.sleep,
        )
        server.answer = self.answer

    def answer(self, request: web.Request) -> Said:
        if self.server.asked[-1][2] == WHO_IS_WHO:
            names = {"a", "b", "c"}
            return vector(
                *(({"instance": f"{name}x:1", "nodename": name, "job": "j"}, 1) for name in names)
            )
        if isinstance(self.load, Said):
            return self.load
        loads = self.load.items()
        return vector(*(({"instance": f"{name}x:1", "job": "j"}, value) for name, value in loads))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == 3:
            raise asyncio.CancelledError
        self.clock.advance(seconds)

    async def poll(self, *, after_seconds: float = 30.0) -> dict[str, float]:
        """What the reading then says of each node."""
        self.clock.advance(after_seconds)
        await self.poller.poll()
        reading = self.published[-1]
        return dict(zip(reading.names, reading.columns["value"].tolist(), strict=True))

    @property
    def asked(self) -> list[str]:
        """And forgets it."""
        found = sorted(promql for _, _, promql in self.server.asked)
        self.server.asked.clear()
        return found


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    server = FakePrometheus()
    async with server.serving() as url:
        made = Bench(server, url)
        async with made.prometheus:
            yield made


async def test_what_is_published(bench: Bench) -> None:
    assert not bench.poller.first_result.is_set()
    assert await bench.poll(after_seconds=0) == {"a": 0.5, "b": 2.0}
    assert bench.poller.first_result.is_set()
    assert (bench.published[0].sampled_at, bench.poller.polls) == (1000.0, {"success": 1})


async def test_it_polls_at_the_interval(bench: Bench) -> None:
    with pytest.raises(asyncio.CancelledError):
        await bench.poller.run()
    assert (bench.slept, len(bench.published)) == ([30.0, 30.0, 30.0], 3)


async def test_who_is_who_is_asked_seldom_and_when_a_node_comes(bench: Bench) -> None:
    await bench.poll()
    assert bench.asked == [PROMQL, WHO_IS_WHO]
    await bench.poll()
    assert bench.asked == [PROMQL]
    bench.nodes.append(make_node("c"))
    bench.load = {"c": 3.0}
    assert await bench.poll() == {"c": 3.0}
    assert bench.asked == [PROMQL, WHO_IS_WHO]
    bench.nodes.pop()
    await bench.poll()
    assert bench.asked == [PROMQL]
    await bench.poll(after_seconds=300)
    assert bench.asked == [PROMQL, WHO_IS_WHO]


async def test_who_is_who_is_not_asked_where_a_label_names_the_node() -> None:
    server = FakePrometheus()
    async with server.serving() as url:
        bench = Bench(server, url, "node")
        bench.load = vector(({"node": "b"}, 4.0))
        async with bench.prometheus:
            assert await bench.poll() == {"b": 4.0}
        assert bench.asked == [PROMQL]


async def test_what_is_known_ages_and_failing_is_said_once(
    bench: Bench, log_lines: Callable[[], list[str]]
) -> None:
    known = {"a": 0.5, "b": 2.0}
    assert await bench.poll(after_seconds=0) == known
    bench.load = REJECTED
    assert await bench.poll() == known
    assert await bench.poll() == known  # 60 s
    assert await bench.poll(after_seconds=1) == {}
    bench.load = {"a": 1.0, "b": 1.0}
    assert await bench.poll(after_seconds=9) == {"a": 1.0, "b": 1.0}
    assert [each.sampled_at for each in bench.published] == [1000, 1000, 1000, 1000, 1070]
    assert bench.poller.polls == {"success": 2, "failure": 3}
    failed, again = log_lines()
    assert failed.startswith(
        "W \"Prometheus does not answer a plugin's query; earlier values count until they are "
        'stale" '
        'err="Prometheus at http://127.0.0.1:'
    )
    assert failed.endswith(f' promql="{PROMQL}" staleAfterSeconds=60')
    assert again == (
        f'I "Prometheus answers a plugin\'s query again" promql="{PROMQL}" failedForSeconds=40'
    )


async def test_nodes_without_a_value_are_named_when_they_change(
    bench: Bench, log_lines: Callable[[], list[str]]
) -> None:
    bench.load = {"b": 1.0}
    await bench.poll()
    await bench.poll()
    bench.load = {"a": 1.0, "b": 1.0}
    await bench.poll()
    said = f'I "Nodes without a value of a plugin\'s query" promql="{PROMQL}"'
    assert log_lines() == [
        f'{said} unknown=1 nodes=["a"] of=2',
        f"{said} unknown=0 nodes=[] of=2",
    ]
