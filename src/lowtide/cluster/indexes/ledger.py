"""What one source measures, as columns of the table, plus what was placed since then.

Ledgers keeps one per source. A pod has an entry from its placement until a reading fully measures
it. Between two readings, a row changes only by pods that arrive or leave.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from lowtide.cluster.columns import Column, FloatArray, Rows
from lowtide.cluster.reading import Amounts, Reading
from lowtide.objects.pod import Pod


class Ledger:
    def __init__(self) -> None:
        self.columns: dict[str, Column] = {}
        self.version = 0  # grows with readings and added nodes, not with pods
        self._reading = Reading()
        self._position_of: dict[str, int] = {}
        # The nodes of the table at the last publish, and the position of each in the reading.
        self._node_names: Sequence[str] | None = None
        self._positions: Rows = np.empty(0, np.intp)
        self._entries: dict[str, Amounts] = {}  # by pod uid: what is not measured of it

    @property
    def reading(self) -> Reading:
        """The reading that was published last."""
        return self._reading

    @property
    def is_sampled(self) -> bool:
        """Whether anything was measured. Until then, no pod is counted."""
        return self._reading.is_sampled

    @property
    def uids(self) -> tuple[str, ...]:
        """The pods that are not fully measured yet."""
        return tuple(self._entries)

    def expected(self, pod: Pod) -> Mapping[str, float]:
        """What the pod would add to a node, by field."""
        expects = self._reading.expects
        return (
            {}
            if expects is None
            else dict(zip(expects.fields, expects.expected_for(pod), strict=True))
        )

    @property
    def expected_fields(self) -> tuple[str, ...]:
        """The fields that placed pods add to."""
        return () if self._reading.expects is None else self._reading.expects.fields

    def counted(self, uid: str) -> Amounts | None:
        """What is counted for a placed pod, one amount per field."""
        return self._entries.get(uid)

    def would_count(self, pod: Pod) -> Amounts | None:
        """What would be counted for the pod if it were placed now."""
        return self._reading.unmeasured(pod)

    def would_count_whole(self, pod: Pod) -> Amounts | None:
        """`would_count` as if the pod had not started."""
        return self._reading.unmeasured_if_new(pod)

    def publish(self, reading: Reading, node_names: Sequence[str], capacity: int) -> None:
        """Replace every row and drop all entries: the caller adds them again with `count_in_all`.
        `capacity` is the length of ClusterState's columns."""
        if reading.names != self._reading.names:
            self._position_of = {name: position for position, name in enumerate(reading.names)}
            self._node_names = None
        if node_names != self._node_names:
            self._node_names = list(node_names)
            self._positions = self._positions_of(node_names)
        self._reading = reading
        self.version += 1
        self._entries = {}
        positions = self._positions
        fields = [*reading.columns, *reading.of_others, *self.expected_fields]
        for field in dict.fromkeys([*self.columns, *fields]):
            column = self.columns.get(field)
            if column is None:
                column = self.columns[field] = Column(np.float64, np.nan, capacity)
            column.array[: len(node_names)] = self._values(field, positions)

    def fill(self, row: int, node_name: str) -> None:
        """Set a row that is new to the table. The caller counts its pods in."""
        self.version += 1
        position = self._position_of.get(node_name)
        expected = self.expected_fields
        for field, column in self.columns.items():
            column.array[row] = 0.0 if field in expected else self._value(field, position)

    def count_in(self, row: int | None, pod: Pod) -> bool:
        """Count a pod on a row, or on an unknown node. Returns whether the row changed."""
        if self._reading.expects is None:
            return False
        amounts = self._reading.unmeasured(pod)
        if amounts is None:
            # If the node was just added, the pod may have an entry from before it started.
            self._entries.pop(pod.uid, None)
            return False
        self._entries[pod.uid] = amounts
        return self._add(row, amounts, 1)

    def count_in_all(self, pods: Sequence[tuple[int | None, Pod]]) -> None:
        """`count_in` for many pods at once, none of which is counted yet."""
        counted = [(row, pod.uid, self._reading.unmeasured(pod)) for row, pod in pods]
        self._entries |= {uid: amounts for _, uid, amounts in counted if amounts is not None}
        known = [(row, amounts) for row, _, amounts in counted if amounts and row is not None]
        rows = np.array([row for row, _ in known], np.intp)
        for number, field in enumerate(self.expected_fields):
            values = np.array([amounts[number] for _, amounts in known])
            np.add.at(self.columns[field].array, rows, values)

    def count_out(self, row: int | None, uid: str) -> bool:
        amounts = self._entries.pop(uid, None)
        return amounts is not None and self._add(row, amounts, -1)

    def _add(self, row: int | None, amounts: Amounts, times: int) -> bool:
        if row is None or not any(amounts):
            return False
        for field, amount in zip(self.expected_fields, amounts, strict=True):
            self.columns[field].array[row] += times * amount
        return True

    def _positions_of(self, node_names: Sequence[str]) -> Rows:
        """The position of each of these nodes in the reading, or -1."""
        return np.array([self._position_of.get(name, -1) for name in node_names], np.intp)

    def _value(self, field: str, position: int | None) -> float:
        column = self._reading.columns.get(field)
        if position is None or column is None or not len(column):
            return self._reading.of_others.get(field, np.nan)
        return float(column[position])

    def _values(self, field: str, positions: Rows) -> FloatArray:
        if field in self.expected_fields:
            return np.zeros(len(positions))
        other = self._reading.of_others.get(field, np.nan)
        column = self._reading.columns.get(field)
        if column is None or not len(column):
            return np.full(len(positions), other)
        return np.where(positions >= 0, column[positions], other)
