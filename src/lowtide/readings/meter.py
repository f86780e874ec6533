"""The meter: which queries to ask at each poll, and from their answers what is known of each node.

Pure: the poller in telemetry and the simulator ask and hand the answers in. Between polls it
remembers what one answer alone cannot tell: peaks, what owners' pods carry, which nodes are hot.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.readings.answers import Answers
from lowtide.readings.capacity import StatedCapacities
from lowtide.readings.demand import Owners
from lowtide.readings.judging import NOTHING_BEFORE, before_the_next, judged
from lowtide.readings.links import OF_DEVICES, LinkFinder
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
    pod_sample_query,
    sample_query,
    traffic_queries,
)
from lowtide.readings.rest import Rest, no_rest
from lowtide.readings.rhythm import Rhythm
from lowtide.readings.series import Series

# A rate needs two samples, and a target may miss one or two scrapes.
SCRAPES_IN_WINDOW: Final = 4
# Kubelets are often scraped less often than exporters: over this the rates of pods are taken while
# it is not known how often.
POD_WINDOW_SECONDS: Final = 300
LINKS_EVERY_SECONDS: Final = 300.0
LINKS_WHILE_MISSING_EVERY_SECONDS: Final = 60.0
PODS_EVERY_SECONDS: Final = 60.0
PROBE_EVERY_SECONDS: Final = 3600.0
TARGETS_PROBED: Final = 3
_PROBE: Final = "probe"
_POD_PROBE: Final = "pod_probe"
_PODS: Final = (POD_RECEIVE, POD_TRANSMIT)
_NEARLY: Final = 0.99  # scrapes are never apart to the millisecond


class TrafficMeter:
    """`now` is by a clock that never jumps, but for `take`, which tells both."""

    def __init__(self, request: TrafficRequest, rest: Rest = no_rest) -> None:
        self.request = request
        self._rest = rest
        self.window_seconds = request.window_seconds  # widened where scrapes are rare
        self._scrape_interval_seconds = 0.0
        self._pod_scrape_interval_seconds: float | None = None
        self._lag_seconds = 0.0
        self._rhythm = Rhythm()
        self._ahead = _Ahead()
        self._reading: TrafficReading | None = None
        self._ahead_of_steady_seconds = 0.0  # the clock that may jump, at the last take
        self._nodes: Sequence[Node] = ()
        self._uname: Sequence[Series] = ()
        self._finder = LinkFinder()
        self._of_devices = {*directions(request), *OF_DEVICES}
        self._pod_answers: dict[str, Sequence[Series]] = {}  # until something is learned from them
        self._pod_answers_window_seconds = 0
        self._some_pods: Sequence[dict[str, str]] = ()
        self._stated = StatedCapacities(request.capacities)
        self._before = NOTHING_BEFORE
        self._owners = Owners()

    def due(self, now: float, nodes: Sequence[Node]) -> dict[str, str]:
        """Name to PromQL of what to ask now, however many nodes there are."""
        is_other_cluster = _names(nodes) != _names(self._nodes)
        seldom = {
            name: promql
            for name, promql in link_queries(self.request).items()
            if is_other_cluster or self._rhythm.is_due(name, self._links_every_seconds, now)
        }
        of_pods = {
            name: promql
            for name, promql in pod_queries(self.request, self.pod_window_seconds).items()
            if self._rhythm.is_due(name, PODS_EVERY_SECONDS, now)
        }
        self._rhythm.asking(seldom | of_pods)
        return traffic_queries(self.request, self.window_seconds) | seldom | of_pods

    @property
    def pod_window_seconds(self) -> int:
        """What the rates of pods are taken over, which kubelets tell."""
        if self._pod_scrape_interval_seconds is None:
            return max(self.window_seconds, POD_WINDOW_SECONDS)
        needed = SCRAPES_IN_WINDOW * self._pod_scrape_interval_seconds
        if self.window_seconds >= _NEARLY * needed:
            return self.window_seconds
        return math.ceil(needed)

    def probe(self, now: float) -> str | None:
        """A query for the samples of a few targets, seldom due: their times tell how often
        targets are scraped."""
        is_of_use = self.request.is_rate and not self.request.template
        if not is_of_use or not self._rhythm.is_due(_PROBE, PROBE_EVERY_SECONDS, now):
            return None
        measured = directions(self.request)
        # Over a window that holds no two scrapes there are no rates, but the targets have links.
        for name in (*measured, FLAGS, SPEED):
            targets = self._finder.some_labels(name, TARGETS_PROBED)
            if targets:
                return sample_query(measured[0], targets)
        return None

    def probed(self, sample_times: Iterable[Sequence[float]], now: float) -> bool:
        """What the probe found; whether the window had to be widened for it."""
        found = [times for times in sample_times if len(times) > 1]
        interval = scrape_interval(found)
        if interval is None:
            return False
        self._rhythm.answered([_PROBE], now)
        # By chance all of them may have been scraped just now.
        ages = [self._ahead.seconds + now - times[-1] for times in found]
        return self.scrapes_are_apart(interval, lag_seconds=max(interval / 2, float(np.mean(ages))))

    def pod_probe(self, now: float) -> str | None:
        """The same of a few pods, which kubelets tell of."""
        if not self._some_pods or not self._rhythm.is_due(_POD_PROBE, PROBE_EVERY_SECONDS, now):
            return None
        return pod_sample_query(self._some_pods)

    def pods_probed(self, sample_times: Iterable[Sequence[float]], now: float) -> None:
        """What that found; pods are asked about again soon where their window changes by it."""
        interval = scrape_interval(sample_times)
        if interval is None:
            return
        self._rhythm.answered([_POD_PROBE], now)
        before = self.pod_window_seconds
        self.pod_scrapes_are_apart(interval)
        if self.pod_window_seconds != before:
            self._rhythm.forget(_PODS)

    def pod_scrapes_are_apart(self, seconds: float) -> None:
        """How often kubelets are scraped."""
        self._pod_scrape_interval_seconds = seconds

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
        self,
        answers: Answers,
        nodes: Sequence[Node],
        pods: Iterable[Pod],
        now: float,
        *,
        steady_now: float | None = None,
    ) -> TrafficReading:
        """What is known at `now`, in seconds since 1970. A query that was not asked or not
        answered keeps its last answer, with that answer's time.

        `steady_now` is by the clock of the other methods; None where `now` never jumps either."""
        steady_now = now if steady_now is None else steady_now
        jumped_seconds = now - steady_now - self._ahead_of_steady_seconds
        self._ahead_of_steady_seconds = now - steady_now
        if self._reading is not None and not answers:
            self._reading = aged(_moved(self._reading, jumped_seconds), now)
            return self._reading
        if answers:
            self._rhythm.answered(answers, steady_now)
        self._ahead.learn(answers, steady_now)
        self._remember(answers, nodes)
        ahead_seconds = self._ahead.seconds + steady_now - now  # of the clock that may jump
        self._rest()
        self._learn(answers, pods, ahead_seconds)
        self._rest()
        self._reading = self._judged(now, ahead_seconds)
        self._before = before_the_next(self._reading, self._before)
        return self._reading

    @property
    def _links_every_seconds(self) -> float:
        """More often while a node is not measured: its exporter may be new, and so its names."""
        is_whole = self._reading is None or bool(self._reading.is_fresh.all())
        return LINKS_EVERY_SECONDS if is_whole else LINKS_WHILE_MISSING_EVERY_SECONDS

    def _remember(self, answers: Answers, nodes: Sequence[Node]) -> None:
        is_same = len(nodes) == len(self._nodes) and all(map(_is_called_alike, nodes, self._nodes))
        if not is_same or UNAME in answers:
            self._uname = answers.get(UNAME, self._uname)
            identities = [identity_of(node) for node in nodes]
            self._finder.match(NodeMatcher(identities, self._uname, self.request.match_label))
        for name in sorted(self._of_devices & answers.keys()):
            self._rest()
            self._finder.take({name: answers[name]})
        self._nodes = nodes

    def _learn(self, answers: Answers, pods: Iterable[Pod], ahead_seconds: float) -> None:
        """Once both directions are known: one that was not answered is not nothing. What teaches
        nothing is kept for the next poll: just after the start no pod may be known yet."""
        given = {name: answers[name] for name in _PODS if name in answers}
        if given:
            self._pod_answers |= given
            self._pod_answers_window_seconds = self.pod_window_seconds
        receive, transmit = (self._pod_answers.get(name, ()) for name in _PODS)
        if not receive or not transmit:
            return
        self._some_pods = few_targets(receive)
        has_learned = self._owners.learn(
            receive,
            transmit,
            pods,
            sampled_at=min(receive[0].at, transmit[0].at) - ahead_seconds,
            window_seconds=self._pod_answers_window_seconds,
        )
        if has_learned:
            self._pod_answers.clear()

    def _judged(self, now: float, ahead_seconds: float) -> TrafficReading:
        links = self._finder.links(directions(self.request), len(self._nodes))
        reading = judged(
            self.request,
            self._nodes,
            links,
            self._before,
            now=now,
            window_seconds=self.window_seconds,
            owners=self._owners,
            stated=self._stated.of(self._nodes),
            ahead_seconds=ahead_seconds,
        )
        # A rate spans from the first to the last scrape in its window, which was some time ago;
        # between the edges and the scrapes Prometheus extrapolates.
        interval = self._scrape_interval_seconds
        return replace(
            reading,
            sampled_at=reading.sampled_at - self._lag_seconds,
            window_seconds=max(self.window_seconds - interval, interval),
        )


class _Ahead:
    """By how many seconds Prometheus's clock is ahead of ours, as the newest answers tell."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._evaluated_at = -math.inf
        self._learned_at = -math.inf

    def learn(self, answers: Answers, now: float) -> None:
        evaluated_at = max((one[0].at for one in answers.values() if one), default=None)
        if evaluated_at is None:
            return
        elapsed_seconds, gone_on_seconds = now - self._learned_at, evaluated_at - self._evaluated_at
        # Something in between may give the same answer again and again: it has to age. One that is
        # from before the last is by another clock.
        is_repeated = 0 <= gone_on_seconds < elapsed_seconds / 2
        if not is_repeated:
            self.seconds = evaluated_at - now
        self._evaluated_at, self._learned_at = evaluated_at, now


def _moved(reading: TrafficReading, seconds: float) -> TrafficReading:
    """The same after our clock was set by so much."""
    return replace(reading, at=reading.at + seconds, sampled_at=reading.sampled_at + seconds)


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
