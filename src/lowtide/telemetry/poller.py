"""Asks Prometheus again and again, and publishes what is known of every node after each time.

App starts one for each distinct TrafficRequest of the profiles."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from lowtide.logs import Log
from lowtide.readings.matching import NodeIdentity
from lowtide.readings.reading import State, TrafficReading, age, assemble
from lowtide.readings.request import TrafficRequest, directions, queries
from lowtide.readings.series import Series
from lowtide.telemetry.prometheus import Prometheus, PrometheusError

log = Log("telemetry")

NODES_NAMED_IN_A_LINE: Final = 5


class TrafficPoller:
    """Polls for one request.

    `clock` tells seconds since 1970, since Prometheus's times are compared with it. `first_result`
    is set once the first poll has ended, well or badly, and its reading was published."""

    def __init__(
        self,
        *,
        request: TrafficRequest,
        prometheus: Prometheus,
        identities: Callable[[], Sequence[NodeIdentity]],
        publish: Callable[[TrafficReading], None],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.first_result = asyncio.Event()
        self._request = request
        self._queries = queries(request)
        self._prometheus = prometheus
        self._identities = identities
        self._publish = publish
        self._clock = clock
        self._sleep = sleep
        self._version = 0
        self._answers: dict[str, list[Series]] = {}
        self._reading: TrafficReading | None = None
        self._failing_since: float | None = None
        self._unusable: dict[State, tuple[str, ...]] = {}
        self.polls: Counter[str] = Counter()  # by result, since the start

    async def run(self) -> None:
        """Poll at once and then at the request's interval, until cancelled."""
        while True:
            started = self._clock()
            await self.poll()
            elapsed_seconds = max(0.0, self._clock() - started)
            await self._sleep(max(0.0, self._request.every_seconds - elapsed_seconds))

    async def poll(self) -> None:
        """Ask everything once and publish, also when nothing was answered: what is known ages."""
        for promql in self._queries.values():
            log.v(2, promql)
        outcomes = await asyncio.gather(*(self._ask(promql) for promql in self._queries.values()))
        fresh: dict[str, list[Series]] = {}
        failures: list[PrometheusError] = []
        for name, outcome in zip(self._queries, outcomes, strict=True):
            if isinstance(outcome, PrometheusError):
                failures.append(outcome)
            else:
                fresh[name] = outcome
        self.polls["failure" if failures else "success"] += 1
        now = self._clock()
        reading = self._read(fresh, now)
        self._report_failures(failures, now)
        if fresh.keys() >= set(directions(self._request)):
            self._report_nodes(reading)
        self._publish(reading)
        self.first_result.set()

    async def _ask(self, promql: str) -> list[Series] | PrometheusError:
        try:
            return await self._prometheus.query(promql)
        except PrometheusError as error:
            return error

    def _read(self, fresh: dict[str, list[Series]], now: float) -> TrafficReading:
        self._version += 1
        if self._reading is not None and not fresh:
            self._reading = age(self._reading, now, version=self._version)
        else:
            # A query that failed alone keeps its last answer, with that answer's time.
            self._answers.update(fresh)
            self._reading = assemble(
                self._request, self._answers, self._identities(), now, version=self._version
            )
        return self._reading

    def _report_failures(self, failures: list[PrometheusError], now: float) -> None:
        if failures and self._failing_since is None:
            self._failing_since = now
            log.warning(
                "Prometheus gives no traffic; earlier readings count until they are stale",
                err=failures[0],
                staleAfterSeconds=self._request.stale_after_seconds,
            )
        elif not failures and self._failing_since is not None:
            log.info(
                "Prometheus answers again",
                prometheus=self._prometheus.address,
                failedForSeconds=round(now - self._failing_since, 3),
            )
            self._failing_since = None

    def _report_nodes(self, reading: TrafficReading) -> None:
        unusable = _unusable(reading)
        if unusable == self._unusable:
            return
        self._unusable = unusable
        if not unusable:
            log.info("Every node has a fresh traffic reading", nodes=len(reading.by_node))
            return
        counts = {state.value: len(names) for state, names in unusable.items()}
        named = [name for names in unusable.values() for name in names]
        log.warning(
            "Nodes without a usable traffic reading",
            **counts,
            nodes=named[:NODES_NAMED_IN_A_LINE],
            of=len(reading.by_node),
        )


def _unusable(reading: TrafficReading) -> dict[State, tuple[str, ...]]:
    """The nodes of each state but fresh, sorted; a state without nodes is left out."""
    found: dict[State, list[str]] = {}
    for name, one in reading.by_node.items():
        if one.state is not State.FRESH:
            found.setdefault(one.state, []).append(name)
    return {state: tuple(sorted(found[state])) for state in State if state in found}
