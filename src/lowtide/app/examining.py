"""Examines what is measured for one TrafficRequest: asks Prometheus what the scheduler would ask
and more, and hands the answers to the checks. `doctor` does it once, `diagnosing` now and then."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from lowtide.app.clocks import Clock
from lowtide.app.registry import requests_of
from lowtide.doctor.checks import Examination, examined
from lowtide.doctor.evidence import Evidence, ScrapedPod, may_be_pods
from lowtide.doctor.findings import Finding
from lowtide.doctor.questions import CLOCK_QUERY, SEEN, counted_direction, probes
from lowtide.doctor.reach import no_answer
from lowtide.framework.profile import Profile
from lowtide.objects.node import Node
from lowtide.readings.meter import TrafficMeter, few_targets, scrape_interval
from lowtide.readings.request import (
    TrafficRequest,
    pod_queries,
    sample_query,
    traffic_queries,
)
from lowtide.readings.rest import Rest, no_rest
from lowtide.readings.series import Series
from lowtide.telemetry.errors import PrometheusError
from lowtide.telemetry.prometheus import (
    KubeServiceProxy,
    OffThread,
    Prometheus,
    at_once,
    shown_address,
)

QUERIES_AT_ONCE: Final = 4

PodsOf = Callable[[Sequence[Series]], Awaitable[Sequence[ScrapedPod]]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One request of some profiles."""

    request: TrafficRequest
    scheduler_names: tuple[str, ...]
    compares_with_links: bool


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found of one request. Without an examination Prometheus was not reached, or there
    are no nodes."""

    scheduler_names: tuple[str, ...]
    prometheus: str
    examination: Examination | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examining:
    """`clock` never jumps; `wall_clock` is compared with Prometheus's. `pods_of` gives the pods
    that scrape targets may be; `tell` is called with each step before it begins. Long steps run on
    another thread."""

    clock: Clock
    wall_clock: Clock
    proxy: KubeServiceProxy | None
    pods_of: PodsOf
    tell: Callable[[str], None] = lambda text: None
    off_thread: OffThread = at_once
    rest: Rest = no_rest

    async def examine(self, wanted: Wanted, nodes: Sequence[Node]) -> Examined:
        request, names = wanted.request, wanted.scheduler_names
        ahead_seconds, findings = await self._clock_of_first_that_answers(request)
        addresses = ", ".join(map(shown_address, request.access.addresses)) or "no address"
        if ahead_seconds is None or not nodes:
            return Examined(names, addresses, None, tuple(findings))
        async with self._prometheus(request) as prometheus:
            evidence = await self._evidence(wanted, nodes, prometheus, ahead_seconds)
            examination = await self.off_thread(partial(examined, evidence, self.rest))
            found = (*findings, *examination.findings)
            return Examined(names, prometheus.address, examination, found)

    async def _clock_of_first_that_answers(
        self, request: TrafficRequest
    ) -> tuple[float | None, list[Finding]]:
        """By how many seconds it is ahead; None when no address answers. And why others do not."""
        ahead: list[float] = []
        errors: list[tuple[str, PrometheusError]] = []
        for address in request.access.addresses or ("",):
            self.tell(f"Asking Prometheus at {shown_address(address)}")
            alone = msgspec.structs.replace(request.access, addresses=(address,))
            try:
                async with Prometheus(alone, clock=self.clock, proxy=self.proxy) as prometheus:
                    sent_at = self.wall_clock()
                    answer = await prometheus.query(CLOCK_QUERY)
                    here = (sent_at + self.wall_clock()) / 2
                    ahead += [one.value - here for one in answer]
            except PrometheusError as error:
                errors.append((address, error))
        findings = [
            no_answer(error, address, request.access, others_answer=bool(ahead))
            for address, error in errors
        ]
        return (ahead[0] if ahead else None), findings

    def _prometheus(self, request: TrafficRequest) -> Prometheus:
        return Prometheus(
            request.access,
            clock=self.clock,
            proxy=self.proxy,
            off_thread=self.off_thread,
            rest=self.rest,
        )

    async def _evidence(
        self,
        wanted: Wanted,
        nodes: Sequence[Node],
        prometheus: Prometheus,
        ahead_seconds: float,
    ) -> Evidence:
        request = wanted.request
        now = self.wall_clock()
        meter = TrafficMeter(request, self.rest)
        queries = meter.due(now, nodes) | probes(request)
        # Labels that the scheduler does not look at may tell why it finds nothing.
        queries |= traffic_queries(request, meter.window_seconds, has_all_labels=True)
        answers, rejected = await self._ask(prometheus, queries)
        reading = await self.off_thread(partial(meter.take, answers, nodes, (), now))
        interval_seconds, is_widened = await self._scrape_interval(meter, prometheus, answers)
        if is_widened:
            queries = traffic_queries(request, meter.window_seconds, has_all_labels=True)
            queries |= pod_queries(request, meter.pod_window_seconds)
            answers |= (await self._ask(prometheus, queries))[0]
            reading = await self.off_thread(partial(meter.take, answers, nodes, (), now))
        seen = answers.get(SEEN, ())
        pods = await self.pods_of(seen) if may_be_pods(nodes, seen) else ()
        return Evidence(
            request=request,
            compares_with_links=wanted.compares_with_links,
            nodes=nodes,
            pods=pods,
            answers=answers,
            rejected=rejected,
            reading=reading,
            window_seconds=meter.window_seconds,
            scrape_interval_seconds=interval_seconds,
            now=now + ahead_seconds,
            ahead_seconds=ahead_seconds,
        )

    async def _ask(
        self, prometheus: Prometheus, queries: Mapping[str, str]
    ) -> tuple[dict[str, list[Series]], dict[str, PrometheusError]]:
        self.tell(f"Asking {prometheus.address} {len(queries)} questions")
        return await prometheus.query_all(queries, at_once=QUERIES_AT_ONCE)

    async def _scrape_interval(
        self, meter: TrafficMeter, prometheus: Prometheus, answers: Mapping[str, Sequence[Series]]
    ) -> tuple[float | None, bool]:
        """None where it cannot be found out; and whether the scheduler would widen its window.

        Where the meter has nothing to probe by, a few of the targets that were seen are probed
        instead, to tell why."""
        now = self.wall_clock()
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


def wanted_of(profiles: Mapping[str, Profile]) -> list[Wanted]:
    """Each request once."""
    names: dict[TrafficRequest, list[str]] = {}
    for scheduler_name, profile in profiles.items():
        for request in requests_of([profile], TrafficRequest):
            names.setdefault(request, []).append(scheduler_name)
    plugins: list[Any] = [plugin for profile in profiles.values() for plugin in profile.plugins]
    return [
        Wanted(request, tuple(scheduler_names), _compares_with_links(plugins, request))
        for request, scheduler_names in names.items()
    ]


def _compares_with_links(plugins: Sequence[Any], request: TrafficRequest) -> bool:
    """Whether a plugin's raw score is already a share: one that is relative is scaled
    afterwards."""
    return any(
        request in getattr(plugin, "readings", ()) and getattr(plugin, "scale", None) is None
        for plugin in plugins
    )
