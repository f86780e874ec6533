"""Evaluation: what the plugins of one extension point answer about one pod signature, on every row.

A Verdict has two, of the filters and of the scores. Each notes what every plugin touched while it
answered, and asks again only where that changed (ChangedRows). A subclass says how answers are
kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowtide.cluster.changes import (
    ANY_BITS,
    ANY_ROW,
    EVERY_ROW,
    FEASIBLE,
    FEASIBLE_ANYWHERE,
    FIRST_KIND,
    NODE,
    ROW,
    is_local,
    logged_bits,
    of_any_row,
)
from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import Asking
from lowtide.framework.lookahead import NO_ROWS, Lookahead, LookaheadBatches
from lowtide.framework.plugin import PluginError
from lowtide.objects.pod import Pod

Answers = npt.NDArray[Any]  # one integer per row: bits of reasons, or a raw score

NEVER = -1  # instead of a position in the log
_MOST_PARTITIONS = 64


class ChangedRows:
    """What changed since the log ended at `since`: which rows to judge again, by what a plugin
    touched when it judged them. Shared by all plugins that are asked for it.

    The array `everything` stands for all rows wherever it comes back: it is compared by identity.
    `feasible` is by row, and brought up to date before scores read it.
    """

    def __init__(
        self,
        state: ClusterState,
        since: int,
        asking: Asking,
        feasible: BoolArray | None = None,
    ) -> None:
        self.asking = asking
        self.feasible = feasible
        self.everything: Rows = state.every_row
        self.since = since
        self.until = state.log.position
        self._state = state
        changes = state.log.since(since)
        self._is_all_new = changes is None
        changed: dict[int, int] = {}  # by row: what
        anything = 0
        for row, what in changes or ():
            anything |= what
            changed[row] = changed.get(row, 0) | what
        self._everywhere = changed.pop(EVERY_ROW, 0)
        self._changed = changed
        self._anything = anything  # that changed anywhere
        self._has_new_rows = anything & ROW == ROW and any(
            what & ROW == ROW for what in changed.values()
        )
        self._rows: dict[int, Rows | None] = {}  # by what was touched
        self._arrays: dict[tuple[int, ...], Rows] = {}  # equal rows are one array
        self._faces: dict[int, Nodes] = {}

    def concern(self, logged: int) -> bool:
        """Whether a row is new, or any of these bits was logged."""
        return self._is_all_new or self._has_new_rows or bool(self._anything & logged)

    def only_row(self, touched: int) -> int | None:
        """The one row that changed in what was touched, where no node came, changed or went."""
        if self._is_all_new or self._everywhere & touched or self._anything & NODE:
            return None
        only = None
        for row, what in self._changed.items():
            if what & touched:
                if only is not None:
                    return None
                only = row
        return only

    def rows(self, touched: int) -> Rows | None:
        """The rows to judge again where this was touched; None where there are none."""
        if touched in self._rows:
            return self._rows[touched]
        rows = self._rows[touched] = self._work_out(touched)
        return rows

    def nodes(self, rows: Rows) -> Nodes:
        """One face for each array of rows, shared by the plugins."""
        face = self._faces.get(id(rows))
        if face is None:
            nodes = self._state.nodes(self.feasible)
            face = self._faces[id(rows)] = nodes if rows is self.everything else nodes.take(rows)
        return face

    def index(self, rows: Rows) -> Rows | slice:
        """What picks these rows out of an array, faster where that is all of them."""
        return slice(len(rows)) if rows is self.everything else rows

    def union(self, parts: Sequence[Rows]) -> Rows:
        different = {id(part): part for part in parts if len(part)}
        if id(self.everything) in different:
            return self.everything
        if len(different) > 1:
            return np.unique(np.concatenate(list(different.values())))
        return next(iter(different.values()), NO_ROWS)

    def existing(self, rows: set[int] | None) -> Rows:
        """Rows remembered from an earlier look, as far as they still exist; None means all."""
        if rows is None:
            return self.everything
        if not rows:
            return NO_ROWS
        count = self._state.count
        return np.array(sorted(row for row in rows if row < count), np.intp)

    def _work_out(self, touched: int) -> Rows | None:
        count, anything = self._state.count, self._anything
        if (
            self._is_all_new
            or self._everywhere & touched
            or anything & touched >> ANY_ROW & ANY_BITS
        ):
            return self.everything
        if not anything & touched and not self._has_new_rows:
            return None
        # A row that came or moved is new to every plugin, whatever it touched.
        rows = [
            row
            for row, what in self._changed.items()
            if (what & touched or what & ROW == ROW) and row < count
        ]
        if not rows:
            return None
        if len(rows) > count // 2:
            return self.everything
        key = tuple(sorted(rows))
        array = self._arrays.get(key)
        if array is None:
            array = self._arrays[key] = np.array(key, np.intp)
        return array


class Partition(NamedTuple):
    """Plugins by number. Answers of the `local` ones depend on nothing of other rows, nor on labels
    of pods: these plugins are asked about few rows together, and ahead."""

    local: Sequence[int]
    local_touched: int
    others: Mapping[int, Sequence[int]]  # by what they touched
    others_logged: int  # what is logged when one of them may answer otherwise


class PluginsAt:
    """The plugins of a profile at one extension point that some pods concern. Most touch the same
    about every such pod: partitions are kept, and who is asked for the first time begins with what
    was touched last."""

    def __init__(self, plugins: Sequence[Any]) -> None:
        self.plugins = tuple(plugins)
        self.touched_last = [0] * len(self.plugins)
        self._partitions: dict[tuple[int, ...], Partition] = {}

    def partition(self, touched: Sequence[int]) -> Partition:
        key = tuple(touched)
        found = self._partitions.get(key)
        if found is None:
            if len(self._partitions) >= _MOST_PARTITIONS:
                self._partitions.clear()
            found = self._partitions[key] = _parted(key)
        return found


class Evaluation(ABC):
    """`judged_at` is where the log of changes ended when the answers were true."""

    method: str  # of the plugins

    def __init__(
        self, plugins_at: PluginsAt, state: ClusterState, pod: Pod, batches: LookaheadBatches
    ) -> None:
        self.plugins = plugins_at.plugins
        self._plugins_at = plugins_at
        self._state = state
        self._pod = pod
        self._batches = batches
        self.touched = list(plugins_at.touched_last)
        # What plugins touched where another of their methods was asked.
        self._touched_besides = [0] * len(self.plugins)
        self.judged_at = NEVER
        self._partition: Partition | None = None  # until it is asked for
        self._lookahead = Lookahead(state, batches)

    @property
    def partition(self) -> Partition:
        """Of the plugins, by what they touched so far."""
        if self._partition is None:
            self._partition = self._plugins_at.partition(self.touched)
        return self._partition

    def judge_all_again(self) -> None:
        """The next look judges every row."""
        self.judged_at = NEVER
        self._lookahead.forget()

    def keep_ahead(self, changes: ChangedRows) -> int | None:
        """The one row that a pod of the signature came to, where the local plugins answered ahead
        about it: those answers count now. None where anything else changed for these plugins."""
        row = changes.only_row(self.partition.local_touched)
        if row is None:
            return None
        answers = self._lookahead.answers_for(row)
        if answers is None:
            return None
        self._batches.without_use = 0
        self._keep_one(self.partition.local, row, answers)
        return row

    def judge(
        self,
        changes: ChangedRows,
        ranked: IntArray,
        *,
        known: int | None,
        refiltered: Rows = NO_ROWS,
    ) -> dict[int, Rows]:
        """Asks again where what was touched has changed; returns, by number, the rows whose answers
        may be others now, but for the row `known` that `keep_ahead` returned. `refiltered` rows may
        have become feasible, or no longer be."""
        partition = self.partition
        judged = self._judge_local(partition, changes, ranked) if known is None else {}
        if not len(refiltered) and not changes.concern(partition.others_logged):
            return judged
        for touched, numbers in partition.others.items():
            rows = changes.rows(touched)
            if len(refiltered) and touched & FEASIBLE_ANYWHERE:
                rows = _with_refiltered(rows, touched, changes, refiltered)
            if rows is not None:
                judged |= {number: self._judge(number, rows, changes) for number in numbers}
        return judged

    def _judge_local(
        self, partition: Partition, changes: ChangedRows, ranked: IntArray
    ) -> dict[int, Rows]:
        """By number, the rows with new answers."""
        rows = changes.rows(partition.local_touched) if partition.local else None
        if rows is None:
            return {}
        if rows is changes.everything:
            self._lookahead.forget()
            return {
                number: self._judge(number, own, changes)
                for number in partition.local
                if (own := changes.rows(self.touched[number])) is not None
            }
        return self._judge_few(partition.local, rows, changes, ranked)

    # How answers are kept.

    @abstractmethod
    def _read(self, number: int, answer: Any, count: int) -> Answers | None:
        """The answer about so many rows, checked; None where that is no array."""

    @abstractmethod
    def _keep_all(self, number: int, answer: Any, changes: ChangedRows) -> Rows:
        """Of every row; returns the rows that may have changed."""

    @abstractmethod
    def _keep(self, answers: Mapping[int, Answers | None], rows: Rows) -> Sequence[int]:
        """Of some rows, by number; returns the numbers of those that must judge every row."""

    @abstractmethod
    def _keep_one(self, numbers: Sequence[int], row: int, answers: Sequence[int]) -> None:
        """Of one row, as it was judged ahead."""

    # How it is done.

    def _judge(self, number: int, rows: Rows, changes: ChangedRows) -> Rows:
        if rows is not changes.everything:
            answer = self._ask_again(number, changes.nodes(rows), changes.asking)
            if not self._keep({number: self._read(number, answer, len(rows))}, rows):
                return rows
        answer, touched = self._ask(number, changes.nodes(changes.everything), changes.asking)
        touched |= self._touched_besides[number]
        if touched != self.touched[number]:
            self._depends_on(number, touched)
        return self._keep_all(number, answer, changes)

    def _judge_few(
        self, numbers: Sequence[int], rows: Rows, changes: ChangedRows, ranked: IntArray
    ) -> dict[int, Rows]:
        """The local plugins about these rows, and about some as they would be with more pods."""
        known, unknown = self._lookahead.split(rows)
        for row, answers in known.items():
            self._keep_one(numbers, row, answers)
        judged = dict.fromkeys(numbers, rows)
        if not unknown:
            self._batches.without_use = 0
            return judged
        few, ahead, nodes = self._batches.batch(unknown, ranked, changes.feasible)
        count = len(nodes)
        now: dict[int, Answers | None] = {}
        later: list[Answers] = []
        nothing = np.zeros(count - len(few), np.int64)
        for number in numbers:
            if not len(ahead) and changes.rows(self.touched[number]) is None:
                continue
            found = self._read(number, self._ask_again(number, nodes, changes.asking), count)
            now[number] = None if found is None else found[: len(few)]
            later.append(nothing if found is None else found[len(few) :])
        again = self._keep(now, few)
        judged |= {number: self._judge(number, changes.everything, changes) for number in again}
        if again or self.partition.local != numbers:
            self._lookahead.forget()  # an answer depends on more than its row
        else:
            self._lookahead.keep(ahead, later)
        return judged

    def _ask(self, number: int, nodes: Nodes, asking: Asking) -> tuple[Any, int]:
        """The answer, and what was touched."""
        return asking.observed(self._state, self.plugins[number], self.method, self._pod, nodes)

    def _ask_again(self, number: int, nodes: Nodes, asking: Asking) -> Any:
        """About some rows: what is touched is added to what the kept answers depend on."""
        answer, touched = self._ask(number, nodes, asking)
        if touched & ~self.touched[number]:
            self._depends_on(number, self.touched[number] | touched)
        return answer

    def _depends_on(self, number: int, touched: int) -> None:
        before = self.touched[number]
        if before != touched:
            check_kinds(self._state, self.plugins[number], touched)
            self.touched[number], self._partition = touched, None
            # But for kinds, which have other bits in another ClusterState.
            self._plugins_at.touched_last[number] = touched & (FIRST_KIND - 1)
            if is_local(before) is not is_local(touched):
                self._lookahead.forget()  # it has answers of other plugins than those local now


def check_kinds(state: ClusterState, plugin: Any, touched: int) -> None:
    """PluginError where it read objects of a type that nobody watches for it."""
    undeclared = touched & -FIRST_KIND
    for kind in getattr(plugin, "kinds", ()) if undeclared else ():
        undeclared &= ~state.kind_bit(kind)
    if undeclared:
        names = ", ".join(kind.__name__ for kind in state.kinds_of(undeclared))
        text = f"{plugin.name} reads objects of type {names}; its `kinds` must name them"
        raise PluginError(text, plugin_name=plugin.name)


def _parted(touched: Sequence[int]) -> Partition:
    local = [number for number, each in enumerate(touched) if is_local(each)]
    local_touched = others_logged = 0
    others: dict[int, list[int]] = {}
    for number, each in enumerate(touched):
        if number in local:
            local_touched |= each
        else:
            others.setdefault(each, []).append(number)
            others_logged |= logged_bits(each)
    return Partition(local, local_touched, others, others_logged)


def _with_refiltered(
    rows: Rows | None, touched: int, changes: ChangedRows, refiltered: Rows
) -> Rows | None:
    if of_any_row(touched) & FEASIBLE:
        return changes.everything
    return refiltered if rows is None else changes.union([rows, refiltered])
