"""Each node's traffic at one moment, and how far to trust it.

The meter and scenarios make a TrafficReading; `columns` turns it into columns that plugins read.
"""

import enum
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from lowtide.cluster.columns import BoolArray, FloatArray, IntArray
from lowtide.readings.capacity import SOURCES, CapacitySource, is_given
from lowtide.readings.demand import PodTraffic
from lowtide.readings.peaks import Peaks
from lowtide.readings.request import TrafficRequest


class State(enum.Enum):
    """How far a node's reading can be trusted."""

    FRESH = "fresh"
    STALE = "stale"
    MISSING = "missing"
    IMPLAUSIBLE = "implausible"


STATES: Final = tuple(State)
FRESH: Final = STATES.index(State.FRESH)


class NodeReading(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One node's traffic, for display. Unknown values are None.

    `value` is in the unit of the request's measure, summed over devices. `receive` and `transmit`
    are bytes per second on the busiest device. `share` is the highest used share of a link's
    capacity, over all devices, in the requested direction."""

    value: float | None = None
    receive: float | None = None
    transmit: float | None = None
    capacity_bytes_per_second: float | None = None
    capacity_source: CapacitySource = CapacitySource.UNKNOWN
    share: float | None = None
    at: float | None = None
    state: State = State.MISSING
    is_hot: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TrafficReading:
    """The readings of all nodes. Each array has one element per name, NaN where unknown.

    `window_seconds` is the window of the rates; `sampled_at` is about when the newest sample in
    them was scraped. A node that is not in `names` joined after the poll and counts as missing."""

    request: TrafficRequest
    published_at: float
    sampled_at: float
    window_seconds: float
    names: Sequence[str]
    value: FloatArray
    receive: FloatArray
    transmit: FloatArray
    peaks: Peaks  # so far
    capacity: FloatArray
    capacity_source: IntArray  # indexes into SOURCES
    share: FloatArray
    at: FloatArray
    state: NDArray[np.int8]  # indexes into STATES
    is_hot: BoolArray
    pods: PodTraffic

    @property
    def is_fresh(self) -> BoolArray:
        fresh: BoolArray = self.state == FRESH
        return fresh

    @property
    def has_known_capacity(self) -> BoolArray:
        return is_given(self.capacity_source)

    @property
    def is_ignored(self) -> bool:
        """True if so few nodes are fresh that none is trusted."""
        count = len(self.names)
        not_fresh = count - int(np.count_nonzero(self.is_fresh))
        # Rounded, because 0.29 * 100 is slightly below 29 in floating point.
        return not_fresh > round(self.request.brake_share * count, 6)

    def node_reading(self, node_name: str) -> NodeReading:
        try:
            return self._reading_at(list(self.names).index(node_name))
        except ValueError:
            return NodeReading()

    def by_node(self) -> Iterator[tuple[str, NodeReading]]:
        return ((name, self._reading_at(position)) for position, name in enumerate(self.names))

    def _reading_at(self, position: int) -> NodeReading:
        return NodeReading(
            value=_known(self.value[position]),
            receive=_known(self.receive[position]),
            transmit=_known(self.transmit[position]),
            capacity_bytes_per_second=_known(self.capacity[position]),
            capacity_source=SOURCES[self.capacity_source[position]],
            share=_known(self.share[position]),
            at=_known(self.at[position]),
            state=STATES[self.state[position]],
            is_hot=bool(self.is_hot[position]),
        )


def aged(reading: TrafficReading, now: float) -> TrafficReading:
    """The same values judged at a later time, when no new answer came."""
    is_old = now - reading.at > reading.request.stale_after_seconds
    state = np.where(reading.is_fresh & is_old, STATES.index(State.STALE), reading.state)
    return replace(reading, published_at=now, state=state.astype(np.int8))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
