"""Columns that grow with the number of rows, and small integers in place of repeated values.

Used by ClusterState and its parts; plugins see the columns through Nodes.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from lowtide.objects.quantity import LARGEST

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

V = TypeVar("V", bound=Hashable)
K = TypeVar("K", bound=Hashable)
_Kept = TypeVar("_Kept", bound="Column")

# What somebody asked for once is kept within these bounds, whatever strangers ask for.
_MOST_COLUMNS = 512
FEWEST_COLUMNS = 8
_MOST_CELLS = 2**22  # the columns of one kind together: 512 of them for 8192 rows


def most_columns(capacity: int) -> int:
    """How many columns of one kind are kept that were made because somebody asked."""
    return max(FEWEST_COLUMNS, min(_MOST_COLUMNS, _MOST_CELLS // capacity))


class Interned(Generic[V]):
    """Gives each distinct value in use a number, so that a column can hold numbers."""

    def __init__(self) -> None:
        self.values: list[V | None] = []  # None where a number is free
        self._numbers: dict[V, int] = {}
        self._uses: list[int] = []  # by number
        self._free: list[int] = []
        self.use_count = 0  # of all together

    def number_of(self, value: V) -> int | None:
        """None where nobody has it."""
        return self._numbers.get(value)

    def take(self, value: V) -> int:
        """Its number, which stays the same until as many gave it back as took it."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = self._free_number()
            self.values[number] = value
        self._uses[number] += 1
        self.use_count += 1
        return number

    def give_back(self, number: int) -> None:
        self._uses[number] -= 1
        self.use_count -= 1
        if self._uses[number]:
            return
        del self._numbers[self.values[number]]  # type: ignore[arg-type]  # it is in use
        self.values[number] = None
        self._free.append(number)
        if not self._numbers:
            for each in (self.values, self._uses, self._free):
                each.clear()

    def _free_number(self) -> int:
        if self._free:
            return self._free.pop()
        self.values.append(None)
        self._uses.append(0)
        return len(self.values) - 1


def at_most(most: IntArray | int, amount: IntArray, added: IntArray | int) -> IntArray:
    """The smaller of `most` and the sum of two amounts; none of these three, and not the sum, may
    be below 0. As unsigned numbers, such sums always fit into 64 bits."""
    if isinstance(most, np.ndarray):
        most = most.view(np.uint64)
    return np.minimum((amount + added).view(np.uint64), most).view(np.int64)


class Column:
    """One value per row. `array` has room to spare; only its first `count` rows mean something."""

    def __init__(self, dtype: npt.DTypeLike, empty: Any, capacity: int) -> None:
        self.empty = empty
        self._hold(np.full(capacity, empty, dtype=dtype))

    def _hold(self, array: npt.NDArray[Any]) -> None:
        self.array = array
        # Plugins must not write into what the scheduler believes.
        self.read_only = array.view()
        self.read_only.setflags(write=False)

    def resize(self, capacity: int) -> None:
        before = self.array[:capacity]
        self._hold(np.full(capacity, self.empty, dtype=before.dtype))
        self.array[: len(before)] = before

    def move(self, source: int, target: int) -> None:
        self.array[target] = self.array[source]
        self.clear(source)

    def clear(self, row: int) -> None:
        self.array[row] = self.empty


class Totals(Column):
    """Sums of amounts, none below 0. A sum that the array cannot hold stands there as the largest
    number that it can; the exact sum is remembered, so that it is right again when amounts go."""

    def __init__(self, capacity: int) -> None:
        super().__init__(np.int64, 0, capacity)
        self.beyond: dict[int, int] = {}  # exact sums by row, of those above LARGEST

    def add(self, row: int, amount: int) -> None:
        total = self.beyond.pop(row, self.array.item(row)) + amount
        if total > LARGEST:
            self.beyond[row] = total
        self.array[row] = min(total, LARGEST)

    def move(self, source: int, target: int) -> None:
        self.beyond.pop(target, None)
        if source in self.beyond:
            self.beyond[target] = self.beyond[source]
        super().move(source, target)

    def clear(self, row: int) -> None:
        super().clear(row)
        self.beyond.pop(row, None)

    def changed(self, rows: Rows, changes: npt.NDArray[Any]) -> IntArray:
        """These rows as they would be after changes: int64, or Python's integers where some do not
        fit."""
        totals: IntArray = self.array[rows]
        if not self.beyond and changes.dtype == np.int64:
            return at_most(LARGEST, totals, changes)
        exact = totals.astype(np.object_)
        for position in np.flatnonzero(totals == LARGEST).tolist():
            exact[position] = self.beyond.get(int(rows[position]), LARGEST)
        changed: IntArray = np.minimum(exact + changes, LARGEST).astype(np.int64)
        return changed


class Gathered(Mapping[str, npt.NDArray[Any]]):
    """Columns by name, each gathered when it is looked at: few look at all of them."""

    def __init__(
        self,
        columns: Mapping[str, Column],
        gather: Callable[[Column], npt.NDArray[Any]],
    ) -> None:
        self._columns = columns
        self._gather = gather

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._gather(self._columns[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class KeptColumns(Generic[K, _Kept]):
    """Columns made when a plugin asks; the one read longest ago makes room for another."""

    def __init__(
        self, make: Callable[[K], _Kept], *, is_kept: Callable[[K], bool] | None = None
    ) -> None:
        """A column for which `is_kept` is False is made for one read."""
        self._make = make
        self._is_kept = is_kept
        self._columns: OrderedDict[K, _Kept] = OrderedDict()  # last read comes last
        # To be kept true, if it is there.
        self.get: Callable[[K], _Kept | None] = self._columns.get

    def __getitem__(self, key: K) -> _Kept:
        column = self._columns.get(key)
        if column is not None:
            self._columns.move_to_end(key)
            return column
        column = self._make(key)
        if self._is_kept is None or self._is_kept(key):
            while len(self._columns) >= most_columns(len(column.array)):
                self._columns.popitem(last=False)
            self._columns[key] = column
        return column

    def __iter__(self) -> Iterator[_Kept]:
        return iter(self._columns.values())

    def items(self) -> Iterable[tuple[K, _Kept]]:
        """To be kept true, all of them."""
        return self._columns.items()

    def drop(self, key: K) -> None:
        self._columns.pop(key, None)

    def clear(self) -> None:
        self._columns.clear()


class ValueColumn(Generic[V]):
    """Values that many rows share, one number per row; -1 where a row has none."""

    ABSENT = -1

    def __init__(self, capacity: int) -> None:
        self.interned: Interned[V] = Interned()
        # As wide as numpy's indices: what gathers by them then needs no copy of them.
        self.column = Column(np.intp, self.ABSENT, capacity)

    def set(self, row: int, value: V | None) -> None:
        before = int(self.column.array[row])
        # Taken first: a value that stays keeps its number.
        self.column.array[row] = self.ABSENT if value is None else self.interned.take(value)
        if before != self.ABSENT:
            self.interned.give_back(before)

    def fill(self, values: Iterable[V | None]) -> None:
        """One per row from the first on, in a column that has none yet."""
        take, absent = self.interned.take, self.ABSENT
        numbers = [absent if value is None else take(value) for value in values]
        self.column.array[: len(numbers)] = numbers


def is_one_of(numbers: npt.NDArray[Any], interned: Interned[V], values: Iterable[V]) -> BoolArray:
    """Which rows have one of these values: few are looked up, whatever else rows have."""
    known = [number for value in values if (number := interned.number_of(value)) is not None]
    is_wanted = np.zeros(len(interned.values) + 1, np.bool_)
    is_wanted[known] = True
    return is_wanted.take(numbers, mode="wrap")  # -1 is the last


def by_value(
    numbers: npt.NDArray[Any],
    values: Sequence[V | None],
    judge: Callable[[V | None], Any],
    dtype: npt.DTypeLike = np.bool_,
) -> npt.NDArray[Any]:
    """Asks `judge` once per distinct value, then gathers it for all rows.

    A negative number stands for rows without a value, about which `judge(None)` is asked.
    """
    answers = np.zeros(len(values) + 1, dtype)
    if numbers.min(initial=0) < 0:
        answers[-1] = judge(None)
    for number in _worth_asking(numbers, values):
        answers[number] = judge(values[number])
    return answers.take(numbers, mode="wrap")  # -1 is the last


def _worth_asking(numbers: npt.NDArray[Any], values: Sequence[V | None]) -> Iterable[int]:
    """Of fewer rows than there are values, only what they have; else all that any row has."""
    if len(numbers) < len(values):
        return set(numbers[numbers >= 0].tolist())
    return [number for number, value in enumerate(values) if value is not None]
