"""What the plugins of some profiles want measured: asks Prometheus and metrics-server for it in the
background, and hands each reading on. Every mode that runs on a cluster has one.

With thousands of nodes an answer takes long to read: that is done on a thread of its own, so that
the event loop goes on."""

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from lowtide.app.clocks import Clock, short_rest
from lowtide.app.diagnosing import Diagnosing, Diagnosis
from lowtide.app.known_cluster import KnownCluster
from lowtide.app.measured import is_any_ignored, query_numbers, traffic_numbers, usage_numbers
from lowtide.app.registry import requests_of
from lowtide.cluster.reading import Reading, with_precomputed_pods
from lowtide.framework.profile import Profile
from lowtide.kube.connection import Connection
from lowtide.kube.metrics_api import MetricsApi
from lowtide.kube.service_proxy import ServiceProxy
from lowtide.logs import Log
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.columns import published
from lowtide.readings.prometheus_query import PrometheusQuery
from lowtide.readings.reading import TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.readings.rest import Rest
from lowtide.readings.usage import UsageRequest
from lowtide.telemetry.metrics import MeasuredNumbers
from lowtide.telemetry.poller import TrafficPoller
from lowtide.telemetry.prometheus import Prometheus, shown_address
from lowtide.telemetry.query_poller import QueryPoller
from lowtide.telemetry.usage_poller import UsagePoller

# So long a start waits for the first readings, so that the first pods are placed by them.
FIRST_READING_SECONDS = 5.0

log = Log("scheduler")

Result = TypeVar("Result")
Request = TrafficRequest | UsageRequest | PrometheusQuery
Poller = TrafficPoller | UsagePoller | QueryPoller


@dataclass(frozen=True, slots=True)
class _HandedOn:
    reading: Reading
    at: float


class Measuring:
    """`connection` serves metrics-server, and Prometheus behind the API server's proxy."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        *,
        connection: Connection,
        known: KnownCluster,
        publish: Callable[[Hashable, Reading], None],
        clock: Clock,
        wall_clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rest: Rest = short_rest,
    ) -> None:
        self._rest = rest
        self._connection = connection
        self._known = known
        self._publish = publish
        self._clock = clock
        self._wall_clock = wall_clock
        self._sleep = sleep
        self._thread: ThreadPoolExecutor | None = None
        self._newest_traffic: dict[TrafficRequest, TrafficReading] = {}  # for metrics
        self._handed_on: dict[Hashable, _HandedOn] = {}
        # By uid: of these pods nothing was missing at the last poll, and so it will stay.
        self._measured_whole = defaultdict[TrafficRequest, frozenset[str]](frozenset)
        self._diagnosing = Diagnosing(
            profiles,
            known=known,
            proxy=ServiceProxy(connection),
            clock=clock,
            wall_clock=wall_clock,
            off_thread=self._off_thread,
            rest=rest,
        )
        self._clients: list[Prometheus] = []
        self._traffic = {
            request: self._traffic_poller(request)
            for request in requests_of(profiles.values(), TrafficRequest)
        }
        self._queries = {
            query: self._query_poller(query)
            for query in requests_of(profiles.values(), PrometheusQuery)
        }
        self._usage = {
            request: self._usage_poller(request)
            for request in requests_of(profiles.values(), UsageRequest)
        }

    @property
    def is_wanted(self) -> bool:
        """Whether any plugin wants anything measured."""
        return bool(self._pollers)

    async def run(self) -> None:
        """Until cancelled. Readings are matched to the nodes that are known, so these have to be
        known first."""
        async with AsyncExitStack() as stack:
            # One: what clients and pollers remember is used by one at a time.
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="measuring")
            stack.callback(self._thread.shutdown, wait=False, cancel_futures=True)
            for client in self._clients:
                await stack.enter_async_context(client)
            await asyncio.gather(
                *(self._poll_for_ever(*each) for each in self._traffic.items()),
                *(self._poll_for_ever(*each) for each in self._usage.items()),
                *(self._poll_for_ever(*each) for each in self._queries.items()),
                self._diagnosing.run(),
            )

    async def first_results(self) -> None:
        """Returns when everything was asked once."""
        for poller in self._pollers:
            await poller.first_result.wait()

    def numbers(self) -> MeasuredNumbers:
        """For /metrics and for those who look, on any thread."""
        now = self._wall_clock()
        traffic = list(self._newest_traffic.values())
        usage, queries = self._readings_of(self._usage), self._readings_of(self._queries)
        names = [node.name for node in self._known.nodes()]
        return MeasuredNumbers(
            traffic=traffic_numbers(traffic, _polls(self._traffic.values()), now),
            is_traffic_ignored=is_any_ignored(traffic, now),
            usage=usage_numbers(usage, names, _polls(self._usage.values()), now),
            queries=query_numbers(queries, names, _polls(self._queries.values()), now),
        )

    @property
    def rejected_answers(self) -> int:
        """How many answers of Prometheus were rejected for their size, since the start."""
        return sum(client.rejected for client in self._clients)

    def diagnosis(self) -> Diagnosis | None:
        """What the doctor says to it; None while nothing was examined."""
        return self._diagnosing.diagnosis()

    def _readings_of(self, requests: Iterable[Request]) -> list[Reading]:
        return [self._handed_on[each].reading for each in requests if each in self._handed_on]

    @property
    def _pollers(self) -> list[Poller]:
        return [*self._traffic.values(), *self._usage.values(), *self._queries.values()]

    async def _off_thread(self, work: Callable[[], Result], /) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _poll_for_ever(self, request: Request, poller: Poller) -> None:
        """Also after an error of a kind that no poller expects: pods are placed all the same."""
        while True:
            try:
                self._forget_if_stale(request)
                await poller.run()
            except Exception as error:
                poller.polls["failure"] += 1
                log.exception(
                    "A poll ended in an error that nobody expected; it is tried again",
                    err=f"{type(error).__name__}: {error}",
                    afterSeconds=request.every_seconds,
                )
                await self._sleep(request.every_seconds)

    def _forget_if_stale(self, request: Request) -> None:
        """A poller publishes after each poll what has aged meanwhile; one that fails does not."""
        before = self._handed_on.get(request)
        if before is None or self._clock() - before.at <= request.stale_after_seconds:
            return
        # Once is enough, also where publishing is what fails.
        self._hand_on(request, _without_values(before.reading), at=math.inf)

    def _hand_on(self, request: Hashable, reading: Reading, *, at: float) -> None:
        self._handed_on[request] = _HandedOn(reading, at)
        self._publish(request, reading)

    def _client(self, access: PrometheusAccess) -> Prometheus:
        """It is closed when the measuring ends."""
        proxy = ServiceProxy(self._connection)
        client = Prometheus(
            access, clock=self._clock, proxy=proxy, off_thread=self._off_thread, rest=self._rest
        )
        self._clients.append(client)
        return client

    def _traffic_poller(self, request: TrafficRequest) -> TrafficPoller:
        log.v(
            2,
            f"[NetworkTraffic] args received. Device: {', '.join(request.devices) or 'all'}; "
            f"TimeRange: {request.window_seconds}, "
            f"Address: {', '.join(map(shown_address, request.access.addresses))}",
        )
        return TrafficPoller(
            request=request,
            prometheus=self._client(request.access),
            nodes=self._known.nodes,
            pods=self._known.pods,
            publish=self._publish_traffic,
            clock=self._wall_clock,
            steady_clock=self._clock,
            sleep=self._sleep,
            off_thread=self._off_thread,
            rest=self._rest,
        )

    def _usage_poller(self, request: UsageRequest) -> UsagePoller:
        return UsagePoller(
            request=request,
            fetch=MetricsApi(
                self._connection, off_thread=self._off_thread, rest=self._rest
            ).node_usage,
            allocatable=self._known.allocatable,
            publish=lambda reading: self._hand_on(request, reading, at=self._clock()),
            clock=self._wall_clock,
            sleep=self._sleep,
            off_thread=self._off_thread,
        )

    def _query_poller(self, query: PrometheusQuery) -> QueryPoller:
        return QueryPoller(
            query=query,
            prometheus=self._client(query.access),
            nodes=self._known.nodes,
            publish=lambda reading: self._hand_on(query, reading, at=self._clock()),
            clock=self._wall_clock,
            steady_clock=self._clock,
            sleep=self._sleep,
            off_thread=self._off_thread,
        )

    async def _publish_traffic(self, reading: TrafficReading) -> None:
        pods, before = list(self._known.pods()), self._measured_whole[reading.request]

        def made_off_thread() -> tuple[Reading, frozenset[str]]:
            young = [pod for pod in pods if pod.uid not in before]
            made = with_precomputed_pods(published(reading), young, self._rest)
            young_still = {uid for uid, (_, missing) in made.precomputed.items() if missing}
            return made, frozenset(pod.uid for pod in pods if pod.uid not in young_still)

        made, self._measured_whole[reading.request] = await self._off_thread(made_off_thread)
        self._newest_traffic[reading.request] = reading
        self._diagnosing.note(reading)
        self._hand_on(reading.request, made, at=self._clock())


def _polls(pollers: Iterable[Poller]) -> Counter[str]:
    return sum((poller.polls for poller in pollers), Counter())


def _without_values(reading: Reading) -> Reading:
    """Nothing is known of any node; pods go on to count from when it was sampled."""
    unknown = {name: np.full(len(values), math.nan) for name, values in reading.columns.items()}
    return replace(reading, columns=unknown, of_others={})
