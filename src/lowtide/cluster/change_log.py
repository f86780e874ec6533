"""What changed on which row, in order. ClusterState writes it; kept verdicts read from it what they
have to judge again, and whether what they expected is all that happened."""

from typing import NamedTuple

import numpy as np

from lowtide.cluster.changes import EVERY_ROW, LABELS
from lowtide.cluster.columns import Column, IntArray

# Further back in the log, looking at everything anew is cheaper than at each change.
_MOST_CHANGES_PER_ROW = 16
# So many pods that came to a row one after the other are remembered, and judged ahead.
MOST_COMINGS = 4


class _Came(NamedTuple):
    signature: object
    before: int  # the row's version


class ChangeLog:
    def __init__(self, capacity: int) -> None:
        self._changes: list[tuple[int, int]] = []
        self.position = 0  # where it ends now
        self._starts_at = 0
        # By row: the pods whose coming were its last changes.
        self._came: dict[int, list[_Came]] = {}
        self.version_column = Column(np.int64, 0, capacity)

    def since(self, position: int) -> list[tuple[int, int]] | None:
        """(row or EVERY_ROW, what) in order; None when that is too long ago to tell."""
        if position < self._starts_at:
            return None
        return self._changes[position - self._starts_at :]

    def reaches(self, position: int) -> bool:
        """Whether all that changed since then can be told."""
        return position >= self._starts_at

    @property
    def versions(self) -> IntArray:
        """Of each row: another after each change of it, but of labels and of other objects."""
        return self.version_column.array

    def came_last(self, row: int) -> object | None:
        """The signature of the pod whose coming was the last change of this row, if it is known."""
        came = self._came.get(row)
        return None if came is None else came[-1].signature

    def came_since(self, row: int, version: int, signature: object) -> int:
        """How many pods of that signature came to this row since it had that version; 0 where
        anything else happened to it, or nothing."""
        for count, each in enumerate(reversed(self._came.get(row, ())), start=1):
            if each.signature != signature:
                return 0
            if each.before == version:
                return count
        return 0

    def add(self, row: int, what: int) -> None:
        """`row` may be EVERY_ROW."""
        if what == LABELS:
            self._note(row, what)  # nobody looks ahead who reads them
            return
        if row == EVERY_ROW:
            self._came.clear()
            row_or_all: int | slice = slice(None)
        else:
            self._came.pop(row, None)
            row_or_all = row
        self._note(row, what)
        self.versions[row_or_all] = self.position

    def object_changed(self, kind_bit: int) -> None:
        """An object of this kind changed. Lookahead about rows stays true where no plugin touched
        this kind, and the others judge every row again."""
        self._note(EVERY_ROW, kind_bit)

    def pod_came(self, row: int, what: int, signature: object) -> None:
        """Adds what that changed. By `signature`, whoever asked about the pod knows it again."""
        versions = self.version_column.array
        came = self._came.setdefault(row, [])
        came.append(_Came(signature, versions.item(row)))
        if len(came) > MOST_COMINGS:
            del came[0]
        self._note(row, what)
        versions[row] = self.position

    def _note(self, row: int, what: int) -> None:
        self._changes.append((row, what))
        self.position += 1
        longest = _MOST_CHANGES_PER_ROW * len(self.version_column.array)
        if len(self._changes) > longest:
            dropped = len(self._changes) - longest // 2
            del self._changes[:dropped]
            self._starts_at += dropped

    def row_is_gone(self, row: int) -> None:
        self._came.pop(row, None)
