"""A recorded reading as it would have been, had some pods been on other nodes: what was measured of
each goes with it."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec
import numpy as np

from lowtide.cluster.columns import BoolArray, FloatArray
from lowtide.cluster.reading import Reading
from lowtide.objects.pod import Pod
from lowtide.readings.columns import (
    CAPACITY,
    HIGHEST_VALUE,
    IS_HOT,
    MAY_BE_HOT,
    RECEIVE_COLUMN,
    SHARE,
    TRANSMIT_COLUMN,
    VALUE_COLUMN,
)
from lowtide.readings.judging import loaded, share_after
from lowtide.readings.request import TrafficRequest


class MovedPod(msgspec.Struct, frozen=True):
    """As it was recorded on `from_node`; None where it had none, or has none now."""

    pod: Pod
    from_node: str | None
    to_node: str | None


def moved_reading(reading: Reading, request: TrafficRequest, pods: Iterable[MovedPod]) -> Reading:
    expects = reading.expects
    if expects is None or not reading.has_more_to_come or RECEIVE_COLUMN not in reading.columns:
        return reading
    position_of = {name: position for position, name in enumerate(reading.names)}
    more = np.zeros((2, len(reading.names)))
    for each in pods:
        measured = 1.0 - reading.still_to_come(each.pod)
        if measured <= 0:
            continue
        amounts = measured * np.array(expects.of(each.pod)[:2])
        for name, sign in ((each.from_node, -1.0), (each.to_node, 1.0)):
            position = position_of.get(name or "")
            if position is not None:
                more[:, position] += sign * amounts
    is_changed: BoolArray = (more != 0).any(axis=0)
    if not is_changed.any():
        return reading
    return replace(reading, columns=_moved(reading, request, more, is_changed), worked_out={})


def _moved(
    reading: Reading, request: TrafficRequest, more: FloatArray, is_changed: BoolArray
) -> dict[str, FloatArray]:
    columns = dict(reading.columns)
    before = columns[RECEIVE_COLUMN], columns[TRANSMIT_COLUMN]
    receive = np.maximum(before[0] + more[0], 0.0)
    transmit = np.maximum(before[1] + more[1], 0.0)
    share = share_after(request, before, (receive, transmit), columns[CAPACITY], columns[SHARE])
    columns[RECEIVE_COLUMN], columns[TRANSMIT_COLUMN] = receive, transmit
    columns[SHARE] = np.where(is_changed, share, columns[SHARE])
    is_hot = (share >= request.hot_share) & (columns[MAY_BE_HOT] > 0)
    columns[IS_HOT] = np.where(is_changed, is_hot, columns[IS_HOT])
    gained = loaded(request, receive, transmit) - loaded(request, *before)
    if request.direction == "sum":
        gained = 2 * gained
    if request.measure == "increase":
        gained = gained * request.window_seconds
    value = np.maximum(columns[VALUE_COLUMN] + gained, 0.0)
    columns[VALUE_COLUMN] = value
    known = value[np.isfinite(value)]
    columns[HIGHEST_VALUE] = np.full(len(value), known.max() if len(known) else np.nan)
    return columns
