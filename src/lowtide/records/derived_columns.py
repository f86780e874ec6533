"""Columns of a reading that follow from others of it: a recording keeps the rule instead, and the
rows in which it does not hold. Used by `reading_form`."""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec
import numpy as np

from lowtide.cluster.columns import FloatArray
from lowtide.readings.columns import (
    CAPACITY,
    RECEIVE_COLUMN,
    SHARE,
    TRANSMIT_COLUMN,
    VALUE_COLUMN,
)

Operation = Literal["max", "sum", "quotient"]
Columns = Mapping[str, FloatArray]

_MOST_EXCEPTIONS = 0.1  # of all rows: more of them take more room than the column


class Derived(msgspec.Struct, frozen=True, omit_defaults=True):
    """`but` has by row what is not so; null is NaN."""

    is_: Operation = msgspec.field(name="is")
    of: tuple[str, str]
    but: dict[str, float | None] = {}


# In this order: a column follows from others, and those perhaps from others still.
_BOTH: Final = (RECEIVE_COLUMN, TRANSMIT_COLUMN)
_RULES: Final[Mapping[str, tuple[tuple[Operation, tuple[str, str]], ...]]] = {
    VALUE_COLUMN: (("max", _BOTH), ("sum", _BOTH)),
    SHARE: (("quotient", (VALUE_COLUMN, CAPACITY)),),
}


def derived(name: str, columns: Columns) -> Derived | None:
    """How the column follows from others; None where it does not, or in too few rows."""
    values = columns[name]
    for operation, of in _RULES.get(name, ()):
        if not all(each in columns for each in of):
            continue
        expected = _computed(operation, columns[of[0]], columns[of[1]])
        is_same = (values == expected) | (np.isnan(values) & np.isnan(expected))
        rows = np.flatnonzero(~is_same)
        if len(rows) <= _MOST_EXCEPTIONS * len(values) and np.isfinite(values[~is_same]).all():
            return Derived(operation, of, {str(row): float(values[row]) for row in rows.tolist()})
    return None


def with_derived(columns: dict[str, FloatArray], found: Mapping[str, Derived]) -> None:
    """Adds them; KeyError where another column is missing, ValueError where a row is."""
    for name in [*_RULES, *found]:
        each = found.get(name)
        if each is None:
            continue
        values = _computed(each.is_, columns[each.of[0]], columns[each.of[1]])
        for row, value in each.but.items():
            values[int(row)] = np.nan if value is None else value
        columns[name] = values


def _computed(operation: Operation, one: FloatArray, other: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        match operation:
            case "max":
                return np.maximum(one, other)
            case "sum":
                return one + other
            case "quotient":
                return one / other
