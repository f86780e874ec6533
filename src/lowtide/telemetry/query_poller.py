"""Asks Prometheus one query of a plugin's own again and again, and publishes a value of every node
after each time. App starts one for each distinct PrometheusQuery of the profiles."""

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from lowtide.cluster.reading import Reading
from lowtide.logs import Log
from lowtide.objects.node import Node
from lowtide.readings.prometheus_query import (
    VALUE,
    PrometheusQuery,
    query_reading,
    values_by_node,
    without_value,
)
from lowtide.readings.request import UNAME, UNAME_LABELS
from lowtide.readings.series import Series
from lowtide.telemetry.errors import PrometheusError
from lowtide.telemetry.polling import NODES_NAMED_IN_A_LINE, Outage, poll_for_ever
from lowtide.telemetry.prometheus import OffThread, Prometheus, at_once

log = Log("telemetry")

WHO_IS_WHO: Final = f"max by ({', '.join(UNAME_LABELS)}) (node_uname_info)"
WHO_IS_WHO_AGAIN_SECONDS: Final = 300.0


class QueryPoller:
    """Polls for one query.

    `clock` tells seconds since 1970, by which readings are dated; `steady_clock` never jumps.
    `first_result` is set once the first poll has ended, well or badly, and its reading was
    published. Series are matched on another thread, but published by whoever polls."""

    def __init__(
        self,
        *,
        query: PrometheusQuery,
        prometheus: Prometheus,
        nodes: Callable[[], Sequence[Node]],
        publish: Callable[[Reading], None],
        clock: Callable[[], float],
        steady_clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        off_thread: OffThread = at_once,
    ) -> None:
        self.first_result = asyncio.Event()
        self.polls: Counter[str] = Counter()  # by result, since the start
        self._query = query
        self._prometheus = prometheus
        self._nodes = nodes
        self._publish = publish
        self._clock = clock
        self._steady_clock = steady_clock
        self._sleep = sleep
        self._off_thread = off_thread
        self._values: Mapping[str, float] = {}
        self._sampled_at = math.nan
        self._answered_at = -math.inf  # by the steady clock
        self._uname: Sequence[Series] = ()
        self._uname_at = -math.inf
        self._uname_for: frozenset[str] = frozenset()  # the nodes that were known then
        self._outage = Outage()
        self._unknown: tuple[str, ...] = ()

    async def run(self) -> None:
        """Poll at once and then at the query's interval, until cancelled."""
        await poll_for_ever(
            self.poll,
            every_seconds=self._query.every_seconds,
            clock=self._steady_clock,
            sleep=self._sleep,
        )

    async def poll(self) -> None:
        """Ask once and publish, also when nothing was answered: what is known ages."""
        nodes = self._nodes()
        answers, failures = await self._prometheus.query_all(self._due(nodes))
        now = self._steady_clock()
        if UNAME in answers:
            self._uname, self._uname_at = answers[UNAME], now
            self._uname_for = frozenset(node.name for node in nodes)
        self._report_outage(failures.get(VALUE), now)
        self.polls["failure" if VALUE in failures else "success"] += 1
        if VALUE in answers:
            self._answered_at, self._sampled_at = now, self._clock()
            matched = partial(values_by_node, self._query, answers[VALUE], self._uname, list(nodes))
            self._values = await self._off_thread(matched)
        elif now - self._answered_at > self._query.stale_after_seconds:
            self._values = {}
        reading = query_reading(self._values, sampled_at=self._sampled_at)
        if VALUE in answers:
            self._report_nodes(without_value(reading, [node.name for node in nodes]), len(nodes))
        self._publish(reading)
        self.first_result.set()

    def _due(self, nodes: Sequence[Node]) -> dict[str, str]:
        asked = {VALUE: self._query.promql}
        is_old = self._steady_clock() - self._uname_at >= WHO_IS_WHO_AGAIN_SECONDS
        has_new = not self._uname_for.issuperset(node.name for node in nodes)
        if self._query.asks_who_is_who and (is_old or has_new):
            asked[UNAME] = WHO_IS_WHO
        return asked

    def _report_outage(self, error: PrometheusError | None, now: float) -> None:
        if error is None:
            seconds = self._outage.ends(now)
            if seconds is not None:
                log.info(
                    "Prometheus answers a plugin's query again",
                    promql=self._query.promql,
                    failedForSeconds=seconds,
                )
        elif self._outage.begins(now):
            log.warning(
                "Prometheus does not answer a plugin's query; earlier values count until they are "
                "stale",
                promql=self._query.promql,
                err=error,
                staleAfterSeconds=self._query.stale_after_seconds,
            )

    def _report_nodes(self, unknown: tuple[str, ...], count: int) -> None:
        if unknown == self._unknown:
            return
        self._unknown = unknown
        log.info(
            "Nodes without a value of a plugin's query",
            promql=self._query.promql,
            unknown=len(unknown),
            nodes=list(unknown[:NODES_NAMED_IN_A_LINE]),
            of=count,
        )
