"""The meter decides which queries to send at each poll and turns the answers into a TrafficReading.

It does no I/O: telemetry's poller and the simulator send the queries and pass in the answers.
Between polls it remembers peak rates, the traffic of each owner's pods, and which nodes are hot.
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
from lowtide.readings.due_times import DueTimes
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
from lowtide.readings.series import Series

# A rate needs two samples, and a target may miss one or two scrapes.
SCRAPES_IN_WINDOW: Final = 4
# The least window for pod rates until the kubelets' scrape interval is known: kubelets are often
# scraped less often than exporters.
POD_WINDOW_SECONDS: Final = 300
LINKS_EVERY_SECONDS: Final = 300.0
LINKS_WHILE_MISSING_EVERY_SECONDS: Final = 60.0
PODS_EVERY_SECONDS: Final = 60.0
PROBE_EVERY_SECONDS: Final = 3600.0
TARGETS_PROBED: Final = 3
_PROBE: Final = "probe"
_POD_PROBE: Final = "pod_probe"
_PODS: Final = (POD_RECEIVE, POD_TRANSMIT)
_NEARLY: Final = 0.99  # tolerance, because scrape intervals are not exact to the millisecond


class TrafficMeter:
    """`now` is the time of a monotonic clock. Only in `take`, `now` is the wall clock and
    `steady_now` the monotonic one."""

    def __init__(self, request: TrafficRequest, rest: Rest = no_rest) -> None:
        self.request = request
        self._rest = rest
        self.window_seconds = request.window_seconds  # widened if scrapes are rare
        self._scrape_interval_seconds = 0.0
        self._pod_scrape_interval_seconds: float | None = None
        self._lag_seconds = 0.0
        self._due_times = DueTimes()
        self._clock_offset = _ClockOffset()
        self._reading: TrafficReading | None = None
        self._ahead_of_steady_seconds = 0.0  # `now` minus `steady_now` at the last `take`
        self._nodes: Sequence[Node] = ()
        self._uname: Sequence[Series] = ()
        self._finder = LinkFinder()
        self._of_devices = {*directions(request), *OF_DEVICES}
        self._pod_answers: dict[str, Sequence[Series]] = {}  # not learned from yet
        self._pod_answers_window_seconds = 0
        self._some_pods: Sequence[dict[str, str]] = ()
        self._stated = StatedCapacities(request.capacities)
        self._before = NOTHING_BEFORE
        self._owners = Owners()

    def due(self, now: float, nodes: Sequence[Node]) -> dict[str, str]:
        """The queries to send now, PromQL by name. Their number does not grow with the nodes."""
        is_other_cluster = _names(nodes) != _names(self._nodes)
        rare = {
            name: promql
            for name, promql in link_queries(self.request).items()
            if is_other_cluster or self._due_times.is_due(name, self._links_every_seconds, now)
        }
        of_pods = {
            name: promql
            for name, promql in pod_queries(self.request, self.pod_window_seconds).items()
            if self._due_times.is_due(name, PODS_EVERY_SECONDS, now)
        }
        self._due_times.asking(rare | of_pods)
        return traffic_queries(self.request, self.window_seconds) | rare | of_pods

    @property
    def pod_window_seconds(self) -> int:
        """The window for pod rates, which depends on how often kubelets are scraped."""
        if self._pod_scrape_interval_seconds is None:
            return max(self.window_seconds, POD_WINDOW_SECONDS)
        needed = SCRAPES_IN_WINDOW * self._pod_scrape_interval_seconds
        if self.window_seconds >= _NEARLY * needed:
            return self.window_seconds
        return math.ceil(needed)

    def probe(self, now: float) -> str | None:
        """A query for the raw samples of a few targets, whose times show how often targets are
        scraped. None if it is not due, or not useful."""
        is_useful = self.request.is_rate and not self.request.template
        if not is_useful or not self._due_times.is_due(_PROBE, PROBE_EVERY_SECONDS, now):
            return None
        measured = directions(self.request)
        # If the window holds fewer than two scrapes there are no rates; FLAGS and SPEED still name
        # the targets.
        for name in (*measured, FLAGS, SPEED):
            targets = self._finder.some_labels(name, TARGETS_PROBED)
            if targets:
                return sample_query(measured[0], targets)
        return None

    def probed(self, sample_times: Iterable[Sequence[float]], now: float) -> bool:
        """Learn from the probe's samples. True if the window had to be widened."""
        found = [times for times in sample_times if len(times) > 1]
        interval = scrape_interval(found)
        if interval is None:
            return False
        self._due_times.answered([_PROBE], now)
        # All probed targets may have been scraped a moment ago by chance; half an interval is the
        # average age.
        ages = [self._clock_offset.seconds + now - times[-1] for times in found]
        return self.scrapes_are_apart(interval, lag_seconds=max(interval / 2, float(np.mean(ages))))

    def pod_probe(self, now: float) -> str | None:
        """Like `probe`, for the samples of a few pods that kubelets report."""
        if not self._some_pods or not self._due_times.is_due(_POD_PROBE, PROBE_EVERY_SECONDS, now):
            return None
        return pod_sample_query(self._some_pods)

    def pods_probed(self, sample_times: Iterable[Sequence[float]], now: float) -> None:
        """Learn from the pod probe's samples. If the pod window changes, pod queries are due."""
        interval = scrape_interval(sample_times)
        if interval is None:
            return
        self._due_times.answered([_POD_PROBE], now)
        before = self.pod_window_seconds
        self.pod_scrapes_are_apart(interval)
        if self.pod_window_seconds != before:
            self._due_times.forget(_PODS)

    def pod_scrapes_are_apart(self, seconds: float) -> None:
        """Set how often kubelets are scraped."""
        self._pod_scrape_interval_seconds = seconds

    def scrapes_are_apart(self, seconds: float, *, lag_seconds: float) -> bool:
        """Set how often targets are scraped, and how old their newest sample is on average. True if
        the window had to be widened."""
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
        """The reading at `now`, in seconds since 1970. An unanswered query keeps its last answer
        and that answer's time.

        `steady_now` is the time of the other methods' clock; None if `now` never jumps either."""
        steady_now = now if steady_now is None else steady_now
        jumped_seconds = now - steady_now - self._ahead_of_steady_seconds
        self._ahead_of_steady_seconds = now - steady_now
        if self._reading is not None and not answers:
            self._reading = aged(_moved(self._reading, jumped_seconds), now)
            return self._reading
        if answers:
            self._due_times.answered(answers, steady_now)
        self._clock_offset.learn(answers, steady_now)
        self._remember(answers, nodes)
        ahead_seconds = self._clock_offset.seconds + steady_now - now  # relative to `now`
        self._rest()
        self._learn(answers, pods, ahead_seconds)
        self._rest()
        self._reading = self._judged(now, ahead_seconds)
        self._before = before_the_next(self._reading, self._before)
        return self._reading

    @property
    def _links_every_seconds(self) -> float:
        """Shorter while a node has no fresh reading: its exporter and its labels may be new."""
        are_all_fresh = self._reading is None or bool(self._reading.is_fresh.all())
        return LINKS_EVERY_SECONDS if are_all_fresh else LINKS_WHILE_MISSING_EVERY_SECONDS

    def _remember(self, answers: Answers, nodes: Sequence[Node]) -> None:
        is_same = len(nodes) == len(self._nodes) and all(
            map(_has_same_identity, nodes, self._nodes)
        )
        if not is_same or UNAME in answers:
            self._uname = answers.get(UNAME, self._uname)
            identities = [identity_of(node) for node in nodes]
            self._finder.match(NodeMatcher(identities, self._uname, self.request.match_label))
        for name in sorted(self._of_devices & answers.keys()):
            self._rest()
            self._finder.take({name: answers[name]})
        self._nodes = nodes

    def _learn(self, answers: Answers, pods: Iterable[Pod], ahead_seconds: float) -> None:
        """Learn once both directions are answered: a missing answer does not mean no traffic.
        Answers that teach nothing stay for the next poll: at startup no pod may be known yet."""
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
            stated=self._stated.stated_for(self._nodes),
            ahead_seconds=ahead_seconds,
        )
        # A rate covers the time from the first to the last scrape in its window, and the last one
        # is `_lag_seconds` old. Prometheus extrapolates to the edges of the window.
        interval = self._scrape_interval_seconds
        return replace(
            reading,
            sampled_at=reading.sampled_at - self._lag_seconds,
            window_seconds=max(self.window_seconds - interval, interval),
        )


class _ClockOffset:
    """How many seconds Prometheus's clock is ahead of ours, according to the newest answers."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._evaluated_at = -math.inf
        self._learned_at = -math.inf

    def learn(self, answers: Answers, now: float) -> None:
        evaluated_at = max((one[0].at for one in answers.values() if one), default=None)
        if evaluated_at is None:
            return
        elapsed_seconds, gone_on_seconds = now - self._learned_at, evaluated_at - self._evaluated_at
        # A proxy may repeat a cached answer. It must age, so it does not move the offset. An answer
        # from before the last one comes from another clock, whose offset counts from now on.
        is_repeated = 0 <= gone_on_seconds < elapsed_seconds / 2
        if not is_repeated:
            self.seconds = evaluated_at - now
        self._evaluated_at, self._learned_at = evaluated_at, now


def _moved(reading: TrafficReading, seconds: float) -> TrafficReading:
    """The reading with its times moved, after our clock was set by `seconds`."""
    return replace(reading, at=reading.at + seconds, sampled_at=reading.sampled_at + seconds)


def few_targets(series: Sequence[Series]) -> list[dict[str, str]]:
    """The labels of at most TARGETS_PROBED series, spread over all of them."""
    return [one.labels for one in series[:: len(series) // TARGETS_PROBED + 1]]


def scrape_interval(sample_times: Iterable[Sequence[float]]) -> float | None:
    """The median time between two samples of a target, in seconds; None without two samples."""
    gaps = [np.diff(times) for times in sample_times if len(times) > 1]
    return float(np.median(np.concatenate(gaps))) if gaps else None


def _names(nodes: Sequence[Node]) -> list[str]:
    return [node.metadata.name for node in nodes]


def _has_same_identity(one: Node, other: Node) -> bool:
    """Compares identities, because each heartbeat replaces the Node object."""
    return one is other or identity_of(one) == identity_of(other)
