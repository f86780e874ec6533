"""The nodes that were asked about as rows of the table, and why some of them are left out.

Used by the advisor."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.state import ClusterState

_NOT_KNOWN = -1  # instead of a row


class AskedRows:
    def __init__(self, names: Sequence[str], state: ClusterState) -> None:
        row_of = state.row_of
        rows = [_NOT_KNOWN if (row := row_of(name)) is None else row for name in names]
        self._rows: Rows = np.array(rows, np.intp)
        self.known: Rows = self._rows[self._rows >= 0]
        self.among: BoolArray = np.zeros(state.count, np.bool_)  # by row: whether it was asked
        self.among[self.known] = True

    @property
    def unknown(self) -> list[int]:
        """The positions of nodes that are not in the table."""
        positions: list[int] = np.flatnonzero(self._rows < 0).tolist()
        return positions

    def positions(self, feasible: BoolArray) -> list[int]:
        """Of those of the asked nodes that are feasible."""
        positions: list[int] = np.flatnonzero((self._rows >= 0) & feasible[self._rows]).tolist()
        return positions

    def spread(self, by_row: IntArray) -> list[int]:
        """One value for each asked node; 0 for those that are not known."""
        values: list[int] = np.where(self._rows >= 0, by_row[self._rows], 0).tolist()
        return values


class Refusals:
    """By node: why it is refused; what is said of a node last counts."""

    def __init__(self, names: Sequence[str]) -> None:
        self.failed: dict[str, str] = {}
        self.unresolvable: dict[str, str] = {}  # evicting pods would not help
        self._names = names  # by row

    @property
    def are_any(self) -> bool:
        return bool(self.failed or self.unresolvable)

    def add(self, rows: Iterable[int], reasons: Sequence[str], *, eviction_helps: bool) -> None:
        told, other = self.failed, self.unresolvable
        if not eviction_helps:
            told, other = other, told
        reason = ", ".join(reasons)
        for row in rows:
            name = self._names[row]
            told[name] = reason
            other.pop(name, None)

    def counts(self) -> Counter[str]:
        """How many nodes are refused for which reason."""
        return Counter((*self.failed.values(), *self.unresolvable.values()))
