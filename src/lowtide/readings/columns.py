"""Turns a TrafficReading into columns of the node table, which NetworkTraffic reads.

A node that is not trusted gets average values, so that pods placed on it still count; its state
shows that it is not trusted.
"""

import math

import numpy as np

from lowtide.cluster.columns import BoolArray, FloatArray
from lowtide.cluster.reading import Reading
from lowtide.readings.reading import STATES, State, TrafficReading

VALUE_COLUMN = "value"  # in the unit of the measure
HIGHEST_VALUE = "highest_value"  # of any node, the same in every row
RECEIVE_COLUMN = "receive"  # bytes per second on the busiest device
TRANSMIT_COLUMN = "transmit"
CAPACITY = "capacity"  # of that device, bytes per second in each direction
SHARE = "share"  # used share of the capacity on the most loaded device
STATE = "state"  # index into STATES
IS_HOT = "is_hot"
MAY_BE_HOT = "may_be_hot"  # fresh, and the capacity is known
IS_GUESSED = "is_guessed"  # the capacity is guessed from other nodes' traffic


def published(reading: TrafficReading) -> Reading:
    """Values, rates and shares are NaN for all nodes if no node is fresh, or too few are."""
    is_trusted = reading.is_fresh & (not reading.is_ignored)
    value = _with_average(reading.value, is_trusted)
    capacity = np.where(reading.capacity > 0, reading.capacity, _median(reading.capacity))
    share = _with_average(reading.share, is_trusted)
    is_known = is_trusted & (reading.capacity > 0) & np.isfinite(reading.share)
    is_guessed = ~reading.has_known_capacity
    is_mostly_guessed = is_guessed[is_trusted].mean() > 0.5 if is_trusted.any() else False
    columns = {
        VALUE_COLUMN: value,
        HIGHEST_VALUE: np.full(len(value), _highest(value)),
        RECEIVE_COLUMN: np.where(is_known, reading.receive, share * capacity),
        TRANSMIT_COLUMN: np.where(is_known, reading.transmit, share * capacity),
        CAPACITY: capacity,
        SHARE: share,
        STATE: reading.state.astype(np.float64),
        IS_HOT: (reading.is_hot & is_trusted).astype(np.float64),
        MAY_BE_HOT: (reading.has_known_capacity & is_trusted).astype(np.float64),
        IS_GUESSED: np.where(is_trusted, is_guessed, is_mostly_guessed).astype(np.float64),
    }
    return Reading(
        names=reading.names,
        columns=columns,
        of_others={**_for_other_nodes(columns, is_trusted), IS_GUESSED: float(is_mostly_guessed)},
        expects=reading.pods if reading.request.is_rate else None,
        sampled_at=reading.sampled_at,
        window_seconds=reading.window_seconds,
    )


def _with_average(values: FloatArray, is_trusted: BoolArray) -> FloatArray:
    """An unknown node gets the average, so that it is neither preferred nor avoided."""
    known = values[is_trusted & np.isfinite(values)]
    average = float(known.mean()) if len(known) else math.nan
    return np.where(is_trusted & np.isfinite(values), values, average)


def _for_other_nodes(columns: dict[str, FloatArray], is_trusted: BoolArray) -> dict[str, float]:
    """The values of a node that joined after the poll: averages, with the state missing."""
    value, share = columns[VALUE_COLUMN][is_trusted], columns[SHARE][is_trusted]
    average_share = float(share.mean()) if len(share) else math.nan
    capacity = _median(columns[CAPACITY])
    return {
        VALUE_COLUMN: float(value.mean()) if len(value) else math.nan,
        HIGHEST_VALUE: _highest(columns[VALUE_COLUMN]),
        RECEIVE_COLUMN: average_share * capacity,
        TRANSMIT_COLUMN: average_share * capacity,
        CAPACITY: capacity,
        SHARE: average_share,
        STATE: float(STATES.index(State.MISSING)),
        IS_HOT: 0.0,
        MAY_BE_HOT: 0.0,
    }


def _median(values: FloatArray) -> float:
    known = values[values > 0]
    return float(np.median(known)) if len(known) else math.nan


def _highest(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else math.nan
