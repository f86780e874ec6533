"""Evaluation: the answers of the plugins at one extension point for one pod signature, by row.

A Verdict has two: Filtering and Ranking. Each records which bits every plugin touched while it
answered, and asks again only about rows where such a bit changed (ChangedRows). The subclass
decides how answers are kept.
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

Answers = npt.NDArray[Any]  # one integer per row: the bits of the reasons, or a raw score

NEVER = -1  # in place of a log position
_MOST_GROUPINGS = 64


class ChangedRows:
    """Which rows to judge again after the log position `since`, given the bits that a plugin
    touched. All plugins of one refresh share it.

    Methods return the array `everything` itself for all rows, so compare it by identity.
    `feasible` is by row; the filters update it in place before scores read it.
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
        changed: dict[int, int] = {}  # by row: the bits that changed
        anything = 0
        for row, what in changes or ():
            anything |= what
            changed[row] = changed.get(row, 0) | what
        self._everywhere = changed.pop(EVERY_ROW, 0)
        self._changed = changed
        self._anything = anything  # the bits that changed on any row
        self._has_new_rows = anything & ROW == ROW and any(
            what & ROW == ROW for what in changed.values()
        )
        self._rows: dict[int, Rows | None] = {}  # by touched bits
        self._arrays: dict[tuple[int, ...], Rows] = {}  # equal rows are one array
        self._views: dict[int, Nodes] = {}

    def concern(self, logged: int) -> bool:
        """Whether a row is new or any of these bits was logged."""
        return self._is_all_new or self._has_new_rows or bool(self._anything & logged)

    def only_row(self, touched: int) -> int | None:
        """The row, if exactly one changed in a touched bit. None also if any node was added,
        changed or removed."""
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
        """The rows a plugin that touched these bits must judge again; None if there are none."""
        if touched in self._rows:
            return self._rows[touched]
        rows = self._rows[touched] = self._work_out(touched)
        return rows

    def nodes(self, rows: Rows) -> Nodes:
        """One Nodes for each array of rows, shared by the plugins."""
        view = self._views.get(id(rows))
        if view is None:
            nodes = self._state.nodes(self.feasible)
            view = self._views[id(rows)] = nodes if rows is self.everything else nodes.take(rows)
        return view

    def index(self, rows: Rows) -> Rows | slice:
        """An index that picks these rows out of an array; a slice, which is faster, for all."""
        return slice(len(rows)) if rows is self.everything else rows

    def union(self, parts: Sequence[Rows]) -> Rows:
        different = {id(part): part for part in parts if len(part)}
        if id(self.everything) in different:
            return self.everything
        if len(different) > 1:
            return np.unique(np.concatenate(list(different.values())))
        return next(iter(different.values()), NO_ROWS)

    def existing(self, rows: set[int] | None) -> Rows:
        """These remembered rows, without those that no longer exist. None stands for all rows."""
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
        # A row that was added or moved is new to every plugin, whatever bits the plugin touched.
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


class PluginGroups(NamedTuple):
    """Plugins by number. A `local` plugin's answer about a row depends on no other row and on no
    pod labels (`is_local`). Local plugins share a batch of rows, and are asked ahead."""

    local: Sequence[int]
    local_touched: int
    not_local: Mapping[int, Sequence[int]]  # by touched bits
    not_local_logged: int  # the logged bits that may change an answer of one of them


class PluginsAt:
    """The plugins at one extension point that concern one group of pods. Most touch the same bits
    for every such pod. So groupings are cached, and a new Evaluation starts with the bits that
    were touched last."""

    def __init__(self, plugins: Sequence[Any]) -> None:
        self.plugins = tuple(plugins)
        self.touched_last = [0] * len(self.plugins)
        self._groups_by_touched: dict[tuple[int, ...], PluginGroups] = {}

    def groups(self, touched: Sequence[int]) -> PluginGroups:
        key = tuple(touched)
        found = self._groups_by_touched.get(key)
        if found is None:
            if len(self._groups_by_touched) >= _MOST_GROUPINGS:
                self._groups_by_touched.clear()
            found = self._groups_by_touched[key] = _grouped(key)
        return found


class Evaluation(ABC):
    """The answers are true for the log position `judged_at`."""

    method: str  # the plugins' method to call

    def __init__(
        self, plugins_at: PluginsAt, state: ClusterState, pod: Pod, batches: LookaheadBatches
    ) -> None:
        self.plugins = plugins_at.plugins
        self._plugins_at = plugins_at
        self._state = state
        self._pod = pod
        self._batches = batches
        self.touched = list(plugins_at.touched_last)
        # The bits that plugins touched in another method, such as `normalize`.
        self._touched_besides = [0] * len(self.plugins)
        self.judged_at = NEVER
        self._groups: PluginGroups | None = None  # until it is asked for
        self._lookahead = Lookahead(state, batches)

    @property
    def groups(self) -> PluginGroups:
        """The plugins, grouped by what they touched so far."""
        if self._groups is None:
            self._groups = self._plugins_at.groups(self.touched)
        return self._groups

    def judge_all_again(self) -> None:
        """Make the next refresh judge every row."""
        self.judged_at = NEVER
        self._lookahead.forget()

    def use_lookahead(self, changes: ChangedRows) -> int | None:
        """If only one row changed for the local plugins, and the lookahead has their answers for
        it, keep these and return the row. Return None otherwise."""
        row = changes.only_row(self.groups.local_touched)
        if row is None:
            return None
        answers = self._lookahead.answers_for(row)
        if answers is None:
            return None
        self._batches.without_use = 0
        self._keep_one(self.groups.local, row, answers)
        return row

    def judge(
        self,
        changes: ChangedRows,
        ranked: IntArray,
        *,
        known: int | None,
        refiltered: Rows = NO_ROWS,
    ) -> dict[int, Rows]:
        """Ask plugins again about rows where a touched bit changed. Return, by plugin number, the
        rows whose answers may differ now, except `known`: the row that `use_lookahead` returned.
        `refiltered` are rows that may have become feasible or infeasible."""
        groups = self.groups
        judged = self._judge_local(groups, changes, ranked) if known is None else {}
        if not len(refiltered) and not changes.concern(groups.not_local_logged):
            return judged
        for touched, numbers in groups.not_local.items():
            rows = changes.rows(touched)
            if len(refiltered) and touched & FEASIBLE_ANYWHERE:
                rows = _with_refiltered(rows, touched, changes, refiltered)
            if rows is not None:
                judged |= {number: self._judge(number, rows, changes) for number in numbers}
        return judged

    def _judge_local(
        self, groups: PluginGroups, changes: ChangedRows, ranked: IntArray
    ) -> dict[int, Rows]:
        """The rows with new answers, by plugin number."""
        rows = changes.rows(groups.local_touched) if groups.local else None
        if rows is None:
            return {}
        if rows is changes.everything:
            self._lookahead.forget()
            return {
                number: self._judge(number, own, changes)
                for number in groups.local
                if (own := changes.rows(self.touched[number])) is not None
            }
        return self._judge_few(groups.local, rows, changes, ranked)

    # How answers are kept.

    @abstractmethod
    def _read(self, number: int, answer: Any, count: int) -> Answers | None:
        """Check an answer about `count` rows and return it as an array; None if there is none: no
        rejection, or no opinion."""

    @abstractmethod
    def _keep_all(self, number: int, answer: Any, changes: ChangedRows) -> Rows:
        """Keep an answer about every row. Return the rows that may have changed."""

    @abstractmethod
    def _keep(self, answers: Mapping[int, Answers | None], rows: Rows) -> Sequence[int]:
        """Keep answers about some rows, by plugin number. Return the plugins that must judge every
        row."""

    @abstractmethod
    def _keep_one(self, numbers: Sequence[int], row: int, answers: Sequence[int]) -> None:
        """Keep answers about one row that was judged ahead."""

    # Asking.

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
        """Ask the local plugins about these rows, and ahead about rows with more pods on them."""
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
        if again or self.groups.local != numbers:
            self._lookahead.forget()  # some answer depends on other rows
        else:
            self._lookahead.keep(ahead, later)
        return judged

    def _ask(self, number: int, nodes: Nodes, asking: Asking) -> tuple[Any, int]:
        """The answer and the touched bits."""
        return asking.observed(self._state, self.plugins[number], self.method, self._pod, nodes)

    def _ask_again(self, number: int, nodes: Nodes, asking: Asking) -> Any:
        """Ask about some rows. The kept answers depend on the bits touched now too."""
        answer, touched = self._ask(number, nodes, asking)
        if touched & ~self.touched[number]:
            self._depends_on(number, self.touched[number] | touched)
        return answer

    def _depends_on(self, number: int, touched: int) -> None:
        before = self.touched[number]
        if before != touched:
            check_kinds(self._state, self.plugins[number], touched)
            self.touched[number], self._groups = touched, None
            # Without the bits of kinds: these differ between ClusterStates.
            self._plugins_at.touched_last[number] = touched & (FIRST_KIND - 1)
            if is_local(before) is not is_local(touched):
                self._lookahead.forget()  # it has the answers of a different set of plugins


def check_kinds(state: ClusterState, plugin: Any, touched: int) -> None:
    """Raise PluginError if the plugin read objects of a type that its `kinds` do not name."""
    undeclared = touched & -FIRST_KIND
    for kind in getattr(plugin, "kinds", ()) if undeclared else ():
        undeclared &= ~state.kind_bit(kind)
    if undeclared:
        names = ", ".join(kind.__name__ for kind in state.kinds_of(undeclared))
        text = f"{plugin.name} reads objects of type {names}; its `kinds` must name them"
        raise PluginError(text, plugin_name=plugin.name)


def _grouped(touched: Sequence[int]) -> PluginGroups:
    local = [number for number, each in enumerate(touched) if is_local(each)]
    local_touched = not_local_logged = 0
    not_local: dict[int, list[int]] = {}
    for number, each in enumerate(touched):
        if number in local:
            local_touched |= each
        else:
            not_local.setdefault(each, []).append(number)
            not_local_logged |= logged_bits(each)
    return PluginGroups(local, local_touched, not_local, not_local_logged)


def _with_refiltered(
    rows: Rows | None, touched: int, changes: ChangedRows, refiltered: Rows
) -> Rows | None:
    if of_any_row(touched) & FEASIBLE:
        return changes.everything
    return refiltered if rows is None else changes.union([rows, refiltered])
