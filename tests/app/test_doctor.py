"""What the doctor asks of whom, on small servers of its own: a page of an API server, and a
Prometheus that answers by query."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from aiohttp.test_utils import unused_port
from tests.app.doctor_servers import Servers, profiles_with, serving
from tests.doctor.conftest import NOW, WELL, exporter_on

from lowtide.app.doctor import Doctor, DoctorParts, Report
from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry, requests_of
from lowtide.config.load import load_default
from lowtide.framework.plugin import Binder
from lowtide.framework.profile import Profile
from lowtide.kube.kubeconfig import plain_access
from lowtide.readings.request import TrafficRequest


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    async with serving() as made:
        yield made


async def report_of(
    servers: Servers,
    *,
    profiles: Mapping[str, Profile] | None = None,
    prometheus_address: str | None = None,
    told: list[str] | None = None,
    **args: Any,
) -> Report:
    given = {"prometheusAddress": servers.prometheus_url, **args}
    made = profiles_with(given) if profiles is None else profiles
    for profile in made.values():
        for request in requests_of([profile], TrafficRequest):
            servers.request = request
    texts: list[str] = [] if told is None else told
    parts = DoctorParts(
        access=plain_access(servers.api_url),
        profiles=made,
        clock=lambda: NOW,
        wall_clock=lambda: NOW,
        tell=texts.append,
        prometheus_address=prometheus_address,
    )
    return await Doctor(parts).run()


def codes(report: Report) -> list[tuple[str, str]]:
    return [(found.severity.value, found.code.value) for found in report.findings]


async def test_all_is_well(servers: Servers) -> None:
    told: list[str] = []
    report = await report_of(servers, told=told)
    assert (report.is_well, report.node_count, report.findings) == (True, 3, ())
    (one,) = report.requests
    assert (one.scheduler_names, one.prometheus) == (("lowtide",), servers.prometheus_url)
    assert one.examination is not None
    assert one.examination.scrape_interval_seconds == 15.0
    assert told[0] == f"Listing the nodes of {servers.api_url}"


async def test_pods_are_left_alone_where_exporters_are_at_their_nodes(servers: Servers) -> None:
    await report_of(servers)
    assert servers.listed == ["/api/v1/nodes"]


async def test_pods_that_may_not_be_listed_are_done_without(servers: Servers) -> None:
    servers.exporters = [
        exporter_on(number, instance=f"10.244.0.{number}:9100") for number in (1, 2, 3)
    ]
    servers.pods_status = 403
    assert (await report_of(servers)).findings == ()
    assert servers.listed == ["/api/v1/nodes", "/api/v1/pods"]


async def test_a_clock_that_is_ahead_is_noted(servers: Servers) -> None:
    servers.ahead_seconds = 20.0
    report = await report_of(servers)
    assert (report.is_well, codes(report)) == (True, [("note", "clock-skew")])


async def test_a_window_is_widened_as_the_scheduler_does(servers: Servers) -> None:
    servers.scrapes = [(NOW - 60, "1"), (NOW - 30, "2"), (NOW, "3")]
    report = await report_of(servers)
    assert codes(report) == [("note", "scrape-interval")]
    (one,) = report.requests
    assert one.examination is not None
    assert one.examination.window_seconds == 120
    assert [promql for promql in servers.asked if "receive" in promql and "[2m]" in promql] != []


async def test_each_address_is_tried(servers: Servers) -> None:
    closed = f"http://127.0.0.1:{unused_port()}"
    report = await report_of(
        servers, prometheusAddress="", prometheus={"addresses": [closed, servers.prometheus_url]}
    )
    assert (report.is_well, codes(report)) == (True, [("note", "unreachable")])
    assert report.requests[0].prometheus == servers.prometheus_url


async def test_an_address_of_ones_own_is_asked_instead(servers: Servers) -> None:
    closed = f"http://127.0.0.1:{unused_port()}"
    report = await report_of(
        servers, prometheusAddress=closed, prometheus_address=servers.prometheus_url
    )
    assert report.findings == ()


async def test_nodes_that_may_not_be_listed_are_a_fault_beside_others(servers: Servers) -> None:
    servers.nodes_status = 403
    report = await report_of(servers, prometheusAddress=f"http://127.0.0.1:{unused_port()}")
    assert (report.is_well, codes(report)) == (
        False,
        [("fault", "nodes-not-listed"), ("fault", "unreachable")],
    )
    assert (report.is_reached, report.node_count) == (True, None)


async def test_a_profile_without_the_plugin_is_a_fault(servers: Servers) -> None:
    profiles = make_registry({}).build(load_default(), {Binder: NoBinder()}).profiles
    report = await report_of(servers, profiles=profiles)
    assert (report.is_well, codes(report)) == (False, [("fault", "no-traffic-plugin")])


async def test_what_two_requests_share_is_told_once(servers: Servers) -> None:
    servers.exporters = WELL[:2]
    closed = {"prometheusAddress": servers.prometheus_url}
    profiles = {
        **profiles_with(closed),
        "other": profiles_with({**closed, "pollInterval": "20s"})["lowtide"],
    }
    report = await report_of(servers, profiles=profiles)
    assert (len(report.requests), codes(report)) == (2, [("fault", "exporter-missing")])
