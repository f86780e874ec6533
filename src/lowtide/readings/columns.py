"""A traffic reading as columns of the table of nodes: what NetworkTraffic scores from.

The machine publishes them; a value that is not trusted is NaN, and the neutral value stands by.
"""

import math
from collections.abc import Mapping

from lowtide.readings.reading import NodeReading, State, TrafficReading

VALUE = "value"  # in the unit of the measure, what was just placed included
SHARE = "share"  # of the link's capacity
NEUTRAL_VALUE = "neutral_value"  # what a node without a reading is taken for
NEUTRAL_SHARE = "neutral_share"

Fields = Mapping[str, float]


def traffic_columns(reading: TrafficReading) -> tuple[dict[str, Fields], Fields]:
    """(fields by node, fields of any other node)."""
    trusted = {
        name: one.value + one.expected
        for name, one in reading.by_node.items()
        if one.state is State.FRESH and math.isfinite(one.value)
    }
    highest = max(trusted.values(), default=0.0)
    # An increase counts bytes over the whole window, a capacity bytes in one second.
    seconds = reading.request.window_seconds if reading.request.measure == "increase" else 1
    shares = {
        name: share
        for name, value in trusted.items()
        if not math.isnan(share := _share(value, reading.by_node[name], highest, seconds))
    }
    neutral: Fields = {NEUTRAL_VALUE: _mean(trusted), NEUTRAL_SHARE: _mean(shares)}
    by_node: dict[str, Fields] = {
        name: {VALUE: value, SHARE: shares.get(name, math.nan), **neutral}
        for name, value in trusted.items()
    }
    return by_node, {VALUE: math.nan, SHARE: math.nan, **neutral}


def _share(value: float, one: NodeReading, highest: float, seconds: int) -> float:
    """Without a known capacity, the busiest node stands for a full link."""
    capacity = (one.capacity_bytes_per_second or 0.0) * seconds or highest
    return value / capacity if capacity > 0 else 0.0


def _mean(values: Mapping[str, float]) -> float:
    """A node that nothing is known of is neither favoured nor avoided: it counts as average."""
    return sum(values.values()) / len(values) if values else math.nan
