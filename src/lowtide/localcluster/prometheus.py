"""Prometheus's query API over the traffic model, for exactly the kinds of queries Lowtide sends.

Started by LocalCluster; the demo and tests point the real telemetry client at it."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from aiohttp import web

from lowtide.localcluster.documents import Json
from lowtide.localcluster.faults import Faults
from lowtide.localcluster.faulty_http import FaultyServer, json_response
from lowtide.localcluster.presentation import encoded
from lowtide.localcluster.promql import Query, QueryError, parse
from lowtide.localcluster.ranges import RangeOfSamples, evaluated
from lowtide.localcluster.traffic import Direction, TrafficModel

JOB = "node-exporter"
CLOCK_QUERY = "vector(time())"
_COUNTERS = {
    "node_network_receive_bytes_total": Direction.RECEIVE,
    "node_network_transmit_bytes_total": Direction.TRANSMIT,
}
_POD_COUNTERS = (
    "container_network_receive_bytes_total",
    "container_network_transmit_bytes_total",
)
Labels = dict[str, str]


@dataclass(frozen=True, slots=True)
class _Series:
    labels: Labels
    value_at: Callable[[float], float]
    known_since: float


class PrometheusServer:
    """Behaves as if every node had been scraped at each multiple of `scrape_seconds`."""

    def __init__(
        self,
        *,
        traffic: TrafficModel,
        faults: Faults,
        clock: Callable[[], float],
        scrape_seconds: float = 1.0,
    ) -> None:
        self._traffic = traffic
        self._clock = clock
        self._scrape_seconds = scrape_seconds
        self._server = FaultyServer(self._handle, faults)

    @property
    def url(self) -> str:
        return self._server.url

    async def start(self, host: str, port: int) -> None:
        await self._server.start(host, port)

    async def stop(self) -> None:
        await self._server.stop()

    def answer(self, text: str, moment: float) -> Json:
        """The `data` of the answer to a query at one moment, in the form of Prometheus's JSON."""
        if text == CLOCK_QUERY:
            now = {"metric": {}, "value": [round(moment, 3), _number_text(moment)]}
            return {"resultType": "vector", "result": [now]}
        query = parse(text)
        if query.range_seconds and query.function is None:
            return {"resultType": "matrix", "result": self._matrix(query, moment)}
        return {"resultType": "vector", "result": self._vector(query, moment)}

    def _vector(self, query: Query, moment: float) -> list[Json]:
        found = self._evaluate(query, moment)
        if query.aggregation:
            found = _aggregated(query, found)
        return [
            {"metric": labels, "value": [round(moment, 3), _number_text(value)]}
            for labels, value in found
        ]

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path in ("/-/ready", "/-/healthy"):
            return web.Response(text="Prometheus Server is Ready.\n")
        if request.path != "/api/v1/query":
            return web.Response(status=404, text="404 page not found\n")
        if request.method not in ("GET", "POST"):
            return web.Response(status=405, text="Method Not Allowed\n")
        asked: Mapping[str, object] = request.query
        if request.method == "POST":
            asked = {**request.query, **await request.post()}
        try:
            moment = self._moment(str(asked.get("time", "")))
            data = self.answer(str(asked.get("query", "")), moment)
        except QueryError as error:
            failure = {"status": "error", "errorType": "bad_data", "error": str(error)}
            return json_response(400, encoded(failure))
        return json_response(200, encoded({"status": "success", "data": data}))

    def _moment(self, text: str) -> float:
        if not text:
            return self._clock()
        try:
            return float(text)
        except ValueError:
            raise QueryError(
                f'invalid parameter "time": cannot parse {text!r}; write Unix seconds'
            ) from None

    def _evaluate(self, query: Query, moment: float) -> list[tuple[Labels, float]]:
        found = []
        for series in self._series(query.selector.metric):
            if not query.selector.matches(series.labels):
                continue
            value = self._value(query, series, moment)
            if value is not None:
                found.append((_shown_labels(query, series.labels), value))
        if query.present is None:
            return found
        present = [without_name(each) for each, _ in self._evaluate(Query(query.present), moment)]
        return [(labels, value) for labels, value in found if without_name(labels) in present]

    def _matrix(self, query: Query, moment: float) -> list[Json]:
        found = []
        for series in self._series(query.selector.metric):
            indices = self._scrapes(query, series, moment)
            if query.selector.matches(series.labels) and indices:
                times = [index * self._scrape_seconds for index in indices]
                values = [[time, _number_text(series.value_at(time))] for time in times]
                found.append({"metric": series.labels, "values": values})
        return found

    def _scrapes(self, query: Query, series: _Series, moment: float) -> range:
        """The numbers of the scrapes in the query's range; without one, of the last scrape."""
        step = self._scrape_seconds
        oldest, last = math.ceil(series.known_since / step), math.floor(moment / step)
        if not query.range_seconds:
            return range(max(oldest, last), last + 1)
        # Like Prometheus 3, a range leaves its own left edge out.
        first = max(oldest, math.floor((moment - query.range_seconds) / step) + 1)
        return range(first, last + 1)

    def _series(self, metric: str) -> Iterator[_Series]:
        if metric in _POD_COUNTERS:
            yield from self._pod_series(metric)
            return
        for name in self._traffic.names():
            base = {"__name__": metric, "instance": self._traffic.instance(name), "job": JOB}
            since = self._traffic.measured_since(name)
            if metric == "up":
                yield _Series(base, _constant(1.0), since)
            elif metric == "node_uname_info":
                yield _Series({**base, **_uname(name)}, _constant(1.0), since)
            elif metric == "node_network_speed_bytes":
                for link in self._traffic.links(name):
                    speed = _constant(link.capacity_bytes_per_second)
                    yield _Series({**base, "device": link.device}, speed, since)
            elif direction := _COUNTERS.get(metric):
                for link in self._traffic.links(name):
                    counter = partial(self._traffic.counter_bytes, name, link.device, direction)
                    yield _Series({**base, "device": link.device}, _whole(counter), since)

    def _pod_series(self, metric: str) -> Iterator[_Series]:
        """As cAdvisor tells it; a pod carries the same in both directions."""
        for pod in self._traffic.pods():
            labels = {
                "__name__": metric,
                "namespace": pod.namespace,
                "pod": pod.name,
                "interface": "eth0",
            }
            yield _Series(labels, _whole(pod.counter_bytes), pod.started_at)

    def _value(self, query: Query, series: _Series, moment: float) -> float | None:
        scrapes = self._scrapes(query, series, moment)
        ranges = RangeOfSamples(
            oldest=np.array([scrapes.start]),
            newest=np.array([scrapes.stop - 1]),
            oldest_at=np.array([self._milliseconds(scrapes.start)]),
            newest_at=np.array([self._milliseconds(scrapes.stop - 1)]),
            value_of=lambda number: np.array([series.value_at(number[0] * self._scrape_seconds)]),
        )
        start, end = round(1000 * (moment - query.range_seconds)), round(1000 * moment)
        value = float(evaluated(query.function, ranges, start, end)[0])
        return None if math.isnan(value) else value

    def _milliseconds(self, scrape: int) -> int:
        return round(1000 * scrape * self._scrape_seconds)


def _aggregated(query: Query, found: list[tuple[Labels, float]]) -> list[tuple[Labels, float]]:
    groups: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for labels, value in found:
        key = tuple((label, labels[label]) for label in query.labels if label in labels)
        groups.setdefault(key, []).append(value)
    combine = sum if query.aggregation == "sum" else max
    return [(dict(key), float(combine(values))) for key, values in groups.items()]


def _shown_labels(query: Query, labels: Labels) -> Labels:
    return labels if query.function is None else without_name(labels)


def without_name(labels: Labels) -> Labels:
    """What series are told apart by, and matched by, whatever their metrics are."""
    return {label: value for label, value in labels.items() if label != "__name__"}


def _uname(name: str) -> Labels:
    return {
        "domainname": "(none)",
        "machine": "x86_64",
        "nodename": name,
        "release": "6.12.0",
        "sysname": "Linux",
        "version": "#1 SMP",
    }


def _constant(value: float) -> Callable[[float], float]:
    return lambda moment: value


def _whole(counter: Callable[[float], float]) -> Callable[[float], float]:
    return lambda moment: float(math.floor(counter(moment)))


def _number_text(value: float) -> str:
    return repr(value).removesuffix(".0")
