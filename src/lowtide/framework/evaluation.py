"""Evaluation: what the plugins of one extension point answer about one pod signature, on every row.

A Verdict has two, of the filters and of the scores. Each notes what every plugin touched while it
answered, and asks again only where that changed. A subclass says how answers are kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowtide.cluster.changes import (
    FEASIBLE,
    FEASIBLE_ANYWHERE,
    FIRST_KIND,
    is_local,
    logged_bits,
    of_any_row,
)
from lowtide.cluster.columns import IntArray, Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import Asking
from lowtide.framework.changed_rows import NEVER, NO_ROWS, ChangedRows
from lowtide.framework.lookahead import Lookahead, LookaheadBatches
from lowtide.framework.plugin import PluginError
from lowtide.objects.pod import Pod

Answers = npt.NDArray[Any]  # one integer per row: bits of reasons, or a raw score


_MOST_PARTITIONS = 64


class Partition(NamedTuple):
    """Plugins by number. Answers of the `local` ones depend on nothing of other rows, nor on labels
    of pods: these plugins are asked about few rows together, and ahead."""

    local: Sequence[int]
    local_touched: int
    others: Mapping[int, Sequence[int]]  # by what they touched
    others_logged: int  # what is logged when one of them may answer otherwise


class PluginsAt:
    """The plugins of a profile at one extension point that some pods concern. Most touch the same
    about every such pod, so partitions are kept."""

    def __init__(self, plugins: Sequence[Any]) -> None:
        self.plugins = tuple(plugins)
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
        self,
        plugins_at: PluginsAt,
        asking: Asking,
        state: ClusterState,
        pod: Pod,
        batches: LookaheadBatches,
    ) -> None:
        self.plugins = plugins_at.plugins
        self._plugins_at = plugins_at
        self._asking = asking
        self._state = state
        self._pod = pod
        self._batches = batches
        self.touched = [0] * len(self.plugins)
        # What plugins touched where another of their methods was asked.
        self._touched_besides = [0] * len(self.plugins)
        self.judged_at = NEVER
        self._partition: Partition | None = None
        self._lookahead = Lookahead(state, batches)

    def judge_all_again(self) -> None:
        """The next look judges every row."""
        self.judged_at = NEVER
        self._lookahead.forget()

    @property
    def partition(self) -> Partition:
        if self._partition is None:
            self._partition = self._plugins_at.partition(self.touched)
        return self._partition

    def known_ahead(self, changes: ChangedRows) -> tuple[int, list[int]] | None:
        """The one row that a pod of the shape came to, with what the local plugins answered ahead
        about it; None where anything else changed for them, or the answers are not known."""
        row = changes.only_row((self._partition or self.partition).local_touched)
        if row is None:
            return None
        answers = self._lookahead.answers_for(row)
        return None if answers is None else (row, answers)

    def judge(
        self, changes: ChangedRows, ranked: IntArray, refiltered: Rows = NO_ROWS
    ) -> dict[int, Rows]:
        """Asks again where what was touched has changed; returns, by number, the rows whose answers
        may be others now. `refiltered` rows may have become feasible, or no longer be."""
        judged = self._judge_local(changes, ranked)
        # A plugin that touched more than before may no longer be local: it was asked all the same.
        return judged | self.judge_others(changes, refiltered, but=judged)

    def _judge_local(self, changes: ChangedRows, ranked: IntArray) -> dict[int, Rows]:
        """By number, the rows with new answers."""
        partition = self._partition or self.partition
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

    def judge_others(
        self,
        changes: ChangedRows,
        refiltered: Rows = NO_ROWS,
        but: Collection[int] = (),
    ) -> dict[int, Rows]:
        """The same of the plugins that are not local, but for some that were asked already."""
        partition = self._partition or self.partition
        if not len(refiltered) and not changes.concern(partition.others_logged):
            return {}
        judged: dict[int, Rows] = {}
        for touched, numbers in partition.others.items():
            rows = changes.rows(touched)
            if len(refiltered) and touched & FEASIBLE_ANYWHERE:
                rows = _with_refiltered(rows, touched, changes, refiltered)
            if rows is not None:
                left = [number for number in numbers if number not in but]
                judged |= {number: self._judge(number, rows, changes) for number in left}
        return judged

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
            answer = self._ask_again(number, changes.nodes(rows))
            if not self._keep({number: self._read(number, answer, len(rows))}, rows):
                return rows
        answer, touched = self._ask(number, changes.nodes(changes.everything))
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
            return judged
        few, ahead, nodes = self._batches.batch(unknown, ranked, changes.feasible)
        count = len(nodes)
        now: dict[int, Answers | None] = {}
        later: list[Answers] = []
        nothing = np.zeros(count - len(few), np.int64)
        for number in numbers:
            if not len(ahead) and changes.rows(self.touched[number]) is None:
                continue
            found = self._read(number, self._ask_again(number, nodes), count)
            now[number] = None if found is None else found[: len(few)]
            later.append(nothing if found is None else found[len(few) :])
        again = self._keep(now, few)
        judged |= {number: self._judge(number, changes.everything, changes) for number in again}
        if again or self.partition.local != numbers:
            self._lookahead.forget()  # an answer depends on more than its row
        else:
            self._lookahead.keep(ahead, later)
        return judged

    def _ask(self, number: int, nodes: Nodes) -> tuple[Any, int]:
        """The answer, and what was touched."""
        plugin = self.plugins[number]
        return self._asking.observed(self._state, plugin, self.method, self._pod, nodes)

    def _ask_again(self, number: int, nodes: Nodes) -> Any:
        """About some rows: what is touched is added to what the kept answers depend on."""
        answer, touched = self._ask(number, nodes)
        if touched & ~self.touched[number]:
            self._depends_on(number, self.touched[number] | touched)
        return answer

    def _depends_on(self, number: int, touched: int) -> None:
        before = self.touched[number]
        if before != touched:
            check_kinds(self._state, self.plugins[number], touched)
            self.touched[number] = touched
            self._partition = None
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
        raise PluginError(text, rule_name=plugin.name)


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
