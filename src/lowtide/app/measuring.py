"""What the rules of some profiles want measured: asks Prometheus and metrics-server for it in the
background, and hands each reading on. Every mode that runs on a cluster has one."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import AsyncExitStack

from lowtide.app.clocks import Clock
from lowtide.app.registry import requests_of
from lowtide.app.usage import allocatable_in
from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.framework.profile import Profile
from lowtide.kube.connection import Connection
from lowtide.kube.metrics_api import MetricsApi
from lowtide.kube.service_proxy import ServiceProxy
from lowtide.logs import Log
from lowtide.objects.node import Node
from lowtide.readings.columns import published
from lowtide.readings.reading import STATES, TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.readings.usage import UsageRequest
from lowtide.telemetry.poller import TrafficPoller
from lowtide.telemetry.prometheus import Prometheus, shown_address
from lowtide.telemetry.usage_poller import UsagePoller

log = Log("scheduler")


class Measuring:
    """`connection` serves metrics-server, and Prometheus behind the API server's proxy."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        *,
        connection: Connection,
        state: ClusterState,
        publish: Callable[[Hashable, Reading], None],
        clock: Clock,
        wall_clock: Clock,
    ) -> None:
        self._connection = connection
        self._state = state
        self._publish = publish
        self._wall_clock = wall_clock
        self._newest: dict[TrafficRequest, TrafficReading] = {}  # for metrics
        wanted = requests_of(profiles.values(), TrafficRequest)
        proxy = ServiceProxy(connection)
        self._clients = [Prometheus(one.access, clock=clock, proxy=proxy) for one in wanted]
        self._traffic = [
            self._traffic_poller(request, client)
            for request, client in zip(wanted, self._clients, strict=True)
        ]
        self._usage = [
            self._usage_poller(request) for request in requests_of(profiles.values(), UsageRequest)
        ]

    @property
    def is_wanted(self) -> bool:
        """Whether any rule wants anything measured."""
        return bool(self._pollers)

    async def run(self) -> None:
        """Until cancelled. Readings are matched to the nodes that are known, so these have to be
        known first."""
        async with AsyncExitStack() as stack:
            for client in self._clients:
                await stack.enter_async_context(client)
            await asyncio.gather(*(poller.run() for poller in self._pollers))

    async def first_results(self) -> None:
        """Returns when everything was asked once."""
        for poller in self._pollers:
            await poller.first_result.wait()

    @property
    def prometheus_polls(self) -> Counter[str]:
        """By result, since the start."""
        return sum((poller.polls for poller in self._traffic), Counter())

    @property
    def nodes_by_state(self) -> Counter[str]:
        return Counter(
            STATES[code].value for reading in self._newest.values() for code in reading.state
        )

    def age_seconds(self, now: float) -> float | None:
        """Since the oldest of the newest readings was published."""
        times = [reading.published_at for reading in self._newest.values()]
        return now - min(times) if times else None

    @property
    def _pollers(self) -> list[TrafficPoller | UsagePoller]:
        return [*self._traffic, *self._usage]

    def _traffic_poller(self, request: TrafficRequest, client: Prometheus) -> TrafficPoller:
        log.v(
            2,
            f"[NetworkTraffic] args received. Device: {', '.join(request.devices) or 'all'}; "
            f"TimeRange: {request.window_seconds}, "
            f"Address: {', '.join(map(shown_address, request.access.addresses))}",
        )
        return TrafficPoller(
            request=request,
            prometheus=client,
            nodes=self._nodes,
            pods=self._state.placed_pods,
            publish=self._publish_traffic,
            clock=self._wall_clock,
            sleep=asyncio.sleep,
        )

    def _usage_poller(self, request: UsageRequest) -> UsagePoller:
        return UsagePoller(
            request=request,
            fetch=MetricsApi(self._connection).node_usage,
            allocatable=lambda: allocatable_in(self._state),
            publish=lambda reading: self._publish(request, reading),
            clock=self._wall_clock,
            sleep=asyncio.sleep,
        )

    def _nodes(self) -> list[Node]:
        nodes = self._state.nodes()
        return [nodes.node(position) for position in range(len(nodes))]

    def _publish_traffic(self, reading: TrafficReading) -> None:
        self._newest[reading.request] = reading
        self._publish(reading.request, published(reading))
