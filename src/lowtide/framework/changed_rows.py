"""Which rows have to be judged again, by what changed since they were judged and what was touched
when they were. A Verdict makes one for each look at the log of changes."""

import numpy as np

from lowtide.cluster.changes import ANY_BITS, ANY_ROW, EVERY_ROW, NODE, ROW
from lowtide.cluster.columns import BoolArray, Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState

NEVER = -1  # instead of a position in the log
NO_ROWS: Rows = np.empty(0, np.intp)


class ChangedRows:
    """What changed since the log ended at `since`, shared by all plugins of a verdict.

    The array `everything` stands for all rows wherever it comes back: it is compared by identity.
    `feasible` is by row, and brought up to date before scores read it.
    """

    def __init__(self, state: ClusterState, since: int, feasible: BoolArray | None = None) -> None:
        self.feasible = feasible
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

    def union(self, parts: list[Rows]) -> Rows:
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

    def is_since(self, since: int) -> bool:
        """True if one made now, of what changed since, would be the same."""
        return since == self.since and self.until == self._state.log.position

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
