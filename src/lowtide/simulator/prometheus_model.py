"""A model of Prometheus over a drawn world: scrapes at their times, and PromQL over the samples.

The run scrapes it before each change of the world and asks it what the meter wants to know."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from lowtide.cluster.columns import FloatArray, IntArray
from lowtide.localcluster.prometheus import without_name
from lowtide.localcluster.promql import Query, QueryError, parse
from lowtide.localcluster.ranges import RangeOfSamples, evaluated
from lowtide.readings.series import Series
from lowtide.simulator.world import RECEIVE, TRANSMIT, World

KEPT_SECONDS: Final = 3600
LOOKBACK_MILLISECONDS: Final = 300_000

# Up, broadcasting, multicasting; the device's own number, which is also its parent's.
_FLAGS: Final = 0x1003
_DEVICE_NUMBER: Final = 2

_NODE_COUNTERS: Final = {
    "node_network_receive_bytes_total": RECEIVE,
    "node_network_transmit_bytes_total": TRANSMIT,
}
_POD_COUNTERS: Final = {
    "container_network_receive_bytes_total": RECEIVE,
    "container_network_transmit_bytes_total": TRANSMIT,
}

Labels = dict[str, str]


class Targets:
    """When each node's exporter, or kubelet, is scraped: at its own phase of the interval."""

    def __init__(self, phases: FloatArray, interval_seconds: float) -> None:
        self.interval = round(1000 * interval_seconds)  # milliseconds, as Prometheus counts
        self.phase: IntArray = np.floor(phases * self.interval).astype(np.int64)

    def last_until(self, moment: IntArray | int) -> IntArray:
        """The number of the last scrape of each node up to that millisecond."""
        number: IntArray = (moment - self.phase) // self.interval
        return number

    def scraped_at(self, number: IntArray) -> IntArray:
        """The millisecond of each node's scrape of that number."""
        moment: IntArray = self.phase + number * self.interval
        return moment


@dataclass(slots=True, eq=False)
class _PodSeries:
    """The counters of a pod. Its rates are constant, so no samples are kept."""

    labels: Labels
    node: int
    rates: tuple[float, float]
    started_at: float
    ended_at: float = math.inf
    is_matched: dict[str, bool] = field(default_factory=dict)  # by query

    def matches(self, promql: str, query: Query) -> bool:
        found = self.is_matched.get(promql)
        if found is None:
            found = self.is_matched[promql] = query.selector.matches(self.labels)
        return found


class PrometheusModel:
    def __init__(
        self,
        world: World,
        *,
        exporters: Targets,
        kubelets: Targets,
        node_labels: Sequence[Labels],
        device: str,
        delay_seconds: float = 0.0,
    ) -> None:
        self._world = world
        self._exporters = exporters
        self._kubelets = kubelets
        self._node_labels = [{**labels, "device": device} for labels in node_labels]
        self._node_names = [labels["node"] for labels in node_labels]
        self._delay = round(1000 * delay_seconds)
        count = len(node_labels)
        rounds = math.ceil(1000 * KEPT_SECONDS / exporters.interval) + 2
        self._samples = np.zeros((2, rounds, count))  # (directions, scrapes, nodes)
        self._every_node = np.arange(count)
        self._scraped = exporters.last_until(_milliseconds(world.now))
        self._first = self._scraped + 1
        self._pods: dict[str, _PodSeries] = {}
        self._longest_range_seconds = LOOKBACK_MILLISECONDS / 1000  # of those asked of pods
        self._parsed: dict[str, Query] = {}
        self._chosen: dict[str, list[tuple[int, Labels]]] = {}

    # The world goes on.

    def scrape(self, now: float) -> None:
        """Every scrape that is due, of rates that have not changed since the last call."""
        due = self._exporters.last_until(_milliseconds(now))
        while (late := np.flatnonzero(self._scraped < due)).size:
            self._scraped[late] += 1
            moments = self._exporters.scraped_at(self._scraped) / 1000
            counters = np.floor(self._world.counters_at(moments))
            position = self._scraped[late] % self._samples.shape[1]
            self._samples[:, position, late] = counters[:, late]

    def pod_started(
        self, uid: str, labels: Labels, node: int, rates: tuple[float, float], now: float
    ) -> None:
        shown = {**labels, "interface": "eth0", "node": self._node_names[node]}
        self._pods[uid] = _PodSeries(shown, node, rates, now)

    def pod_ended(self, uid: str, now: float) -> None:
        self._pods[uid].ended_at = now

    # What is asked of it.

    def query(self, promql: str, now: float) -> list[Series]:
        """The instant vector at `now`; samples are of scrapes up to the delay before.

        QueryError for a query that is not answered here."""
        query = self._parsed.get(promql)
        if query is None:
            query = self._parsed[promql] = parse(promql)
        if query.range_seconds > KEPT_SECONDS:
            raise QueryError(
                f"{promql!r} asks for {query.range_seconds:g} s, and the simulated Prometheus "
                f"keeps {KEPT_SECONDS} s"
            )
        if query.range_seconds and query.function is None:
            raise QueryError(f"{promql!r} gives ranges, and one value per series is wanted")
        found = self._found(promql, query, now)
        if query.present is not None:
            there = self._found(f"{promql} (present)", Query(query.present), now)
            present = {_key(labels) for labels, _ in there}
            found = [(labels, value) for labels, value in found if _key(labels) in present]
        if query.aggregation:
            found = _aggregated(query, found)
        return [Series(labels, value, now) for labels, value in found]

    def _found(self, promql: str, query: Query, now: float) -> list[tuple[Labels, float]]:
        if query.selector.metric in _POD_COUNTERS:
            return self._of_pods(promql, query, now)
        return self._of_nodes(promql, query, now)

    def _of_nodes(self, promql: str, query: Query, now: float) -> list[tuple[Labels, float]]:
        values = self._values_of_nodes(query, now)
        if values is None:
            return []
        chosen = self._chosen.get(promql)
        if chosen is None:
            chosen = self._chosen[promql] = self._matching_nodes(query)
        found = [(labels, values[node]) for node, labels in chosen]
        return [(labels, float(value)) for labels, value in found if value == value]

    def _matching_nodes(self, query: Query) -> list[tuple[int, Labels]]:
        metric = query.selector.metric
        extra = {} if query.function else {"__name__": metric}
        found = []
        for node, labels in enumerate(self._node_labels):
            shown = dict(labels)
            if metric in ("up", "node_uname_info"):
                del shown["device"]
            if metric == "node_uname_info":
                shown |= {"nodename": labels["node"], "sysname": "Linux"}
            if query.selector.matches(shown):
                found.append((node, {**extra, **shown}))
        return found

    def _values_of_nodes(self, query: Query, now: float) -> FloatArray | None:
        """NaN where a node has no value; None for a metric that there is not."""
        count = len(self._every_node)
        match query.selector.metric:
            case "node_network_speed_bytes":
                values = self._world.capacity
            case "up" | "node_uname_info":
                values = np.ones(count)
            case "node_network_flags":
                values = np.full(count, float(_FLAGS))
            case "node_network_iface_id" | "node_network_iface_link":
                values = np.full(count, float(_DEVICE_NUMBER))
            case metric if metric in _NODE_COUNTERS:
                return self._counted(query, _NODE_COUNTERS[metric], now)
            case _:
                return None
        is_scraped = self._newest(_milliseconds(now)) >= self._first
        return np.where(is_scraped, values, math.nan)

    def _counted(self, query: Query, direction: int, now: float) -> FloatArray:
        end = _milliseconds(now)
        newest, samples = self._newest(end), self._samples[direction]
        start = end - (round(1000 * query.range_seconds) or LOOKBACK_MILLISECONDS)
        oldest = np.maximum(self._exporters.last_until(start) + 1, self._first)

        def value_of(number: IntArray) -> FloatArray:
            values: FloatArray = samples[number % len(samples), self._every_node]
            return values

        ranges = RangeOfSamples(
            oldest,
            newest,
            self._exporters.scraped_at(oldest),
            self._exporters.scraped_at(newest),
            value_of,
        )
        return evaluated(query.function, ranges, start, end)

    def _newest(self, moment: int) -> IntArray:
        return np.minimum(self._exporters.last_until(moment - self._delay), self._scraped)

    def _of_pods(self, promql: str, query: Query, now: float) -> list[tuple[Labels, float]]:
        self._forget_pods(query, now)
        pods = [pod for pod in self._pods.values() if pod.matches(promql, query)]
        if query.function is None:  # a series that ended is stale from the next scrape on
            pods = [pod for pod in pods if pod.ended_at > now]
        if not pods:
            return []
        values = self._counted_of_pods(query, pods, now).tolist()
        found = zip(pods, values, strict=True)
        return [(pod.labels, value) for pod, value in found if value == value]

    def _counted_of_pods(self, query: Query, pods: list[_PodSeries], now: float) -> FloatArray:
        end = _milliseconds(now)
        start = end - (round(1000 * query.range_seconds) or LOOKBACK_MILLISECONDS)
        direction = _POD_COUNTERS[query.selector.metric]
        rate = np.array([pod.rates[direction] for pod in pods])
        started = np.array([pod.started_at for pod in pods])
        ended = np.array([min(pod.ended_at, now) for pod in pods])
        phase = self._kubelets.phase[[pod.node for pod in pods]]
        interval = self._kubelets.interval
        first_seen = np.ceil(1000 * started).astype(np.int64)
        last_seen = np.minimum(np.floor(1000 * ended), end - self._delay).astype(np.int64)
        newest = (last_seen - phase) // interval
        oldest = np.maximum((start - phase) // interval + 1, -((phase - first_seen) // interval))

        def value_of(number: IntArray) -> FloatArray:
            values: FloatArray = np.floor(rate * ((phase + number * interval) / 1000 - started))
            return values

        ranges = RangeOfSamples(
            oldest, newest, phase + oldest * interval, phase + newest * interval, value_of
        )
        return evaluated(query.function, ranges, start, end)

    def _forget_pods(self, query: Query, now: float) -> None:
        """Those that ended before any range that is asked of pods begins."""
        self._longest_range_seconds = max(self._longest_range_seconds, query.range_seconds)
        begins_at = now - self._longest_range_seconds
        for uid in [uid for uid, pod in self._pods.items() if pod.ended_at < begins_at]:
            del self._pods[uid]


def _aggregated(query: Query, found: Sequence[tuple[Labels, float]]) -> list[tuple[Labels, float]]:
    groups: dict[tuple[str, ...], list[float]] = {}
    for labels, value in found:
        key = tuple(labels.get(label, "") for label in query.labels)
        groups.setdefault(key, []).append(value)
    combine: Callable[[list[float]], float] = math.fsum if query.aggregation == "sum" else max
    return [
        (
            {name: value for name, value in zip(query.labels, key, strict=True) if value},
            combine(all_),
        )
        for key, all_ in groups.items()
    ]


def _key(labels: Labels) -> frozenset[tuple[str, str]]:
    return frozenset(without_name(labels).items())


def _milliseconds(seconds: float) -> int:
    """Down to the whole one, but for what rounding takes off."""
    return math.floor(1000 * seconds + 0.001)
