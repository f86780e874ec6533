"""Raw scores to 0..100, in integers that truncate toward zero as Go's do."""

import numpy as np

from lowtide.cluster.columns import IntArray
from lowtide.framework.plugin import MAX_SCORE, Scale

# Larger raw values would overflow when they are multiplied by the highest score: those are scaled
# without their lowest bits.
LARGEST_RAW = 2**56


def scaled(raw: IntArray, highest: int, scale: Scale) -> IntArray:
    """`highest` is the largest raw score among the feasible nodes, at least 0."""
    if scale is None:
        return raw
    if highest <= 0:
        return np.full(len(raw), MAX_SCORE if scale == "lowest_best" else 0, np.int64)
    if highest > LARGEST_RAW:
        shift = highest.bit_length() - LARGEST_RAW.bit_length() + 1
        raw, highest = raw >> shift, highest >> shift
    share = truncating_divide(raw * MAX_SCORE, highest)
    return MAX_SCORE - share if scale == "lowest_best" else share


def truncating_divide(numerator: IntArray, denominator: int) -> IntArray:
    """Integer division toward zero, for a denominator above zero."""
    if np.minimum.reduce(numerator, initial=0) >= 0:
        return numerator // denominator
    quotient: IntArray = np.abs(numerator) // denominator
    return np.where(numerator < 0, -quotient, quotient)
