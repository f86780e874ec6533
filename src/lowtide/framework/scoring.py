"""How the score plugins rank every row for one pod signature: one of the two Evaluations of a
Verdict."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lowtide.cluster.changes import FEASIBLE_ANYWHERE
from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import Asking
from lowtide.framework.changed_rows import NO_ROWS, ChangedRows
from lowtide.framework.evaluation import Answers, Evaluation, PluginsAt
from lowtide.framework.leaders import Leaders
from lowtide.framework.lookahead import LookaheadBatches
from lowtide.framework.profile import Weighted
from lowtide.framework.scores import Scores, SmallArray, are_in_range, check_scores
from lowtide.objects.pod import Pod

_MOST_MOVED = 64  # rows; to put more of them in their places takes as long as to start again
_FOR_NOTHING = 1  # is what kube-scheduler gives every node when nothing scores

Scored = tuple[Scores, IntArray, IntArray]  # with a plugin's raw and normalized scores


class ActiveScorers(NamedTuple):
    """The score plugins that have an opinion about the pod."""

    numbers: Rows  # one below the other, to pick their rows out of arrays of all plugins
    names: tuple[str, ...]
    weights: tuple[int, ...]


_NOBODY = ActiveScorers(np.empty((0, 1), np.intp), (), ())


class Scoring(Evaluation):
    method = "score"
    active: ActiveScorers
    ranked: IntArray  # by row: the total of all scores; below 0 where the node is not feasible
    scores: list[Scores]

    def __init__(
        self,
        scorers: tuple[Weighted, ...],
        plugins_at: PluginsAt,
        *,
        asking: Asking,
        state: ClusterState,
        pod: Pod,
        batches: LookaheadBatches,
    ) -> None:
        super().__init__(plugins_at, asking, state, pod, batches)
        self._scorers = scorers
        self._weights = np.array([each.weight for each in scorers], np.int64)
        self._feasible: BoolArray = np.empty(0, np.bool_)
        self.leaders = Leaders()

    def start_again(self, capacity: int) -> None:
        """Forgets all answers; those of the future go into arrays of this length."""
        self.judge_all_again()
        self._count = 0
        # One array for all, so that a column of it is what all say of a row.
        self.raw: IntArray = np.empty((len(self._scorers), capacity), np.int64)
        self.normalized: SmallArray = np.zeros((len(self._scorers), capacity), np.int8)
        self.scores = [
            Scores(*each) for each in zip(self._scorers, self.raw, self.normalized, strict=True)
        ]
        self._scaled = frozenset(n for n, each in enumerate(self.scores) if not each.is_as_given)
        self._touched_besides = [0] * len(self.scores)
        self._had_opinions = [False] * len(self.scores)
        self.active = _NOBODY
        self._totals = np.zeros(capacity, np.int64)  # also of rows that are not feasible
        self.ranked = np.full(capacity, -1, np.int64)
        self.leaders.all_moved()

    def refresh(
        self, feasible: BoolArray, refiltered: set[int] | None, changes: ChangedRows | None
    ) -> None:
        """`refiltered` are the rows whose feasibility changed since; None: any. `changes` is what
        filtering saw, which may be the same."""
        state, count = self._state, self._state.count
        if self.judged_at == state.log.position and refiltered == set():
            return
        self._feasible = feasible
        if count < self._count:
            # Rows are gone, with their scores, and perhaps with the highest score.
            self.normalized[:, count:] = 0
            self._totals[count:] = 0
            self.ranked[count:] = -1
            self.leaders.all_moved()
            refiltered = None
        if changes is None or not changes.is_since(self.judged_at):
            changes = ChangedRows(state, self.judged_at, feasible)
        # What depends on other scores than those of the row takes the longer way.
        partition = self._partition or self.partition
        is_short = refiltered == set() and self._scaled.isdisjoint(partition.local)
        known = self.known_ahead(changes) if is_short else None
        if known is not None:
            row, answers = known
            self._keep_one(partition.local, row, answers)
            if not changes.concern(partition.others_logged):
                self._rank_one(row, feasible)
                self.judged_at = state.log.position
                return
        left = changes.existing(refiltered)
        # Rows that came may have been ranked before they went, and no plugin may score them.
        dirty = [left, changes.everything[self._count :]]
        if known is None:
            judged = self.judge(changes, self.ranked, left)
        else:
            dirty.append(np.array([known[0]]))
            judged = self.judge_others(changes, left)
        dirty += self._rescale(judged, left, changes)
        if [each.has_opinion for each in self.scores] != self._had_opinions:
            self._list_active()
        self._rank(changes.union(dirty), feasible, changes)
        self.judged_at = state.log.position
        self._count = count

    def scored_among(self, feasible: BoolArray) -> Iterator[Scored]:
        """The scores if only these nodes were feasible; nothing of it is kept."""
        nodes = self._state.nodes(feasible)
        for number, scores in enumerate(self.scores):
            if not scores.has_opinion:
                continue
            raw: IntArray | None = self.raw[number, : len(feasible)]
            if self.touched[number] & FEASIBLE_ANYWHERE:
                answer, _ = self._ask(number, nodes)
                raw = self._read(number, answer, len(nodes))
                raw = np.zeros(len(nodes), np.int64) if raw is None else raw
            assert raw is not None
            normalize = partial(self._normalize, number, nodes) if scores.asks else None
            yield scores, raw, scores.normalized_among(feasible, raw, normalize)

    # How answers are kept.

    def _read(self, number: int, answer: Any, count: int) -> Answers | None:
        """None where the plugin has no opinion."""
        if answer is None and self._scorers[number].zero_if_skipped:
            return np.zeros(count, np.int64)
        if answer is not None:
            check_scores(self.plugins[number].name, answer, count)
        raw: IntArray | None = answer
        return raw

    def _keep_all(self, number: int, answer: Any, changes: ChangedRows) -> Rows:
        count = len(changes.everything)
        raw = self._read(number, answer, count)
        scores, normalize = self.scores[number], None
        if scores.asks:
            normalize = partial(self._normalize, number, changes.nodes(changes.everything))
        gained = scores.keep_all(raw, self._feasible[:count], normalize)
        if gained is None:
            return NO_ROWS
        self._totals[:count] += gained
        return changes.everything

    def _keep(self, answers: Mapping[int, Answers | None], rows: Rows) -> Sequence[int]:
        """A plugin that has changed its mind about having an opinion must judge every row."""
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
        """Raw scores by number, of plugins whose raw scores are what counts: all in one step."""
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
        """By number: rows with new raw scores, and with `refiltered` ones whatever depends on which
        nodes are feasible. Yields the rows that this may concern."""
        feasible = self._feasible[: self._state.count]
        for number in range(len(self.scores)) if len(refiltered) else judged:
            rows, scores = judged.get(number, NO_ROWS), self.scores[number]
            if rows is changes.everything or (scores.is_as_given and not len(refiltered)):
                yield rows  # they count already
                continue
            normalize = None
            if scores.asks:
                normalize = partial(self._normalize, number, changes.nodes(changes.everything))
            touched, gained = scores.rescale(
                feasible, rows, refiltered, changes=changes, normalize=normalize
            )
            self._totals[changes.index(touched)] += gained
            yield touched

    # How a plugin normalizes by itself.

    def _normalize(self, number: int, nodes: Nodes, raw: IntArray) -> IntArray:
        """It always sees the whole table, and always when feasible nodes change."""
        nodes = nodes.everything
        plugin, raw = self.plugins[number], raw.view()
        raw.setflags(write=False)  # a plugin must not write into what is kept
        normalized: IntArray
        normalized, touched = self._asking.observed(
            self._state, plugin, "normalize", self._pod, nodes, raw
        )
        touched &= ~FEASIBLE_ANYWHERE
        self._touched_besides[number] |= touched
        self._depends_on(number, self.touched[number] | touched)
        return normalized

    # How rows rank.

    def _list_active(self) -> None:
        self._had_opinions = [each.has_opinion for each in self.scores]
        active = [(n, each) for n, each in enumerate(self.scores) if each.has_opinion]
        self.active = ActiveScorers(
            numbers=np.array([number for number, _ in active], np.intp)[:, np.newaxis],
            names=tuple(scores.plugin.name for _, scores in active),
            weights=tuple(scores.weight for _, scores in active),
        )

    def _rank(self, rows: Rows, feasible: BoolArray, changes: ChangedRows) -> None:
        if not len(rows):
            return
        if len(rows) == 1:
            self._rank_one(int(rows[0]), feasible)
            return
        some = changes.index(rows)
        totals = self._totals[some] if self.active.names else _FOR_NOTHING
        ranked = np.where(feasible[some], totals, -1)
        if len(rows) > _MOST_MOVED:
            self.leaders.all_moved()
        elif self.leaders.are_in_order:
            moves = zip(rows.tolist(), self.ranked[rows].tolist(), ranked.tolist(), strict=True)
            for row, before, after in moves:
                self.leaders.moved(row, before, after)
        self.ranked[some] = ranked

    def _rank_one(self, row: int, feasible: BoolArray) -> None:
        total = self._totals.item(row) if self.active.names else _FOR_NOTHING
        ranked = total if feasible[row] else -1
        self.leaders.moved(row, self.ranked.item(row), ranked)
        self.ranked[row] = ranked
