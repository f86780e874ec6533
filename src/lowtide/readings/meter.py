"""The meter: which queries to ask at each poll, and from their answers what is known of each node.

Pure: the poller in telemetry and the simulator ask and hand the answers in. Between polls it
remembers what one answer alone cannot tell: peaks, what owners' pods carry, which nodes are hot.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.readings.demand import Owners
from lowtide.readings.judging import NOTHING_BEFORE, before_the_next, judged
from lowtide.readings.links import LinkFinder
from lowtide.readings.matching import NodeMatcher, identity_of
from lowtide.readings.reading import TrafficReading, aged
from lowtide.readings.request import (
    FLAGS,
    POD_RECEIVE,
    POD_TRANSMIT,
    SPEED,
    UNAME,
    TrafficRequest,
    directions,
    link_queries,
    pod_queries,
    sample_query,
    traffic_queries,
)
from lowtide.readings.series import Series

# A rate needs two samples, and a target may miss one or two scrapes.
SCRAPES_IN_WINDOW: Final = 4
LINKS_EVERY_SECONDS: Final = 300.0
LINKS_WHILE_MISSING_EVERY_SECONDS: Final = 60.0
PODS_EVERY_SECONDS: Final = 60.0
PROBE_EVERY_SECONDS: Final = 3600.0
TARGETS_PROBED: Final = 3
_PROBE: Final = "probe"
_NEARLY: Final = 0.99  # scrapes are never apart to the millisecond

Answers = Mapping[str, Sequence[Series]]


class TrafficMeter:
    def __init__(self, request: TrafficRequest) -> None:
        self.request = request
        self.window_seconds = request.window_seconds  # widened where scrapes are rare
        self._scrape_interval_seconds = 0.0
        self._lag_seconds = 0.0
        self._answers: dict[str, Sequence[Series]] = {}
        self._answered_at: dict[str, float] = {}
        self._reading: TrafficReading | None = None
        self._nodes: Sequence[Node] = ()
        self._finder: LinkFinder | None = None
        self._before = NOTHING_BEFORE
        self._owners = Owners()

    def due(self, now: float, nodes: Sequence[Node]) -> dict[str, str]:
        """Name to PromQL of what to ask now, however many nodes there are."""
        is_other_cluster = _names(nodes) != _names(self._nodes)
        seldom = {
            name: promql
            for name, promql in link_queries(self.request).items()
            if is_other_cluster or self._is_older(name, self._links_every_seconds, now)
        }
        of_pods = {
            name: promql
            for name, promql in pod_queries(self.request, self.window_seconds).items()
            if self._is_older(name, PODS_EVERY_SECONDS, now)
        }
        return traffic_queries(self.request, self.window_seconds) | seldom | of_pods

    def probe(self, now: float) -> str | None:
        """A query for the samples of a few targets, seldom due: their times tell how often
        targets are scraped."""
        is_of_use = self.request.is_rate and not self.request.template
        if not is_of_use or not self._is_older(_PROBE, PROBE_EVERY_SECONDS, now):
            return None
        measured = directions(self.request)
        # Over a window that holds no two scrapes there are no rates, but the targets have links.
        for name in (*measured, FLAGS, SPEED):
            series = self._answers.get(name, ())
            if series:
                return sample_query(measured[0], few_targets(series))
        return None

    def probed(self, sample_times: Iterable[Sequence[float]], now: float) -> bool:
        """What the probe found; whether the window had to be widened for it."""
        found = [times for times in sample_times if len(times) > 1]
        interval = scrape_interval(found)
        if interval is None:
            return False
        self._answered_at[_PROBE] = now
        # By chance all of them may have been scraped just now.
        lag_seconds = max(interval / 2, float(np.mean([now - times[-1] for times in found])))
        return self.scrapes_are_apart(interval, lag_seconds=lag_seconds)

    def scrapes_are_apart(self, seconds: float, *, lag_seconds: float) -> bool:
        """How often targets are scraped, and how old the newest sample is on average; whether the
        window had to be widened for it."""
        self._scrape_interval_seconds = seconds
        self._lag_seconds = lag_seconds
        needed = SCRAPES_IN_WINDOW * seconds
        is_too_short = (
            self.request.measure == "rate"
            and not self.request.template
            and self.window_seconds < _NEARLY * needed
        )
        if is_too_short:
            self.window_seconds = math.ceil(needed)
        return is_too_short

    def take(
        self, answers: Answers, nodes: Sequence[Node], pods: Iterable[Pod], now: float
    ) -> TrafficReading:
        """What is known now. A query that was not asked or not answered keeps its last answer,
        with that answer's time."""
        if self._reading is not None and not answers:
            self._reading = aged(self._reading, now)
            return self._reading
        self._remember(answers, nodes, now)
        self._learn(answers, pods)
        self._reading = self._judged(now)
        self._before = before_the_next(self._reading, self._before)
        return self._reading

    @property
    def _links_every_seconds(self) -> float:
        """More often while a node is not measured: its exporter may be new, and so its names."""
        is_whole = self._reading is None or bool(self._reading.is_fresh.all())
        return LINKS_EVERY_SECONDS if is_whole else LINKS_WHILE_MISSING_EVERY_SECONDS

    def _is_older(self, name: str, seconds: float, now: float) -> bool:
        return now - self._answered_at.get(name, -math.inf) >= seconds

    def _remember(self, answers: Answers, nodes: Sequence[Node], now: float) -> None:
        is_same = len(nodes) == len(self._nodes) and all(map(_is_called_alike, nodes, self._nodes))
        if self._finder is None or not is_same or UNAME in answers:
            uname = answers.get(UNAME, self._answers.get(UNAME, ()))
            identities = [identity_of(node) for node in nodes]
            self._finder = LinkFinder(NodeMatcher(identities, uname, self.request.match_label))
        self._nodes = nodes
        self._answers.update(answers)
        self._answered_at.update(dict.fromkeys(answers, now))

    def _learn(self, answers: Answers, pods: Iterable[Pod]) -> None:
        """Once both directions are known: one that was not answered is not nothing."""
        if not {POD_RECEIVE, POD_TRANSMIT} & answers.keys():
            return
        receive, transmit = self._answers.get(POD_RECEIVE, ()), self._answers.get(POD_TRANSMIT, ())
        if receive and transmit:
            self._owners.learn(
                receive,
                transmit,
                pods,
                sampled_at=min(receive[0].at, transmit[0].at),
                window_seconds=self.window_seconds,
            )

    def _judged(self, now: float) -> TrafficReading:
        assert self._finder is not None
        links = self._finder.links(self._answers, directions(self.request), len(self._nodes))
        reading = judged(
            self.request,
            self._nodes,
            links,
            self._before,
            now=now,
            window_seconds=self.window_seconds,
            owners=self._owners,
        )
        # A rate spans from the first to the last scrape in its window, which was some time ago;
        # between the edges and the scrapes Prometheus extrapolates.
        interval = self._scrape_interval_seconds
        return replace(
            reading,
            sampled_at=reading.sampled_at - self._lag_seconds,
            window_seconds=max(self.window_seconds - interval, interval),
        )


def few_targets(series: Sequence[Series]) -> list[dict[str, str]]:
    """The labels of some of them, from all over: enough to tell how often targets are scraped."""
    return [one.labels for one in series[:: len(series) // TARGETS_PROBED + 1]]


def scrape_interval(sample_times: Iterable[Sequence[float]]) -> float | None:
    """The usual time between two samples of a target, in seconds; None without any two."""
    gaps = [np.diff(times) for times in sample_times if len(times) > 1]
    return float(np.median(np.concatenate(gaps))) if gaps else None


def _names(nodes: Sequence[Node]) -> list[str]:
    return [node.metadata.name for node in nodes]


def _is_called_alike(one: Node, other: Node) -> bool:
    """Heartbeats make new objects of the same nodes."""
    return one is other or identity_of(one) == identity_of(other)
