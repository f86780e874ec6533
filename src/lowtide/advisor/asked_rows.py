"""The rows of the nodes in a request, and the reasons against some of them. Used by the advisor."""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.state import ClusterState
from lowtide.objects.node_names import NameTable, NodeNames

# Limits of RowFinder: remembered lists, and names in all of them.
MOST_LISTS = 16
MOST_NAMES = 300_000


class AskedRows:
    """The rows of the asked nodes, valid while the table has this `version`. A row below 0 stands
    for a node that is not in the table of `count` rows."""

    def __init__(self, rows: Rows, *, count: int, version: int) -> None:
        self.version = version
        self._rows = rows
        self.known: Rows = rows[rows >= 0]
        self.among: BoolArray = np.zeros(count, np.bool_)  # by row: whether the request has it
        self.among[self.known] = True

    @property
    def unknown(self) -> Rows:
        """The positions of asked nodes that are not in the table."""
        return np.flatnonzero(self._rows < 0)

    def positions_of(self, rows: Rows) -> Rows:
        """The positions of rows that the request has."""
        return self._position_of_row[rows]

    @cached_property
    def _position_of_row(self) -> Rows:
        positions = np.zeros(len(self.among), np.intp)
        positions[self.known] = np.flatnonzero(self._rows >= 0)
        return positions

    def positions(self, feasible: BoolArray) -> list[int]:
        """The positions of feasible asked nodes."""
        positions: list[int] = np.flatnonzero((self._rows >= 0) & feasible[self._rows]).tolist()
        return positions

    def spread(self, by_row: IntArray) -> IntArray:
        """One value for each asked node; 0 for unknown nodes."""
        values: IntArray = np.where(self._rows >= 0, by_row[self._rows], 0)
        return values


class RowFinder:
    """Looks up the rows of names. It remembers recent lists by identity: the server hands over the
    same list object when a request has the same nodes again.

    If the table belongs to another thread, a result may be outdated at once; compare `version`."""

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
        self._version = self._state.table_version  # read first, so that a later change is noticed
        self._table = NameTable(NodeNames.made_of(list(self._state.names)))
        self._known.clear()
        self._known_names = 0


class NodeReasons(Mapping[str, str]):
    """Maps node names to reasons. Many nodes share few reasons, so it keeps groups, and makes the
    map only when a name is looked up."""

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
    """The reason against each rejected node of a request; the last one added counts."""

    def __init__(self, names: Sequence[str], rows: AskedRows) -> None:
        self._names = names
        self._rows = rows
        self._said: list[tuple[str, bool]] = []  # reasons, and whether evicting pods would help
        self._by: set[str] = set()  # names of plugins
        self._number = np.zeros(len(names), np.intp)  # by position: of the reason, from 1; 0: none

    def add(self, rows: Rows, reasons: Sequence[str], *, by: str, eviction_helps: bool) -> None:
        self._by.add(by)
        self._add(self._rows.positions_of(rows), ", ".join(reasons), eviction_helps=eviction_helps)

    def add_unknown(self, reason: str) -> None:
        self._add(self._rows.unknown, reason, eviction_helps=False)

    @property
    def has_any(self) -> bool:
        return bool(self._number.any())

    @property
    def rejected_by(self) -> frozenset[str]:
        """The names of the plugins that rejected a node."""
        return frozenset(self._by)

    @property
    def failed(self) -> NodeReasons:
        return self._where(eviction_helps=True)

    @property
    def unresolvable(self) -> NodeReasons:
        """The nodes where evicting pods would not help."""
        return self._where(eviction_helps=False)

    def counts(self) -> Counter[str]:
        """The number of rejected nodes by reason."""
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
