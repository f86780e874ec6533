"""The doctor: lists the nodes, asks Prometheus what the scheduler would ask and more, and hands
both to the checks. It reads, and changes nothing."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from lowtide.app.clocks import Clock
from lowtide.app.registry import requests_of
from lowtide.doctor.checks import Examination, examined
from lowtide.doctor.evidence import Evidence, ScrapedPod, may_be_pods
from lowtide.doctor.findings import Finding, Severity, worst_first
from lowtide.doctor.questions import CLOCK_QUERY, SEEN, counted_direction, probes
from lowtide.doctor.reach import no_answer, no_nodes, no_traffic_rule, nodes_not_listed
from lowtide.framework.profile import Profile
from lowtide.kube.connection import Connection
from lowtide.kube.errors import ApiError, KubeError
from lowtide.kube.kubeconfig import Access, KubeconfigError
from lowtide.kube.listing import list_all
from lowtide.kube.service_proxy import ServiceProxy
from lowtide.objects.meta import ObjectMeta, Wire
from lowtide.objects.node import Node
from lowtide.readings.meter import TrafficMeter, few_targets, scrape_interval
from lowtide.readings.request import (
    TrafficRequest,
    pod_queries,
    sample_query,
    traffic_queries,
)
from lowtide.readings.series import Series
from lowtide.telemetry.errors import PrometheusError
from lowtide.telemetry.prometheus import Prometheus, shown_address

QUERIES_AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True)
class DoctorParts:
    """`access` is how the API server is reached, or why it cannot be. `clock` never jumps;
    `wall_clock` is compared with Prometheus's. `tell` is told what is being done. An address that
    is given is asked instead of those that the profiles name."""

    access: Access | KubeconfigError
    profiles: Mapping[str, Profile]
    clock: Clock
    wall_clock: Clock
    tell: Callable[[str], None]
    prometheus_address: str | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """One request of some profiles. Without an examination Prometheus was not reached."""

    scheduler_names: tuple[str, ...]
    prometheus: str
    examination: Examination | None


@dataclass(frozen=True, slots=True)
class Report:
    server: str  # empty where it is not known
    node_count: int
    requests: tuple[Examined, ...]
    findings: tuple[Finding, ...]

    @property
    def is_well(self) -> bool:
        return all(found.severity is not Severity.FAULT for found in self.findings)


@dataclass(frozen=True, slots=True)
class _Wanted:
    request: TrafficRequest
    scheduler_names: tuple[str, ...]
    compares_with_links: bool


class _PodSpec(Wire, frozen=True):
    node_name: str = ""
    host_network: bool = False


class _PodAddress(Wire, frozen=True):
    ip: str = ""


class _PodStatus(Wire, frozen=True):
    address: str = msgspec.field(default="", name="podIP")
    addresses: list[_PodAddress] = msgspec.field(default_factory=list, name="podIPs")


class _ListedPod(Wire, frozen=True):
    """Of a pod only what tells where an exporter runs: there may be many pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


class Doctor:
    def __init__(self, parts: DoctorParts) -> None:
        self._parts = parts
        self._connection = (
            None
            if isinstance(parts.access, KubeconfigError)
            else Connection(parts.access, parts.wall_clock)
        )
        self._proxy = None if self._connection is None else ServiceProxy(self._connection)
        self._pods: list[ScrapedPod] | None = None

    async def run(self) -> Report:
        async with self._connection or nullcontext():
            nodes, findings = await self._listed_nodes()
            wanted = _wanted(self._parts.profiles)
            if not wanted:
                findings.append(no_traffic_rule(self._parts.profiles))
            done = []
            for each in wanted:
                address, examination = await self._examine(self._redirected(each), nodes, findings)
                done.append(Examined(each.scheduler_names, address, examination))
        server = "" if self._connection is None else self._connection.server
        return Report(server, len(nodes), tuple(done), worst_first(findings))

    async def _listed_nodes(self) -> tuple[list[Node], list[Finding]]:
        if self._connection is None:
            return [], [nodes_not_listed(str(self._parts.access), is_forbidden=False)]
        self._parts.tell(f"Listing the nodes of {self._connection.server}")
        try:
            nodes = await list_all(self._connection, "/api/v1/nodes", Node)
        except KubeError as error:
            is_forbidden = isinstance(error, ApiError) and error.status in (401, 403)
            return [], [nodes_not_listed(str(error), is_forbidden=is_forbidden)]
        return nodes, [] if nodes else [no_nodes(self._connection.server)]

    def _redirected(self, wanted: _Wanted) -> _Wanted:
        address = self._parts.prometheus_address
        if address is None:
            return wanted
        access = msgspec.structs.replace(wanted.request.access, addresses=(address,))
        return replace(wanted, request=msgspec.structs.replace(wanted.request, access=access))

    async def _examine(
        self, wanted: _Wanted, nodes: Sequence[Node], findings: list[Finding]
    ) -> tuple[str, Examination | None]:
        """What is found is added to the findings."""
        request = wanted.request
        ahead_seconds = await self._clock_of_first_that_answers(request, findings)
        addresses = ", ".join(map(shown_address, request.access.addresses)) or "no address"
        if ahead_seconds is None or not nodes:
            return addresses, None
        async with self._prometheus(request) as prometheus:
            examination = examined(await self._evidence(wanted, nodes, prometheus, ahead_seconds))
            findings += examination.findings
            return prometheus.address, examination

    async def _clock_of_first_that_answers(
        self, request: TrafficRequest, findings: list[Finding]
    ) -> float | None:
        """By how many seconds it is ahead; None when no address answers."""
        ahead: list[float] = []
        errors: list[tuple[str, PrometheusError]] = []
        for address in request.access.addresses or ("",):
            self._parts.tell(f"Asking Prometheus at {shown_address(address)}")
            alone = msgspec.structs.replace(request.access, addresses=(address,))
            try:
                async with Prometheus(
                    alone, clock=self._parts.clock, proxy=self._proxy
                ) as prometheus:
                    sent_at = self._parts.wall_clock()
                    answer = await prometheus.query(CLOCK_QUERY)
                    here = (sent_at + self._parts.wall_clock()) / 2
                    ahead += [one.value - here for one in answer]
            except PrometheusError as error:
                errors.append((address, error))
        findings += [
            no_answer(error, address, request.access, others_answer=bool(ahead))
            for address, error in errors
        ]
        return ahead[0] if ahead else None

    def _prometheus(self, request: TrafficRequest) -> Prometheus:
        return Prometheus(request.access, clock=self._parts.clock, proxy=self._proxy)

    async def _evidence(
        self,
        wanted: _Wanted,
        nodes: Sequence[Node],
        prometheus: Prometheus,
        ahead_seconds: float,
    ) -> Evidence:
        request = wanted.request
        now = self._parts.wall_clock()
        meter = TrafficMeter(request)
        queries = meter.due(now, nodes) | probes(request)
        # Labels that the scheduler does not look at may tell why it finds nothing.
        queries |= traffic_queries(request, meter.window_seconds, has_all_labels=True)
        answers, refused = await self._ask(prometheus, queries)
        reading = meter.take(answers, nodes, (), now)
        interval_seconds, is_widened = await self._scrape_interval(meter, prometheus, answers)
        if is_widened:
            queries = traffic_queries(request, meter.window_seconds, has_all_labels=True)
            queries |= pod_queries(request, meter.pod_window_seconds)
            answers |= (await self._ask(prometheus, queries))[0]
            reading = meter.take(answers, nodes, (), now)
        if may_be_pods(nodes, answers.get(SEEN, ())) and self._pods is None:
            self._pods = await self._listed_pods()
        return Evidence(
            request=request,
            compares_with_links=wanted.compares_with_links,
            nodes=nodes,
            pods=self._pods or [],
            answers=answers,
            refused=refused,
            reading=reading,
            window_seconds=meter.window_seconds,
            scrape_interval_seconds=interval_seconds,
            now=now + ahead_seconds,
            ahead_seconds=ahead_seconds,
        )

    async def _ask(
        self, prometheus: Prometheus, queries: Mapping[str, str]
    ) -> tuple[dict[str, list[Series]], dict[str, PrometheusError]]:
        self._parts.tell(f"Asking {prometheus.address} {len(queries)} questions")
        return await prometheus.query_all(queries, at_once=QUERIES_AT_ONCE)

    async def _scrape_interval(
        self, meter: TrafficMeter, prometheus: Prometheus, answers: Mapping[str, Sequence[Series]]
    ) -> tuple[float | None, bool]:
        """None where it cannot be found out; and whether the scheduler would widen its window.

        Where the meter has nothing to probe by, a few of the targets that were seen are probed
        instead, to tell why."""
        now = self._parts.wall_clock()
        seen = answers.get(SEEN, ())
        promql = meter.probe(now)
        is_meters_own = promql is not None
        if promql is None:
            if not seen:
                return None, False
            promql = sample_query(counted_direction(meter.request), few_targets(seen))
        try:
            found = await prometheus.query_range_vector(promql)
        except PrometheusError:
            return None, False
        times = [[at for at, _ in samples] for _, samples in found]
        is_widened = is_meters_own and meter.probed(times, now)
        return scrape_interval(times), is_widened

    async def _listed_pods(self) -> list[ScrapedPod]:
        """None of them where they may not be listed: the checks then go by less."""
        if self._connection is None:
            return []
        self._parts.tell("Listing pods, to see in whose network exporters run")
        try:
            pods = await list_all(self._connection, "/api/v1/pods", _ListedPod)
        except KubeError:
            return []
        return [
            ScrapedPod(
                namespace=pod.metadata.namespace,
                name=pod.metadata.name,
                node_name=pod.spec.node_name,
                is_on_host_network=pod.spec.host_network,
                addresses=tuple(
                    dict.fromkeys(
                        filter(None, [pod.status.address, *(a.ip for a in pod.status.addresses)])
                    )
                ),
            )
            for pod in pods
        ]


def _wanted(profiles: Mapping[str, Profile]) -> list[_Wanted]:
    """Each request once."""
    names: dict[TrafficRequest, list[str]] = {}
    for scheduler_name, profile in profiles.items():
        for request in requests_of([profile], TrafficRequest):
            names.setdefault(request, []).append(scheduler_name)
    rules: list[Any] = [rule for profile in profiles.values() for rule in profile.rules]
    return [
        _Wanted(request, tuple(scheduler_names), _compares_with_links(rules, request))
        for request, scheduler_names in names.items()
    ]


def _compares_with_links(rules: Sequence[Any], request: TrafficRequest) -> bool:
    """Whether a rule's raw score is already a share: one that is relative is scaled afterwards."""
    return any(
        request in getattr(rule, "readings", ()) and getattr(rule, "scale", None) is None
        for rule in rules
    )
