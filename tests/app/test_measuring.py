"""Measuring on the embedded cluster: what is handed on, that an error does not end it, and that
the event loop does not wait while an answer is read."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.app.conftest import NOW

from lowtide.app.known_cluster import BelievedCluster
from lowtide.app.measuring import Measuring
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import plain_access
from lowtide.localcluster import LocalCluster
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import NetworkTrafficArgs
from lowtide.plugins.node_usage import NodeUsage, NodeUsageArgs
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.prometheus_query import PrometheusQuery
from lowtide.telemetry.metrics import SourceNumbers
from lowtide.testing import ManualClock, make_node, make_profile

pytestmark = pytest.mark.timeout(60)
INTERVAL_SECONDS = 15.0


class Breakable(ClusterState):
    """A state that can be told to fail when somebody looks at its nodes."""

    is_broken = False

    def nodes(self) -> Nodes:
        if self.is_broken:
            raise RuntimeError("nobody expects this")
        return super().nodes()


@dataclass
class Site:
    """Where something is measured; `after_polls` says what happens while the pollers rest."""

    cluster: LocalCluster
    clock: ManualClock
    state: Breakable = field(default_factory=Breakable)
    handed_on: list[tuple[Hashable, Reading]] = field(default_factory=list)

    async def measure(self, plugin: Any, after_polls: Iterator[Callable[[], None]]) -> Measuring:
        """Until nothing more is to happen; time passes only while the poller sleeps."""
        ended = asyncio.Event()

        async def sleep(seconds: float) -> None:
            self.clock.advance(seconds)
            happening = next(after_polls, None)
            if happening is None:
                ended.set()
                await asyncio.Event().wait()
            else:
                happening()

        async with self.running(plugin, sleep) as measuring:
            await ended.wait()
        return measuring

    @asynccontextmanager
    async def running(
        self, plugin: Any, sleep: Callable[[float], Awaitable[None]]
    ) -> AsyncIterator[Measuring]:
        """Until the end of the block."""
        async with Connection(plain_access(self.cluster.url), self.clock) as connection:
            measuring = Measuring(
                {"lowtide": make_profile([plugin])},
                connection=connection,
                known=BelievedCluster(self.state),
                publish=lambda source, reading: self.handed_on.append((source, reading)),
                clock=self.clock,
                wall_clock=self.clock,
                sleep=sleep,
            )
            running = asyncio.create_task(measuring.run())
            yield measuring
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


class Holding(logging.Handler):
    """Holds whoever reads an answer with a warning in it, when it tells of that."""

    def __init__(self) -> None:
        super().__init__()
        self.is_held = asyncio.Event()
        self.may_go_on = threading.Event()
        self.held: list[threading.Thread] = []
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == "Prometheus warns":
            self.held.append(threading.current_thread())
            self._loop.call_soon_threadsafe(self.is_held.set)
            self.may_go_on.wait(timeout=10)

    def let_go(self) -> None:
        """And waits until the thread has ended."""
        self.may_go_on.set()
        for thread in self.held:
            thread.join(timeout=10)


def traffic_plugin(cluster: LocalCluster) -> NetworkTraffic:
    return NetworkTraffic(NetworkTrafficArgs(prometheus_address=cluster.prometheus_url))


def usage_plugin(cluster: LocalCluster) -> NodeUsage:
    return NodeUsage(NodeUsageArgs())


class Talkative:
    """An outsider's plugin, which asks a query of its own."""

    name = "Talkative"

    def __init__(self, address: str) -> None:
        access = PrometheusAccess(addresses=(address,))
        promql = "max by (instance, job) (node_network_speed_bytes)"
        self.readings = (PrometheusQuery(access=access, promql=promql),)

    def score(self, pod: Any, nodes: Any) -> None: ...


def query_plugin(cluster: LocalCluster) -> Talkative:
    return Talkative(cluster.prometheus_url)


EACH = pytest.mark.parametrize(
    "make_plugin",
    [
        pytest.param(traffic_plugin, id="traffic"),
        pytest.param(usage_plugin, id="usage"),
        pytest.param(query_plugin, id="a plugin's own query"),
    ],
)


@pytest.fixture
async def site() -> Any:
    clock = ManualClock(NOW)
    async with LocalCluster(clock=clock) as cluster:
        site = Site(cluster, clock)
        for name in "ab":
            cluster.add_node(name)
            cluster.usage.set(name, cpu="100m")
            site.state.add_node(make_node(name))
        yield site


def polls_of(measuring: Measuring) -> dict[str, int]:
    numbers = measuring.numbers()
    polls = (numbers.traffic.polls, numbers.usage.polls, numbers.queries.polls)
    return {result: count for each in polls for result, count in each.items()}


@EACH
async def test_an_error_that_nobody_expects_counts_as_a_failed_poll(
    site: Site, make_plugin: Callable[[LocalCluster], Any]
) -> None:
    def break_it() -> None:
        site.state.is_broken = True

    def fix_it() -> None:
        site.state.is_broken = False

    measuring = await site.measure(
        make_plugin(site.cluster), iter([break_it, lambda: None, fix_it, lambda: None])
    )
    # Well, broken twice, and well again twice.
    assert polls_of(measuring) == {"success": 3, "failure": 2}
    assert len(site.handed_on) == 3


@EACH
async def test_what_was_measured_counts_until_it_is_stale_though_every_poll_fails(
    site: Site, make_plugin: Callable[[LocalCluster], Any]
) -> None:
    plugin = make_plugin(site.cluster)
    (request,) = plugin.readings

    def break_it() -> None:
        site.state.is_broken = True

    polls = round(request.stale_after_seconds / INTERVAL_SECONDS) + 3
    await site.measure(plugin, iter([break_it] * polls))
    assert [source for source, _ in site.handed_on] == [request, request]
    first, last = (reading for _, reading in site.handed_on)
    assert all(np.isnan(values).all() for values in last.columns.values())
    assert (last.names, last.columns.keys(), last.expects, last.sampled_at) == (
        first.names,
        first.columns.keys(),
        first.expects,
        first.sampled_at,
    )


async def test_what_is_told_of_usage(site: Site) -> None:
    measuring = await site.measure(usage_plugin(site.cluster), iter([lambda: None]))
    # The second poll was one interval ago.
    assert measuring.numbers().usage == SourceNumbers(
        nodes_by_state={"known": 2, "unknown": 0},
        age_seconds=INTERVAL_SECONDS,
        polls={"success": 2},
    )
    nothing = SourceNumbers(nodes_by_state={}, age_seconds=None, polls={})
    assert (measuring.numbers().traffic, measuring.numbers().is_traffic_ignored) == (nothing, None)


async def test_what_is_told_of_a_plugins_own_query(site: Site) -> None:
    plugin = query_plugin(site.cluster)
    site.state.add_node(make_node("unmeasured"))
    measuring = await site.measure(plugin, iter([lambda: None]))
    (source, reading), _ = site.handed_on
    assert source == plugin.readings[0]
    assert set(reading.names) == {"a", "b"}
    assert measuring.numbers().queries == SourceNumbers(
        nodes_by_state={"known": 2, "unknown": 1},
        age_seconds=INTERVAL_SECONDS,
        polls={"success": 2},
    )


async def test_what_is_told_of_traffic(site: Site) -> None:
    measuring = await site.measure(traffic_plugin(site.cluster), iter([lambda: None]))
    numbers = measuring.numbers().traffic
    assert (numbers.nodes_by_state, numbers.polls, measuring.numbers().is_traffic_ignored) == (
        {"fresh": 2, "stale": 0, "missing": 0, "implausible": 0},
        {"success": 2},
        False,
    )
    # The second poll was one interval ago, and what it was answered is a little older.
    assert numbers.age_seconds is not None
    assert INTERVAL_SECONDS <= numbers.age_seconds < INTERVAL_SECONDS + 2


# The thread.


@pytest.fixture
async def warning_plugin() -> AsyncIterator[NetworkTraffic]:
    """Its Prometheus knows of no series, and warns."""

    async def answer(request: web.Request) -> web.Response:
        data = {"resultType": "vector", "result": []}
        return web.json_response({"status": "success", "data": data, "warnings": ["a warning"]})

    application = web.Application()
    application.router.add_post("/api/v1/query", answer)
    async with TestServer(application) as server:
        address = f"http://127.0.0.1:{server.port}"
        yield NetworkTraffic(NetworkTrafficArgs(prometheus_address=address))


@pytest.fixture
async def holding() -> AsyncIterator[Holding]:
    made = Holding()
    logger = logging.getLogger("telemetry")
    logger.addHandler(made)
    yield made
    logger.removeHandler(made)
    made.may_go_on.set()


async def test_the_loop_goes_on_while_an_answer_is_read(
    site: Site, warning_plugin: NetworkTraffic, holding: Holding
) -> None:
    has_polled = asyncio.Event()

    async def sleep(seconds: float) -> None:
        has_polled.set()
        await asyncio.Event().wait()

    async with site.running(warning_plugin, sleep):
        await holding.is_held.wait()
        assert ([each.name for each in holding.held], site.handed_on) == (["measuring_0"], [])
        holding.may_go_on.set()
        await has_polled.wait()
        assert [source for source, _ in site.handed_on] == list(warning_plugin.readings)


async def test_it_ends_at_once_though_an_answer_is_being_read(
    site: Site, warning_plugin: NetworkTraffic, holding: Holding
) -> None:
    async with site.running(warning_plugin, asyncio.sleep):
        await holding.is_held.wait()
    assert ([each.is_alive() for each in holding.held], site.handed_on) == ([True], [])
    holding.let_go()
    assert [each.is_alive() for each in holding.held] == [False]
