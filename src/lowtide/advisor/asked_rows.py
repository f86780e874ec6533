"""The nodes that were asked about as rows of the table, and why some of them are left out.

Used by the advisor."""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.state import ClusterState
from lowtide.objects.node_names import NameTable, NodeNames

# Of lists that are remembered, and of the names in all of them.
MOST_LISTS = 16
MOST_NAMES = 300_000


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
    def unknown(self) -> Rows:
        """The positions of nodes that are not in the table."""
        return np.flatnonzero(self._rows < 0)

    def positions_of(self, rows: Rows) -> Rows:
        """Of rows that were asked about."""
        return self._position_of_row[rows]

    @cached_property
    def _position_of_row(self) -> Rows:
        positions = np.zeros(len(self.among), np.intp)
        positions[self.known] = np.flatnonzero(self._rows >= 0)
        return positions

    def positions(self, feasible: BoolArray) -> list[int]:
        """Of those of the asked nodes that are feasible."""
        positions: list[int] = np.flatnonzero((self._rows >= 0) & feasible[self._rows]).tolist()
        return positions

    def spread(self, by_row: IntArray) -> IntArray:
        """One value for each asked node; 0 for those that are not known."""
        values: IntArray = np.where(self._rows >= 0, by_row[self._rows], 0)
        return values


class RowFinder:
    """Looks names up, and remembers the lists that were asked about lately: who asks hands over the
    same list when the same nodes are asked about again.

    Where the table belongs to another thread, what is found may be out of date at once, as its
    version then tells."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._version = -1
        self._table = NameTable(NodeNames.made_of(()))
        self._known: OrderedDict[int, tuple[Sequence[str], AskedRows]] = OrderedDict()  # by id
        self._known_names = 0

    def find_rows(self, names: Sequence[str]) -> AskedRows:
        if self._version != self._state.table_version:
            self._read_table()
        known = self._known.get(id(names))
        if known is not None:
            self._known.move_to_end(id(names))
            return known[1]
        asked = names if isinstance(names, NodeNames) else NodeNames.made_of(names)
        found = self._table.find(asked)
        rows = AskedRows(found, count=len(self._table), version=self._version)
        self._known[id(names)] = names, rows  # with the list, so that no other gets its id
        self._known_names += len(names)
        while len(self._known) > MOST_LISTS or self._known_names > MOST_NAMES:
            _, (oldest, _) = self._known.popitem(last=False)
            self._known_names -= len(oldest)
        return rows

    def _read_table(self) -> None:
        self._version = self._state.table_version  # first: what changes meanwhile is read again
        self._table = NameTable(NodeNames.made_of(list(self._state.names)))
        self._known.clear()
        self._known_names = 0


class NodeReasons(Mapping[str, str]):
    """By node: why it is rejected. Of many nodes few reasons are said, so they are kept together,
    and the names are looked up only where somebody wants them."""

    def __init__(self, names: Sequence[str], groups: Sequence[tuple[str, list[int]]]) -> None:
        self.names = names
        self.groups = groups  # a reason, and the positions of the names

    def __getitem__(self, name: str) -> str:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return sum(len(positions) for _, positions in self.groups)

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return {self.names[at]: reason for reason, positions in self.groups for at in positions}


class AskedRejections:
    """Why which of the asked nodes is rejected; what is said of a node last counts."""

    def __init__(self, names: Sequence[str], rows: AskedRows) -> None:
        self._names = names
        self._rows = rows
        self._said: list[tuple[str, bool]] = []  # reasons, and whether evicting pods would help
        self._by: set[str] = set()
        self._number = np.zeros(len(names), np.intp)  # by position, of what was said; from 1

    def add(self, rows: Rows, reasons: Sequence[str], *, by: str, eviction_helps: bool) -> None:
        self._by.add(by)
        self._add(self._rows.positions_of(rows), ", ".join(reasons), eviction_helps=eviction_helps)

    def add_unknown(self, reason: str) -> None:
        self._add(self._rows.unknown, reason, eviction_helps=False)

    @property
    def are_any(self) -> bool:
        return bool(self._number.any())

    @property
    def rejected_by(self) -> frozenset[str]:
        """The plugins."""
        return frozenset(self._by)

    @property
    def failed(self) -> NodeReasons:
        return self._where(eviction_helps=True)

    @property
    def unresolvable(self) -> NodeReasons:
        """Evicting pods would not help."""
        return self._where(eviction_helps=False)

    def counts(self) -> Counter[str]:
        """How many nodes are rejected for which reason."""
        counts: Counter[str] = Counter()
        numbers = np.bincount(self._number, minlength=len(self._said) + 1).tolist()
        for (reason, _), count in zip(self._said, numbers[1:], strict=True):
            if count:
                counts[reason] += count
        return counts

    def _add(self, positions: Rows, reason: str, *, eviction_helps: bool) -> None:
        self._said.append((reason, eviction_helps))
        self._number[positions] = len(self._said)

    def _where(self, *, eviction_helps: bool) -> NodeReasons:
        groups = [
            (reason, np.flatnonzero(self._number == number).tolist())
            for number, (reason, helps) in enumerate(self._said, start=1)
            if helps == eviction_helps
        ]
        return NodeReasons(self._names, groups)
