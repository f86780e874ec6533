"""Which rows rules have to judge again, by what changed since they last did and what they read."""

import numpy as np

from lowtide.cluster.changes import (
    EVERY_ROW,
    FEASIBLE,
    NODE,
    NODES,
    OTHERS,
    PODS,
    READING,
    ROW,
    TERMS,
)
from lowtide.cluster.columns import Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState

NO_ROWS: Rows = np.empty(0, np.intp)
_ABOUT_PODS = PODS | READING | TERMS


class Stale:
    """One look at the log of changes, shared by the rules of a verdict, which all judged last when
    the log ended at `since`.

    The array `everything` stands for all rows wherever it comes back: it is compared by identity.
    """

    def __init__(self, state: ClusterState, since: int) -> None:
        self.everything: Rows = state.every_row
        self.since = since
        self.until = state.log.position
        self._state = state
        changes = state.log.since(since)
        self._is_all_new = changes is None
        self._changed: dict[int, int] = {}  # by row: what
        self._anything = 0  # that changed anywhere
        for row, what in changes or ():
            self._anything |= what
            self._changed[row] = self._changed.get(row, 0) | what
        self._everywhere = self._changed.pop(EVERY_ROW, 0)
        self._has_new_rows = self._anything & ROW == ROW and any(
            what & ROW == ROW for what in self._changed.values()
        )
        self._rows: dict[int, Rows | None] = {}  # by what is read
        self._views: dict[int, Nodes] = {}

    def concerns(self, touched_by: int) -> bool:
        """Whether rules may have something to judge again that such changes touch."""
        return self._is_all_new or self._has_new_rows or bool(self._anything & touched_by)

    def only_row(self, reads: int) -> int | None:
        """The one that changed in what is read, where nothing but pods made it change."""
        if self._everywhere & reads or self._anything & ~_ABOUT_PODS:
            return None
        only = None
        for row, what in self._changed.items():
            if what & reads:
                if only is not None:
                    return None
                only = row
        return only

    def rows(self, reads: int) -> Rows | None:
        """None when rules that read this have nothing to judge again."""
        if reads in self._rows:
            return self._rows[reads]
        rows = self._rows[reads] = self._work_out(reads)
        return rows

    def nodes(self, rows: Rows) -> Nodes:
        """One face per set of rows, shared by the rules."""
        view = self._views.get(id(rows))
        if view is None:
            nodes = self._state.nodes()
            view = self._views[id(rows)] = nodes if rows is self.everything else nodes.take(rows)
        return view

    def index(self, rows: Rows) -> Rows | slice:
        """What picks these rows out of an array, faster where that is all of them."""
        return slice(len(rows)) if rows is self.everything else rows

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

    def _work_out(self, reads: int) -> Rows | None:
        count, anything = self._state.count, self._anything
        if self._is_all_new or self._everywhere & reads:
            return self.everything
        if (reads & NODES and anything & NODE) or (reads & OTHERS and anything & (PODS | NODE)):
            return self.everything
        if reads & TERMS and anything & TERMS:
            return self.everything
        if not anything & reads and not self._has_new_rows:
            return None
        # A row that came or moved is new to every rule, whatever it reads.
        rows = [
            row
            for row, what in self._changed.items()
            if (what & reads or what & ROW == ROW) and row < count
        ]
        if not rows:
            return None
        if reads & FEASIBLE or len(rows) > count // 2:
            return self.everything  # which nodes are feasible can only be seen of all
        return np.array(sorted(rows), np.intp)

    def is_since(self, since: int) -> bool:
        """Whether it is also what one would see who looks now at what changed since."""
        return since == self.since and self.until == self._state.log.position


def is_touched_in_thought(reads: int) -> bool:
    """Whether rules that read this may say otherwise where pods come and go in thought. Of a pod
    that comes, traffic is expected."""
    return bool(reads & (_ABOUT_PODS | OTHERS))


def touching(reads: int) -> int:
    """The changes, on whatever row, that rules hear of which read this."""
    touched_by = reads
    if reads & NODES:
        touched_by |= NODE
    if reads & OTHERS:
        touched_by |= PODS | NODE
    return touched_by
