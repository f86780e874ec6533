"""How much traffic each node's links carry at any moment, as counters a node_exporter would show.

Pure, given a clock. LocalCluster tells it which pods run; PrometheusServer reads the counters."""

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

_TAU = 2 * math.pi


@dataclass(frozen=True, slots=True)
class Link:
    device: str
    capacity_bytes_per_second: int


@dataclass(frozen=True, slots=True)
class Background:
    """Traffic besides that of pods, as shares of the link's capacity.

    It rests at `quiet_share` and once per period swells to `busy_share`, around the moment
    `phase` (0 to 1) of the period; the larger `sharpness`, the shorter the swell. A period of 0
    means that it rests at `quiet_share` forever."""

    quiet_share: float = 0.0
    busy_share: float = 0.0
    period_seconds: float = 0.0
    phase: float = 0.0
    sharpness: int = 24
    transmit_per_receive: float = 1.0

    def share(self, moment: float) -> float:
        if not self.period_seconds:
            return self.quiet_share
        half_angle = math.pi * (moment / self.period_seconds - self.phase)
        swell = math.pow(math.cos(half_angle), 2 * self.sharpness)
        return self.quiet_share + (self.busy_share - self.quiet_share) * swell

    def share_seconds(self, start: float, end: float) -> float:
        """The integral of `share`, exact: an even power of a cosine is a sum of cosines."""
        total = self.quiet_share * (end - start)
        if not self.period_seconds:
            return total
        # Counted from the start's own period: Unix seconds are too large for exact sines.
        origin = math.floor(start / self.period_seconds) * self.period_seconds
        swell = self._swell_seconds(end - origin) - self._swell_seconds(start - origin)
        return total + (self.busy_share - self.quiet_share) * swell

    def _swell_seconds(self, moment: float) -> float:
        power = self.sharpness
        angle = _TAU * (moment / self.period_seconds - self.phase)
        waves = sum(
            math.comb(2 * power, power - k) * math.sin(k * angle) / k for k in range(1, power + 1)
        )
        seconds_per_radian = self.period_seconds / _TAU
        mean = math.comb(2 * power, power) * angle
        return (mean + 2 * waves) * seconds_per_radian / math.pow(4, power)


class Direction(StrEnum):
    RECEIVE = "receive"
    TRANSMIT = "transmit"


@dataclass(frozen=True, slots=True)
class _Segment:
    """A stretch of time with one background and one sum of pod traffic."""

    start: float
    background: Background
    pod_bytes_per_second: float
    receive_bytes: float
    transmit_bytes: float


@dataclass(frozen=True, slots=True)
class CountedPod:
    """What a running pod wants to carry in each direction, since when."""

    namespace: str
    name: str
    bytes_per_second: float
    started_at: float

    def counter_bytes(self, moment: float) -> float:
        return self.bytes_per_second * max(0.0, moment - self.started_at)


@dataclass(slots=True)
class _NodeTraffic:
    links: tuple[Link, ...]
    segments: list[list[_Segment]]  # one list per link
    pods: dict[str, CountedPod]
    instance: str


class TrafficModel:
    """Counters are integrals of the rates, so they never fall; the past can be asked for too."""

    def __init__(self, *, clock: Callable[[], float], history_seconds: float = 600.0) -> None:
        self._clock = clock
        self._history_seconds = history_seconds
        self._nodes: dict[str, _NodeTraffic] = {}
        self._node_of_pod: dict[str, str] = {}

    def add_node(
        self, name: str, links: Sequence[Link], background: Background, *, instance: str
    ) -> None:
        """From now on measured under `instance`, as if it had been up for a while already."""
        start = self._clock() - self._history_seconds
        segments = [[_Segment(start, background, 0.0, 0.0, 0.0)] for _ in links]
        self._nodes[name] = _NodeTraffic(tuple(links), segments, {}, instance)

    def remove_node(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        for pod in node.pods if node else ():
            self._node_of_pod.pop(pod, None)

    def set_background(self, name: str, background: Background) -> None:
        for index in range(len(self._nodes[name].links)):
            self._turn(name, index, background=background)

    def start_pod(
        self, pod: str, node_name: str, bytes_per_second: float, *, named: tuple[str, str]
    ) -> None:
        """A pod's traffic, in each direction, goes through the first link of its node; `pod` is
        its uid, `named` its namespace and name."""
        self.stop_pod(pod)
        node = self._nodes.get(node_name)
        if node is None or not node.links:
            return
        node.pods[pod] = CountedPod(*named, bytes_per_second, self._clock())
        self._node_of_pod[pod] = node_name
        self._turn(node_name, 0)

    def stop_pod(self, pod: str) -> None:
        node_name = self._node_of_pod.pop(pod, None)
        if node_name is not None:
            del self._nodes[node_name].pods[pod]
            self._turn(node_name, 0)

    def pods(self) -> list[CountedPod]:
        return [pod for node in self._nodes.values() for pod in node.pods.values()]

    def names(self) -> list[str]:
        return list(self._nodes)

    def links(self, name: str) -> tuple[Link, ...]:
        return self._nodes[name].links

    def instance(self, name: str) -> str:
        return self._nodes[name].instance

    def measured_since(self, name: str) -> float:
        """The earliest moment that counters are known for; inf for a node without links."""
        segments = self._nodes[name].segments
        return segments[0][0].start if segments else math.inf

    def bytes_per_second(self, name: str, device: str, direction: Direction) -> float:
        """The rate at this moment; at most the capacity of the link."""
        index = self._link_index(name, device)
        node = self._nodes[name]
        segment, capacity = node.segments[index][-1], node.links[index].capacity_bytes_per_second
        background = segment.background
        factor = _factor(background, direction)
        share = background.share(self._clock()) * factor
        return share * capacity + segment.pod_bytes_per_second

    def counter_bytes(self, name: str, device: str, direction: Direction, moment: float) -> float:
        index = self._link_index(name, device)
        node = self._nodes[name]
        segments = node.segments[index]
        position = bisect.bisect_right(segments, moment, key=lambda segment: segment.start) - 1
        segment = segments[max(0, position)]
        return _counter(segment, node.links[index], direction, max(moment, segment.start))

    def _turn(self, name: str, index: int, background: Background | None = None) -> None:
        """Starts a new segment now, because background or pods changed."""
        node, now = self._nodes[name], self._clock()
        link, segments = node.links[index], node.segments[index]
        last = segments[-1]
        background = background or last.background
        pods = sum(pod.bytes_per_second for pod in node.pods.values()) if index == 0 else 0.0
        # Pods share what the background leaves at its busiest, so a link is never over full.
        peak = max(background.quiet_share, background.busy_share)
        peak *= max(1.0, background.transmit_per_receive)
        free = max(0.0, 1.0 - peak) * link.capacity_bytes_per_second
        turned = _Segment(
            now,
            background,
            min(pods, free),
            _counter(last, link, Direction.RECEIVE, now),
            _counter(last, link, Direction.TRANSMIT, now),
        )
        if last.start == now:
            segments[-1] = turned
        else:
            segments.append(turned)
        while len(segments) > 1 and segments[1].start < now - self._history_seconds:
            segments.pop(0)

    def _link_index(self, name: str, device: str) -> int:
        for index, link in enumerate(self._nodes[name].links):
            if link.device == device:
                return index
        known = ", ".join(link.device for link in self._nodes[name].links)
        raise KeyError(f"node {name} has no link {device}; it has {known}")


def _counter(segment: _Segment, link: Link, direction: Direction, moment: float) -> float:
    before = segment.receive_bytes if direction == Direction.RECEIVE else segment.transmit_bytes
    background = segment.background
    share_seconds = background.share_seconds(segment.start, moment) * _factor(background, direction)
    pods = segment.pod_bytes_per_second * (moment - segment.start)
    return before + share_seconds * link.capacity_bytes_per_second + pods


def _factor(background: Background, direction: Direction) -> float:
    return background.transmit_per_receive if direction == Direction.TRANSMIT else 1.0
