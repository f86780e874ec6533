"""What the doctor says of a running process, and when it is asked: on small servers of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import numpy as np
import pytest
from tests.app.doctor_servers import Servers, profiles_with, serving
from tests.doctor.conftest import NAMES, NOW, WELL, exporter_on, make_evidence, nodes_named

from lowtide.app.diagnosing import (
    AT_LEAST_SECONDS,
    EVERY_SECONDS,
    LOOK_SECONDS,
    NODES_NAMED,
    Diagnosing,
    Diagnosis,
    FindingShown,
)
from lowtide.app.known_cluster import WatchedCluster
from lowtide.app.registry import requests_of
from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import plain_access
from lowtide.kube.service_proxy import ServiceProxy
from lowtide.objects.events import Added
from lowtide.objects.node import Node
from lowtide.readings.reading import STATES, State, TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.readings.rest import no_rest
from lowtide.telemetry.prometheus import at_once
from lowtide.testing import ManualClock, make_pod

pytestmark = pytest.mark.timeout(30)


class Breakable(WatchedCluster):
    """Can be told to fail when somebody looks at its nodes."""

    is_broken = False

    def nodes(self) -> list[Node]:
        if self.is_broken:
            raise RuntimeError("nobody expects this")
        return super().nodes()


class Site:
    """A process that knows three nodes. `looks` are what happens before each look whether an
    examination is due; after the last of them it ends."""

    def __init__(self, servers: Servers, connection: Connection) -> None:
        profiles = profiles_with({"prometheusAddress": servers.prometheus_url})
        (self.request,) = requests_of(profiles.values(), TrafficRequest)
        servers.request = self.request
        self.servers = servers
        self.clock = ManualClock(NOW)
        self.known = Breakable()
        for node in nodes_named(*NAMES):
            self.known.handle(Added(node))
        self.ended = asyncio.Event()
        self.looks: Iterator[Callable[[], None]] = iter(())
        self.diagnosing = Diagnosing(
            profiles,
            known=self.known,
            proxy=ServiceProxy(connection),
            clock=self.clock,
            wall_clock=lambda: NOW,
            off_thread=at_once,
            rest=no_rest,
            sleep=self.sleep,
        )

    async def sleep(self, seconds: float) -> None:
        assert seconds == LOOK_SECONDS
        happening = next(self.looks, None)
        if happening is None:
            self.ended.set()
            await asyncio.Event().wait()
        else:
            happening()

    async def run(self, *looks: Callable[[], None]) -> None:
        self.looks = iter(looks)
        running = asyncio.create_task(self.diagnosing.run())
        ended = asyncio.create_task(self.ended.wait())
        await asyncio.wait([running, ended], return_when=asyncio.FIRST_COMPLETED)
        assert not running.done()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    def reading(self, *states: State) -> TrafficReading:
        reading = make_evidence(request=self.request).reading
        codes = np.array([STATES.index(state) for state in states], np.int8)
        return replace(reading, state=codes)

    def note(self, *states: State) -> None:
        self.diagnosing.note(self.reading(*states))

    def found(self) -> list[str]:
        diagnosis = self.diagnosing.diagnosis()
        assert diagnosis is not None
        return [each.code for each in diagnosis.findings]

    @property
    def examinations(self) -> int:
        return sum(promql == "vector(time())" for promql in self.servers.asked)


@asynccontextmanager
async def site_on(servers: Servers) -> AsyncIterator[Site]:
    async with Connection(plain_access(servers.api_url), lambda: NOW) as connection:
        yield Site(servers, connection)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as servers, site_on(servers) as made:
        yield made


ALL_FRESH = (State.FRESH,) * 3
ONE_MISSING = (State.FRESH, State.MISSING, State.FRESH)


async def test_what_is_well_has_no_findings(site: Site) -> None:
    assert site.diagnosing.diagnosis() is None
    await site.diagnosing.examine()
    site.clock.advance(5)
    assert site.diagnosing.diagnosis() == Diagnosis(5.0, [])
    assert site.servers.listed == []  # nothing that is known is asked again


async def test_a_fault_is_told_with_the_lines_that_fix_it(site: Site) -> None:
    site.servers.exporters = WELL[:2]
    await site.diagnosing.examine()
    diagnosis = site.diagnosing.diagnosis()
    assert diagnosis is not None
    (finding,) = diagnosis.findings
    assert finding == FindingShown(
        severity="fault",
        code="exporter-missing",
        text=finding.text,
        nodes=["south"],
        node_count=1,
        fix=finding.fix,
    )
    assert "node_exporter does not run or is not scraped" in finding.text
    assert "tolerations" in finding.fix


async def test_a_fault_is_logged_once(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.servers.exporters = WELL[:2]
    for _ in range(2):
        await site.diagnosing.examine()
    told = [record.getMessage() for record in caplog.records]
    assert [text for text in told if "doctor" in text] == [
        "The doctor found a fault; the page and `lowtide doctor` say what fixes it"
    ]


async def test_a_check_that_prometheus_does_not_understand_is_not_shown(site: Site) -> None:
    site.servers.rejected = "timestamp("
    await site.diagnosing.examine()
    assert site.found() == []


async def test_of_many_nodes_the_first_are_named(site: Site) -> None:
    names = [f"more-{number:02}" for number in range(30)]
    for node in nodes_named(*NAMES, *names)[3:]:
        site.known.handle(Added(node))
    await site.diagnosing.examine()
    diagnosis = site.diagnosing.diagnosis()
    assert diagnosis is not None
    (finding,) = diagnosis.findings
    assert (finding.nodes, finding.node_count) == (names[:NODES_NAMED], 30)


@pytest.mark.parametrize(
    ("is_on_host_network", "codes"),
    [
        pytest.param(False, ["pod-network"], id="in a pod's network"),
        pytest.param(True, [], id="in the host's"),
    ],
)
async def test_the_pods_that_are_known_tell_where_exporters_run(
    site: Site, is_on_host_network: bool, codes: Sequence[str]
) -> None:
    site.servers.exporters = [
        exporter_on(
            number,
            instance=f"10.244.0.{number}:9100",
            labels={"namespace": "monitoring", "pod": f"exporter-{name}", "node": name},
        )
        for number, name in enumerate(NAMES, start=1)
    ]
    for name in NAMES:
        pod = make_pod(
            f"exporter-{name}",
            namespace="monitoring",
            on=name,
            spec={"hostNetwork": is_on_host_network},
        )
        site.known.handle(Added(pod))
    await site.diagnosing.examine()
    assert site.found() == codes


async def test_nothing_is_examined_before_the_first_reading(site: Site) -> None:
    await site.run(*[lambda: site.clock.advance(1000)] * 3)
    assert site.examinations == 0


async def test_it_is_examined_after_the_first_reading_and_then_seldom(site: Site) -> None:
    counts: list[int] = []
    await site.run(
        lambda: site.note(*ALL_FRESH),
        lambda: site.clock.advance(EVERY_SECONDS - 1),
        lambda: counts.append(site.examinations),
        lambda: site.clock.advance(1),
    )
    assert (counts, site.examinations) == ([1], 2)


async def test_another_state_of_a_reading_is_examined_soon_but_not_at_once(site: Site) -> None:
    counts: list[int] = []
    await site.run(
        lambda: site.note(*ALL_FRESH),
        lambda: site.note(*ALL_FRESH),
        lambda: site.note(*ONE_MISSING),
        lambda: counts.append(site.examinations),
        lambda: site.clock.advance(AT_LEAST_SECONDS),
        lambda: counts.append(site.examinations),
        lambda: site.clock.advance(AT_LEAST_SECONDS),
    )
    assert (counts, site.examinations) == ([1, 2], 2)


async def test_what_fails_is_tried_again_and_ends_nothing(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.known.is_broken = True
    await site.run(lambda: site.note(*ALL_FRESH))
    assert "What is measured cannot be examined" in caplog.text
    assert site.diagnosing.diagnosis() is None
    site.known.is_broken, site.ended = False, asyncio.Event()
    await site.run(lambda: site.clock.advance(EVERY_SECONDS))
    assert site.found() == []


async def test_a_prometheus_that_does_not_answer_is_a_finding() -> None:
    async with serving() as servers:
        url = servers.prometheus_url
    async with site_on(Servers(prometheus_url=url, api_url=url)) as site:
        await site.diagnosing.examine()
        assert site.found() == ["unreachable"]
