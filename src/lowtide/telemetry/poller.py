"""Asks Prometheus again and again, and publishes what is known of every node after each time.

App starts one for each distinct TrafficRequest of the profiles."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from lowtide.logs import Log
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.readings.meter import TrafficMeter
from lowtide.readings.reading import STATES, State, TrafficReading
from lowtide.readings.request import TrafficRequest, directions, duration
from lowtide.telemetry.errors import PrometheusError
from lowtide.telemetry.polling import NODES_NAMED_IN_A_LINE, poll_for_ever
from lowtide.telemetry.prometheus import Prometheus

log = Log("telemetry")


class TrafficPoller:
    """Polls for one request.

    `clock` tells seconds since 1970, since Prometheus's times are compared with it. `first_result`
    is set once the first poll has ended, well or badly, and its reading was published."""

    def __init__(
        self,
        *,
        request: TrafficRequest,
        prometheus: Prometheus,
        nodes: Callable[[], Sequence[Node]],
        pods: Callable[[], Iterable[Pod]],
        publish: Callable[[TrafficReading], None],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.first_result = asyncio.Event()
        self._request = request
        self._meter = TrafficMeter(request)
        self._prometheus = prometheus
        self._nodes = nodes
        self._pods = pods
        self._publish = publish
        self._clock = clock
        self._sleep = sleep
        self._failing_since: float | None = None
        self._unusable: dict[State, tuple[str, ...]] = {}
        self._unanswered: AbstractSet[str] = frozenset()  # beside what is measured
        self._is_braked = False
        self.polls: Counter[str] = Counter()  # by result, since the start

    async def run(self) -> None:
        """Poll at once and then at the request's interval, until cancelled."""
        await poll_for_ever(
            self.poll,
            every_seconds=self._request.every_seconds,
            clock=self._clock,
            sleep=self._sleep,
        )

    async def poll(self) -> None:
        """Ask what is due and publish, also when nothing was answered: what is known ages."""
        nodes = self._nodes()  # one that joins meanwhile was not asked about
        queries = self._meter.due(self._clock(), nodes)
        for promql in queries.values():
            log.v(2, promql)
        answers, failures = await self._prometheus.query_all(queries)
        self.polls["failure" if failures else "success"] += 1
        now = self._clock()
        reading = self._meter.take(answers, nodes, self._pods(), now)
        self._report_failures(failures, now)
        if answers.keys() >= set(directions(self._request)):
            self._report_nodes(reading)
        self._publish(reading)
        self.first_result.set()
        await self._probe()

    async def _probe(self) -> None:
        """How often targets are scraped; what cannot be found out now is asked again next time."""
        promql = self._meter.probe(self._clock())
        if promql is None:
            return
        try:
            found = await self._prometheus.query_range_vector(promql)
        except PrometheusError as error:
            log.v(2, "How often targets are scraped is not known", err=error)
            return
        sample_times = [[at for at, _ in samples] for _, samples in found]
        if self._meter.probed(sample_times, self._clock()):
            log.warning(
                "The window is shorter than four scrapes, too short for a rate; it is widened",
                window=duration(self._request.window_seconds),
                widenedTo=duration(self._meter.window_seconds),
            )

    def _report_failures(self, failures: dict[str, PrometheusError], now: float) -> None:
        measuring = [failures[name] for name in directions(self._request) if name in failures]
        if measuring and self._failing_since is None:
            self._failing_since = now
            log.warning(
                "Prometheus gives no traffic; earlier readings count until they are stale",
                err=measuring[0],
                staleAfterSeconds=self._request.stale_after_seconds,
            )
        elif not measuring and self._failing_since is not None:
            log.info(
                "Prometheus answers again",
                prometheus=self._prometheus.address,
                failedForSeconds=round(now - self._failing_since, 3),
            )
            self._failing_since = None
        of_others = {name: error for name, error in failures.items() if error not in measuring}
        if of_others.keys() != self._unanswered and not measuring:
            self._unanswered = of_others.keys()
            for name, error in of_others.items():
                log.warning("Prometheus does not answer a question beside", asked=name, err=error)

    def _report_nodes(self, reading: TrafficReading) -> None:
        self._report_brake(reading)
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

    def _report_brake(self, reading: TrafficReading) -> None:
        if reading.is_braked == self._is_braked:
            return
        self._is_braked = reading.is_braked
        if reading.is_braked:
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
    for name, code in zip(reading.names, reading.state.tolist(), strict=True):
        if STATES[code] is not State.FRESH:
            found.setdefault(STATES[code], []).append(name)
    return {state: tuple(sorted(found[state])) for state in State if state in found}
