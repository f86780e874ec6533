"""The nodes that were asked about as rows of the table, and why some of them are left out.

Used by the advisor."""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from itertools import repeat

import numpy as np

from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.state import ClusterState
from lowtide.objects.node_names import NodeNames

MOST_LISTS = 16
_NOT_KNOWN = -1  # instead of a row


class AskedRows:
    """True as long as the table has this `version`. A row below 0 stands for a node that is not in
    a table of `count` rows."""

    def __init__(self, rows: Rows, *, count: int, version: int) -> None:
        self.version = version
        self._rows = rows
        self.known: Rows = rows[rows >= 0]
        self.among: BoolArray = np.zeros(count, np.bool_)  # by row: whether it was asked
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


class RowFinder:
    """Looks names up, and remembers the lists that were asked about lately: who asks hands over the
    same list when the same nodes are asked about again.

    Where the table belongs to another thread, what is found may be out of date at once, as its
    version then tells."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._version = -1
        self._row_of: dict[bytes, int] = {}  # by name
        self._known: OrderedDict[int, tuple[Sequence[str], AskedRows]] = OrderedDict()  # by id

    def of(self, names: Sequence[str]) -> AskedRows:
        if self._version != self._state.table_version:
            self._read_table()
        known = self._known.get(id(names))
        if known is not None:
            self._known.move_to_end(id(names))
            return known[1]
        parts = names.parts if isinstance(names, NodeNames) else map(str.encode, names)
        found = map(self._row_of.get, parts, repeat(_NOT_KNOWN))
        rows = AskedRows(
            np.fromiter(found, np.intp, len(names)),
            count=len(self._row_of),
            version=self._version,
        )
        self._known[id(names)] = names, rows  # with the list, so that no other gets its id
        if len(self._known) > MOST_LISTS:
            self._known.popitem(last=False)
        return rows

    def _read_table(self) -> None:
        """Copies of the names lie side by side in memory. Those of the table lie among all that is
        known of their nodes, and to look 5000 of them up there took five times as long."""
        self._version = self._state.table_version  # first: what changes meanwhile is read again
        names = list(self._state.names)
        self._row_of = {name.encode(): row for row, name in enumerate(names)}
        self._known.clear()


class Refusals:
    """By node: why it is refused; what is said of a node last counts."""

    def __init__(self, names: Sequence[str]) -> None:
        self.failed: dict[str, str] = {}
        self.unresolvable: dict[str, str] = {}  # evicting pods would not help
        self._names = names  # by row

    @property
    def are_any(self) -> bool:
        return bool(self.failed or self.unresolvable)

    def add(self, rows: Sequence[int], reasons: Sequence[str], *, eviction_helps: bool) -> None:
        told, other = self.failed, self.unresolvable
        if not eviction_helps:
            told, other = other, told
        refused = dict.fromkeys([self._names[row] for row in rows], ", ".join(reasons))
        told.update(refused)
        for name in other.keys() & refused.keys():
            del other[name]

    def counts(self) -> Counter[str]:
        """How many nodes are refused for which reason."""
        return Counter((*self.failed.values(), *self.unresolvable.values()))
