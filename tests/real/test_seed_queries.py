"""The configurations of the first articles against a real Prometheus: they are valid, the query
that reaches it is theirs, and its answer tells of three nodes."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from tests.seed_configurations import (
    ADDRESSES,
    MINUTES_BY_NODENAME,
    QUERIES,
    SECONDS_BY_INSTANCE,
    V1BETA1_BY_KUBERNETES_NODE,
)

from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder
from lowtide.readings.reading import State, TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.telemetry.poller import TrafficPoller
from lowtide.telemetry.prometheus import Prometheus
from lowtide.testing import make_node
from realparts.process import wait_until
from realparts.prometheus import Prometheus as RealPrometheus
from realparts.prometheus import Target

LOWTIDE = Path(sys.executable).parent / "lowtide"
NAMES = ["tide-north", "tide-east", "tide-south"]
ADDRESS_OF = {name: f"127.0.0.{number}" for number, name in enumerate(NAMES, start=2)}
NODES = [make_node(name, addresses=[ADDRESS_OF[name]]) for name in NAMES]

seeds = pytest.mark.parametrize(
    "text",
    [
        pytest.param(MINUTES_BY_NODENAME, id="the first article's"),
        pytest.param(V1BETA1_BY_KUBERNETES_NODE, id="the second's and the fourth's"),
        pytest.param(SECONDS_BY_INSTANCE, id="the third's"),
    ],
)


@dataclass
class Exporter:
    """Serves what a node_exporter would of devices that received ten times as much as the
    node's before."""

    name: str
    scrapes: int = 0

    async def metrics(self, request: web.Request) -> web.Response:
        self.scrapes += 1
        received = 10 ** (9 + NAMES.index(self.name)) + self.scrapes
        lines = [
            f'node_uname_info{{nodename="{self.name}"}} 1',
            "# TYPE node_network_receive_bytes_total counter",
            *(
                f'node_network_receive_bytes_total{{device="{device}"}} {received}'
                for device in ("eth0", "ens192", "wlan0", "lo")
            ),
        ]
        return web.Response(text="\n".join([*lines, ""]))


@dataclass
class Recorder:
    """Hands every question on to the real Prometheus, and keeps it."""

    url: str
    asked: list[str] = field(default_factory=list)

    async def hand_on(self, request: web.Request) -> web.Response:
        form = await request.post()
        self.asked.append(str(form["query"]))
        async with (
            ClientSession() as session,
            session.request(
                request.method, f"{self.url}{request.path}", data={"query": self.asked[-1]}
            ) as response,
        ):
            return web.Response(
                body=await response.read(),
                status=response.status,
                content_type=response.content_type,
            )


@asynccontextmanager
async def serving(
    path: str, handler: Callable[[web.Request], Awaitable[web.Response]], host: str
) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_route("*", path, handler)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, 0).start()
        yield f"{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def validated(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "scheduler.yaml"
    file.write_text(text)
    command = [str(LOWTIDE), "config", "validate", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def request_of(text: str) -> TrafficRequest:
    built = make_registry({}).build(load_config(text, file="f.yaml"), {Binder: NoBinder()})
    (profile,) = built.profiles.values()
    (request,) = profile.readings
    assert isinstance(request, TrafficRequest)
    return request


@seeds
def test_the_configuration_is_valid_as_it_is_printed(text: str, tmp_path: Path) -> None:
    done = validated(text, tmp_path)
    assert done.returncode == 0, done.stderr
    assert ": valid; schedules for " in done.stdout


@seeds
async def test_the_query_that_reaches_prometheus_is_that_of_the_article(
    text: str, tmp_path: Path, prometheus_process: Callable[..., RealPrometheus]
) -> None:
    async with AsyncExitStack() as stack:
        targets = []
        for name in NAMES:
            exporter = serving("/metrics", Exporter(name).metrics, ADDRESS_OF[name])
            address = await stack.enter_async_context(exporter)
            targets.append(Target(address, {"kubernetes_node": name}))
        real = await asyncio.to_thread(prometheus_process, targets)
        await asyncio.to_thread(wait_until_answered, real, QUERIES[text])
        recorder = Recorder(real.url)
        passing = serving("/{path:.*}", recorder.hand_on, "127.0.0.1")
        reading, config = await polled(text, await stack.enter_async_context(passing))
    done = validated(config, tmp_path)
    assert done.returncode == 0, done.stderr
    received = [promql for promql in recorder.asked if "node_network_receive" in promql]
    assert received == [QUERIES[text]]
    assert {name: each.state for name, each in reading.by_node()} == dict.fromkeys(
        NAMES, State.FRESH
    )
    values = [each.value or 0.0 for _, each in reading.by_node()]
    assert 0 < values[0] < values[1] < values[2]


def wait_until_answered(prometheus: RealPrometheus, promql: str) -> None:
    wait_until(
        lambda: len(prometheus.query(promql)) == len(NAMES),
        timeout_seconds=30,
        what=f"Prometheus answers {promql}",
    )


async def polled(text: str, address: str) -> tuple[TrafficReading, str]:
    """What one poll finds with that configuration, its address put in place; and that text."""
    printed = ADDRESSES[text]
    scheme = "http://" if printed.startswith("http://") else ""
    config = text.replace(printed, f"{scheme}{address}")
    request = request_of(config)
    published: list[TrafficReading] = []

    async def publish(reading: TrafficReading) -> None:
        published.append(reading)

    async with Prometheus(request.access, clock=time.monotonic) as prometheus:
        poller = TrafficPoller(
            request=request,
            prometheus=prometheus,
            nodes=lambda: NODES,
            pods=lambda: (),
            publish=publish,
            clock=time.time,
            steady_clock=time.monotonic,
            sleep=asyncio.sleep,
        )
        await poller.poll()
    (reading,) = published
    return reading, config
