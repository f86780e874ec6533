"""Ranking: the total score of every row for one pod signature. It is one of the two Evaluations of
a Verdict."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lowtide.cluster.changes import FEASIBLE_ANYWHERE
from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import Asking
from lowtide.framework.evaluation import Answers, ChangedRows, Evaluation, PluginsAt
from lowtide.framework.leaders import Leaders
from lowtide.framework.lookahead import NO_ROWS, LookaheadBatches
from lowtide.framework.profile import Weighted
from lowtide.framework.scores import Normalize, Scores, SmallArray, are_in_range, check_scores
from lowtide.objects.pod import Pod

_MOST_MOVED = 64  # rows; sorting in more of them takes as long as sorting all again
_FOR_NOTHING = 1  # the total that kube-scheduler gives every node when no plugin scores


class ActiveScorers(NamedTuple):
    """The score plugins that have an opinion about the pod."""

    numbers: Rows  # (plugins, 1), to index arrays of all plugins
    names: tuple[str, ...]
    weights: tuple[int, ...]


_NO_RANKS: IntArray = np.empty(0, np.int64)
_NOBODY = ActiveScorers(np.empty((0, 1), np.intp), (), ())


class RankedAmong(NamedTuple):
    """How rows would rank with a given set of feasible nodes, and by which scores."""

    ranked: IntArray
    active: ActiveScorers
    raw: IntArray  # one row per active plugin
    normalized: IntArray


class Ranking(Evaluation):
    method = "score"
    active: ActiveScorers
    ranked: IntArray  # by row: the total of all scores; -1 where the node is not feasible
    scores: list[Scores]
    _feasible: BoolArray

    def __init__(
        self,
        scorers: tuple[Weighted, ...],
        plugins_at: PluginsAt,
        *,
        state: ClusterState,
        pod: Pod,
        batches: LookaheadBatches,
    ) -> None:
        super().__init__(plugins_at, state, pod, batches)
        self._scorers = scorers
        self._weights = np.array([each.weight for each in scorers], np.int64)
        self.leaders = Leaders()

    def start_again(self, capacity: int) -> None:
        """Forget all answers. The next ranking makes arrays of this length; many pods are never
        ranked."""
        self.judge_all_again()
        self._capacity = capacity
        self.ranked = _NO_RANKS

    def _make_arrays(self) -> None:
        capacity, self._count = self._capacity, 0
        # (plugins, rows): one array for all plugins, so a column holds all scores of a row.
        self.raw: IntArray = np.empty((len(self._scorers), capacity), np.int64)
        self.normalized: SmallArray = np.zeros((len(self._scorers), capacity), np.int8)
        self.scores = [
            Scores(*each) for each in zip(self._scorers, self.raw, self.normalized, strict=True)
        ]
        self._scaled = frozenset(n for n, each in enumerate(self.scores) if not each.is_as_given)
        self._touched_besides = [0] * len(self.scores)
        self._with_opinion: list[int] = []
        self.active = _NOBODY
        self._totals = np.zeros(capacity, np.int64)  # includes rows that are not feasible
        self.ranked = np.full(capacity, -1, np.int64)
        self.leaders.all_moved()

    def refresh(
        self,
        feasible: BoolArray,
        refiltered: set[int] | None,
        changes: ChangedRows | None,
        asking: Asking,
    ) -> None:
        """Bring all scores and ranks up to date. `refiltered` are the rows whose feasibility
        changed since the last refresh; None: any row. `changes` are those of the filters, reused
        if they start and end at the same log positions."""
        position = self._state.log.position
        if self.judged_at == position and refiltered == set():
            return
        if self.ranked is _NO_RANKS:
            self._make_arrays()
        self._feasible = feasible
        if self._state.count < self._count:
            # Rows were removed, perhaps the one with the highest score.
            self.normalized[:, self._state.count :] = 0
            self._totals[self._state.count :] = 0
            self.ranked[self._state.count :] = -1
            self.leaders.all_moved()
            refiltered = None
        if changes is None or (changes.since, changes.until) != (self.judged_at, position):
            changes = ChangedRows(self._state, self.judged_at, asking, feasible)
        # A scaled score depends on other rows' scores, so it cannot be updated for one row alone.
        is_short = refiltered == set() and self._scaled.isdisjoint(self.groups.local)
        known = self.use_lookahead(changes) if is_short else None
        if known is not None and not changes.concern(self.groups.not_local_logged):
            self._rank_one(known)
        else:
            self._judge_and_rank(changes, known, changes.existing(refiltered))
        self.judged_at = position

    def _judge_and_rank(self, changes: ChangedRows, known: int | None, refiltered: Rows) -> None:
        judged = self.judge(changes, self.ranked, known=known, refiltered=refiltered)
        rescaled = self._rescale(judged, refiltered, changes)
        # New rows may hold the rank of a removed node, even if no plugin scores them now.
        dirty = [refiltered, changes.everything[self._count :], *rescaled]
        if known is not None:
            dirty.append(np.array([known]))
        with_opinion = [number for number, each in enumerate(self.scores) if each.has_opinion]
        if with_opinion != self._with_opinion:
            self._with_opinion, self.active = with_opinion, self._active(with_opinion)
        self._rank(changes.union(dirty), changes)
        self._count = self._state.count

    def ranked_among(self, feasible: BoolArray, asking: Asking) -> RankedAmong:
        """Rank as if exactly these nodes were feasible. Nothing of the result is kept."""
        scored = list(self._scored_among(feasible, asking))
        active = self._active([number for number, _, _ in scored])
        shape = len(scored), len(feasible)
        raw = np.array([each for _, each, _ in scored], np.int64).reshape(shape)
        normalized = np.array([each for *_, each in scored], np.int64).reshape(shape)
        totals = np.array(active.weights, np.int64) @ normalized if scored else _FOR_NOTHING
        return RankedAmong(np.where(feasible, totals, -1), active, raw, normalized)

    def _scored_among(
        self, feasible: BoolArray, asking: Asking
    ) -> Iterator[tuple[int, IntArray, IntArray]]:
        """For each plugin with an opinion: its number, raw scores and normalized scores."""
        nodes = self._state.nodes(feasible)
        for number, scores in enumerate(self.scores):
            raw = self.raw[number, : len(feasible)] if scores.has_opinion else None
            if self.touched[number] & FEASIBLE_ANYWHERE:
                answer, _ = self._ask(number, nodes, asking)
                raw = self._read(number, answer, len(nodes))
            if raw is not None:
                normalize = partial(self._normalize, number, nodes, asking)
                yield number, raw, scores.normalized_among(feasible, raw, normalize)

    # How answers are kept.

    def _read(self, number: int, answer: Any, count: int) -> Answers | None:
        """Check the scores; None if the plugin has no opinion."""
        if answer is None and self._scorers[number].zero_if_skipped:
            return np.zeros(count, np.int64)
        if answer is not None:
            check_scores(self.plugins[number].name, answer, count)
        raw: IntArray | None = answer
        return raw

    def _keep_all(self, number: int, answer: Any, changes: ChangedRows) -> Rows:
        count = len(changes.everything)
        raw = self._read(number, answer, count)
        normalize = self._normalizer(number, changes)
        gained = self.scores[number].keep_all(raw, self._feasible[:count], normalize)
        if gained is None:
            return NO_ROWS
        self._totals[:count] += gained
        return changes.everything

    def _keep(self, answers: Mapping[int, Answers | None], rows: Rows) -> Sequence[int]:
        """A plugin that now has an opinion and had none, or the reverse, must judge every row."""
        again: list[int] = []
        given: dict[int, IntArray] = {}
        for number, raw in answers.items():
            scores = self.scores[number]
            if (raw is not None) != scores.has_opinion:
                again.append(number)
            elif raw is not None and scores.is_as_given:
                given[number] = raw
            elif raw is not None:
                scores.put(raw, rows)
        if given:
            self._keep_as_given(given, rows)
        return again

    def _keep_as_given(self, given: Mapping[int, IntArray], rows: Rows) -> None:
        """Keep raw scores that need no scaling, for several plugins at once."""
        numbers, raw = list(given), np.array(list(given.values()))  # (plugins, rows)
        at = np.array(numbers)[:, np.newaxis], rows
        self.raw[at] = raw
        if not are_in_range(raw):
            some = self._feasible[rows]
            raw = np.array([self.scores[n].checked(each, some) for n, each in given.items()])
        gained = raw - self.normalized[at]
        self.normalized[at] = raw
        self._totals[rows] += self._weights[numbers] @ gained

    def _keep_one(self, numbers: Sequence[int], row: int, answers: Sequence[int]) -> None:
        for number, raw in zip(numbers, answers, strict=True):
            scores = self.scores[number]
            if scores.has_opinion and scores.is_as_given:
                self._totals[row] += scores.put_one_as_given(raw, row, self._feasible)
            elif scores.has_opinion:
                scores.put(raw, row)

    def _rescale(
        self, judged: Mapping[int, Rows], refiltered: Rows, changes: ChangedRows
    ) -> Iterator[Rows]:
        """Normalize the rows that plugins judged again, and everything that depends on which nodes
        are feasible if any row was refiltered. Yield the rows whose totals may have changed."""
        feasible = self._feasible[: self._state.count]
        for number in range(len(self.scores)) if len(refiltered) else judged:
            rows, scores = judged.get(number, NO_ROWS), self.scores[number]
            if rows is changes.everything or (scores.is_as_given and not len(refiltered)):
                yield rows  # `_keep_all` or `_keep` has added them to the totals
                continue
            normalize = self._normalizer(number, changes)
            touched, gained = scores.rescale(
                feasible, rows, refiltered, changes=changes, normalize=normalize
            )
            self._totals[changes.index(touched)] += gained
            yield touched

    # Plugins with their own `normalize`.

    def _normalizer(self, number: int, changes: ChangedRows) -> Normalize | None:
        if not self.scores[number].has_normalize:
            return None
        return partial(self._normalize, number, changes.nodes(changes.everything), changes.asking)

    def _normalize(self, number: int, nodes: Nodes, asking: Asking, raw: IntArray) -> IntArray:
        """Call the plugin's `normalize`. It always sees the whole table, and is called each time
        the feasible nodes change."""
        nodes, raw = nodes.everything, raw.view()
        raw.setflags(write=False)  # a plugin must not write into the kept scores
        normalized: IntArray
        normalized, touched = asking.observed(
            self._state, self.plugins[number], "normalize", self._pod, nodes, raw
        )
        touched &= ~FEASIBLE_ANYWHERE
        self._touched_besides[number] |= touched
        self._depends_on(number, self.touched[number] | touched)
        return normalized

    # Totals and ranks.

    def _active(self, numbers: Sequence[int]) -> ActiveScorers:
        active = [self._scorers[number] for number in numbers]
        return ActiveScorers(
            numbers=np.array(numbers, np.intp)[:, np.newaxis],
            names=tuple([each.plugin.name for each in active]),
            weights=tuple([each.weight for each in active]),
        )

    def _rank(self, rows: Rows, changes: ChangedRows) -> None:
        if not len(rows):
            return
        if len(rows) == 1:
            self._rank_one(int(rows[0]))
            return
        some = changes.index(rows)
        totals = self._totals[some] if self.active.names else _FOR_NOTHING
        ranked = np.where(self._feasible[some], totals, -1)
        if len(rows) > _MOST_MOVED:
            self.leaders.all_moved()
        elif self.leaders.keys is not None:
            moves = zip(rows.tolist(), self.ranked[rows].tolist(), ranked.tolist(), strict=True)
            for row, before, after in moves:
                self.leaders.moved(row, before, after)
        self.ranked[some] = ranked

    def _rank_one(self, row: int) -> None:
        total = self._totals.item(row) if self.active.names else _FOR_NOTHING
        ranked = total if self._feasible[row] else -1
        self.leaders.moved(row, self.ranked.item(row), ranked)
        self.ranked[row] = ranked
