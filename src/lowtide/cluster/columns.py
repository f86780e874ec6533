"""Columns that grow with the number of rows, and small integers in place of repeated values.

Used by ClusterState; plugins see the columns through Nodes.
"""

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

V = TypeVar("V", bound=Hashable)


class Interned(Generic[V]):
    """Gives each distinct value a number, so that a column can hold numbers."""

    def __init__(self) -> None:
        self.values: list[V] = []
        self._numbers: dict[V, int] = {}

    def number(self, value: V) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number


class Column:
    """One value per row. `array` has room to spare; only its first `count` rows mean something."""

    def __init__(self, dtype: npt.DTypeLike, empty: Any, capacity: int) -> None:
        self.empty = empty
        self.array: npt.NDArray[Any] = np.full(capacity, empty, dtype=dtype)

    def grow(self, capacity: int) -> None:
        grown = np.full(capacity, self.empty, dtype=self.array.dtype)
        grown[: len(self.array)] = self.array
        self.array = grown

    def move(self, source: int, target: int) -> None:
        self.array[target] = self.array[source]
        self.array[source] = self.empty


class LabelColumn:
    """The values of one label key, one number per row; -1 where a node lacks the label."""

    ABSENT = -1

    def __init__(self, capacity: int) -> None:
        self.interned: Interned[str] = Interned()
        self.column = Column(np.int32, self.ABSENT, capacity)

    def set(self, row: int, value: str | None) -> None:
        number = self.ABSENT if value is None else self.interned.number(value)
        self.column.array[row] = number


def by_value(
    numbers: npt.NDArray[Any],
    values: list[V],
    judge: Callable[[V | None], Any],
    dtype: npt.DTypeLike = np.bool_,
) -> npt.NDArray[Any]:
    """Asks `judge` once per distinct value that some row has, then gathers it for all rows.

    A negative number stands for rows without a value, about which `judge(None)` is asked.
    """
    used, positions = np.unique(numbers, return_inverse=True)
    answers = np.array([judge(values[each] if each >= 0 else None) for each in used], dtype=dtype)
    gathered: npt.NDArray[Any] = answers[positions]
    return gathered
