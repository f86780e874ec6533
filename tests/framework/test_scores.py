"""Raw scores to 0..100."""

import numpy as np
import pytest

from lowtide.framework.scores import Scale, scaled, truncating_divide


@pytest.mark.parametrize(
    ("raw", "scale", "wanted"),
    [
        pytest.param(
            [1, 15, 10, 13],
            "lowest_best",
            [94, 0, 34, 14],  # 100 - 100//15, 100 - 1500//15, 100 - 1000//15, 100 - 1300//15
            id="scores the lowest best",
        ),
        pytest.param(
            [1, 15, 10, 13],
            "highest_best",
            [6, 100, 66, 86],  # 100//15, 1500//15, 1000//15, 1300//15
            id="scores the highest best",
        ),
        pytest.param(
            [0, 0],
            "lowest_best",
            [100, 100],
            id="scores all 100 if the lowest is best and all are zero",
        ),
        pytest.param(
            [0, 0],
            "highest_best",
            [0, 0],
            id="scores all 0 if the highest is best and all are zero",
        ),
        pytest.param([7, 300], None, [7, 300], id="keeps scores as they are without a scale"),
        pytest.param([], "lowest_best", [], id="scales no nodes"),
    ],
)
def test_scaling(raw: list[int], scale: Scale, wanted: list[int]) -> None:
    result = scaled(np.array(raw, np.int64), max(raw, default=0), scale)
    assert (result.tolist(), result.dtype.name) == (wanted, "int64")


def test_the_highest_is_that_of_feasible_nodes() -> None:
    # 100 - 500//10, 100 - 1000//10, and a node that is not feasible goes below 0
    assert scaled(np.array([5, 10, 40]), 10, "lowest_best").tolist() == [50, 0, -300]


@pytest.mark.parametrize(
    ("numerator", "denominator", "quotient"),
    [(7, 2, 3), (-7, 2, -3), (-1, 2, 0), (6, 2, 3), (-6, 2, -3), (0, 5, 0)],
)
def test_division_truncates_toward_zero(numerator: int, denominator: int, quotient: int) -> None:
    assert truncating_divide(np.array([numerator]), denominator).tolist() == [quotient]


@pytest.mark.parametrize("highest", [2**56, 2**57, 2**62, 2**63 - 1])
def test_scores_near_the_end_of_64_bits_are_scaled_like_others(highest: int) -> None:
    raw = np.array([0, highest // 2, highest])
    assert scaled(raw, highest, "highest_best").tolist() in ([0, 50, 100], [0, 49, 100])
    assert scaled(raw, highest, "lowest_best").tolist() in ([100, 50, 0], [100, 51, 0])
