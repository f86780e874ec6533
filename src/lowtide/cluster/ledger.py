"""What one source measures, as columns of the table, with what was placed since counted in.

Ledgers keeps one of these per source. A pod's entry stands from its placement until the
reading has measured it whole; between two readings only coming and going pods change a row.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from lowtide.cluster.columns import Column, FloatArray, Rows
from lowtide.cluster.reading import Reading
from lowtide.objects.pod import Pod

Amounts = tuple[float, ...]


class Ledger:
    def __init__(self) -> None:
        self.columns: dict[str, Column] = {}
        self._reading = Reading()
        self._position_of: dict[str, int] = {}
        self._entries: dict[str, Amounts] = {}  # by pod uid: what is still to come of it

    @property
    def is_sampled(self) -> bool:
        """Whether anything was measured; before, no pod is counted."""
        return self._reading.is_sampled

    @property
    def uids(self) -> tuple[str, ...]:
        """The pods that are not measured whole yet."""
        return tuple(self._entries)

    def expected(self, pod: Pod) -> Mapping[str, float]:
        """What the pod would add to a node, by field."""
        expects = self._reading.expects
        return {} if expects is None else dict(zip(expects.fields, expects.of(pod), strict=True))

    @property
    def expected_fields(self) -> tuple[str, ...]:
        """What pods that are placed add to."""
        return () if self._reading.expects is None else self._reading.expects.fields

    def counted(self, uid: str) -> Amounts | None:
        """What is counted for a pod that was placed, one amount per field."""
        return self._entries.get(uid)

    def would_count_whole(self, pod: Pod) -> Amounts | None:
        """What would be counted for the pod if it was placed now, and had not started."""
        return self._amounts(pod, float(self._reading.has_more_to_come))

    def _amounts(self, pod: Pod, share: float) -> Amounts | None:
        expects = self._reading.expects
        if expects is None or share <= 0:
            return None
        # Whole numbers: adding and taking away leaves exactly what was there.
        return tuple([float(round(share * one)) for one in expects.of(pod)])

    def publish(self, reading: Reading, node_names: Sequence[str], capacity: int) -> None:
        """Replaces every row; the entries are to be made anew by `count_in`. `capacity` is the
        length of ClusterState's columns."""
        self._reading = reading
        self._position_of = {name: position for position, name in enumerate(reading.names)}
        self._entries = {}
        positions = self._positions(node_names)
        fields = [*reading.columns, *reading.of_others, *self.expected_fields]
        for field in dict.fromkeys([*self.columns, *fields]):
            column = self.columns.get(field)
            if column is None:
                column = self.columns[field] = Column(np.float64, np.nan, capacity)
            column.array[: len(node_names)] = self._values(field, positions)

    def fill(self, row: int, node_name: str) -> None:
        """A row that is new to the table; its pods are to be counted in."""
        position = self._position_of.get(node_name)
        expected = self.expected_fields
        for field, column in self.columns.items():
            column.array[row] = 0.0 if field in expected else self._value(field, position)

    def count_in(self, row: int | None, pod: Pod) -> bool:
        """Counts a pod on a row, or on a node that is not known; whether the row changed."""
        if self._reading.expects is None:
            return False
        amounts = self._amounts(pod, self._reading.still_to_come(pod))
        if amounts is None:
            # Of a node that comes: an entry from before the pod started is out of date.
            self._entries.pop(pod.uid, None)
            return False
        self._entries[pod.uid] = amounts
        return self._add(row, amounts, 1)

    def count_out(self, row: int | None, uid: str) -> bool:
        amounts = self._entries.pop(uid, None)
        return amounts is not None and self._add(row, amounts, -1)

    def _add(self, row: int | None, amounts: Amounts, times: int) -> bool:
        if row is None or not any(amounts):
            return False
        for field, amount in zip(self.expected_fields, amounts, strict=True):
            self.columns[field].array[row] += times * amount
        return True

    def _positions(self, node_names: Sequence[str]) -> Rows:
        """Where the reading has each of these nodes; -1 where it has not."""
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
