"""PromQL's functions over ranges of regular samples, for many series at once.

The embedded Prometheus and the simulated one call it. Counters here never fall, so the first and
the last sample of a range say what rate and increase need."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lowtide.cluster.columns import FloatArray, IntArray
from lowtide.localcluster.promql import RangeFunction

# A range's edge is reached from a sample that is no further from it than this many intervals.
_NEAR_AN_EDGE = 1.1


@dataclass(frozen=True, slots=True, eq=False)
class RangeOfSamples:
    """Of each series the samples from `oldest` to `newest` (none where newest is less), and when
    these two were taken, in milliseconds. `value_of` gives one sample of each by its number."""

    oldest: IntArray
    newest: IntArray
    oldest_at: IntArray
    newest_at: IntArray
    value_of: Callable[[IntArray], FloatArray]


def evaluated(
    function: RangeFunction | None, samples: RangeOfSamples, start: int, end: int
) -> FloatArray:
    """One value per series, NaN where there is none; without a function, its newest sample.

    The range goes from `start`, left out, to `end`, in milliseconds."""
    match function:
        case None:
            return np.where(
                samples.newest >= samples.oldest, samples.value_of(samples.newest), math.nan
            )
        case RangeFunction.SUM_OVER_TIME:
            return _sum_over_time(samples)
        case RangeFunction.INCREASE:
            return _increase(samples, start, end)
        case RangeFunction.RATE:
            return _increase(samples, start, end) * 1000 / (end - start)


def _sum_over_time(samples: RangeOfSamples) -> FloatArray:
    total = np.zeros(len(samples.oldest))
    number = samples.oldest.copy()
    while (is_left := number <= samples.newest).any():
        total += np.where(is_left, samples.value_of(number), 0.0)
        number += 1
    return np.where(samples.newest >= samples.oldest, total, math.nan)


def _increase(samples: RangeOfSamples, start: int, end: int) -> FloatArray:
    """From first to last sample, stretched to the edges of the range.

    To an edge that is near: all the way; to one that is far, where the series seems to begin or
    end within the range: half an interval. Never back beyond where the counter would be zero."""
    steps = samples.newest - samples.oldest
    is_known = steps > 0
    first = samples.value_of(samples.oldest)
    grown = np.where(is_known, samples.value_of(samples.newest) - first, 0.0)
    covered = np.where(is_known, samples.newest_at - samples.oldest_at, 1)
    interval = covered / np.maximum(steps, 1)
    before = _up_to_edge(samples.oldest_at - start, interval)
    with np.errstate(divide="ignore", invalid="ignore"):
        until_zero = np.where(grown > 0, covered * first / grown, math.inf)
    before = np.minimum(before, until_zero)
    after = _up_to_edge(end - samples.newest_at, interval)
    stretched = grown * (covered + before + after) / covered
    return np.where(is_known, stretched, math.nan)


def _up_to_edge(gap: IntArray, interval: FloatArray) -> FloatArray:
    return np.where(gap >= _NEAR_AN_EDGE * interval, interval / 2, gap)
