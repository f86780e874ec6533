"""What the checks go by: the cluster as listed, what was asked and answered, and the same sorted
by scrape target and node. App gathers the Evidence; `survey_of` sorts it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, get_args

from lowtide.doctor.questions import HOST_DEVICES, SEEN
from lowtide.objects.node import Node
from lowtide.readings.links import links_of
from lowtide.readings.matching import MatchedRows, NodeIdentity, NodeMatcher, host_of, identity_of
from lowtide.readings.reading import NodeReading, TrafficReading
from lowtide.readings.request import (
    RECEIVE,
    TRANSMIT,
    UNAME,
    MatchLabel,
    TrafficRequest,
    directions,
)
from lowtide.readings.rest import Rest, no_rest
from lowtide.readings.series import Series
from lowtide.telemetry.errors import PrometheusError

Labels = Mapping[str, str]
TargetKey = tuple[str, ...]

TARGETS_AT_ONCE: Final = 500
MATCH_LABELS: Final[tuple[MatchLabel, ...]] = get_args(MatchLabel)
_TARGET_LABELS: Final = (
    "node",
    "kubernetes_node",
    "nodename",
    "instance",
    "job",
    "namespace",
    "pod",
)


@dataclass(frozen=True, slots=True)
class ScrapedPod:
    """A pod that may be an exporter."""

    namespace: str
    name: str
    node_name: str
    is_on_host_network: bool
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """Of one request. What was not answered is in `rejected` and not in `answers`.

    `reading` is what the scheduler would publish, with rates over `window_seconds`, which may be
    wider than requested. `now` is by Prometheus's clock, which is `ahead_seconds` ahead of ours."""

    request: TrafficRequest
    compares_with_links: bool  # whether a plugin scores by capacity
    nodes: Sequence[Node]
    pods: Sequence[ScrapedPod]
    answers: Mapping[str, Sequence[Series]]
    rejected: Mapping[str, PrometheusError]
    reading: TrafficReading
    window_seconds: int
    scrape_interval_seconds: float | None
    now: float
    ahead_seconds: float

    def answer(self, name: str) -> Sequence[Series]:
        return self.answers.get(name, ())


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """One exporter as Prometheus knows it. `labels` are those of one of its series; `rows` are
    the nodes it may belong to: one is a match."""

    labels: Labels
    rows: MatchedRows
    devices: frozenset[str]  # lo among them, most virtual ones not
    sampled_at: float
    bytes_per_second: float  # the highest of its devices; NaN where there is no rate
    shows_host_devices: bool
    pod: ScrapedPod | None

    @property
    def host(self) -> str:
        """Of `instance`: an address or a name."""
        return host_of(self.labels.get("instance", ""))


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """The evidence by node, each a row of `identities`."""

    evidence: Evidence
    identities: Sequence[NodeIdentity]
    targets: Sequence[Target]
    devices: Sequence[tuple[str, ...]]  # that count, per row
    measured: Mapping[int, Series]  # a series of each row that has one
    unmatched: Sequence[Series]  # measured, and of no node
    readings: Sequence[NodeReading]
    matchers: Mapping[MatchLabel, NodeMatcher]

    def matcher(self, label: MatchLabel | None = None) -> NodeMatcher:
        """By this label, or by what the request says."""
        return self.matchers[label or self.evidence.request.match_label]

    def names(self, rows: Iterable[int]) -> tuple[str, ...]:
        return tuple(sorted(self.identities[row].name for row in set(rows)))

    def rows_of(self, series: Sequence[Series], label: MatchLabel | None = None) -> set[int]:
        """The nodes that some of these series clearly belong to."""
        candidates = self.matcher(label).candidates(series)
        return {rows[0] for rows in candidates if len(rows) == 1}

    @property
    def node_addresses(self) -> frozenset[str]:
        return frozenset(host_of(each) for one in self.identities for each in one.addresses)


def survey_of(evidence: Evidence, rest: Rest = no_rest) -> Survey:
    identities = [identity_of(node) for node in evidence.nodes]
    uname = evidence.answer(UNAME)
    matchers: dict[MatchLabel, NodeMatcher] = {}
    for label in MATCH_LABELS:
        matchers[label] = NodeMatcher(identities, uname, label)
        rest()
    matcher = matchers[evidence.request.match_label]
    asked = directions(evidence.request)
    links = links_of(evidence.answers, asked, matcher, len(identities))
    rest()
    devices: list[list[str]] = [[] for _ in identities]
    for row, device in zip(links.row.tolist(), links.device, strict=True):
        devices[row].append(device)
    measured: dict[int, Series] = {}
    unmatched: list[Series] = []
    for name in asked:
        series = evidence.answer(name)
        for one, rows in zip(series, matcher.candidates(series), strict=True):
            if len(rows) == 1:
                measured.setdefault(rows[0], one)
            elif not rows:
                unmatched.append(one)
        rest()
    return Survey(
        evidence=evidence,
        identities=identities,
        targets=_targets(evidence, matcher, rest),
        devices=[tuple(sorted(filter(None, each))) for each in devices],
        measured=measured,
        unmatched=unmatched,
        readings=[reading for _, reading in evidence.reading.by_node()],
        matchers=matchers,
    )


def may_be_pods(evidence_nodes: Sequence[Node], seen: Sequence[Series]) -> bool:
    """Whether some target is not at a node's own address, so that pods are worth a look."""
    addresses = {host_of(each.address) for node in evidence_nodes for each in node.status.addresses}
    return any(host_of(one.labels.get("instance", "")) not in addresses for one in seen)


def is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _targets(evidence: Evidence, matcher: NodeMatcher, rest: Rest) -> list[Target]:
    seen: dict[TargetKey, list[Series]] = {}
    for one in evidence.answer(SEEN):
        seen.setdefault(_key(one.labels), []).append(one)
    rates: dict[TargetKey, float] = {}
    for name in (RECEIVE, TRANSMIT):
        for one in evidence.answer(name):
            key = _key(one.labels)
            rates[key] = max(rates.get(key, 0.0), one.value)
    on_hosts = {_instance(one.labels) for one in evidence.answer(HOST_DEVICES)}
    by_name = {(pod.namespace, pod.name): pod for pod in evidence.pods}
    by_address = {host_of(address): pod for pod in evidence.pods for address in pod.addresses}
    found: list[Target] = []
    for key, series in seen.items():
        if len(found) % TARGETS_AT_ONCE == 0:
            rest()
        labels = {name: text for name, text in series[0].labels.items() if name != "device"}
        named = by_name.get((labels.get("namespace", ""), labels.get("pod", "")))
        found.append(
            Target(
                labels=labels,
                rows=matcher.candidates(series[:1])[0],
                devices=frozenset(one.labels.get("device", "") for one in series),
                sampled_at=max(one.value for one in series),
                bytes_per_second=rates.get(key, math.nan),
                shows_host_devices=_instance(labels) in on_hosts,
                pod=named or by_address.get(host_of(labels.get("instance", ""))),
            )
        )
    return found


def _key(labels: Labels) -> TargetKey:
    return tuple(labels.get(name, "") for name in _TARGET_LABELS)


def _instance(labels: Labels) -> tuple[str, str]:
    return labels.get("instance", ""), labels.get("job", "")
