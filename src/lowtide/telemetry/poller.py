"""Asks Prometheus again and again, and publishes what is known of every node after each time.

App starts one for each distinct TrafficRequest of the profiles."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

import numpy as np

from lowtide.logs import Log
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.readings.meter import TrafficMeter
from lowtide.readings.reading import STATES, State, TrafficReading
from lowtide.readings.request import TrafficRequest, directions, duration
from lowtide.readings.rest import Rest, no_rest
from lowtide.telemetry.errors import PrometheusError
from lowtide.telemetry.polling import NODES_NAMED_IN_A_LINE, Outage, poll_for_ever
from lowtide.telemetry.prometheus import OffThread, Prometheus, at_once

log = Log("telemetry")


class TrafficPoller:
    """Polls for one request.

    `clock` tells seconds since 1970, by which readings are dated; `steady_clock` never jumps.
    `first_result` is set once the first poll has ended, well or badly, and its reading was
    published. Readings are made on another thread, but published by whoever polls."""

    def __init__(
        self,
        *,
        request: TrafficRequest,
        prometheus: Prometheus,
        nodes: Callable[[], Sequence[Node]],
        pods: Callable[[], Iterable[Pod]],
        publish: Callable[[TrafficReading], Awaitable[None]],
        clock: Callable[[], float],
        steady_clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        off_thread: OffThread = at_once,
        rest: Rest = no_rest,
    ) -> None:
        self.first_result = asyncio.Event()
        self._request = request
        self._meter = TrafficMeter(request, rest)
        self._prometheus = prometheus
        self._nodes = nodes
        self._pods = pods
        self._publish = publish
        self._clock = clock
        self._steady_clock = steady_clock
        self._sleep = sleep
        self._off_thread = off_thread
        self._outage = Outage()
        self._unusable: dict[State, tuple[str, ...]] = {}
        self._unanswered: AbstractSet[str] = frozenset()  # beside what is measured
        self._is_ignored = False
        self._has_read = False  # whether traffic was answered at least once
        self.polls: Counter[str] = Counter()  # by result, since the start

    async def run(self) -> None:
        """Poll at once and then at the request's interval, until cancelled."""
        await poll_for_ever(
            self.poll,
            every_seconds=self._request.every_seconds,
            clock=self._steady_clock,
            sleep=self._sleep,
        )

    async def poll(self) -> None:
        """Ask what is due and publish, also when nothing was answered: what is known ages.

        Over a window that turns out to be too short most nodes have no rate, so that is asked
        again at once."""
        reading = await self._ask()
        if await self._probe():
            reading = await self._ask()
        self.first_result.set()
        if self._has_read:
            self._report_ignored(reading)
        if not self._outage.is_on:
            self._report_nodes(reading)
        await self._probe_pods()

    async def _ask(self) -> TrafficReading:
        nodes = self._nodes()  # one that joins meanwhile was not asked about
        queries = self._meter.due(self._steady_clock(), nodes)
        for promql in queries.values():
            log.v(2, promql)
        answers, failures = await self._prometheus.query_all(queries)
        self.polls["failure" if failures else "success"] += 1
        now, steady_now = self._clock(), self._steady_clock()
        pods = list(self._pods())  # others come and go meanwhile
        reading = await self._off_thread(
            partial(self._meter.take, answers, nodes, pods, now, steady_now=steady_now)
        )
        self._report_failures(failures, answers.keys(), steady_now)
        self._has_read |= not self._outage.is_on
        await self._publish(reading)
        if reading.is_fresh.any():
            self.first_result.set()
        return reading

    async def _probe(self) -> bool:
        """How often targets are scraped, and whether the window was widened for it. What cannot
        be found out now is asked again next time."""
        sample_times = await self._sample_times(self._meter.probe(self._steady_clock()))
        is_widened = self._meter.probed(sample_times, self._steady_clock())
        if is_widened:
            log.warning(
                "The window is shorter than four scrapes, too short for a rate; it is widened",
                window=duration(self._request.window_seconds),
                widenedTo=duration(self._meter.window_seconds),
            )
        return is_widened

    async def _probe_pods(self) -> None:
        sample_times = await self._sample_times(self._meter.pod_probe(self._steady_clock()))
        self._meter.pods_probed(sample_times, self._steady_clock())

    async def _sample_times(self, promql: str | None) -> list[list[float]]:
        """Of each series; nothing where there is nothing to ask, or no answer."""
        if promql is None:
            return []
        try:
            found = await self._prometheus.query_range_vector(promql)
        except PrometheusError as error:
            log.v(2, "How often targets are scraped is not known", err=error)
            return []
        return [[at for at, _ in samples] for _, samples in found]

    def _report_failures(
        self, failures: Mapping[str, PrometheusError], answered: AbstractSet[str], now: float
    ) -> None:
        measuring = [failures[name] for name in directions(self._request) if name in failures]
        if measuring and self._outage.begins(now):
            if self._has_read:
                log.warning(
                    "Prometheus gives no traffic; earlier readings count until they are stale",
                    err=measuring[0],
                    staleAfterSeconds=self._request.stale_after_seconds,
                )
            else:
                log.warning("Prometheus gives no traffic", err=measuring[0])
        if measuring:
            return
        seconds = self._outage.ends(now)
        if seconds is not None:
            log.info(
                "Prometheus answers again",
                prometheus=self._prometheus.address,
                failedForSeconds=seconds,
            )
        for name, error in failures.items():
            if name not in self._unanswered:
                log.warning("Prometheus does not answer a question beside", asked=name, err=error)
        # What is not asked at each poll is unanswered until it is answered.
        self._unanswered = (self._unanswered - answered) | failures.keys()

    def _report_nodes(self, reading: TrafficReading) -> None:
        unusable = _unusable(reading)
        if unusable == self._unusable:
            return
        self._unusable = unusable
        if not unusable:
            log.info("Every node has a fresh traffic reading", nodes=len(reading.names))
            return
        counts = {state.value: len(names) for state, names in unusable.items()}
        named = [name for names in unusable.values() for name in names]
        log.warning(
            "Nodes without a usable traffic reading",
            **counts,
            nodes=named[:NODES_NAMED_IN_A_LINE],
            of=len(reading.names),
        )

    def _report_ignored(self, reading: TrafficReading) -> None:
        if reading.is_ignored == self._is_ignored:
            return
        self._is_ignored = reading.is_ignored
        if reading.is_ignored:
            log.warning(
                "Too few nodes have a fresh traffic reading: traffic does not count until more do",
                fresh=int(reading.is_fresh.sum()),
                of=len(reading.names),
            )
        else:
            log.info("Enough nodes have a fresh traffic reading: traffic counts again")


def _unusable(reading: TrafficReading) -> dict[State, tuple[str, ...]]:
    """The nodes of each state but fresh, sorted; a state without nodes is left out."""
    found: dict[State, list[str]] = {}
    for position in np.flatnonzero(~reading.is_fresh).tolist():
        found.setdefault(STATES[reading.state[position]], []).append(reading.names[position])
    return {state: tuple(sorted(found[state])) for state in State if state in found}
