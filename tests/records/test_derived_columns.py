import math

import numpy as np
import pytest

from lowtide.cluster.columns import FloatArray
from lowtide.records.derived_columns import Derived, derived, with_derived

RECEIVE = np.array([1.0, 5.0, math.nan, 2.0] * 5)
TRANSMIT = np.array([3.0, 4.0, 1.0, 2.0] * 5)
BOTH = ("receive", "transmit")


def columns(**more: FloatArray) -> dict[str, FloatArray]:
    capacity = np.full(len(RECEIVE), 7.0)
    return {"receive": RECEIVE, "transmit": TRANSMIT, "capacity": capacity, **more}


def changed(values: FloatArray, rows: dict[int, float]) -> FloatArray:
    values = values.copy()
    for row, value in rows.items():
        values[row] = value
    return values


HIGHEST = np.maximum(RECEIVE, TRANSMIT)


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        pytest.param("value", HIGHEST, Derived("max", BOTH), id="the higher of both directions"),
        pytest.param("value", RECEIVE + TRANSMIT, Derived("sum", BOTH), id="both directions"),
        pytest.param(
            "value",
            changed(HIGHEST, {2: 8.5, 4: 0.5}),
            Derived("max", BOTH, {"2": 8.5, "4": 0.5}),
            id="the higher of both but in a few rows",
        ),
        pytest.param(
            "value",
            changed(HIGHEST, {0: 8.5, 1: 0.5, 4: 9.5}),
            None,
            id="nothing where it fails in too many rows",
        ),
        pytest.param(
            "value", changed(HIGHEST, {0: math.inf}), None, id="nothing where a row is infinite"
        ),
        pytest.param("odd", HIGHEST, None, id="nothing for a column of a name of its own"),
    ],
)
def test_column_is_derived_from(name: str, values: FloatArray, found: Derived | None) -> None:
    whole = columns(**{name: values})
    assert derived(name, whole) == found
    if found is not None:
        again = columns()
        with_derived(again, {name: found})
        np.testing.assert_array_equal(again[name], values)


def test_share_follows_from_a_value_that_follows_from_others() -> None:
    share = HIGHEST / 7.0
    whole = columns(share=share, value=HIGHEST)
    found = {name: derived(name, whole) for name in ("share", "value")}
    assert found == {
        "share": Derived("quotient", ("value", "capacity")),
        "value": Derived("max", BOTH),
    }
    again = columns()
    with_derived(again, {name: each for name, each in found.items() if each is not None})
    np.testing.assert_array_equal(again["share"], share)
