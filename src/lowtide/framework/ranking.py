"""Ranking: the total score of every row for one pod signature. It is one of the two Evaluations of
a Verdict. Leaders finds the rows that rank highest."""

from bisect import bisect_left, insort
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
from lowtide.framework.lookahead import NO_ROWS, LookaheadBatches
from lowtide.framework.profile import Weighted
from lowtide.framework.scores import Normalize, Scores, SmallArray, are_in_range, check_scores
from lowtide.objects.pod import Pod

_MOST_MOVED = 64  # rows; sorting in more of them takes as long as sorting all again
_FOR_NOTHING = 1  # the total that kube-scheduler gives every node when no plugin scores

# To find `keep` rows, look at about 4 times as many, and at most 16 times as many.
_ABOUT, _MOST = 4, 16
_SOME = 8  # to guess a rank that few rows exceed, look at one row of 8
# Keeping more rows in order takes as long as a new search for the best.
_MOST_IN_ORDER = 8192
_BYTES_PER_KEY = 40

# A row's key is smaller the higher the rank, and among equal ranks the lower the row.
_ROW_BITS = 32
_ROW = (1 << _ROW_BITS) - 1
_TOO_HIGH = 1 << (63 - _ROW_BITS)  # ranks that do not fit a 64-bit key; weights may be that large


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
        is_short = refiltered == set() and self._scaled.isdisjoint(self.partition.local)
        known = self.use_lookahead(changes) if is_short else None
        if known is not None and not changes.concern(self.partition.others_logged):
            self._rank_one(known)
        else:
            self._judge_and_rank(changes, known, changes.existing(refiltered))
        self.judged_at = position

    def _judge_and_rank(self, changes: ChangedRows, known: int | None, refiltered: Rows) -> None:
        judged = self.judge(changes, self.ranked, known=known, refiltered=refiltered)
        rescaled = self._rescale(judged, refiltered, changes)
        # New rows may hold the rank of a removed node, even if no plugin scores them now.
        dirty = [refiltered, changes.everything[self._count :], *rescaled]
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


class Leaders:
    """Finds the rows that rank highest.

    While each pod changes the ranks of few rows, the best rows are kept in order. Otherwise only a
    rank that few rows exceed is remembered. It is a good guess for the next search."""

    def __init__(self) -> None:
        self._asked = 0  # calls of `best` since `all_moved`
        self.keys: list[int] | None = None  # of all rows whose rank is at least `_reached`, sorted
        self._reached = 0
        self._exceeded: int | None = None

    def all_moved(self) -> None:
        self.keys, self._asked = None, 0

    @property
    def bytes_kept(self) -> int:
        return 0 if self.keys is None else _BYTES_PER_KEY * len(self.keys)

    def moved(self, row: int, before: int, after: int) -> None:
        """Record that a row's rank changed; the rank of an infeasible row is below 0."""
        if self.keys is None:
            return
        if before >= self._reached:
            del self.keys[bisect_left(self.keys, row - (before << _ROW_BITS))]
        if after >= self._reached:
            insort(self.keys, row - (after << _ROW_BITS))

    def best(self, ranked: IntArray, keep: int, turn: int) -> tuple[int, Rows]:
        """Like `best_of`, without infeasible rows, for the ranks whose changes `moved` and
        `all_moved` report. At least one row must be feasible."""
        keys = self.keys
        has_too_few = keys is not None and len(keys) < keep and self._reached > 0
        if self._asked == 1 or has_too_few:
            keys = self._put_in_order(ranked, keep)
        self._asked += 1
        if keys is None:
            row, kept = self.best_of(ranked, keep, turn)
            return row, kept if ranked[kept[-1]] >= 0 else kept[ranked[kept] >= 0]
        highest = keys[0] >> _ROW_BITS
        place = turn % bisect_left(keys, (highest + 1) << _ROW_BITS)
        best = keys[:keep] if place < keep else [keys[place], *keys[: keep - 1]]
        return keys[place] & _ROW, np.array([key & _ROW for key in best], np.intp)

    def best_of(self, ranked: IntArray, keep: int, turn: int) -> tuple[int, Rows]:
        """The chosen row, and the `keep` best rows in order, including it. Rows that tie for the
        highest rank are chosen in turn."""
        best, kept = self._highest(ranked, keep)
        place = turn % len(best)
        if place >= len(kept):  # more than `keep` rows tie
            kept = np.concatenate([best[place : place + 1], kept[:-1]])
        return int(best[place]), kept

    def _put_in_order(self, ranked: IntArray, keep: int) -> list[int] | None:
        """Sort the best rows into `keys` and return these. None if sorting would take too long or
        finds too few."""
        step = _SOME if len(ranked) > _MOST_IN_ORDER // _SOME else 1
        self._reached = max(_nth_highest(ranked[::step], _MOST * keep // step), 0)
        rows: Rows = (ranked >= self._reached).nonzero()[0]
        self.keys, ranks = None, ranked[rows]
        if len(rows) > _MOST_IN_ORDER or ranks.max(initial=0) >= _TOO_HIGH:
            return None
        keys = rows - (ranks << _ROW_BITS)
        keys.sort()
        self.keys = keys.tolist()
        return self.keys if len(self.keys) >= keep or self._reached == 0 else None

    def _highest(self, ranked: IntArray, keep: int) -> tuple[Rows, Rows]:
        """All rows that tie for the highest rank, by row; and the `keep` best rows, best first."""
        for exceeded in self._guesses(ranked, keep):
            above, level = _split(ranked, exceeded, keep)
            if len(above) <= _MOST * keep and len(above) + len(level) >= keep:
                break
        self._exceeded = exceeded
        if not len(above):
            return level, level[:keep]
        values = ranked[above]
        best = above[values == np.maximum.reduce(values)]
        if len(best) >= keep:
            return best, best[:keep]
        order = (-values).argsort(kind="stable")[:keep]
        return best, np.concatenate([above[order], level[: keep - len(order)]])

    def _guesses(self, ranked: IntArray, keep: int) -> Iterator[int]:
        """Guesses of a rank that few rows exceed. The last one is right."""
        if self._exceeded is not None:
            yield self._exceeded
        for step in (_SOME, 1):  # a sample of the rows is usually enough
            yield _nth_highest(ranked[::step], _ABOUT * keep // step)


def _split(ranked: IntArray, exceeded: int, keep: int) -> tuple[Rows, Rows]:
    """The rows that rank above `exceeded`; and those equal to it, if the first are too few."""
    above: Rows = (ranked > exceeded).nonzero()[0]
    if len(above) >= keep:
        return above, above[:0]
    return above, (ranked == exceeded).nonzero()[0]


def _nth_highest(ranked: IntArray, number: int) -> int:
    at = max(len(ranked) - max(number, 1), 0)
    parted = ranked.copy()
    parted.partition(at)
    return parted.item(at)
