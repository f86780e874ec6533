"""Asks metrics-server again and again, and publishes what is known of every node after each time.

App starts one for each distinct UsageRequest of the profiles."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from lowtide.cluster.reading import Reading
from lowtide.logs import Log
from lowtide.readings.usage import (
    Allocatable,
    NoUsage,
    UsageRequest,
    UsageSample,
    not_ahead,
    usage_reading,
    without_usage,
)
from lowtide.telemetry.polling import NODES_NAMED_IN_A_LINE, Outage, poll_for_ever
from lowtide.telemetry.prometheus import OffThread, at_once

log = Log("telemetry")

Fetch = Callable[[], Awaitable[Mapping[str, UsageSample] | NoUsage]]


class UsagePoller:
    """Polls for one request.

    `clock` tells seconds since 1970, since metrics-server's times are compared with it.
    `allocatable` is what the known nodes have. `first_result` is set once the first poll has
    ended, well or badly, and its reading was published. Readings are made on another thread, but
    published by whoever polls."""

    def __init__(
        self,
        *,
        request: UsageRequest,
        fetch: Fetch,
        allocatable: Callable[[], Mapping[str, Allocatable]],
        publish: Callable[[Reading], None],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        off_thread: OffThread = at_once,
    ) -> None:
        self.first_result = asyncio.Event()
        self.polls: Counter[str] = Counter()  # by result, since the start
        self._request = request
        self._fetch = fetch
        self._allocatable = allocatable
        self._publish = publish
        self._clock = clock
        self._sleep = sleep
        self._off_thread = off_thread
        self._samples: Mapping[str, UsageSample] = {}
        self._outage = Outage()
        self._unknown: tuple[str, ...] = ()

    async def run(self) -> None:
        """Poll at once and then at the request's interval, until cancelled."""
        await poll_for_ever(
            self.poll,
            every_seconds=self._request.every_seconds,
            clock=self._clock,
            sleep=self._sleep,
        )

    async def poll(self) -> None:
        """Ask once and publish, also when nothing was answered: what is known ages."""
        answer = await self._fetch()
        now, nodes = self._clock(), self._allocatable()
        self.polls["failure" if isinstance(answer, NoUsage) else "success"] += 1
        self._report_outage(answer, now)
        if not isinstance(answer, NoUsage):
            self._samples = not_ahead(answer, now)
        reading = await self._off_thread(
            partial(usage_reading, self._request, self._samples, nodes, now)
        )
        if not isinstance(answer, NoUsage):
            unknown = await self._off_thread(partial(without_usage, reading, nodes))
            self._report_nodes(unknown, len(nodes))
        self._publish(reading)
        self.first_result.set()

    def _report_outage(self, answer: Mapping[str, UsageSample] | NoUsage, now: float) -> None:
        if not isinstance(answer, NoUsage):
            seconds = self._outage.ends(now)
            if seconds is not None:
                log.info("metrics-server answers", failedForSeconds=seconds)
        elif self._outage.begins(now):
            log.warning(
                "metrics-server gives no usage; earlier readings count until they are stale, "
                "and NodeUsage has no opinion without any",
                err=answer.reason,
                staleAfterSeconds=self._request.stale_after_seconds,
            )

    def _report_nodes(self, unknown: tuple[str, ...], count: int) -> None:
        if unknown == self._unknown:
            return
        self._unknown = unknown
        if not unknown:
            log.info("metrics-server knows the usage of every node", nodes=count)
            return
        log.warning(
            "Nodes without a usage; they count as average",
            unknown=len(unknown),
            nodes=list(unknown[:NODES_NAMED_IN_A_LINE]),
            of=count,
        )
