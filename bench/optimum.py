"""The fractional optimum: the peak below which no placement of pods on links can stay.

Burst divides what a scheduler reached by it."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def fractional_optimum(
    capacity: FloatArray, background_share: FloatArray, demand_bytes_per_second: float
) -> float:
    """The lowest peak share of any link if the demand could be split at will: it is poured onto
    the quietest links until they stand level. The busiest background is there in any case."""
    quietest_first = np.argsort(background_share)
    share, room = background_share[quietest_first], capacity[quietest_first]
    # The level if only the first one, two, three ... links took all of the demand.
    levels = (demand_bytes_per_second + np.cumsum(share * room)) / np.cumsum(room)
    return float(max(levels.min(), share[-1]))
