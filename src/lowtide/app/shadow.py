"""The shadow mode: decides for every pod that others place, beside any scheduler. It writes nothing
to the cluster: rights to read are enough."""

import asyncio
from collections.abc import Callable, Hashable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from lowtide.app.clocks import Clock
from lowtide.app.known_cluster import BelievedCluster
from lowtide.app.measuring import Measuring
from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import requests_of
from lowtide.app.tasks import end, failures, started
from lowtide.app.watching import make_watches
from lowtide.cluster.reading import Reading
from lowtide.framework.plugin import Binder
from lowtide.framework.profile import Profile
from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import Access
from lowtide.logs import Log
from lowtide.objects.events import Added, Deleted, Listed, Modified
from lowtide.objects.kinds import NODE
from lowtide.objects.pod import Pod
from lowtide.readings.request import TrafficRequest
from lowtide.scheduler.events import Event, ReadingPublished
from lowtide.scheduler.shadow import Shadow, Shadowed
from lowtide.simulator.predicted_links import PredictedLinks
from lowtide.simulator.shadow_report import Difference, ShadowReport, ShadowSummary

log = Log("shadow")


@dataclass(frozen=True, slots=True)
class ShadowParts:
    """What a shadow is made of; the clocks as in SchedulerParts. `tell` hears of each pod that
    would be elsewhere, `show` of each reading."""

    access: Access
    make_profiles: Callable[[Binder], dict[str, Profile]]
    clock: Clock
    wall_clock: Clock
    for_seconds: float | None = None
    tell: Callable[[Difference], None] = lambda difference: None
    show: Callable[[ShadowSummary], None] = lambda summary: None


class ShadowApp:
    def __init__(self, parts: ShadowParts) -> None:
        self._parts = parts
        self._clock = parts.clock
        self._connection = Connection(parts.access, parts.wall_clock)
        self._measuring_connection = Connection(parts.access, parts.wall_clock)
        profiles = parts.make_profiles(NoBinder())
        self.shadow = Shadow(profiles)
        requests = requests_of(profiles.values(), TrafficRequest)
        self._request = requests[0] if requests else None
        self._links = (
            None if self._request is None else PredictedLinks(self._request, self.shadow.state)
        )
        self._report = ShadowReport(parts.clock())
        self._measuring = Measuring(
            profiles,
            connection=self._measuring_connection,
            known=BelievedCluster(self.shadow.state),
            publish=self._publish,
            clock=parts.clock,
            wall_clock=parts.wall_clock,
        )
        self._stopping = asyncio.Event()
        self._nodes_listed = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> ShadowSummary:
        """Until `stop`, or for as long as it was told to."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._connection)
            await stack.enter_async_context(self._measuring_connection)
            await self._connection.check_credentials()
            watches = make_watches(
                self._connection, self._handle, self.shadow.rules_by_kind, clock=self._clock
            )
            measuring = [self._measure()] if self._measuring.is_wanted else []
            background = started(*(watch.run() for watch in watches), *measuring)
            stopping = asyncio.create_task(self._stopping.wait())
            try:
                await asyncio.wait(
                    [stopping, *background],
                    timeout=self._parts.for_seconds,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                failed = failures(background)
            finally:
                stopping.cancel()
                await end(background)
            if failed:
                raise failed[0]
        return self.summary()

    def summary(self) -> ShadowSummary:
        shadow = self.shadow
        return self._report.summary(
            self._clock(), nodes=shadow.state.count, pending=shadow.pending_count
        )

    async def _measure(self) -> None:
        await self._nodes_listed.wait()
        await self._measuring.run()

    def _handle(self, event: Event) -> None:
        was_synced = self.shadow.is_synced
        shadowed = self.shadow.step(event, self._clock())
        match event:
            case Listed(kind=NODE.name):
                self._nodes_listed.set()
            case Deleted(object=Pod() as pod):
                self._gone(pod)
            case Added(object=Pod() as pod) | Modified(object=Pod() as pod) if pod.has_ended:
                self._gone(pod)
        if shadowed is not None:
            self._note(shadowed)
        if self.shadow.is_synced and not was_synced:
            log.info("Shadowing", nodes=self.shadow.state.count)
            self._parts.show(self.summary())

    def _note(self, shadowed: Shadowed) -> None:
        difference = self._report.note(shadowed, self._clock())
        would_be_on = shadowed.would_be_on
        if self._links is not None and would_be_on != shadowed.node_name:
            self._move(self._links, shadowed, would_be_on)
        if difference is not None:
            self._parts.tell(difference)

    def _move(self, links: PredictedLinks, shadowed: Shadowed, would_be_on: str) -> None:
        assert self._request is not None
        ledger = self.shadow.state.ledgers.of(self._request)
        if ledger is not None:
            expected = dict(ledger.expected(shadowed.pod))
            links.move(shadowed.pod.uid, shadowed.node_name, would_be_on, expected)

    def _gone(self, pod: Pod) -> None:
        if self._links is not None:
            self._links.forget(pod.uid)

    def _publish(self, source: Hashable, reading: Reading) -> None:
        self.shadow.step(ReadingPublished(source, reading), self._clock())
        if self._links is not None and source == self._request:
            self._report.look(self._links.hottest())
            self._parts.show(self.summary())
