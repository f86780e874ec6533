import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.framework.leaders import Leaders


def sorted_rows(ranks: list[int]) -> list[int]:
    return sorted(range(len(ranks)), key=lambda row: (-ranks[row], row))


@given(
    st.lists(st.lists(st.integers(-1, 4), min_size=1, max_size=60), min_size=1, max_size=4),
    st.sampled_from([1, 2, 14, 60]),
)
def test_the_best_rows_are_those_of_a_sorted_table_whatever_was_asked_before(
    tables: list[list[int]], keep: int
) -> None:
    leaders = Leaders()
    for ranks in tables:
        best, kept = leaders.best(np.array(ranks, np.int64), keep)
        assert best.tolist() == [row for row in range(len(ranks)) if ranks[row] == max(ranks)]
        assert kept.tolist() == sorted_rows(ranks)[:keep]


@pytest.mark.parametrize("ranks", [[5] * 30, [*range(30)], [9] * 3 + [4] * 27])
def test_the_same_is_said_twice(ranks: list[int]) -> None:
    leaders, ranked = Leaders(), np.array(ranks, np.int64)
    first, second = (leaders.best(ranked, 20)[1].tolist() for _ in range(2))
    assert first == second == sorted_rows(ranks)[:20]
