"""Prometheus 2 and 3, which count the edges of a range differently: what Lowtide makes of their
rates, and that our own model of them agrees."""

import asyncio
import datetime
import http.server
import io
import logging
import math
import re
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pytest
from tests.seed_configurations import QUERIES

from lowtide.localcluster.promql import RangeFunction
from lowtide.localcluster.ranges import RangeOfSamples, evaluated
from lowtide.logs import LineHandler, TextFormatter
from lowtide.objects.pod import Pod
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.demand import Traffic
from lowtide.readings.reading import State, TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.telemetry.poller import TrafficPoller
from lowtide.telemetry.prometheus import Prometheus
from lowtide.testing import make_node, make_pod
from realparts.parts import obtain
from realparts.process import wait_until
from realparts.prometheus import Prometheus as RealPrometheus
from realparts.prometheus import Target

pytestmark = pytest.mark.long

NODE = "tide"
DEVICES = ("eth0", "ens192", "wlan0")
NODE_PER_SECOND = Traffic(receive=40e6, transmit=25e6)
POD_PER_SECOND = Traffic(receive=3e6, transmit=1e6)
UNKNOWN = Traffic(77.0, 77.0)
SCRAPE_SECONDS = 1
WINDOW_SECONDS = 4 * SCRAPE_SECONDS
POD_WINDOW_SECONDS = 6 * SCRAPE_SECONDS
LONG_AGO, PLUGGED_IN = 100.0, 0.2  # seconds before the first scrape
RECEIVED = 'node_network_receive_bytes_total{device="eth0"}'


@dataclass
class Exporter:
    """Serves what a node_exporter and a kubelet would of a node that carries the same all the
    time: eth0 and ens192 have counted for a while, wlan0 was plugged in just before the first
    scrape, pods count from when they started."""

    clock: Callable[[], float]
    pods_started_at: dict[str, float] = field(default_factory=dict)
    first_scrape_at: float | None = None
    is_dead: bool = False

    def metrics(self) -> str:
        now = self.clock()
        if self.first_scrape_at is None:
            self.first_scrape_at = now
        lines = [f'node_uname_info{{nodename="{NODE}"}} 1']
        lines += [f'node_network_speed_bytes{{device="{device}"}} 125000000' for device in DEVICES]
        for direction, per_second in NODE_PER_SECOND._asdict().items():
            metric = f"node_network_{direction}_bytes_total"
            counted = per_second * (now - self.first_scrape_at)
            lines.append(f"# TYPE {metric} counter")
            for device in DEVICES:
                before = per_second * (PLUGGED_IN if device == "wlan0" else LONG_AGO)
                lines.append(f'{metric}{{device="{device}"}} {before + counted:.0f}')
        for direction, per_second in POD_PER_SECOND._asdict().items():
            metric = f"container_network_{direction}_bytes_total"
            lines.append(f"# TYPE {metric} counter")
            for pod, started_at in self.pods_started_at.items():
                labels = f'namespace="default",pod="{pod}",interface="eth0"'
                lines.append(f"{metric}{{{labels}}} {per_second * (now - started_at):.0f}")
        return "\n".join([*lines, ""])

    def handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        exporter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = exporter.metrics().encode()
                self.send_response(503 if exporter.is_dead else 200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@dataclass(frozen=True)
class Version:
    part: str
    calls_itself: str
    counts_left_edge: bool


VERSIONS = (
    Version("prometheus", "2.", counts_left_edge=True),
    Version("prometheus-3", "3.15.0", counts_left_edge=False),
)


@dataclass(frozen=True)
class Scraped:
    """A server of one version, and the exporter that it scrapes."""

    version: Version
    server: RealPrometheus
    exporter: Exporter

    async def wait_until_over(self, least: float, promql: str) -> None:
        """Until the one value that this gives has grown to that."""
        await asyncio.to_thread(
            wait_until,
            lambda: self._value(promql) >= least,
            timeout_seconds=30,
            what=f"{self.version.part} says {least} or more of {promql}",
        )

    def _value(self, promql: str) -> float:
        return sum(float(row["value"][1]) for row in self.server.query(promql))

    async def wait_for_scrapes(self, count: int) -> None:
        await self.wait_until_over(count, f"count_over_time({RECEIVED}[15m])")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(version, id=version.part, marks=pytest.mark.real(version.part))
        for version in VERSIONS
    ],
)
def scraped(request: pytest.FixtureRequest) -> Iterator[Scraped]:
    with scraping(request.param) as made:
        yield made


@contextmanager
def scraping(version: Version) -> Iterator[Scraped]:
    exporter = Exporter(time.time)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), exporter.handler()) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        try:
            targets = [Target(f"127.0.0.1:{web.server_port}", {"node": NODE})]
            with RealPrometheus(targets, part=version.part) as server:
                yield Scraped(version, server, exporter)
        finally:
            web.shutdown()
            thread.join()


@pytest.fixture
async def client(scraped: Scraped) -> AsyncIterator[Prometheus]:
    access = PrometheusAccess(addresses=(scraped.server.url,))
    async with Prometheus(access, clock=time.monotonic) as prometheus:
        yield prometheus


@pytest.fixture
def warnings() -> Iterator[Callable[[], list[str]]]:
    stream = io.StringIO()
    handler = LineHandler(stream)
    handler.setFormatter(TextFormatter(clock=lambda: 0.0, pid=1))
    logger = logging.getLogger("telemetry")
    logger.addHandler(handler)
    yield lambda: [
        f"{line[0]} {line.partition('] ')[2]}" for line in stream.getvalue().splitlines()
    ]
    logger.removeHandler(handler)


@dataclass
class Polling:
    """A poller of one request, and what it published last."""

    client: Prometheus
    request: TrafficRequest
    pods: Sequence[Pod] = ()

    def __post_init__(self) -> None:
        self._published: list[TrafficReading] = []
        self._poller = TrafficPoller(
            request=self.request,
            prometheus=self.client,
            nodes=lambda: [make_node(NODE)],
            pods=lambda: self.pods,
            publish=self._publish,
            clock=time.time,
            steady_clock=time.monotonic,
            sleep=asyncio.sleep,
        )

    async def _publish(self, reading: TrafficReading) -> None:
        self._published.append(reading)

    async def poll(self) -> TrafficReading:
        await self._poller.poll()
        return self._published[-1]


def request_of(client: Prometheus, window_seconds: int) -> TrafficRequest:
    return TrafficRequest(
        access=PrometheusAccess(addresses=(client.address,)),
        devices=("eth0",),
        window_seconds=window_seconds,
        pod_bytes_per_second=UNKNOWN.receive,
    )


def measured(reading: TrafficReading) -> tuple[State, float | None, float | None]:
    node = reading.node_reading(NODE)
    return node.state, node.receive, node.transmit


TRUTH = (State.FRESH, *(pytest.approx(per_second, rel=0.05) for per_second in NODE_PER_SECOND))


def test_the_program_is_of_that_version(scraped: Scraped) -> None:
    program = obtain(scraped.version.part)[scraped.version.part]
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    told = f"{done.stdout}{done.stderr}".partition("version ")[2]
    assert told.startswith(scraped.version.calls_itself)


async def test_a_window_of_exactly_four_scrapes(
    scraped: Scraped, client: Prometheus, warnings: Callable[[], list[str]]
) -> None:
    await scraped.wait_for_scrapes(WINDOW_SECONDS + 1)
    polling = Polling(client, request_of(client, WINDOW_SECONDS))
    await polling.poll()  # and then it probes
    found = [await polling.poll()]
    while found[-1].published_at - found[0].published_at < SCRAPE_SECONDS:
        found.append(await polling.poll())  # at every distance from the last scrape
    assert [measured(reading) for reading in found] == [TRUTH] * len(found)
    # A reading spans one scrape interval less than its window.
    (spanned_seconds,) = {reading.window_seconds for reading in found}
    assert spanned_seconds == pytest.approx(WINDOW_SECONDS - SCRAPE_SECONDS, rel=0.01)
    assert warnings() == []


async def test_a_node_whose_exporter_dies_is_missing_although_its_window_still_holds_samples(
    scraped: Scraped,
) -> None:
    with scraping(scraped.version) as own:
        access = PrometheusAccess(addresses=(own.server.url,))
        async with Prometheus(access, clock=time.monotonic) as client:
            await own.wait_for_scrapes(WINDOW_SECONDS + 1)
            polling = Polling(client, request_of(client, 60))
            assert (await polling.poll()).node_reading(NODE).state is State.FRESH
            own.exporter.is_dead = True
            await own.wait_until_over(1, "1 - up")
            found = (await polling.poll()).node_reading(NODE)
            (rate,) = await client.query(f"rate({RECEIVED}[60s])")
    assert (found.state, found.value) == (State.MISSING, None)
    assert rate.value > 0  # which alone would be taken for an ever quieter node


@pytest.mark.parametrize(
    "window_seconds",
    [pytest.param(2, id="holds two scrapes"), pytest.param(1, id="holds one scrape, so no rate")],
)
async def test_a_window_is_widened_with_one_warning_where_it(
    scraped: Scraped,
    client: Prometheus,
    warnings: Callable[[], list[str]],
    window_seconds: int,
) -> None:
    await scraped.wait_for_scrapes(WINDOW_SECONDS + 1)
    polling = Polling(client, request_of(client, window_seconds))
    found = [await polling.poll() for _ in range(3)]
    assert [measured(reading) for reading in found] == [TRUTH] * 3
    (said,) = [line for line in warnings() if "widened" in line]
    # 5s where the scrapes came a few milliseconds late.
    assert re.fullmatch(
        'W "The window is shorter than four scrapes, too short for a rate; it is widened" '
        f'window="{window_seconds}s" widenedTo="[45]s"',
        said,
    )


def pod_of_web(name: str, started_at: float | None = None) -> Pod:
    made = make_pod(name)
    owner = {"kind": "ReplicaSet", "name": "web", "controller": True}
    meta = msgspec.convert({"ownerReferences": [owner]}, type(made.metadata))
    metadata = msgspec.structs.replace(made.metadata, owner_references=meta.owner_references)
    status = made.status
    if started_at is not None:
        text = datetime.datetime.fromtimestamp(started_at, datetime.UTC).isoformat()
        status = msgspec.convert({"phase": "Running", "startTime": text}, type(status))
    return msgspec.structs.replace(made, metadata=metadata, status=status)


async def test_traffic_is_learned_from_a_pod_that_started_within_the_window(
    scraped: Scraped, client: Prometheus
) -> None:
    await scraped.wait_for_scrapes(1)
    started_at = time.time()
    scraped.exporter.pods_started_at["web-1"] = started_at
    covered = f'timestamp(container_network_receive_bytes_total{{pod="web-1"}}) - {started_at}'
    request, running = request_of(client, POD_WINDOW_SECONDS), pod_of_web("web-1", started_at)
    found = []
    for share_of_window in (0.2, 0.5, 0.75, 1.0):
        await scraped.wait_until_over(share_of_window * POD_WINDOW_SECONDS, covered)
        polling = Polling(client, request, [running])
        await polling.poll()  # and then it probes how often kubelets are scraped
        found.append((await polling.poll()).pods.expected_for(pod_of_web("web-2")))
    truth = tuple(pytest.approx(per_second, rel=0.25) for per_second in POD_PER_SECOND)
    assert found == [UNKNOWN, truth, truth, truth]


@pytest.mark.parametrize("promql", QUERIES.values())
async def test_the_query_of_the_seeds_adds_up_all_samples(
    scraped: Scraped, client: Prometheus, promql: str
) -> None:
    await scraped.wait_for_scrapes(2)
    samples = promql.removeprefix("sum_over_time(").removesuffix(")")

    async def added_up() -> float:
        ((_, found),) = await client.query_range_vector(samples)
        return sum(value for _, value in found)

    before = await added_up()
    (series,) = await client.query(promql)
    after = await added_up()
    assert 0 < before <= series.value <= after


Samples = Sequence[tuple[float, float]]


def model(
    function: RangeFunction, samples: Samples, end: int, *, counts_left_edge: bool
) -> float | None:
    """What our own Prometheus would say of the range that ends then, in milliseconds."""
    start = end - 1000 * WINDOW_SECONDS
    earliest = start if counts_left_edge else start + 1
    times = [round(1000 * at) for at, _ in samples]
    inside = [number for number, at in enumerate(times) if earliest <= at <= end]
    if not inside:
        return None
    oldest, newest = inside[0], inside[-1]
    of = RangeOfSamples(
        oldest=np.array([oldest]),
        newest=np.array([newest]),
        oldest_at=np.array([times[oldest]]),
        newest_at=np.array([times[newest]]),
        value_of=lambda numbers: np.array(
            [samples[min(number, len(samples) - 1)][1] for number in numbers]
        ),
    )
    value = float(evaluated(function, of, start, end)[0])
    return None if math.isnan(value) else value


@pytest.mark.parametrize("function", RangeFunction, ids=lambda function: str(function.value))
@pytest.mark.parametrize(
    "device",
    [
        pytest.param("eth0", id="of a counter that has counted for a while"),
        pytest.param("wlan0", id="of a counter that began at zero"),
    ],
)
async def test_our_own_model_agrees(
    scraped: Scraped, client: Prometheus, function: RangeFunction, device: str
) -> None:
    await scraped.wait_for_scrapes(8)
    selector = f'node_network_receive_bytes_total{{device="{device}"}}'
    ((_, samples),) = await client.query_range_vector(f"{selector}[15m]")
    begin = round(1000 * samples[0][0])
    # Ends at scrapes and between them, of ranges that begin before the series and within it.
    ends = [begin + 250 * number for number in range(4 * 7)]

    async def answer(end: int) -> float | None:
        found = await client.query(f"{function.value}({selector}[4s] @ {end / 1000:.3f})")
        return found[0].value if found else None

    told = {end - begin: await answer(end) for end in ends}
    edge = scraped.version.counts_left_edge
    ours = {end - begin: model(function, samples, end, counts_left_edge=edge) for end in ends}
    assert told == {
        end: value if value is None else pytest.approx(value, rel=1e-9)
        for end, value in ours.items()
    }


async def test_a_range_of_four_scrapes_holds_its_left_edge_in_version_2_only(
    scraped: Scraped, client: Prometheus
) -> None:
    await scraped.wait_for_scrapes(8)
    ((_, samples),) = await client.query_range_vector(f"{RECEIVED}[15m]")
    times = [round(1000 * at) for at, _ in samples]
    end = next(at for at in times if at - 1000 * WINDOW_SECONDS in times)
    counted = f"count_over_time({RECEIVED}[{WINDOW_SECONDS}s] @ {end / 1000:.3f})"
    (series,) = await client.query(counted)
    assert series.value == (5 if scraped.version.counts_left_edge else 4)
