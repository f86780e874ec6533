"""What is known of each node's traffic at one moment, and how far to trust it.

The meter makes it from answers, scenarios make their own; `columns` turns it into what rules read.
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
from lowtide.readings.capacity import SOURCES, CapacitySource, is_said
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
    """One node's traffic, for people. What is not known is None.

    `value` is in the unit of the request's measure, summed over devices; `receive` and `transmit`
    are in bytes per second on the device that carries most; `share` is the highest part of a
    link's capacity that is used, of any device, in any direction asked for."""

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
    """The readings of all nodes; every array has one element per name, NaN where not known.

    `window_seconds` is what the rates were taken over, `sampled_at` about when the newest sample
    in them was scraped. A node that is not named joined after the poll: take it for missing."""

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
    capacity_source: IntArray  # numbers of SOURCES
    share: FloatArray
    at: FloatArray
    state: NDArray[np.int8]  # numbers of STATES
    is_hot: BoolArray
    pods: PodTraffic

    @property
    def is_fresh(self) -> BoolArray:
        fresh: BoolArray = self.state == FRESH
        return fresh

    @property
    def has_known_capacity(self) -> BoolArray:
        return is_said(self.capacity_source)

    @property
    def is_braked(self) -> bool:
        """Whether too few nodes are fresh for any of them to be believed."""
        count = len(self.names)
        not_fresh = count - int(np.count_nonzero(self.is_fresh))
        # Rounded: 0.29 * 100 is a hair below 29.
        return not_fresh > round(self.request.brake_share * count, 6)

    def of(self, node_name: str) -> NodeReading:
        try:
            return self._at(list(self.names).index(node_name))
        except ValueError:
            return NodeReading()

    def by_node(self) -> Iterator[tuple[str, NodeReading]]:
        return ((name, self._at(position)) for position, name in enumerate(self.names))

    def _at(self, position: int) -> NodeReading:
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
    """The same values judged again at a later time, for when no new answer came."""
    is_old = now - reading.at > reading.request.stale_after_seconds
    state = np.where(reading.is_fresh & is_old, STATES.index(State.STALE), reading.state)
    return replace(reading, published_at=now, state=state.astype(np.int8))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
