"""What was known of the traffic of a few nodes when a decision was taken: copied, as it changes
with the next pod. `ring` keeps it beside the decision, `record` unpacks it."""

import math
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from lowtide.cluster.columns import FloatArray, Rows
from lowtide.cluster.indexes.ledger import Ledger
from lowtide.cluster.reading import Amounts
from lowtide.cluster.state import ClusterState
from lowtide.framework.profile import Profile
from lowtide.readings.columns import (
    CAPACITY,
    IS_GUESSED,
    RECEIVE_COLUMN,
    SHARE,
    STATE,
    TRANSMIT_COLUMN,
)
from lowtide.readings.demand import EXPECTED_RECEIVE, EXPECTED_TRANSMIT
from lowtide.readings.request import TrafficRequest

FIELDS: Final = (SHARE, RECEIVE_COLUMN, TRANSMIT_COLUMN, CAPACITY, IS_GUESSED, STATE)


class Dates(msgspec.Struct, frozen=True, gc=False):
    """Of a reading, which would take much more memory."""

    sampled_at: float
    window_seconds: float


class Measured(msgspec.Struct, frozen=True, gc=False):
    """`read` has a row per node and a column per field of FIELDS, NaN where not known."""

    request: TrafficRequest
    read: FloatArray
    dates: Dates
    with_pod: tuple[FloatArray, FloatArray] | None  # placed since, by direction, and the pod itself
    of_pod: Amounts | None  # what it is expected to carry; None where it was not placed
    position: int | None  # of the node where it counts already

    @property
    def added(self) -> FloatArray:
        """What was placed since, a row per direction, without the pod that was decided about."""
        if self.with_pod is None:
            return np.zeros((2, len(self.read)))
        added = np.array(self.with_pod)
        if self.of_pod is not None and self.position is not None:
            added[:, self.position] -= self.of_pod[:2]
        return added


class MeasuredNodes:
    """What one source of a state measures. What was read of a node stands together, so that it is
    found at once: keeping a decision is to cost next to nothing."""

    def __init__(self, request: TrafficRequest, state: ClusterState) -> None:
        self._request = request
        self._state = state
        self._version = -1
        self._dates = Dates(math.nan, 0.0)
        self._read: FloatArray = np.empty((0, len(FIELDS)))

    def measured_on(self, rows: Rows, position: int | None, uid: str) -> Measured | None:
        """On these rows; the pod of that uid counts already on the one at `position`. None while
        nothing was read."""
        ledger = self._state.ledgers.ledger(self._request)
        if ledger is None or not ledger.is_sampled:
            return None
        if ledger.version != self._version:
            self._version, self._read = ledger.version, _read(ledger, self._state.count)
            self._dates = Dates(ledger.reading.sampled_at, ledger.reading.window_seconds)
        columns = ledger.columns
        receive, transmit = columns.get(EXPECTED_RECEIVE), columns.get(EXPECTED_TRANSMIT)
        with_pod = None
        if receive is not None and transmit is not None:
            with_pod = receive.array.take(rows), transmit.array.take(rows)
        read = self._read.take(rows, 0)
        counted = ledger.counted(uid)
        return Measured(self._request, read, self._dates, with_pod, counted, position)


def _read(ledger: Ledger, count: int) -> FloatArray:
    found = np.full((count, len(FIELDS)), np.nan)
    for number, field in enumerate(FIELDS):
        column = ledger.columns.get(field)
        if column is not None:
            found[:, number] = column.array[:count]
    return found


def measured_by(profile: Profile, state: ClusterState) -> MeasuredNodes | None:
    request = traffic_request_of([profile])
    return None if request is None else MeasuredNodes(request, state)


def traffic_request_of(profiles: Iterable[Profile]) -> TrafficRequest | None:
    """The first: there are seldom two."""
    readings = (each for profile in profiles for each in profile.readings)
    return next((each for each in readings if isinstance(each, TrafficRequest)), None)
