"""NetworkTraffic: prefers nodes with little network traffic, and keeps pods off hot nodes: those
whose used share of a link is above the hard threshold.

Traffic arrives as a published reading; the expected traffic of pods placed since is added. By
default a node without a fresh reading counts as average.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from lowtide.framework.decision import PluginScore
from lowtide.framework.log_words import LogsScores
from lowtide.framework.plugin import (
    LARGEST_RAW,
    MAX_SCORE,
    READING,
    BoolArray,
    FloatArray,
    IntArray,
    Nodes,
    Pod,
    Rejection,
)
from lowtide.plugins.network_traffic_args import NetworkTrafficArgs
from lowtide.readings.columns import (
    CAPACITY,
    HIGHEST_VALUE,
    IS_GUESSED,
    IS_HOT,
    MAY_BE_HOT,
    RECEIVE_COLUMN,
    SHARE,
    STATE,
    TRANSMIT_COLUMN,
    VALUE_COLUMN,
)
from lowtide.readings.demand import EXPECTED_RECEIVE, EXPECTED_TRANSMIT, ignores_traffic
from lowtide.readings.judging import loaded
from lowtide.readings.reading import STATES, State

# The smallest weight with which free links outweigh all other default scores: see docs.
RECOMMENDED_WEIGHT = 9
_SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
_A_HAIR = 5e-10

Columns = Mapping[str, FloatArray]


class NetworkTraffic(LogsScores):
    name = "NetworkTraffic"
    retry_on = READING
    args = NetworkTrafficArgs

    def __init__(self, args: NetworkTrafficArgs) -> None:
        self.request = args.request()
        self.readings = (self.request,)
        self.logs_readings = args.log_readings
        self._scoring = args.scoring
        # A user's own query can be compared with a link only if `scoring` says so.
        self._knows_shares = self.request.is_rate and (
            args.scoring == "utilization" or not args.query
        )
        self.scale = "lowest_best" if args.scoring == "relative" else None
        self._soft_share = args.hot_nodes.soft_percent / 100
        self._hard_share = args.hot_nodes.hard_percent / 100
        self._patience_seconds = args.hot_nodes.patience_seconds
        policies = {
            State.STALE: args.not_fresh.stale,
            State.MISSING: args.not_fresh.missing,
            State.IMPLAUSIBLE: args.not_fresh.implausible,
        }
        self._is_rejected = np.array([policies.get(each) == "reject" for each in STATES])
        self._is_avoided = np.array([policies.get(each, "neutral") != "neutral" for each in STATES])
        self._rejects_any = bool(self._is_rejected.any())
        self._avoids_any = bool(self._is_avoided.any())

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        """Reject hot nodes, and nodes without a fresh reading if the args say so. DaemonSet pods,
        system-critical pods and pods that ignore traffic may go anywhere."""
        columns = self._columns(nodes)
        if columns is None or ignores_traffic(pod) or _may_go_anywhere(pod):
            return
        if self._rejects_any:
            rejected = self._is_rejected[columns[STATE].astype(np.intp)]
            yield self._giving_way(rejected, "node(s) had no fresh traffic reading")
        if self._knows_shares:
            is_hot = (columns[IS_HOT] > 0) | (
                (columns[MAY_BE_HOT] > 0) & (self._share(pod, nodes, columns) >= self._hard_share)
            )
            yield self._giving_way(is_hot, "node(s) had a hot network link")

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        columns = self._columns(nodes)
        if columns is None or ignores_traffic(pod):
            return None
        if self._scoring == "relative":
            return self._bytes(columns)
        share = self._share(pod, nodes, columns)
        if self._avoids_any:
            share = np.where(self._avoided(columns), np.maximum(share, 1.0), share)
        return self._free_percent(share, columns)

    def _columns(self, nodes: Nodes) -> Columns | None:
        """None while no node has a value. Values are then NaN on every node, so one is enough to
        look at."""
        columns = nodes.reading(self.request)
        known = SHARE if self._scoring == "utilization" else VALUE_COLUMN
        if not columns or not len(nodes) or np.isnan(columns[known][0]):
            return None
        return columns

    def _avoided(self, columns: Columns) -> BoolArray:
        return self._is_avoided[columns[STATE].astype(np.intp)]

    def _bytes(self, columns: Columns) -> IntArray:
        value = columns[VALUE_COLUMN] + self._placed(columns)
        if self._avoids_any:
            highest = np.maximum(value, columns[HIGHEST_VALUE])
            value = np.where(self._avoided(columns), highest, value)
        raw: IntArray = np.clip(value, 0, LARGEST_RAW).astype(np.int64)
        return raw

    def _placed(self, columns: Columns) -> FloatArray | float:
        """The expected traffic of pods placed since the reading, in the unit of the measure."""
        if EXPECTED_RECEIVE not in columns or self.request.template:
            return 0.0
        receive, transmit = columns[EXPECTED_RECEIVE], columns[EXPECTED_TRANSMIT]
        placed = loaded(self.request, receive, transmit)
        if self.request.direction == "sum":
            placed = receive + transmit
        return placed * (self.request.window_seconds if self.request.measure == "increase" else 1)

    def _share(self, pod: Pod, nodes: Nodes, columns: Columns) -> FloatArray:
        """The used share of each link's capacity, with this pod and those placed since the
        reading."""
        expected = nodes.expected(self.request, pod)
        receive = columns[RECEIVE_COLUMN] + columns[EXPECTED_RECEIVE]
        receive += expected[EXPECTED_RECEIVE]
        transmit = columns[TRANSMIT_COLUMN] + columns[EXPECTED_TRANSMIT]
        transmit += expected[EXPECTED_TRANSMIT]
        share = loaded(self.request, receive, transmit)
        share /= columns[CAPACITY]
        return np.fmax(share, columns[SHARE], out=share)

    def _free_percent(self, share: FloatArray, columns: Columns) -> IntArray:
        """The free percent of each link. From the soft threshold on, the score is half of what is
        free at the threshold, and falls with 1/share, so that overloaded links still differ.

        A guessed capacity does not lower the score at the threshold: it is guessed from the busiest
        node, which even in a quiet cluster is near it. Overwrites `share`."""
        soft = self._soft_share
        np.maximum(share, 0.0, out=share)
        free = share * -MAX_SCORE
        free += MAX_SCORE
        busy = (share >= soft).nonzero()[0]  # faster than a mask, which is scanned at each use
        if len(busy):
            is_guessed, left = columns[IS_GUESSED][busy] > 0, free[busy]
            beyond = MAX_SCORE * (1 - soft) / 2 * soft / np.maximum(share[busy], soft or 1.0)
            free[busy] = np.where(is_guessed, np.maximum(left, beyond), beyond)
        # Rounded down, so that a busy link never equals an idle one. The hair undoes float errors
        # just below a whole number.
        free += _A_HAIR
        return free.astype(np.int64)  # never below 0

    def _giving_way(self, mask: BoolArray, reason: str) -> Rejection:
        return Rejection(mask, reason, gives_way_after=self._patience_seconds)

    def score_log_lines(
        self, scores: Mapping[str, PluginScore], nodes: Nodes, *, brief: bool = False
    ) -> Iterator[str]:
        """Relative scores use the wording of earlier NetworkTraffic plugins."""
        if self._scoring == "relative":
            for name, score in scores.items():
                yield f"[{self.name}] node '{name}' bandwidth: {score.raw}"
            if not brief:
                yield from (f"[{self.name}] {line}" for line in _sums_in_words(scores))
        else:
            for name, score in scores.items():
                yield f"[{self.name}] node '{name}' link score: {score.raw}"
        final = " ".join(f"{{{name} {score.normalized}}}" for name, score in scores.items())
        yield f"[{self.name}] Nodes final score: [{final}]"


def _may_go_anywhere(pod: Pod) -> bool:
    """Whether the pod belongs to a DaemonSet or is system-critical."""
    controller = pod.controller
    is_daemon = controller is not None and controller.kind == "DaemonSet"
    return is_daemon or pod.spec.priority >= _SYSTEM_CRITICAL_PRIORITY


def _sums_in_words(scores: Mapping[str, PluginScore]) -> Iterator[str]:
    highest = max(score.raw for score in scores.values())
    yield f"highest score: {highest}"
    for name, score in scores.items():
        yield f"operation: {MAX_SCORE} - ( {score.raw} * {MAX_SCORE} / {highest})"
        yield f"node '{name}' final score: {score.normalized}"
