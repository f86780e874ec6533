"""Evidence of a cluster in which all is well, for the tests to spoil: three nodes, an exporter on
each, and what a Prometheus that scrapes them would answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lowtide.doctor.checks import examined
from lowtide.doctor.evidence import Evidence, ScrapedPod
from lowtide.doctor.questions import (
    DEVICE_NAMES,
    EXPORTERS,
    HOST_DEVICES,
    METRICS,
    POD_METRIC,
    SEEN,
    SPEED_METRIC,
    traffic_metric,
)
from lowtide.objects.node import Node
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.meter import TrafficMeter
from lowtide.readings.request import (
    POD_RECEIVE,
    RECEIVE,
    SPEED,
    TRANSMIT,
    UNAME,
    TrafficRequest,
)
from lowtide.readings.series import Series
from lowtide.telemetry.errors import PrometheusError
from lowtide.testing import make_node

NOW = 1_800_000_000.0
JOB = "node-exporter"
NAMES = ("north", "east", "south")
ALL = tuple(sorted(NAMES))


@dataclass(frozen=True)
class Exporter:
    """One scrape target; `rate` None: no rate in the window."""

    instance: str
    nodename: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    devices: Sequence[str] = ("lo", "ens5")
    rate: float | None = 2e6
    speed: float | None = 1.25e9
    age_seconds: float = 3.0
    on_host: bool = True
    has_network: bool = True

    @property
    def target(self) -> dict[str, str]:
        return {"instance": self.instance, "job": JOB, **self.labels}

    def series(self, device: str, value: float) -> Series:
        return Series({**self.target, "device": device}, value, NOW)


def exporter_on(number: int, **changes: Any) -> Exporter:
    """As on the node of that number, from 1."""
    return Exporter(
        **{"instance": f"10.0.0.{number}:9100", "nodename": NAMES[number - 1], **changes}
    )


WELL = tuple(exporter_on(number) for number in (1, 2, 3))


def nodes_named(*names: str, **changes: Any) -> list[Node]:
    return [
        make_node(name, addresses=[f"10.0.0.{number}"], **changes)
        for number, name in enumerate(names, start=1)
    ]


def make_request(**changes: Any) -> TrafficRequest:
    access = PrometheusAccess(addresses=("http://prometheus.example:9090",))
    return TrafficRequest(**{"access": access, "pod_bytes_per_second": 5e7, **changes})


def answers_of(exporters: Sequence[Exporter], request: TrafficRequest) -> dict[str, list[Series]]:
    """What the doctor asks, answered as Prometheus would; `up` is left to the tests."""
    found: dict[str, list[Series]] = {
        name: [] for name in (RECEIVE, TRANSMIT, SPEED, SEEN, HOST_DEVICES, DEVICE_NAMES, METRICS)
    }
    found[UNAME] = [
        Series({**each.target, "nodename": each.nodename}, 1, NOW)
        for each in exporters
        if each.nodename
    ]
    found[EXPORTERS] = [Series(each.target, 1, NOW) for each in exporters]
    found[POD_RECEIVE] = [Series({"namespace": "a", "pod": "web"}, 1, NOW)]
    for each in exporters:
        for device in each.devices if each.has_network else ():
            found[SEEN].append(each.series(device, NOW - each.age_seconds))
            if device == "lo" or (request.devices and device not in request.devices):
                continue
            if each.rate is not None:
                found[RECEIVE].append(each.series(device, each.rate))
                found[TRANSMIT].append(each.series(device, each.rate / 2))
            if each.speed is not None:
                found[SPEED].append(each.series(device, each.speed))
        if each.on_host:
            found[HOST_DEVICES].append(Series({"instance": each.instance, "job": JOB}, 4, NOW))
    metrics = {POD_METRIC} | ({SPEED_METRIC} if found[SPEED] else set())
    if found[SEEN]:
        metrics |= {traffic_metric(RECEIVE), traffic_metric(TRANSMIT)}
    found[METRICS] = [Series({"__name__": name}, 9, NOW) for name in sorted(metrics)]
    return found


def make_evidence(
    exporters: Sequence[Exporter] = WELL,
    *,
    nodes: Sequence[Node] | None = None,
    request: TrafficRequest | None = None,
    pods: Sequence[ScrapedPod] = (),
    answers: Mapping[str, Sequence[Series]] | None = None,
    rejected: Mapping[str, PrometheusError] | None = None,
    scrape_interval_seconds: float | None = 15.0,
    window_seconds: int | None = None,
    ahead_seconds: float = 0.0,
    compares_with_links: bool = True,
) -> Evidence:
    """`answers` are put in place of those that the exporters lead to."""
    asked = request or make_request()
    listed = nodes_named(*NAMES) if nodes is None else nodes
    given: dict[str, Sequence[Series]] = {**answers_of(exporters, asked), **(answers or {})}
    for name in rejected or ():
        given.pop(name, None)
    here = NOW - ahead_seconds
    return Evidence(
        request=asked,
        compares_with_links=compares_with_links,
        nodes=listed,
        pods=pods,
        answers=given,
        rejected=rejected or {},
        reading=TrafficMeter(asked).take(given, listed, (), here),
        window_seconds=window_seconds or asked.window_seconds,
        scrape_interval_seconds=scrape_interval_seconds,
        now=NOW,
        ahead_seconds=ahead_seconds,
    )


Told = list[tuple[str, str, tuple[str, ...]]]


def findings_of(evidence: Evidence) -> Told:
    """Severity, code and nodes of each."""
    return [
        (found.severity.value, found.code.value, found.nodes)
        for found in examined(evidence).findings
    ]


def fixes_of(evidence: Evidence) -> list[str]:
    return [found.fix for found in examined(evidence).findings]


def texts_of(evidence: Evidence) -> list[str]:
    return [found.text for found in examined(evidence).findings]
