"""What the modes have in common that run beside any scheduler and only read: watches, readings, and
an end."""

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from lowtide.app.clocks import Clock
from lowtide.app.known_cluster import WatchedCluster
from lowtide.app.measuring import Measuring
from lowtide.app.rejected_answers import rejected_by
from lowtide.app.tasks import end, failures, started
from lowtide.app.watching import make_watches
from lowtide.cluster.reading import Reading
from lowtide.framework.profile import Profile
from lowtide.kube.connection import Connection
from lowtide.kube.errors import KubeError
from lowtide.kube.following import Outages
from lowtide.kube.kubeconfig import Access
from lowtide.logs import Log
from lowtide.objects.events import Listed
from lowtide.objects.kinds import NODE, POD
from lowtide.records.measured import traffic_request_of
from lowtide.scheduler.events import Event, ReadingPublished

log = Log("beside")


@dataclass(frozen=True, slots=True)
class BesideParts:
    """The clocks as in SchedulerParts."""

    access: Access
    clock: Clock
    wall_clock: Clock
    for_seconds: float | None = None


class Beside:
    """Hands every event to `take`; permissions to list and watch are enough for it."""

    def __init__(
        self,
        parts: BesideParts,
        profiles: Mapping[str, Profile],
        plugins_by_kind: Mapping[type, Sequence[str]],
        take: Callable[[Event], None],
    ) -> None:
        self._parts = parts
        self._take = take
        self._connection = Connection(parts.access, parts.wall_clock)
        self._reads_traffic = traffic_request_of(profiles.values()) is not None
        self._measuring_connection = Connection(parts.access, parts.wall_clock)
        self._watched = WatchedCluster()
        self.measuring = Measuring(
            profiles,
            connection=self._measuring_connection,
            known=self._watched,
            publish=self._publish,
            clock=parts.clock,
            wall_clock=parts.wall_clock,
        )
        self.outages = Outages(parts.clock)
        self._watches = make_watches(
            self._connection, self._handle, plugins_by_kind, outages=self.outages
        )
        self._stopping = asyncio.Event()
        self._nodes_listed = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Until `stop`, or for as long as it was told to."""
        if not self._reads_traffic:  # told at once: a day later it is a day lost
            log.warning(
                "No plugin reads traffic, so links are not measured: give --prometheus URL, or "
                "--config FILE with NetworkTraffic"
            )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._connection)
            await stack.enter_async_context(self._measuring_connection)
            await self._connection.check_credentials()
            measuring = [self._measure()] if self.measuring.is_wanted else []
            background = started(*(watch.run() for watch in self._watches), *measuring)
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

    def rejected_answers(self) -> Mapping[str, int]:
        """For /metrics."""
        return rejected_by(self._connection, self._measuring_connection, measuring=self.measuring)

    @property
    def has_seen(self) -> bool:
        return not self._unseen()

    def check_seen(self) -> None:
        """KubeError where there is nothing to tell, as the cluster was away all the time."""
        why_by_plural = self._unseen()
        if why_by_plural:
            silent = f"{self._parts.access.cluster.server} has not answered yet"
            why = next(filter(None, why_by_plural.values()), silent)
            raise KubeError(f"{' and '.join(why_by_plural)} of the cluster were never seen: {why}")

    def _unseen(self) -> dict[str, str]:
        """Of nodes and pods: what was never listed, and why."""
        why_by_plural = self.outages.never_listed()
        kinds = (NODE.plural, POD.plural)
        return {each: why_by_plural[each] for each in kinds if each in why_by_plural}

    async def _measure(self) -> None:
        await self._nodes_listed.wait()
        await self.measuring.run()

    def _handle(self, event: Event) -> None:
        self._watched.handle(event)
        self._take(event)
        if isinstance(event, Listed) and event.kind == NODE.name:
            self._nodes_listed.set()

    def _publish(self, source: Hashable, reading: Reading) -> None:
        self._take(ReadingPublished(source, reading))
