"""What the rules of one profile say about one shape of pod on every node, kept between pods.

Placing a pod changes one row; only the rules that read what changed judge that row again.
`verdicts` keeps those of shapes that come again; `decide` reads them.
"""

import math
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lowtide.cluster.changes import depends_on_pods
from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.changed_rows import ChangedRows
from lowtide.framework.decision import NodeRejection, ScoreTable
from lowtide.framework.filtering import Filtering
from lowtide.framework.lookahead import LookaheadBatches, lookahead_bytes
from lowtide.framework.plugin import MAX_SCORE, PodRejection
from lowtide.framework.profile import Profile
from lowtide.framework.rejections import Rejections
from lowtide.framework.scoring import Scored, Scoring
from lowtide.objects.pod import Pod

# What a verdict costs besides its arrays' rows: the objects around them.
_BYTES_PER_PLUGIN = 600

_NOTHING_RANKED: tuple[IntArray | None, list[Scored]] = None, []


class Verdict:
    def __init__(self, profile: Profile, state: ClusterState, pod: Pod) -> None:
        self.pod = pod
        self._ask = profile.asking
        self._state = state
        self._batches = LookaheadBatches(state, pod)
        self._changes: ChangedRows | None = None  # what had changed when filters were asked last
        concerned = profile.concerned_by(pod)
        self._filtering = Filtering(
            concerned.filters,
            concerned.pre_filters,
            asking=profile.asking,
            state=state,
            pod=pod,
            batches=self._batches,
        )
        self._scoring = Scoring(
            concerned.scorers,
            concerned.scores,
            asking=profile.asking,
            state=state,
            pod=pod,
            batches=self._batches,
        )
        self.leaders = self._scoring.leaders
        self.pre_filters = concerned.pre_filters.plugins
        self.filters = self._filtering.plugins
        self._plugin_count = len(self.filters) + len(concerned.scorers)
        self._ranked_last = _NOTHING_RANKED
        self._start_again()

    # What decide asks.

    @property
    def feasible(self) -> BoolArray:
        return self._filtering.feasible[: self._state.count]

    @property
    def pod_rejection(self) -> tuple[str, PodRejection] | None:
        """The rule that refuses the pod everywhere, and why."""
        return self._filtering.pre_filters.pod_rejection

    @property
    def shape(self) -> object:
        """What its pods are known by where they then come to a node."""
        return self._batches.shape

    def refresh(self) -> None:
        """Judges the stale rows again by the filters."""
        count = self._state.count
        self._ranked_last = _NOTHING_RANKED
        if count > self._capacity:
            self._start_again()
        try:
            self._changes = self._filtering.refresh(self._scoring.ranked)
        except Exception:
            self._start_again()
            raise

    def drop_shared(self) -> None:
        """What filters and scores share, which saves work while one follows the other."""
        self._changes = None
        self._batches.forget()

    def rank(self) -> IntArray:
        """Total score per row; below 0 where the node is not feasible."""
        self._refresh_scores()
        return self._scoring.ranked[: self._state.count]

    def rank_among(self, feasible: BoolArray) -> IntArray:
        """The same for other feasible nodes than the filters left: nothing of it is kept but for
        `scores_of`."""
        total = np.zeros(self._state.count, np.int64)
        scored = list(self._scored_among(feasible))
        for scores, _, normalized in scored:
            total += scores.weight * normalized
        ranked = np.where(feasible, total if self._scoring.active.names else total + 1, -1)
        self._ranked_last = ranked, scored  # what it was worked out by is mostly asked for next
        return ranked

    def scores_of(
        self, rows: Rows, ranked: IntArray, feasible: BoolArray | None = None
    ) -> ScoreTable:
        """What each rule with an opinion says of these rows; `feasible` as in `rank_among`."""
        names = self._state.names
        kept = tuple([names[row] for row in rows.tolist()])
        normalized: npt.NDArray[np.integer]
        if feasible is None:
            active = self._scoring.active
            raw = self._scoring.raw[active.numbers, rows]
            normalized = self._scoring.normalized[active.numbers, rows]
        else:
            of_ranks, scored = self._ranked_last
            if of_ranks is not ranked:
                scored = list(self._scored_among(feasible))
            self._ranked_last = _NOTHING_RANKED
            active, shape = self._scoring.active, (len(scored), len(rows))
            raw = np.array([each[rows] for _, each, _ in scored], np.int64).reshape(shape)
            normalized = np.array([each[rows] for *_, each in scored], np.int64).reshape(shape)
        return ScoreTable(kept, rows, ranked[rows], active.names, active.weights, raw, normalized)

    def feasible_after(self, waited_seconds: float) -> BoolArray:
        """Where nothing refuses the pod but what gives way to a pod that has waited so long."""
        count = self._state.count
        feasible: BoolArray = self._filtering.first[:count] >= 0
        for rejections in self._filtering.rejections:
            stands = rejections.stands(count, waited_seconds)
            if stands is not None:
                feasible &= ~stands
        return feasible

    def gives_way_after(self, waited_seconds: float) -> float:
        """How long the pod has to wait in all until more gives way and a node is left; infinity
        where that does not come."""
        longer = (wait for wait in self.waits if wait > waited_seconds)
        return next((wait for wait in longer if self.feasible_after(wait).any()), math.inf)

    @property
    def waits(self) -> list[float]:
        """How long a pod has to wait until some refusals give way, the shortest first."""
        return sorted({wait for each in self._filtering.rejections for wait in each.waits})

    @property
    def eviction_may_help(self) -> BoolArray:
        """Where the rule that refuses first does so because of the pods on the node."""
        first = self._filtering.first[: self._state.count]
        helps = np.zeros(len(first), np.bool_)
        for number, rejections in enumerate(self._filtering.rejections):
            helps |= (first == number) & rejections.eviction_helps(len(first))
        return helps

    def rejection_at(self, row: int) -> NodeRejection | None:
        first = int(self._filtering.first[row])
        if first < 0:
            return self._filtering.pre_filters.exclusion_at(row)
        if first == len(self.filters):
            return None
        by = self._filtering.rejections[first]
        return by.as_node_rejection(row, self.rejections_besides(row, by.name))

    def rejections_at(self, rows: Rows) -> Iterator[tuple[int, NodeRejection]]:
        """Each of these rows that is refused; those of which all filters say the same share one."""
        bits = [each.bits for each in self._filtering.rejections if each.bits is not None]
        first: list[int] = self._filtering.first[rows].tolist()
        said = [first, *(each[rows].tolist() for each in bits)]
        made: dict[tuple[int, ...], NodeRejection | None] = {}
        for row, key in zip(rows.tolist(), zip(*said, strict=True), strict=True):
            if key[0] < 0 or key not in made:  # what excludes a node may differ by node
                made[key] = self.rejection_at(row)
            rejection = made[key]
            if rejection is not None:
                yield row, rejection

    def is_excluded(self, row: int) -> bool:
        """Whether a pre-filter left this node out: filters are then not asked about it."""
        return bool(self._filtering.first[row] < 0)

    def rejections_besides(self, row: int, name: str) -> tuple[NodeRejection, ...]:
        """What the other filters say of a row, each on its own."""
        return tuple(
            each.as_node_rejection(row)
            for each in self._filtering.rejections
            if each.name != name and each.refuses(row)
        )

    @property
    def filters_about_pods(self) -> list[Any]:
        """The filters that may answer otherwise where pods hypothetically come and go."""
        touched = zip(self.filters, self._filtering.touched, strict=True)
        return [plugin for plugin, bits in touched if depends_on_pods(bits)]

    def rejections_on(
        self, nodes: Nodes, waited_seconds: float = -math.inf
    ) -> dict[int, NodeRejection]:
        """By position: what the filters refuse on a face with overlays to a pod that has waited
        so long. Nothing of it is kept."""
        found: dict[int, NodeRejection] = {}
        is_left = np.ones(len(nodes), np.bool_)
        everywhere = np.arange(len(nodes))
        kept_rejections = enumerate(zip(self.filters, self._filtering.rejections, strict=True))
        for number, (rule, kept) in kept_rejections:
            # Others say of a row what they said without overlays.
            rejections, rows, count = kept, nodes.rows, self._state.count
            if depends_on_pods(self._filtering.touched[number]):
                rejections, rows, count = Rejections(rule.name), everywhere, len(nodes)
                rejections.judge(self._ask(rule, "filter", self.pod, nodes), rows, len(nodes))
            stands = rejections.stands(count, waited_seconds)
            if stands is None:
                continue
            refused = np.flatnonzero(stands[rows] & is_left)
            is_left[refused] = False
            for group in rejections.alike(rows[refused]):
                rejection = rejections.as_node_rejection(int(group[0]))
                positions = refused[np.isin(rows[refused], group)]
                found.update(dict.fromkeys(positions.tolist(), rejection))
        return found

    def refused_alike(self, rows: Rows) -> Iterator[tuple[NodeRejection, Rows]]:
        """Those of these rows that are refused, in groups; each by the first rule that does."""
        first = self._filtering.first[rows]
        for number in np.unique(first).tolist():
            refused = rows[first == number]
            if number < 0:
                yield self._filtering.pre_filters.exclusion_at(int(refused[0])), refused
            elif number < len(self.filters):
                by = self._filtering.rejections[number]
                for group in by.alike(refused):
                    yield by.as_node_rejection(int(group[0])), group

    def reason_counts(self) -> dict[str, int]:
        """How many nodes were refused for which reason, each by the first rule that refuses it."""
        counts: dict[str, int] = {}
        for rejection, rows in self.refused_alike(np.arange(self._state.count)):
            for reason in rejection.reasons:
                counts[reason] = counts.get(reason, 0) + len(rows)
        return counts

    def rejected_by(self) -> frozenset[str]:
        """The rules that some node was refused by, first of all rules."""
        numbers = np.unique(self._filtering.first[: self._state.count])
        names = {self.filters[number].name for number in numbers if 0 <= number < len(self.filters)}
        if len(numbers) and numbers[0] < 0:
            names.update(self._filtering.pre_filters.by)
        return frozenset(names)

    def touched_by(self, names: Collection[str]) -> int:
        """What those of these pre-filters and filters touched that have no `retry_on`."""
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

    @property
    def narrowed_to(self) -> frozenset[str] | None:
        """The names of the nodes that the pre-filters left; None when none of them narrowed."""
        return self._filtering.pre_filters.names

    @property
    def most_points(self) -> int:
        """What a node can have at most in `rank`, by the rules that have an opinion."""
        return MAX_SCORE * sum(self._scoring.active.weights)

    @property
    def is_outdated(self) -> bool:
        """Whether all of it has to be judged anew, so that nothing is won by keeping it."""
        return not self._state.log.reaches(self._filtering.judged_at)

    @property
    def bytes_when_full(self) -> int:
        filters, plugins = len(self.filters), self._plugin_count
        per_row = 8 * filters + 9 * (plugins - filters) + 2 * 8 + 3  # totals and ranks too
        arrays = per_row * self._capacity + self.leaders.bytes_kept
        local = len(self._filtering.partition.local) + len(self._scoring.partition.local)
        ahead = lookahead_bytes(self._state.count, local)
        return arrays + ahead + (plugins + 1) * _BYTES_PER_PLUGIN

    # How it is done.

    def _refresh_scores(self) -> None:
        filtering = self._filtering
        try:
            self._scoring.refresh(filtering.feasible, filtering.refiltered, self._changes)
        except Exception:
            self._start_again()
            raise
        self.drop_shared()
        if filtering.refiltered != set():
            filtering.refiltered = set()

    def _scored_among(self, feasible: BoolArray) -> Iterator[Scored]:
        self._refresh_scores()
        try:
            yield from self._scoring.scored_among(feasible)
        except Exception:
            self._start_again()
            raise

    def _start_again(self) -> None:
        """Everything is judged anew, in arrays that have room; also after a rule failed, which
        leaves arrays half written."""
        capacity = self._capacity = self._state.count + max(64, self._state.count // 4)
        self._changes = None
        self._filtering.start_again(capacity)
        self._scoring.start_again(capacity)
