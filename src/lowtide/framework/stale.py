"""Which rows each rule has to judge again, by what changed since it last did and what it reads."""

from typing import Any

import numpy as np

from lowtide.cluster.changes import EVERY_ROW, NODE, NODES, OTHERS, PODS, ROW
from lowtide.cluster.columns import Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import reads_of

Asked = tuple[str, int]  # an extension point, and the number of the rule there

NEVER = -1
NO_ROWS: Rows = np.empty(0, np.intp)


class Stale:
    """One look at the log of changes, shared by the rules of a verdict.

    `judged_at` says where in the log each rule last judged; `done` brings it up to now. The array
    `everything` stands for all rows wherever it comes back: it is compared by identity.
    """

    def __init__(self, state: ClusterState, judged_at: dict[Asked, int]) -> None:
        self.everything: Rows = np.arange(state.count)
        self._state = state
        self._judged_at = judged_at
        self._rows: dict[tuple[int, int], Rows | None] = {}
        self._views: dict[int, Nodes] = {}
        self._asked: list[Asked] = []

    def rows(self, asked: Asked, rule: Any) -> Rows | None:
        """None when the rule has nothing to judge again."""
        since = self._judged_at.get(asked, NEVER)
        self._asked.append(asked)
        if since == NEVER:
            return self.everything
        if since == self._state.position:
            return None
        reads = reads_of(rule)
        if (since, reads) not in self._rows:
            self._rows[since, reads] = self._work_out(since, reads)
        return self._rows[since, reads]

    def nodes(self, rows: Rows) -> Nodes:
        """One face per set of rows, shared by the rules."""
        if rows is self.everything:
            return self._state.nodes()
        view = self._views.get(id(rows))
        if view is None:
            view = self._views[id(rows)] = self._state.nodes().take(rows)
        return view

    def done(self) -> None:
        for asked in self._asked:
            self._judged_at[asked] = self._state.position

    def union(self, parts: list[Rows]) -> Rows:
        different: list[Rows] = []
        for part in parts:
            if part is self.everything:
                return part
            if len(part) and not any(part is other for other in different):
                different.append(part)
        if not different:
            return NO_ROWS
        return different[0] if len(different) == 1 else np.unique(np.concatenate(different))

    def of(self, rows: set[int] | None) -> Rows:
        """Rows remembered from an earlier look, as far as they still exist; None means all."""
        if rows is None:
            return self.everything
        if not rows:
            return NO_ROWS
        count = self._state.count
        return np.array(sorted(row for row in rows if row < count), np.intp)

    def _work_out(self, since: int, reads: int) -> Rows | None:
        count = self._state.count
        changes = self._state.changes_since(since)
        if changes is None or len(changes) > 4 * count + 64:
            return self.everything
        anything = 0
        for row, what in changes:
            anything |= what
            if row == EVERY_ROW and what & reads:
                return self.everything
        if (reads & NODES and anything & NODE) or (reads & OTHERS and anything & (PODS | NODE)):
            return self.everything
        # A row that came or moved is new to every rule, whatever it reads.
        rows = {row for row, what in changes if (what & reads or what == ROW) and row < count}
        rows.discard(EVERY_ROW)
        if not rows:
            return None
        if len(rows) > count // 2:
            return self.everything
        return np.array(sorted(rows), np.intp)
