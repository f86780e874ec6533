"""How the rules score one shape of pod on every row, and how rows rank by that: half of a
Verdict."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lowtide.cluster.changes import FEASIBLE
from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.state import ClusterState
from lowtide.framework.ahead import Ahead, Faces
from lowtide.framework.asking import Asking
from lowtide.framework.leaders import Leaders
from lowtide.framework.profile import Concerned
from lowtide.framework.rules_asked import RulesAsked
from lowtide.framework.scores import Scores, SmallArray, are_in_range
from lowtide.framework.stale import NO_ROWS, Stale
from lowtide.objects.pod import Pod

_NEVER = -1
_MOST_MOVED = 64  # rows; to put more of them in their places takes as long as to start again
_FOR_NOTHING = 1  # is what kube-scheduler gives every node when nothing scores


class Voices(NamedTuple):
    """The rules that have an opinion on the shape."""

    numbers: Rows  # one below the other, to pick their rows out of arrays of all rules
    rules: tuple[str, ...]
    weights: tuple[int, ...]


_NOBODY = Voices(np.empty((0, 1), np.intp), (), ())


class Scoring:
    voices: Voices
    ranked: IntArray  # by row: the total of all scores; below 0 where the node is not feasible
    scores: list[Scores]

    def __init__(
        self, concerned: Concerned, asking: Asking, state: ClusterState, pod: Pod, faces: Faces
    ) -> None:
        self._state = state
        self._pod = pod
        self._faces = faces
        self._scorers = concerned.scorers
        self._weights = np.array([each.weight for each in concerned.scorers], np.int64)
        self._asking = asking
        self._rules = RulesAsked(concerned.scores, pod)
        self.leaders = Leaders()

    def start_again(self, capacity: int) -> None:
        """Everything is judged anew, in arrays of this length."""
        self._judged_at = _NEVER
        self._count = 0
        self._ahead = Ahead(self._state, self._faces)
        self._rules.all_anew()
        # One array for all, so that a column of it is what all say of a row.
        self.raw: IntArray = np.empty((len(self._scorers), capacity), np.int64)
        self.normalized: SmallArray = np.zeros((len(self._scorers), capacity), np.int8)
        arrays = zip(self._scorers, self.raw, self.normalized, strict=True)
        self.scores = [Scores(*each, self._asking) for each in arrays]
        self._had_opinions = [False] * len(self.scores)
        self.voices = _NOBODY
        self._totals = np.zeros(capacity, np.int64)  # also of rows that are not feasible
        self.ranked = np.full(capacity, -1, np.int64)
        self.leaders.all_moved()

    def object_changed(self, kind: type) -> None:
        if self._rules.object_changed(kind):
            self._ahead.forget()

    @property
    def opinions(self) -> list[Scores]:
        """Of the rules that have one."""
        return [scores for scores in self.scores if scores.has_opinion]

    def refresh(
        self, feasible: BoolArray, refiltered: set[int] | None, stale: Stale | None
    ) -> None:
        """`refiltered` are the rows whose feasibility changed since; None: any. `stale` is what
        filtering saw, which may be the same."""
        state, count = self._state, self._state.count
        if self._judged_at == state.log.position and refiltered == set() and not self._rules.anew:
            return
        if count < self._count:
            # Rows are gone, with what was said of them, and perhaps with the highest score.
            self.normalized[:, count:] = 0
            self._totals[count:] = 0
            self.ranked[count:] = -1
            self.leaders.all_moved()
            refiltered = None
        if stale is None or not stale.is_since(self._judged_at):
            stale = Stale(state, self._judged_at)
        if not self._rules.are_told_apart:
            self._rules.tell_apart(state)
            self._is_local_as_given = all(self.scores[n].is_as_given for n in self._rules.local)
        taken = None
        if self._is_local_as_given and not self._rules.anew and refiltered == set():
            taken = self._take_what_was_said(feasible, stale)
        if taken is not None and not self._rules.are_others_concerned(stale):
            self._rank_one(taken, feasible)
            self._judged_at = state.log.position
            return
        changed = stale.of(refiltered)
        # Rows that came may have been ranked before they went, and nobody may have a word on them.
        dirty = [changed, stale.everything[self._count :]]
        judged: dict[int, Rows] = {}
        if taken is None:
            local = self._rules.local_rows(stale)
            if local is not None:
                dirty.append(local)
                judged = self._judge_local(local, feasible, stale)
        else:
            dirty.append(np.array([taken]))
        for number, rows in self._rules.others(stale):
            judged[number] = self._judge(number, rows, feasible, stale)
        dirty += self._rescale(judged, changed, feasible, stale)
        if [each.has_opinion for each in self.scores] != self._had_opinions:
            self._hear()
        self._rank(stale.union(dirty), feasible, stale)
        self._judged_at = state.log.position
        self._rules.anew.clear()
        self._count = count

    def _rescale(
        self, judged: Mapping[int, Rows], changed: Rows, feasible: BoolArray, stale: Stale
    ) -> Iterator[Rows]:
        """What was judged of few rows, by number, and with `changed` ones whatever depends on which
        nodes are feasible; yields the rows that this may concern."""
        feasible_now = feasible[: self._state.count]
        for number in range(len(self.scores)) if len(changed) else judged:
            rows = judged.get(number, NO_ROWS)
            if self._rules.reads[number] & FEASIBLE and number not in judged:
                rows = self._judge(number, stale.everything, feasible, stale)
            if rows is stale.everything:
                yield rows  # rescaled already
            elif len(rows) or len(changed):
                touched, gained = self.scores[number].rescale(
                    self._pod, feasible_now, rows, changed, stale
                )
                self._totals[stale.index(touched)] += gained
                yield touched

    def _hear(self) -> None:
        self._had_opinions = [each.has_opinion for each in self.scores]
        heard = [(n, each) for n, each in enumerate(self.scores) if each.has_opinion]
        self.voices = Voices(
            numbers=np.array([number for number, _ in heard], np.intp)[:, np.newaxis],
            rules=tuple(scores.rule.name for _, scores in heard),
            weights=tuple(scores.weight for _, scores in heard),
        )

    def _take_what_was_said(self, feasible: BoolArray, stale: Stale) -> int | None:
        """Ahead, of the one row that a pod of the shape came to, so that no local rule has to be
        asked. Returns that row, which is to be ranked again; None where it was not known."""
        row = stale.only_row(self._rules.local_reads)
        if row is None:
            return None
        said = self._ahead.said_of_one(row)
        if said is None:
            return None
        self._put_one(row, said, feasible)
        return row

    def _judge_local(self, rows: Rows, feasible: BoolArray, stale: Stale) -> dict[int, Rows]:
        """By number: the rows whose scores may have changed, as `_judge` says."""
        if rows is not stale.everything:
            return self._judge_few(rows, feasible, stale)
        self._ahead.forget()
        return {
            number: self._judge(number, own, feasible, stale)
            for number, own in self._rules.local_ones(stale)
        }

    def _judge(self, number: int, rows: Rows, feasible: BoolArray, stale: Stale) -> Rows:
        """Returns the rows whose scores may have changed: all of them, which are rescaled with
        that, or few, which are to be."""
        scores = self.scores[number]
        if rows is not stale.everything:
            raw = scores.asked(self._pod, stale.nodes(rows), feasible[rows])
            if raw is None and not scores.has_opinion:
                return NO_ROWS
            if raw is not None and scores.has_opinion:
                scores.put(raw, rows)
                return rows
        # It may also have changed its mind about having an opinion: that concerns every row.
        count = self._state.count
        gained = scores.judge_all(self._pod, stale.nodes(stale.everything), feasible[:count])
        if gained is None:
            return NO_ROWS
        self._totals[:count] += gained
        return stale.everything

    def _judge_few(self, rows: Rows, feasible: BoolArray, stale: Stale) -> dict[int, Rows]:
        """By the local rules, and some more as they would be with the next pods of the shape.
        Returns, by number, the rows that are to be rescaled, or all that were."""
        known, unknown = self._ahead.said_of(rows)
        for row, said in known.items():
            self._put_one(row, said, feasible)
        judged = {
            number: rows
            for number in self._rules.local
            if self.scores[number].has_opinion and not self.scores[number].is_as_given
        }
        return judged | self._ask_about_few(unknown, feasible, stale) if unknown else judged

    def _ask_about_few(
        self, unknown: list[int], feasible: BoolArray, stale: Stale
    ) -> dict[int, Rows]:
        """By number: every row, where a rule has changed its mind about having an opinion."""
        few, ahead, faced, nodes = self._faces.of(unknown, self.ranked)
        asked_feasible = feasible[faced]
        answers: list[IntArray] = []
        given: dict[int, IntArray] = {}
        anew: dict[int, Rows] = {}
        for number in self._rules.local:
            if not len(ahead) and stale.rows(self._rules.reads[number]) is None:
                continue
            scores = self.scores[number]
            raw = scores.asked(self._pod, nodes, asked_feasible)
            answers.append(np.zeros(len(faced), np.int64) if raw is None else raw[len(few) :])
            if (raw is not None) != scores.has_opinion:
                anew[number] = self._judge(number, stale.everything, feasible, stale)
            elif raw is not None and scores.is_as_given:
                given[number] = raw[: len(few)]
            elif raw is not None:
                scores.put(raw[: len(few)], few)
        if given:
            self._put_as_given(given, few, feasible)
        if anew:  # what they say of fewer rows is not what they say of all
            self._ahead.forget()
        else:
            self._ahead.keep(ahead, answers)
        return anew

    def _put_as_given(self, given: Mapping[int, IntArray], rows: Rows, feasible: BoolArray) -> None:
        """Raw scores by number, of rules of which these are what counts: all in one step."""
        numbers, raw = list(given), np.array(list(given.values()))  # (rules, rows)
        at = np.array(numbers)[:, np.newaxis], rows
        self.raw[at] = raw
        if not are_in_range(raw):
            some = feasible[rows]
            raw = np.array([self.scores[n].checked(each, some) for n, each in given.items()])
        gained = raw - self.normalized[at]
        self.normalized[at] = raw
        self._totals[rows] += self._weights[numbers] @ gained

    def _put_one(self, row: int, said: Sequence[int], feasible: BoolArray) -> None:
        for number, raw in zip(self._rules.local, said, strict=True):
            scores = self.scores[number]
            if scores.has_opinion and scores.is_as_given:
                self._totals[row] += scores.put_one_as_given(raw, row, feasible)
            elif scores.has_opinion:
                scores.put(raw, row)

    def _rank(self, rows: Rows, feasible: BoolArray, stale: Stale) -> None:
        if not len(rows):
            return
        if len(rows) == 1:
            self._rank_one(int(rows[0]), feasible)
            return
        some = stale.index(rows)
        totals = self._totals[some] if self.voices.rules else _FOR_NOTHING
        ranked = np.where(feasible[some], totals, -1)
        if len(rows) > _MOST_MOVED:
            self.leaders.all_moved()
        elif self.leaders.are_in_order:
            moves = zip(rows.tolist(), self.ranked[rows].tolist(), ranked.tolist(), strict=True)
            for row, before, after in moves:
                self.leaders.moved(row, before, after)
        self.ranked[some] = ranked

    def _rank_one(self, row: int, feasible: BoolArray) -> None:
        total = self._totals.item(row) if self.voices.rules else _FOR_NOTHING
        ranked = total if feasible[row] else -1
        self.leaders.moved(row, self.ranked.item(row), ranked)
        self.ranked[row] = ranked
