import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.framework.leaders import Leaders

RANKS = st.lists(st.integers(-1, 4), min_size=1, max_size=60).filter(lambda ranks: max(ranks) >= 0)


def in_order(ranks: list[int]) -> list[int]:
    return sorted(range(len(ranks)), key=lambda row: (-ranks[row], row))


def wanted(ranks: list[int], keep: int, turn: int) -> tuple[int, list[int]]:
    """By the sorted table: the row whose turn it is, and the rows that are kept with it."""
    best = [row for row in range(len(ranks)) if ranks[row] == max(ranks)]
    row, kept = best[turn % len(best)], in_order(ranks)[:keep]
    return row, kept if row in kept else [row, *kept[:-1]]


@given(st.lists(RANKS, min_size=1, max_size=4), st.sampled_from([1, 2, 14, 60]), st.integers(0, 99))
def test_the_best_rows_are_those_of_a_sorted_table_whatever_was_asked_before(
    tables: list[list[int]], keep: int, turn: int
) -> None:
    leaders = Leaders()
    for ranks in tables:
        row, kept = leaders.best_of(np.array(ranks, np.int64), keep, turn)
        assert (row, kept.tolist()) == wanted(ranks, keep, turn)


@given(
    RANKS,
    st.lists(st.lists(st.tuples(st.integers(0, 59), st.integers(-1, 6)), max_size=5), max_size=8),
    st.sampled_from([1, 2, 14, 60]),
    st.sampled_from([1, 1_000_000_000, 2**31 - 1]),
)
def test_rows_that_move_are_found_where_a_sorted_table_has_them(
    ranks: list[int], steps: list[list[tuple[int, int]]], keep: int, weight: int
) -> None:
    leaders = Leaders()
    ranks = [weight * rank if rank > 0 else rank for rank in ranks]
    for turn, moves in enumerate([[], *steps]):
        for row, points in moves:
            if row < len(ranks):
                after = weight * points if points > 0 else points
                leaders.moved(row, ranks[row], after)
                ranks[row] = after
        if max(ranks) < 0:
            continue  # nobody asks who is the best of none
        row, kept = leaders.best(np.array(ranks, np.int64), keep, turn)
        feasible = [each for each in wanted(ranks, keep, turn)[1] if ranks[each] >= 0]
        assert (row, kept.tolist()) == (wanted(ranks, keep, turn)[0], feasible)


def test_after_all_moved_they_are_put_in_order_again() -> None:
    leaders, ranks = Leaders(), list(range(50))
    for _ in range(2):
        leaders.best(np.array(ranks, np.int64), 5, 0)
    ranks.reverse()
    leaders.all_moved()
    for are_in_order in (False, True):
        row, kept = leaders.best(np.array(ranks, np.int64), 5, 0)
        assert (row, kept.tolist()) == (0, [0, 1, 2, 3, 4])
        assert (leaders.keys is not None) is are_in_order  # only if it is asked once more


@pytest.mark.parametrize(
    "count", [pytest.param(2000, id="few"), pytest.param(9000, id="more than are kept in order")]
)
def test_of_many_equal_rows_each_has_its_turn_and_is_kept(count: int) -> None:
    leaders, ranked = Leaders(), np.full(count, 7, np.int64)
    for turn in (0, 1, 500, count + 30):
        row, kept = leaders.best(ranked, 20, turn)
        assert (row, kept.tolist()) == wanted([7] * count, 20, turn)


def test_when_too_few_are_left_in_order_more_are() -> None:
    """A pod a turn, each of which makes the best row the worst."""
    leaders, ranks = Leaders(), list(range(100, 3100))
    for turn in range(900):
        row, kept = leaders.best(np.array(ranks, np.int64), 20, turn)
        assert kept.tolist() == list(range(2999 - turn, 2979 - turn, -1))
        leaders.moved(row, ranks[row], 0)
        ranks[row] = 0
