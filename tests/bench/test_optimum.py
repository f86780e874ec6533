"""The peak that no placement can stay below."""

import numpy as np
import pytest

from optimum import fractional_optimum


@pytest.mark.parametrize(
    ("capacity", "background", "demand", "want"),
    [
        # 0.2 * 100 + 40 = 60 of 100
        pytest.param([100], [0.2], 40, 0.6, id="adds all of the demand to a single link"),
        # (20 + 40 + 60) / 200
        pytest.param([100, 100], [0.2, 0.4], 60, 0.6, id="levels links that are quiet enough"),
        # 20 + 10 = 30 of 100; the other stays at 40
        pytest.param([100, 100], [0.4, 0.2], 10, 0.4, id="is never below the highest background"),
        # (20 + 40 + 120) / 200 = 0.9; the third is at 0.95 and takes nothing
        pytest.param([100, 100, 100], [0.2, 0.4, 0.95], 120, 0.95, id="leaves busier links alone"),
        # (10 * 0.5 + 250 * 0.1 + 100) / 260
        pytest.param([10, 250], [0.5, 0.1], 100, 0.5, id="fills a wide link before a narrow one"),
        # (5 + 25 + 230) / 260
        pytest.param([10, 250], [0.5, 0.1], 230, 1.0, id="weighs links by their capacity"),
        # (0 + 150) / 100
        pytest.param([100], [0.0], 150, 1.5, id="goes beyond what the links can carry"),
        pytest.param([100, 50], [0.3, 0.1], 0, 0.3, id="without demand is the background"),
    ],
)
def test_fractional_optimum(
    capacity: list[float], background: list[float], demand: float, want: float
) -> None:
    found = fractional_optimum(np.array(capacity, float), np.array(background), demand)
    assert found == pytest.approx(want)
