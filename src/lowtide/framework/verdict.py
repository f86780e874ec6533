"""What the rules of one profile say about one shape of pod on every node, kept between pods.

Placing a pod changes one row; only the rules that read what changed judge that row again.
`verdicts` keeps one per shape; `decide` reads it.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import NodeRejection, ScoreTable
from lowtide.framework.narrowing import Narrowing
from lowtide.framework.plugin import MAX_SCORE, PodRejection, ask
from lowtide.framework.profile import Profile
from lowtide.framework.rejections import Rejections
from lowtide.framework.scores import Scores
from lowtide.framework.stale import NO_ROWS, Asked, Stale
from lowtide.objects.pod import Pod

# What a verdict costs besides its arrays' rows: the objects around them.
_BYTES_PER_RULE = 600


class Verdict:
    _judged_at: dict[Asked, int]
    _narrowing: Narrowing
    _first: npt.NDArray[np.int16]  # the filter that refuses a row first; -1: excluded before
    _feasible: BoolArray
    _ranked: IntArray
    _settled_count: int
    _scored_count: int
    _refiltered: set[int] | None  # rows that came or went since the last scores; None: any

    def __init__(self, profile: Profile, state: ClusterState, pod: Pod) -> None:
        self.pod = pod
        self.filters = tuple(profile.at("filter"))
        self.scorers = profile.scorers
        self._pre_filters = tuple(profile.at("preFilter"))
        self._state = state
        self._start_again(capacity=0)

    # What decide asks.

    @property
    def feasible(self) -> BoolArray:
        return self._feasible[: self._state.count]

    @property
    def pod_rejection(self) -> tuple[str, PodRejection] | None:
        """The rule that refuses the pod everywhere, and why."""
        return self._narrowing.pod_rejection

    def refresh(self) -> None:
        """Judges the stale rows again by the filters."""
        if self._state.count > self._capacity or not self._capacity:
            self._start_again(capacity=_room_for(self._state.count))
        stale = Stale(self._state, self._judged_at)
        with self._forgotten_if_it_fails():
            touched = [*self._ask_pre_filters(stale), *self._ask_filters(stale)]
            if self._state.count > self._settled_count:
                touched.append(np.arange(self._settled_count, self._state.count))
            self._settle(stale.union(touched), stale)
        stale.done()

    def rank(self) -> IntArray:
        """Total score per row; below 0 where the node is not feasible."""
        with self._forgotten_if_it_fails():
            self._refresh_scores()
        return self._ranked[: self._state.count]

    def rank_among(self, feasible: BoolArray) -> IntArray:
        """The same for other feasible nodes than the filters left: nothing of it is kept."""
        total = np.zeros(self._state.count, np.int64)
        for scores, _, normalized in self._scored_among(feasible):
            total += scores.weight * normalized
        return np.where(feasible, total if self._has_scores else total + 1, -1)

    def scores_of(
        self, rows: list[int], ranked: IntArray, feasible: BoolArray | None = None
    ) -> ScoreTable:
        """What each rule with an opinion says of these rows; `feasible` as in `rank_among`."""
        if feasible is None:
            scored = [
                (each, each.raw, each.normalized) for each in self._scores if each.has_opinion
            ]
        else:
            scored = list(self._scored_among(feasible))
        return ScoreTable(
            node_names=tuple(self._state.names[row] for row in rows),
            totals=ranked[rows],
            rules=tuple(scores.rule.name for scores, _, _ in scored),
            weights=tuple(scores.weight for scores, _, _ in scored),
            raw=tuple(raw[rows] for _, raw, _ in scored),
            normalized=tuple(normalized[rows] for _, _, normalized in scored),
        )

    def feasible_after(self, waited_seconds: float) -> BoolArray:
        """Where nothing refuses the pod but what gives way to a pod that has waited so long."""
        count = self._state.count
        feasible: BoolArray = self._first[:count] >= 0
        for rejections in self._rejections:
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
        return sorted({wait for each in self._rejections for wait in each.waits})

    @property
    def eviction_may_help(self) -> BoolArray:
        """Where the rule that refuses first does so because of the pods on the node."""
        first = self._first[: self._state.count]
        helps = np.zeros(len(first), np.bool_)
        for number, rejections in enumerate(self._rejections):
            helps |= (first == number) & rejections.eviction_helps(len(first))
        return helps

    def rejection_at(self, row: int) -> NodeRejection | None:
        first = int(self._first[row])
        if first < 0:
            return self._narrowing.exclusion_at(row)
        if first == len(self.filters):
            return None
        by = self._rejections[first]
        return by.as_node_rejection(row, self.rejections_besides(row, by.name))

    def is_excluded(self, row: int) -> bool:
        """Whether a pre-filter left this node out: filters are then not asked about it."""
        return bool(self._first[row] < 0)

    def rejections_besides(self, row: int, name: str) -> tuple[NodeRejection, ...]:
        """What the other filters say of a row, each on its own."""
        return tuple(
            each.as_node_rejection(row)
            for each in self._rejections
            if each.name != name and each.refuses(row)
        )

    def rejections_on(
        self, nodes: Nodes, waited_seconds: float = -math.inf
    ) -> dict[int, NodeRejection]:
        """By position: what the filters refuse on a face with overlays to a pod that has waited
        so long. Nothing of it is kept."""
        found: dict[int, NodeRejection] = {}
        rows = np.arange(len(nodes))
        for rule in self.filters:
            rejections = Rejections(rule.name)
            rejections.judge(ask(rule, "filter", self.pod, nodes), rows, len(nodes))
            stands = rejections.stands(len(nodes), waited_seconds)
            for position in () if stands is None else np.flatnonzero(stands).tolist():
                if position not in found:
                    found[position] = rejections.as_node_rejection(position)
        return found

    def refused_alike(self, rows: Rows) -> Iterator[tuple[NodeRejection, Rows]]:
        """Those of these rows that are refused, in groups; each by the first rule that does."""
        first = self._first[rows]
        for number in np.unique(first).tolist():
            refused = rows[first == number]
            if number < 0:
                yield self._narrowing.exclusion_at(int(refused[0])), refused
            elif number < len(self.filters):
                by = self._rejections[number]
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
        numbers = np.unique(self._first[: self._state.count])
        names = {self.filters[number].name for number in numbers if 0 <= number < len(self.filters)}
        if len(numbers) and numbers[0] < 0:
            names.update(self._narrowing.by)
        return frozenset(names)

    @property
    def narrowed_to(self) -> frozenset[str] | None:
        """The names of the nodes that the pre-filters left; None when none of them narrowed."""
        return self._narrowing.names

    def object_changed(self, kind: type) -> None:
        for asked, rule in self._rules():
            if kind in getattr(rule, "kinds", ()):
                self._judged_at.pop(asked, None)

    @property
    def most_points(self) -> int:
        """What a node can have at most in `rank`, by the rules that have an opinion."""
        return MAX_SCORE * sum(scores.weight for scores in self._scores if scores.has_opinion)

    @property
    def bytes_when_full(self) -> int:
        per_row = 8 * (len(self.filters) + 2 * len(self.scorers) + 1) + 3
        rules = len(self.filters) + len(self.scorers) + 1
        return per_row * (self._capacity or _room_for(self._state.count)) + rules * _BYTES_PER_RULE

    # Filters.

    def _ask_pre_filters(self, stale: Stale) -> Iterator[Rows]:
        """Their answer is about the pod, so they always see the whole table."""
        for number, rule in enumerate(self._pre_filters):
            if stale.rows(("preFilter", number), rule) is None:
                continue
            nodes = self._state.nodes()
            answer = ask(rule, "pre_filter", self.pod, nodes)
            if self._narrowing.take(number, answer, self._state.row_of, self._capacity):
                yield stale.everything

    def _ask_filters(self, stale: Stale) -> Iterator[Rows]:
        for number, rule in enumerate(self.filters):
            rows = stale.rows(("filter", number), rule)
            if rows is None:
                continue
            rejections = self._rejections[number]
            if rows is stale.everything:
                rejections.start_again()
            answer = ask(rule, "filter", self.pod, stale.nodes(rows))
            rejections.judge(answer, rows, self._capacity)
            yield rows

    def _settle(self, rows: Rows, stale: Stale) -> None:
        """Works out for these rows which rule refuses first, and whether any does."""
        self._settled_count = self._state.count
        if not len(rows):
            return
        first = np.full(len(rows), len(self.filters), np.int16)
        for number in reversed(range(len(self.filters))):
            bits = self._rejections[number].bits
            if bits is not None:
                first[bits[rows] != 0] = number
        first[self._narrowing.excludes(rows)] = -1
        feasible = first == len(self.filters)
        if rows is stale.everything:
            self._refiltered = None
        elif self._refiltered is not None:
            self._refiltered.update(rows[self._feasible[rows] != feasible].tolist())
        self._first[rows] = first
        self._feasible[rows] = feasible

    # Scores.

    @property
    def _has_scores(self) -> bool:
        return any(scores.has_opinion for scores in self._scores)

    def _refresh_scores(self) -> None:
        count = self._state.count
        if count < self._scored_count:
            # A row is gone, and with it perhaps the highest score.
            self._refiltered = None
        stale = Stale(self._state, self._judged_at)
        refiltered = stale.of(self._refiltered)
        dirty = [refiltered]
        for number, scores in enumerate(self._scores):
            judged = self._judge_scores(number, scores, refiltered, stale)
            dirty.append(scores.rescale(self.pod, self.feasible, judged, refiltered, stale))
            if judged is stale.everything:
                dirty.append(judged)
        self._add_up(stale.union(dirty))
        stale.done()
        self._scored_count = count
        self._refiltered = set()

    def _judge_scores(self, number: int, scores: Scores, refiltered: Rows, stale: Stale) -> Rows:
        rows = stale.rows(("score", number), scores.rule)
        if scores.reads_feasible and len(refiltered):
            rows = stale.everything
        if rows is None:
            return NO_ROWS
        had_opinion = scores.has_opinion
        scores.judge(self.pod, stale.nodes(rows), self._feasible[rows], rows, self._capacity)
        if not had_opinion and not scores.has_opinion:
            return NO_ROWS
        if scores.has_opinion == had_opinion or rows is stale.everything:
            return rows
        # It has changed its mind about having an opinion at all: that concerns every row.
        if scores.has_opinion:
            nodes = self._state.nodes()
            everything = stale.everything
            scores.judge(self.pod, nodes, self.feasible, everything, self._capacity)
        return stale.everything

    def _add_up(self, rows: Rows) -> None:
        if not len(rows):
            return
        total = np.zeros(len(rows), np.int64)
        for scores in self._scores:
            if scores.has_opinion:
                total += scores.weight * scores.normalized[rows]
        if not self._has_scores:
            total += 1  # kube-scheduler gives every node 1 when nothing scores
        self._ranked[rows] = np.where(self._feasible[rows], total, -1)

    def _scored_among(self, feasible: BoolArray) -> Iterator[tuple[Scores, IntArray, IntArray]]:
        """With each rule's raw and normalised scores."""
        with self._forgotten_if_it_fails():
            self._refresh_scores()
            for scores in self._scores:
                if scores.has_opinion:
                    nodes = self._state.nodes()
                    raw = scores.raw_among(self.pod, nodes, feasible)
                    yield scores, raw, scores.normalized_among(self.pod, nodes, feasible, raw)

    # Room.

    def _rules(self) -> Iterable[tuple[Asked, Any]]:
        for number, rule in enumerate(self._pre_filters):
            yield ("preFilter", number), rule
        for number, rule in enumerate(self.filters):
            yield ("filter", number), rule
        for number, weighted in enumerate(self.scorers):
            yield ("score", number), weighted.rule

    def _start_again(self, capacity: int) -> None:
        """Everything is judged anew, in arrays of this length."""
        self._capacity = capacity
        self._judged_at = {}
        self._narrowing = Narrowing(self._pre_filters)
        self._rejections = [Rejections(rule.name) for rule in self.filters]
        self._scores = [Scores(each) for each in self.scorers]
        self._first = np.zeros(capacity, np.int16)
        self._feasible = np.zeros(capacity, np.bool_)
        self._ranked = np.full(capacity, -1, np.int64)
        self._settled_count = 0
        self._scored_count = 0
        self._refiltered = None

    @contextmanager
    def _forgotten_if_it_fails(self) -> Iterator[None]:
        """A rule that raises leaves arrays half written: nothing of them is used again."""
        try:
            yield
        except Exception:
            self._start_again(capacity=0)
            raise


def _room_for(count: int) -> int:
    return max(64, 2 * count)
