"""PromQL's functions over ranges, by hand: every plugin of how a rate reaches its range's edges."""

import math

import numpy as np
import pytest

from lowtide.localcluster.promql import RangeFunction
from lowtide.localcluster.ranges import RangeOfSamples, evaluated

# One series, scraped every 15 s at 5, 20, 35, 50 s, asked for the range from 0 to 60 s.
INTERVAL = 15_000
PHASE = 5_000


def samples(first: int, values: list[float]) -> RangeOfSamples:
    """From the scrape of that number on."""
    oldest, newest = np.array([first]), np.array([first + len(values) - 1])
    return RangeOfSamples(
        oldest=oldest,
        newest=newest,
        oldest_at=PHASE + oldest * INTERVAL,
        newest_at=PHASE + newest * INTERVAL,
        value_of=lambda number: np.array(
            [[*values, math.nan, math.nan][n - first] for n in number]
        ),
    )


@pytest.mark.parametrize(
    ("first", "values", "increase"),
    [
        # 450 * (45 + 5 + 10) / 45
        pytest.param(
            0, [1000, 1150, 1300, 1450], 600.0, id="reaches both edges when they are near"
        ),
        # 150 * (15 + 7.5 + 10) / 15
        pytest.param(2, [1000, 1150], 325.0, id="goes back half an interval to where it began"),
        # 150 * (15 + 5 + 7.5) / 15
        pytest.param(0, [1000, 1150], 275.0, id="goes on half an interval to where it ended"),
        # 150 * (15 + 0 + 10) / 15
        pytest.param(2, [0, 150], 250.0, id="does not go back from zero"),
        # 30 is reached in 3 s: 150 * (15 + 3 + 10) / 15
        pytest.param(2, [30, 180], 280.0, id="does not go back beyond zero"),
        # 10 is reached in 1 s, which is before the edge: 450 * (45 + 1 + 10) / 45
        pytest.param(0, [10, 160, 310, 460], 560.0, id="counts from zero also near the edge"),
        pytest.param(0, [7, 7, 7, 7], 0.0, id="is nothing where nothing grew"),
        # only first and last matter: 450 * 60 / 45
        pytest.param(0, [1000, 1440, 1445, 1450], 600.0, id="spreads a jump over the range"),
    ],
)
def test_the_increase(first: int, values: list[float], increase: float) -> None:
    of = samples(first, values)
    assert evaluated(RangeFunction.INCREASE, of, 0, 60_000).tolist() == [pytest.approx(increase)]
    assert evaluated(RangeFunction.RATE, of, 0, 60_000).tolist() == [pytest.approx(increase / 60)]


@pytest.mark.parametrize("function", [RangeFunction.RATE, RangeFunction.INCREASE])
@pytest.mark.parametrize("values", [[], [5.0]], ids=["no sample", "one sample"])
def test_there_is_no_rate_of(function: RangeFunction, values: list[float]) -> None:
    assert np.isnan(evaluated(function, samples(0, values), 0, 60_000)).tolist() == [True]


@pytest.mark.parametrize(
    ("function", "values", "want"),
    [
        pytest.param(RangeFunction.SUM_OVER_TIME, [1.0, 2.0, 4.0], 7.0, id="all samples, added up"),
        pytest.param(RangeFunction.SUM_OVER_TIME, [3.0], 3.0, id="the only sample"),
        pytest.param(RangeFunction.SUM_OVER_TIME, [], None, id="nothing of no samples"),
        pytest.param(None, [1.0, 2.0, 4.0], 4.0, id="without a function the newest sample"),
        pytest.param(None, [], None, id="without samples nothing"),
    ],
)
def test_the_value_is(
    function: RangeFunction | None, values: list[float], want: float | None
) -> None:
    (found,) = evaluated(function, samples(0, values), 0, 60_000).tolist()
    assert (None if math.isnan(found) else found) == want


def test_series_do_not_disturb_each_other() -> None:
    """One full range, one that began late, one without samples."""
    oldest, newest = np.array([0, 2, 4]), np.array([3, 3, 3])
    of = RangeOfSamples(
        oldest=oldest,
        newest=newest,
        oldest_at=PHASE + oldest * INTERVAL,
        newest_at=PHASE + newest * INTERVAL,
        value_of=lambda number: 1000.0 + 150.0 * number,
    )
    found = evaluated(RangeFunction.INCREASE, of, 0, 60_000)
    assert found.tolist()[:2] == [pytest.approx(600.0), pytest.approx(325.0)]
    assert np.isnan(found).tolist() == [False, False, True]
