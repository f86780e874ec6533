"""What was known of the traffic of a few nodes when a decision was taken: copied, as it changes
with the next pod. `ring` keeps it beside the decision, `record` unpacks it."""

from typing import Final

import msgspec
import numpy as np

from lowtide.cluster.columns import FloatArray, Rows
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

FIELDS: Final = (
    *(SHARE, RECEIVE_COLUMN, TRANSMIT_COLUMN, CAPACITY, IS_GUESSED, STATE),
    *(EXPECTED_RECEIVE, EXPECTED_TRANSMIT),
)


class Measured(msgspec.Struct, frozen=True, gc=False):
    """`values` has a row per field of FIELDS and a column per node; NaN where not known. What is
    expected on a node is without the pod that was decided about."""

    request: TrafficRequest
    values: FloatArray
    sampled_at: float
    window_seconds: float
    of_pod: Amounts | None  # what it is expected to carry; None where it was not placed


class MeasuredNodes:
    """What one source of a state measures."""

    def __init__(self, request: TrafficRequest, state: ClusterState) -> None:
        self._request = request
        self._state = state

    def of(self, rows: Rows, position: int | None, uid: str) -> Measured | None:
        """On these rows; the pod of that uid counts already on the one at `position`. None while
        nothing was read."""
        ledger = self._state.ledgers.of(self._request)
        if ledger is None or not ledger.is_sampled:
            return None
        columns, reading = ledger.columns, ledger.reading
        values = np.array(
            [
                columns[field].array[rows] if field in columns else _of_none(field, rows)
                for field in FIELDS
            ]
        )
        counted = ledger.counted(uid)
        if counted is not None and position is not None:
            values[-2:, position] -= counted
        return Measured(self._request, values, reading.sampled_at, reading.window_seconds, counted)


def _of_none(field: str, rows: Rows) -> FloatArray:
    """Where nothing is expected of pods, they add nothing."""
    return np.full(len(rows), 0.0 if field in (EXPECTED_RECEIVE, EXPECTED_TRANSMIT) else np.nan)


def measured_by(profile: Profile, state: ClusterState) -> MeasuredNodes | None:
    """By the first traffic request: a profile seldom has two."""
    for each in profile.readings:
        if isinstance(each, TrafficRequest):
            return MeasuredNodes(each, state)
    return None
