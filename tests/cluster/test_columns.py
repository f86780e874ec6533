"""Columns that grow and move, and numbers in place of repeated values."""

import numpy as np
import pytest

from lowtide.cluster.columns import (
    Column,
    ColumnCache,
    FloatArray,
    Interned,
    LazyColumns,
    Totals,
    ValueColumn,
    by_value,
    capped_sum,
    is_one_of,
    most_columns,
)
from lowtide.objects.quantity import LARGEST


def test_equal_values_share_a_number() -> None:
    interned: Interned[str] = Interned()
    numbers = [interned.acquire(value) for value in ["a", "b", "a", "c", "b"]]
    assert numbers == [0, 1, 0, 2, 1]
    assert interned.values == ["a", "b", "c"]


def test_a_number_is_free_when_all_gave_it_back() -> None:
    interned: Interned[str] = Interned()
    for value in ["a", "b", "b"]:
        interned.acquire(value)
    interned.release(1)
    assert interned.values == ["a", "b"]
    interned.release(1)
    assert interned.values == ["a", None]
    assert (interned.acquire("c"), interned.acquire("b"), interned.acquire("a")) == (1, 2, 0)
    assert interned.values == ["a", "c", "b"]


def test_numbers_begin_anew_when_no_value_is_left() -> None:
    interned: Interned[str] = Interned()
    for number in [interned.acquire(value) for value in ["a", "b", "c"]]:
        interned.release(number)
    assert interned.values == []
    assert (interned.acquire("d"), interned.acquire("a")) == (0, 1)


def test_a_column_starts_empty_and_keeps_its_values_when_it_grows() -> None:
    column = Column(np.int64, 7, 2)
    column.array[1] = 9
    column.resize(4)
    assert column.array.tolist() == [7, 9, 7, 7]
    assert column.array.dtype == np.int64


def test_a_column_that_shrinks_keeps_its_first_rows() -> None:
    column = Column(np.int64, 7, 4)
    column.array[:2] = [8, 9]
    column.resize(2)
    assert column.array.tolist() == [8, 9]
    assert column.array.base is None  # nothing of the longer one is held


def test_a_value_moves_and_leaves_nothing_behind() -> None:
    column = Column(np.float64, -1.0, 3)
    column.array[:] = [1.0, 2.0, 3.0]
    column.move(2, 0)
    assert column.array.tolist() == [3.0, 2.0, -1.0]


def test_a_column_of_values_tells_absent_from_empty() -> None:
    labels: ValueColumn[str] = ValueColumn(3)
    labels.set(0, "")
    labels.set(1, "a")
    labels.set(2, "a")
    labels.set(1, None)
    assert labels.column.array.tolist() == [0, -1, 1]
    assert labels.interned.values == ["", "a"]


def test_a_column_of_values_forgets_what_no_row_has_any_more() -> None:
    labels: ValueColumn[str] = ValueColumn(3)
    labels.fill(["a", None, "b"])
    labels.set(0, "c")
    labels.set(2, "b")
    assert (labels.column.array.tolist(), labels.interned.values) == ([2, -1, 1], [None, "b", "c"])
    for number in range(1000):
        labels.set(1, f"value {number}")
    assert (len(labels.interned.values), set(labels.interned.values)) == (
        4,
        {None, "b", "c", "value 999"},
    )


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        pytest.param(64, 512, id="up to the limit in a small table"),
        pytest.param(8192, 512, id="up to the limit in a medium table"),
        pytest.param(16_384, 256, id="in smaller number in a large table"),
        pytest.param(2**30, 8, id="at least a few in a huge table"),
    ],
)
def test_columns_are_kept(rows: int, want: int) -> None:
    assert most_columns(rows) == want


def test_the_column_asked_for_longest_ago_makes_room() -> None:
    kept: ColumnCache[int, Column] = ColumnCache(lambda key: Column(np.int64, key, 2**20))
    first = kept[0]
    for key in range(1, 8):
        kept[key]
    assert kept[0] is first
    assert kept.get(1) is not None
    kept[8]
    assert (kept.get(0), kept.get(1)) == (first, None)
    assert sorted(column.empty for column in kept) == [0, 2, 3, 4, 5, 6, 7, 8]
    kept.drop(8)
    kept.drop(9)
    assert kept.get(8) is None
    kept.clear()
    assert list(kept) == []


def test_a_judge_is_asked_once_per_value() -> None:
    asked: list[str | None] = []

    def judge(value: str | None) -> int:
        asked.append(value)
        return 0 if value is None else len(value)

    gathered = by_value(np.array([1, -1, 0, 1]), ["a", "bbb"], judge, np.int64)
    assert gathered.tolist() == [3, 0, 1, 3]
    assert asked == [None, "a", "bbb"]


def test_a_value_that_no_row_has_any_more_is_not_judged() -> None:
    asked: list[str | None] = []
    by_value(np.array([2, 2]), ["gone", "gone too", "here"], asked.append, np.object_)
    assert asked == ["here"]


def test_a_number_that_is_free_is_not_judged() -> None:
    asked: list[str | None] = []

    def judge(value: str | None) -> bool:
        asked.append(value)
        return value == "b"

    assert by_value(np.array([2, 0, 2, 2]), ["a", None, "b"], judge).tolist() == [1, 0, 1, 1]
    assert asked == ["a", "b"]


def test_absent_everywhere_needs_no_values() -> None:
    assert by_value(np.array([-1, -1]), [], lambda value: value is None).tolist() == [True, True]


@pytest.mark.parametrize(
    ("wanted", "want"),
    [
        pytest.param(["b"], [True, False, False, True], id="a value"),
        pytest.param(["b", "a", "b"], [True, False, True, True], id="several values"),
        pytest.param(["gone", "unknown"], [False, False, False, False], id="unused values"),
        pytest.param([], [False, False, False, False], id="none"),
    ],
)
def test_rows_are_found_that_have(wanted: list[str], want: list[bool]) -> None:
    labels: ValueColumn[str] = ValueColumn(4)
    labels.fill(["gone", None, "a", "b"])
    labels.set(0, "b")
    assert is_one_of(labels.column.array, labels.interned, wanted).tolist() == want
    assert is_one_of(np.array([-1, -1]), Interned[str](), wanted).tolist() == [False, False]


def test_a_column_is_gathered_when_it_is_looked_at() -> None:
    looked: list[float] = []

    def first_two(column: Column) -> FloatArray:
        looked.append(float(column.array[0]))
        return column.array[:2]

    columns = {"low": Column(np.float64, 1.0, 4), "high": Column(np.float64, 9.0, 4)}
    gathered = LazyColumns(columns, first_two)
    assert (list(gathered), len(gathered), looked) == (["low", "high"], 2, [])
    assert gathered["high"].tolist() == [9.0, 9.0]
    assert looked == [9.0]
    assert "other" not in gathered


def totals(*sums: int) -> Totals:
    column = Totals(len(sums))
    for row, amount in enumerate(sums):
        column.add(row, amount)
    return column


def test_a_total_stops_at_the_largest_number_and_comes_back_exactly() -> None:
    column = totals(5, 7)
    for amount in (LARGEST, LARGEST, 10):
        column.add(0, amount)
    assert column.array.tolist() == [LARGEST, 7]
    column.add(0, -LARGEST)
    assert column.array.tolist() == [LARGEST, 7]
    column.add(0, -LARGEST)
    assert column.array.tolist() == [15, 7]


def test_a_total_that_is_too_large_moves_with_its_row() -> None:
    column = totals(2 * LARGEST, 2 * LARGEST + 3)
    column.move(1, 0)
    assert column.array.tolist() == [LARGEST, 0]
    column.add(0, -2 * LARGEST)
    column.add(1, 4)
    assert column.array.tolist() == [3, 4]


def test_a_row_that_is_cleared_forgets_how_large_it_was() -> None:
    column = totals(2 * LARGEST)
    column.clear(0)
    column.add(0, 6)
    assert column.array.tolist() == [6]


@pytest.mark.parametrize(
    ("sums", "change", "want"),
    [
        pytest.param([10], -4, 6, id="subtracts"),
        pytest.param([LARGEST - 1], 1, LARGEST, id="reaches the largest amount"),
        pytest.param([LARGEST], LARGEST, LARGEST, id="stops at the largest amount"),
        pytest.param([LARGEST, LARGEST, 9], -LARGEST, LARGEST, id="stays above the largest amount"),
        pytest.param([LARGEST, 9], -LARGEST, 9, id="starts from the exact sum"),
        pytest.param([5], 3 * LARGEST, LARGEST, id="adds more than int64 holds"),
        pytest.param(
            [LARGEST, LARGEST, LARGEST, 9], -3 * LARGEST, 9, id="subtracts more than int64 holds"
        ),
    ],
)
def test_a_hypothetical_change_of_a_total(sums: list[int], change: int, want: int) -> None:
    column = totals(0, 0)
    for amount in sums:
        column.add(1, amount)
    changes = np.array([change, 0], np.object_ if abs(change) > LARGEST else np.int64)
    assert column.changed(np.array([1, 0]), changes).tolist() == [want, 0]


def test_the_smaller_of_a_sum_and_something_else() -> None:
    amounts = np.array([1, LARGEST, LARGEST, 0])
    most = np.array([5, 5, LARGEST, LARGEST])
    assert capped_sum(most, amounts, LARGEST).tolist() == [5, 5, LARGEST, LARGEST]
    assert capped_sum(most, amounts, 3).tolist() == [4, 5, LARGEST, 3]
