"""What the filters reject of one pod signature, on every row: one of the two Evaluations of a
Verdict."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import Asking
from lowtide.framework.changed_rows import NO_ROWS, ChangedRows
from lowtide.framework.evaluation import Answers, Evaluation, PluginsAt
from lowtide.framework.lookahead import LookaheadBatches
from lowtide.framework.pre_filters import PreFilters
from lowtide.framework.rejections import Rejections
from lowtide.objects.pod import Pod

_EXCLUDED = -1  # by a pre-filter, instead of the number of a filter


class Filtering(Evaluation):
    method = "filter"
    rejections: list[Rejections]  # by filter
    first: npt.NDArray[np.int16]  # the filter that rejects a row first; -1: left out before
    feasible: BoolArray
    refiltered: set[int] | None  # rows that came or went since scores were refreshed; None: any

    def __init__(
        self,
        filters: PluginsAt,
        pre_filters: PluginsAt,
        *,
        asking: Asking,
        state: ClusterState,
        pod: Pod,
        batches: LookaheadBatches,
    ) -> None:
        super().__init__(filters, asking, state, pod, batches)
        self.pre_filters = PreFilters(pre_filters.plugins, asking, state, pod)

    def start_again(self, capacity: int) -> None:
        """Forgets all answers; those of the future go into arrays of this length."""
        self.judge_all_again()
        self.pre_filters.start_again(capacity)
        self._capacity = capacity
        self._settled_count = 0
        self.rejections = [Rejections(plugin.name) for plugin in self.plugins]
        self.first = np.zeros(capacity, np.int16)
        self.feasible = np.zeros(capacity, np.bool_)
        self.refiltered = None

    def refresh(self, ranked: IntArray) -> ChangedRows | None:
        """Brings all answers up to date; `ranked` is how rows ranked last. Returns what had
        changed; None where nothing had."""
        if self.judged_at == self._state.log.position:
            return None
        if self._state.count < self._settled_count:
            # A node that comes in one of these rows is not the one that went.
            self.feasible[self._state.count : self._settled_count] = False
            self.refiltered = None
        changes = ChangedRows(self._state, self.judged_at, self.feasible)
        is_other_for_all = self.pre_filters.refresh(changes)
        known = None if is_other_for_all else self.known_ahead(changes)
        partition = self.partition
        if known is not None and not changes.concern(partition.others_logged):
            row, answers = known
            self._keep_one(partition.local, row, answers)
            self._settle_one(row)
        else:
            judged = self.judge_local(changes, ranked)
            judged |= self.judge_others(changes, judged)
            parts = list(judged.values())
            if is_other_for_all:
                parts.append(changes.everything)
            elif self._state.count > self._settled_count:
                parts.append(changes.everything[self._settled_count :])
            self._settle(changes.union(parts), changes)
        self.judged_at = self._state.log.position
        return changes

    # How answers are kept.

    def _read(self, number: int, answer: Any, count: int) -> Answers | None:
        return self.rejections[number].read(answer, count)

    def _keep_all(self, number: int, answer: Any, changes: ChangedRows) -> Rows:
        rejections = self.rejections[number]
        before = rejections.bits
        rejections.start_again()
        if before is None and isinstance(answer, list) and not answer:  # mostly
            return NO_ROWS
        everything = changes.everything
        bits = rejections.read(answer, len(everything))
        rejections.put(changes.index(everything), bits, self._capacity)
        return rejections.refused_anew(before, everything)

    def _keep(self, answers: Mapping[int, Answers | None], rows: Rows) -> Sequence[int]:
        for number, bits in answers.items():
            self.rejections[number].put(rows, bits, self._capacity)
        return ()

    def _keep_one(self, numbers: Sequence[int], row: int, answers: Sequence[int]) -> None:
        for number, bits in zip(numbers, answers, strict=True):
            self.rejections[number].put_one(row, bits, self._capacity)

    # Which rows are left.

    def _settle(self, rows: Rows, changes: ChangedRows) -> None:
        """Works out for these rows which filter rejects first, and whether any does."""
        self._settled_count = self._state.count
        if not len(rows):
            return
        if len(rows) == 1:
            self._settle_one(int(rows[0]))
            return
        some = changes.index(rows)
        first = np.full(len(rows), len(self.plugins), np.int16)
        for number in reversed(range(len(self.plugins))):
            bits = self.rejections[number].bits
            if bits is not None:
                np.putmask(first, bits[some] != 0, number)
        if self.pre_filters.is_any_left_out:
            first[self.pre_filters.leaves_out(rows)] = _EXCLUDED
        feasible = first == len(self.plugins)
        if rows is changes.everything:
            self.refiltered = None
        elif self.refiltered is not None:
            self.refiltered.update(rows[self.feasible[rows] != feasible].tolist())
        self.first[some] = first
        self.feasible[some] = feasible

    def _settle_one(self, row: int) -> None:
        """The same for a single row: it is what a placed pod leaves to do."""
        first = len(self.plugins)
        for number, rejections in enumerate(self.rejections):
            if rejections.bits is not None and rejections.bits.item(row):
                first = number
                break
        if self.pre_filters.is_any_left_out and self.pre_filters.leaves_out(np.array([row]))[0]:
            first = _EXCLUDED
        feasible = first == len(self.plugins)
        if self.refiltered is not None and self.feasible.item(row) is not feasible:
            self.refiltered.add(row)
        self.first[row] = first
        self.feasible[row] = feasible
