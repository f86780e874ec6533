"""What the pre-filters and filters say about one shape of pod on every row: half of a Verdict."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.state import ClusterState
from lowtide.framework.ahead import Ahead, Faces
from lowtide.framework.asking import Asking
from lowtide.framework.narrowing import Narrowing
from lowtide.framework.profile import Concerned
from lowtide.framework.rejections import Rejections
from lowtide.framework.rules_asked import RulesAsked
from lowtide.framework.stale import NO_ROWS, Stale
from lowtide.objects.pod import Pod

_NEVER = -1
_EXCLUDED = -1  # by a pre-filter, instead of the number of a filter


class Filtering:
    narrowing: Narrowing
    rejections: list[Rejections]  # by filter
    first: npt.NDArray[np.int16]  # the filter that refuses a row first; -1: excluded before
    feasible: BoolArray
    judged_at: int  # where the log of changes ended then
    refiltered: set[int] | None  # rows that came or went since scores were told; None: any

    def __init__(
        self, concerned: Concerned, asking: Asking, state: ClusterState, pod: Pod, faces: Faces
    ) -> None:
        self._state = state
        self._pod = pod
        self._faces = faces
        self._ask = asking
        self._pre_filters = RulesAsked(concerned.pre_filters, pod)
        self._filters = RulesAsked(concerned.filters, pod)
        self.rules = self._filters.rules

    def start_again(self, capacity: int) -> None:
        """Everything is judged anew, in arrays of this length."""
        self._capacity = capacity
        self.judged_at = _NEVER
        self._settled_count = 0
        self._ahead = Ahead(self._state, self._faces)
        self._pre_filters.all_anew()
        self._filters.all_anew()
        self.narrowing = Narrowing(self._pre_filters.rules)
        self.rejections = [Rejections(rule.name) for rule in self._filters.rules]
        self.first = np.zeros(capacity, np.int16)
        self.feasible = np.zeros(capacity, np.bool_)
        self.refiltered = None

    def object_changed(self, kind: type) -> None:
        self._pre_filters.object_changed(kind)
        if self._filters.object_changed(kind):
            self._ahead.forget()

    def refresh(self, ranked: IntArray) -> Stale | None:
        """Judges the stale rows again; `ranked` is how rows ranked last. Returns what was stale;
        None: nothing."""
        state = self._state
        is_anew = bool(self._filters.anew or self._pre_filters.anew)
        if self.judged_at == state.log.position and not is_anew:
            return None
        for rules in (self._pre_filters, self._filters):
            if not rules.are_told_apart:
                rules.tell_apart(state)
        stale = Stale(state, self.judged_at)
        if is_anew or not self._takes_what_was_said(stale):
            self._judge_again(stale, ranked)
        self.judged_at = state.log.position
        return stale

    def _takes_what_was_said(self, stale: Stale) -> bool:
        """Ahead, of the one row that a pod of the shape came to: nobody has to be asked."""
        row = stale.only_row(self._filters.local_reads)
        others = self._pre_filters.touched_by | self._filters.others_touched_by
        if row is None or stale.concerns(others):
            return False
        said = self._ahead.said_of_one(row)
        if said is None:
            return False
        for number, found in zip(self._filters.local, said, strict=True):
            self.rejections[number].put_one(row, found, self._capacity)
        self._settle_one(row)
        return True

    def _judge_again(self, stale: Stale, ranked: IntArray) -> None:
        state = self._state
        touched = [*self._ask_pre_filters(stale), *self._ask_filters(stale, ranked)]
        if state.count > self._settled_count:
            touched.append(stale.everything[self._settled_count :])
        self._settle(stale.union(touched), stale)
        self._pre_filters.anew.clear()
        self._filters.anew.clear()

    def _ask_pre_filters(self, stale: Stale) -> Iterator[Rows]:
        """Their answer is about the pod, so they always see the whole table."""
        asked, nodes = self._pre_filters, stale.nodes(stale.everything)
        for number, _ in (*asked.others(stale), *asked.local_ones(stale)):
            answer = self._ask(asked.rules[number], "pre_filter", self._pod, nodes)
            if self.narrowing.take(number, answer, self._state.row_of, self._capacity):
                yield stale.everything

    def _ask_filters(self, stale: Stale, ranked: IntArray) -> Iterator[Rows]:
        for number, rows in self._filters.others(stale):
            yield self._judge(number, rows, stale)
        local = self._filters.local_rows(stale)
        if local is stale.everything:
            self._ahead.forget()
            for number, rows in self._filters.local_ones(stale):
                yield self._judge(number, rows, stale)
        elif local is not None:
            self._judge_few(local, stale, ranked)
            yield local

    def _judge(self, number: int, rows: Rows, stale: Stale) -> Rows:
        """Returns the rows that this may concern."""
        rejections = self.rejections[number]
        before = rejections.bits
        if rows is stale.everything:
            rejections.start_again()
        answer = self._ask(self.rules[number], "filter", self._pod, stale.nodes(rows))
        if before is None and isinstance(answer, list) and not answer:  # mostly
            return NO_ROWS
        rejections.put(stale.index(rows), rejections.read(answer, len(rows)), self._capacity)
        return rejections.refused_anew(before, rows) if rows is stale.everything else rows

    def _judge_few(self, rows: Rows, stale: Stale, ranked: IntArray) -> None:
        """By the local filters, and some more as they would be with the next pods of the shape."""
        numbers = self._filters.local
        known, unknown = self._ahead.said_of(rows)
        for row, said in known.items():
            for number, found in zip(numbers, said, strict=True):
                self.rejections[number].put_one(row, found, self._capacity)
        if not unknown:
            return
        few, ahead, _, nodes = self._faces.of(unknown, ranked)
        answers = []
        for number in numbers:
            if not len(ahead) and stale.rows(self._filters.reads[number]) is None:
                continue
            rejections = self.rejections[number]
            answer = self._ask(self.rules[number], "filter", self._pod, nodes)
            bits = rejections.read(answer, len(nodes))
            if bits is None:
                bits = np.zeros(len(nodes), np.uint64)
            rejections.put(few, bits[: len(few)], self._capacity)
            answers.append(bits[len(few) :])
        self._ahead.keep(ahead, answers)

    def _settle(self, rows: Rows, stale: Stale) -> None:
        """Works out for these rows which rule refuses first, and whether any does."""
        self._settled_count = self._state.count
        if not len(rows):
            return
        if len(rows) == 1:
            self._settle_one(int(rows[0]))
            return
        some = stale.index(rows)
        first = np.full(len(rows), len(self.rules), np.int16)
        for number in reversed(range(len(self.rules))):
            bits = self.rejections[number].bits
            if bits is not None:
                np.putmask(first, bits[some] != 0, number)
        if self.narrowing.is_any:
            first[self.narrowing.excludes(rows)] = _EXCLUDED
        feasible = first == len(self.rules)
        if rows is stale.everything:
            self.refiltered = None
        elif self.refiltered is not None:
            self.refiltered.update(rows[self.feasible[rows] != feasible].tolist())
        self.first[some] = first
        self.feasible[some] = feasible

    def _settle_one(self, row: int) -> None:
        """The same for a single row: it is what a pod that was placed leaves to do."""
        first = len(self.rules)
        for number, rejections in enumerate(self.rejections):
            if rejections.bits is not None and rejections.bits.item(row):
                first = number
                break
        if self.narrowing.is_any and self.narrowing.excludes(np.array([row]))[0]:
            first = _EXCLUDED
        feasible = first == len(self.rules)
        if self.refiltered is not None and self.feasible.item(row) is not feasible:
            self.refiltered.add(row)
        self.first[row] = first
        self.feasible[row] = feasible
