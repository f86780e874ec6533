"""The highest rates seen so far, which outlive the nodes that they were seen on."""

import math

import numpy as np

from lowtide.readings.peaks import MOST_KINDS_REMEMBERED, Peak, Peaks


def seen(before: Peaks, **rates: tuple[str, float]) -> Peaks:
    """After a reading of these nodes, each with its type and rate."""
    kinds = sorted({kind for kind, _ in rates.values()})
    return before.with_rates(
        np.array([rate for _, rate in rates.values()]),
        list(rates),
        np.array([kinds.index(kind) for kind, _ in rates.values()]),
        kinds,
    )


def test_the_two_highest_of_each_type_are_kept() -> None:
    found = seen(
        Peaks(),
        a=("large", 5.0),
        b=("large", 9.0),
        c=("small", 3.0),
        d=("large", 7.0),
        e=("", 4.0),
        f=("idle", 0.0),
        g=("silent", math.nan),
    )
    assert found.of_kind == {
        "large": (Peak(9.0, "b"), Peak(7.0, "d")),
        "small": (Peak(3.0, "c"),),
        "": (Peak(4.0, "e"),),
    }
    assert found.of_all() == (Peak(9.0, "b"), Peak(7.0, "d"))


def test_a_peak_outlives_its_node_until_two_higher_ones_are_seen() -> None:
    found = seen(Peaks(), a=("large", 5.0), b=("large", 9.0))
    found = seen(found, c=("large", 1.0), a=("large", 6.0))
    assert found.of_kind == {"large": (Peak(9.0, "b"), Peak(6.0, "a"))}
    found = seen(found, c=("large", 10.0), d=("large", 11.0))
    assert found.of_kind == {"large": (Peak(11.0, "d"), Peak(10.0, "c"))}


def test_both_are_of_different_nodes() -> None:
    found = seen(seen(Peaks(), a=("large", 5.0)), a=("large", 9.0))
    assert found.of_kind == {"large": (Peak(9.0, "a"),)}


def test_nothing_is_seen_of_no_nodes() -> None:
    assert seen(Peaks()) == Peaks()


def test_only_so_many_types_are_remembered_the_newest_of_all() -> None:
    found = seen(Peaks(), a=("first", 1.0), b=("second", 1.0))
    many = {f"n{number}": (f"kind {number}", 1.0) for number in range(MOST_KINDS_REMEMBERED - 1)}
    found = seen(seen(found, a=("first", 1.0)), **many)
    assert len(found.of_kind) == MOST_KINDS_REMEMBERED
    assert ("first" in found.of_kind, "second" in found.of_kind) == (True, False)
