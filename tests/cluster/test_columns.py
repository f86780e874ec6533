"""Columns that grow and move, and numbers in place of repeated values."""

import numpy as np

from lowtide.cluster.columns import Column, Interned, LabelColumn, by_value


def test_equal_values_share_a_number() -> None:
    interned: Interned[str] = Interned()
    numbers = [interned.number(value) for value in ["a", "b", "a", "c", "b"]]
    assert numbers == [0, 1, 0, 2, 1]
    assert interned.values == ["a", "b", "c"]


def test_a_column_starts_empty_and_keeps_its_values_when_it_grows() -> None:
    column = Column(np.int64, 7, 2)
    column.array[1] = 9
    column.grow(4)
    assert column.array.tolist() == [7, 9, 7, 7]
    assert column.array.dtype == np.int64


def test_a_value_moves_and_leaves_nothing_behind() -> None:
    column = Column(np.float64, -1.0, 3)
    column.array[:] = [1.0, 2.0, 3.0]
    column.move(2, 0)
    assert column.array.tolist() == [3.0, 2.0, -1.0]


def test_a_label_column_tells_absent_from_empty() -> None:
    labels = LabelColumn(3)
    labels.set(0, "")
    labels.set(1, "a")
    labels.set(2, "a")
    labels.set(1, None)
    assert labels.column.array.tolist() == [0, -1, 1]
    assert labels.interned.values == ["", "a"]


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


def test_absent_everywhere_needs_no_values() -> None:
    assert by_value(np.array([-1, -1]), [], lambda value: value is None).tolist() == [True, True]
