"""Verdict: what the plugins of one profile answer about one pod signature on every node.

A verdict outlives one pod. Placing a pod changes one row, and only plugins that read the changed
data are asked again about that row. `verdict_cache` keeps verdicts; `decide` reads them.
"""

import math
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import UNTIMED, Asking
from lowtide.framework.decision import NodeRejection, ScoreTable
from lowtide.framework.evaluation import ChangedRows
from lowtide.framework.lookahead import LookaheadBatches, lookahead_bytes
from lowtide.framework.plugin import MAX_SCORE, PodRejection
from lowtide.framework.profile import Profile
from lowtide.framework.ranking import RankedAmong, Ranking
from lowtide.framework.rejections import Filtering, Rejections
from lowtide.objects.pod import Pod

# What a verdict costs besides its arrays' rows: the objects around them.
_BYTES_PER_PLUGIN = 600


class Verdict:
    """Each `refresh` brings three attributes up to date. `pod_rejection`: the plugin that rejects
    the pod on every node, and why. `feasible`: apart from that, the rows that no filter rejects and
    no pre-filter leaves out. `narrowed_to`: the node names that the pre-filters left; None if none
    narrowed the search."""

    feasible: BoolArray
    pod_rejection: tuple[str, PodRejection] | None
    narrowed_to: frozenset[str] | None

    def __init__(self, profile: Profile, state: ClusterState, pod: Pod, signature: bytes) -> None:
        self.pod = pod
        self.state = state
        self.signature = signature
        self._batches = LookaheadBatches(state, pod, signature)
        self._changes: ChangedRows | None = None  # what the last refresh of the filters found
        concerned = profile.concerned_by(pod)
        self._filtering = Filtering(
            concerned.filters,
            concerned.pre_filters,
            state=state,
            pod=pod,
            batches=self._batches,
        )
        self._ranking = Ranking(
            concerned.scorers, concerned.scores, state=state, pod=pod, batches=self._batches
        )
        self.leaders = self._ranking.leaders
        self.pre_filters = concerned.pre_filters.plugins
        self.filters = self._filtering.plugins
        self._plugin_count = len(self.filters) + len(concerned.scorers)
        self._start_again()

    # What `decide` calls.

    def refresh(self, asking: Asking = UNTIMED) -> None:
        """Ask the filters again about the rows whose answers may have changed."""
        filtering, count = self._filtering, self.state.count
        if count > self._capacity:
            self._start_again()
        try:
            self._changes = filtering.refresh(self._ranking.ranked, asking)
        except Exception:
            self._start_again()
            raise
        self.feasible = filtering.feasible[:count]
        self.pod_rejection = filtering.pre_filters.pod_rejection
        self.narrowed_to = filtering.pre_filters.narrowed_to

    def drop_shared(self) -> None:
        """Free what filters and scores share. It saves work only while one follows the other."""
        self._changes = self._batches.last = None

    def rank(self, asking: Asking = UNTIMED) -> IntArray:
        """Total score per row; below 0 where the node is not feasible."""
        ranking, filtering = self._ranking, self._filtering
        try:
            ranking.refresh(filtering.feasible, filtering.refiltered, self._changes, asking)
        except Exception:
            self._start_again()
            raise
        if filtering.refiltered != set():
            filtering.refiltered = set()
        return ranking.ranked[: self.state.count]

    def rank_among(self, feasible: BoolArray, asking: Asking = UNTIMED) -> RankedAmong:
        """Rank as if exactly these nodes were feasible. Nothing of the result is kept."""
        self.rank(asking)
        try:
            return self._ranking.ranked_among(feasible, asking)
        except Exception:
            self._start_again()
            raise

    def scores_of(
        self, rows: Rows, ranked: IntArray, among: RankedAmong | None = None
    ) -> ScoreTable:
        """The scores of each plugin with an opinion for these rows. Pass `among` if `rank_among`
        ranked them."""
        names = self.state.names
        normalized: npt.NDArray[np.integer]
        if among is None:
            ranking = self._ranking
            active, at = ranking.active, (ranking.active.numbers, rows)
            raw, normalized = ranking.raw[at], ranking.normalized[at]
        else:
            active, raw, normalized = among.active, among.raw[:, rows], among.normalized[:, rows]
        return ScoreTable(
            tuple([names[row] for row in rows.tolist()]),
            rows,
            ranked[rows],
            active.names,
            active.weights,
            raw,
            normalized,
        )

    def feasible_after(self, waited_seconds: float) -> BoolArray:
        """The rows that are feasible once the pod has waited so long: rejections that have given
        way by then do not count."""
        count = self.state.count
        feasible: BoolArray = self._filtering.first_rejecting[:count] >= 0
        for rejections in self._filtering.rejections:
            stands = rejections.still_rejected(slice(count), waited_seconds)
            if stands is not None:
                feasible &= ~stands
        return feasible

    def gives_way_after(self, waited_seconds: float) -> float:
        """How long the pod must wait in all, longer than now, until rejections give way and a node
        is feasible; infinity if that never happens."""
        longer = (wait for wait in self.waits if wait > waited_seconds)
        return next((wait for wait in longer if self.feasible_after(wait).any()), math.inf)

    @property
    def waits(self) -> list[float]:
        """The waiting times in seconds after which rejections give way, shortest first."""
        return sorted({wait for each in self._filtering.rejections for wait in each.waits})

    @property
    def eviction_may_help(self) -> BoolArray:
        """By row: whether the first filter that rejects the node does so because of its pods."""
        first = self._filtering.first_rejecting[: self.state.count]
        helps = np.zeros(len(first), np.bool_)
        for number, rejections in enumerate(self._filtering.rejections):
            helps |= (first == number) & rejections.eviction_helps(len(first))
        return helps

    def rejection_at(self, row: int) -> NodeRejection | None:
        first = int(self._filtering.first_rejecting[row])
        if first < 0:
            return self._filtering.pre_filters.exclusion_at(row)
        if first == len(self.filters):
            return None
        by = self._filtering.rejections[first]
        return by.as_node_rejection(row, self.other_rejections(row, by.name))

    def rejections_at(self, rows: Rows) -> Iterator[tuple[int, NodeRejection]]:
        """The rejected ones among these rows. Rows with the same answers from all filters share one
        NodeRejection."""
        bits = [each.bits for each in self._filtering.rejections if each.bits is not None]
        first: list[int] = self._filtering.first_rejecting[rows].tolist()
        said = [first, *(each[rows].tolist() for each in bits)]
        made: dict[tuple[int, ...], NodeRejection | None] = {}
        for row, key in zip(rows.tolist(), zip(*said, strict=True), strict=True):
            if key[0] < 0 or key not in made:  # different pre-filters may exclude each node
                made[key] = self.rejection_at(row)
            rejection = made[key]
            if rejection is not None:
                yield row, rejection

    def is_excluded(self, row: int) -> bool:
        """Whether a pre-filter left this node out. The filters' answers about it do not count."""
        return bool(self._filtering.first_rejecting[row] < 0)

    def other_rejections(self, row: int, name: str) -> tuple[NodeRejection, ...]:
        """The rejections of this row by all filters except the named one."""
        return tuple(
            each.as_node_rejection(row)
            for each in self._filtering.rejections
            if each.name != name and each.rejects(row)
        )

    def filters_with_rejections(self) -> Iterator[tuple[Any, int, Rejections]]:
        """Each filter, the bits it touched, and its rejections."""
        filtering = self._filtering
        return zip(self.filters, filtering.touched, filtering.rejections, strict=True)

    def rejected_alike(self, rows: Rows) -> Iterator[tuple[NodeRejection, Rows]]:
        """The rejected ones among these rows, grouped by the first filter that rejects them and its
        reasons."""
        first = self._filtering.first_rejecting[rows]
        for number in np.unique(first).tolist():
            rejected = rows[first == number]
            if number < 0:
                yield self._filtering.pre_filters.exclusion_at(int(rejected[0])), rejected
            elif number < len(self.filters):
                by = self._filtering.rejections[number]
                for group in by.alike(rejected):
                    yield by.as_node_rejection(int(group[0])), group

    def reason_counts(self) -> dict[str, int]:
        """The number of nodes per reason. A node counts for the first filter that rejects it."""
        counts: dict[str, int] = {}
        for rejection, rows in self.rejected_alike(np.arange(self.state.count)):
            for reason in rejection.reasons:
                counts[reason] = counts.get(reason, 0) + len(rows)
        return counts

    def rejected_by(self) -> frozenset[str]:
        """The plugins that reject some node first."""
        numbers = np.unique(self._filtering.first_rejecting[: self.state.count])
        names = {self.filters[number].name for number in numbers if 0 <= number < len(self.filters)}
        if len(numbers) and numbers[0] < 0:
            names.update(self._filtering.pre_filters.narrowed_by)
        return frozenset(names)

    def touched_by(self, names: Collection[str]) -> int:
        """The bits that these pre-filters and filters touched, without plugins that declare
        `retry_on`."""
        filtering = self._filtering
        touched = 0
        for plugins, bits in (
            (self.pre_filters, filtering.pre_filters.touched),
            (self.filters, filtering.touched),
        ):
            for plugin, each in zip(plugins, bits, strict=True):
                if plugin.name in names and not hasattr(plugin, "retry_on"):
                    touched |= each
        return touched

    def most_points(self, among: RankedAmong | None = None) -> int:
        """The highest total a node can reach from the plugins that have an opinion."""
        active = self._ranking.active if among is None else among.active
        return MAX_SCORE * sum(active.weights)

    @property
    def is_outdated(self) -> bool:
        """Whether the log no longer reaches back to the last refresh. Every row would be judged
        again, so keeping this verdict saves nothing."""
        return not self.state.log.reaches(self._filtering.judged_at)

    @property
    def bytes_when_full(self) -> int:
        filters, plugins = len(self.filters), self._plugin_count
        per_row = 8 * filters + 9 * (plugins - filters) + 2 * 8 + 3  # with totals and ranks
        arrays = per_row * self._capacity + self.leaders.bytes_kept
        local = len(self._filtering.groups.local) + len(self._ranking.groups.local)
        ahead = lookahead_bytes(self.state.count, local)
        return arrays + ahead + (plugins + 1) * _BYTES_PER_PLUGIN

    def _start_again(self) -> None:
        """Forget all answers and make larger arrays. Needed when the table outgrew the arrays, and
        after a plugin failed, which leaves them half written."""
        capacity = self._capacity = self.state.count + max(64, self.state.count // 4)
        self._changes = None
        self._filtering.start_again(capacity)
        self._ranking.start_again(capacity)
