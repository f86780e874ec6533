"""The log of changes: what changed on which row, in order.

ClusterState writes it. Kept verdicts read which rows to evaluate again, and whether a row changed
only by the pods that lookahead expected."""

from typing import NamedTuple

import numpy as np

from lowtide.cluster.changes import EVERY_ROW, LABELS
from lowtide.cluster.columns import Column, IntArray

# How far the log reaches back. Beyond that, evaluating every row again is cheaper.
_MOST_CHANGES_PER_ROW = 16
# How many consecutive arrivals of pods on a row are remembered. Lookahead evaluates as many.
MOST_ARRIVALS = 4


class _Arrival(NamedTuple):
    signature: object
    before: int  # the row's version before the pod arrived


class ChangeLog:
    def __init__(self, capacity: int) -> None:
        self._changes: list[tuple[int, int]] = []
        self.position = 0  # the end of the log
        self._starts_at = 0  # the position of the oldest entry kept
        # By row: its latest changes, if these were arrivals of pods.
        self._arrivals: dict[int, list[_Arrival]] = {}
        self.version_column = Column(np.int64, 0, capacity)

    def since(self, position: int) -> list[tuple[int, int]] | None:
        """The changes as (row or EVERY_ROW, bits), in order; None if the log is too short."""
        if position < self._starts_at:
            return None
        return self._changes[position - self._starts_at :]

    def reaches(self, position: int) -> bool:
        """Whether the log has every change since then."""
        return position >= self._starts_at

    @property
    def versions(self) -> IntArray:
        """By row. A version changes with each change of its row, except changes of pod labels alone
        and of other objects."""
        return self.version_column.array

    def last_arrival(self, row: int) -> object | None:
        """The signature of the pod whose arrival was the last change of this row; None if the
        signature is unknown or the last change was no arrival."""
        arrivals = self._arrivals.get(row)
        return None if arrivals is None else arrivals[-1].signature

    def arrivals_since(self, row: int, version: int, signature: object) -> int:
        """How many pods of this signature arrived since the row had this version. 0 if the row
        changed otherwise, did not change, or had more than MOST_ARRIVALS arrivals."""
        for count, each in enumerate(reversed(self._arrivals.get(row, ())), start=1):
            if each.signature != signature:
                return 0
            if each.before == version:
                return count
        return 0

    def add(self, row: int, what: int) -> None:
        """Log these bits of the row, which may be EVERY_ROW."""
        if what == LABELS:
            self._note(row, what)  # lookahead never depends on labels
            return
        if row == EVERY_ROW:
            self._arrivals.clear()
            row_or_all: int | slice = slice(None)
        else:
            self._arrivals.pop(row, None)
            row_or_all = row
        self._note(row, what)
        self.versions[row_or_all] = self.position

    def object_changed(self, kind_bit: int) -> None:
        """Log a change of an object of this kind. Row versions stay: lookahead stays valid for
        plugins that did not touch the kind, and the others evaluate every row again."""
        self._note(EVERY_ROW, kind_bit)

    def pod_arrived(self, row: int, what: int, signature: object) -> None:
        """Log the arrival of a pod, which changed the bits `what`. `signature` lets lookahead tell
        whether it expected this pod."""
        versions = self.version_column.array
        arrivals = self._arrivals.setdefault(row, [])
        arrivals.append(_Arrival(signature, versions.item(row)))
        if len(arrivals) > MOST_ARRIVALS:
            del arrivals[0]
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

    def row_removed(self, row: int) -> None:
        self._arrivals.pop(row, None)
