"""A recorded reading as it would have been, had some pods been on other nodes: what was measured of
each goes with it. `rerun` asks for each reading."""

from collections.abc import Iterable, Sequence
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
    """Which nodes are hot by that, `HotNodes` tells."""
    expects = reading.expects
    if expects is None or not reading.can_miss_pods or RECEIVE_COLUMN not in reading.columns:
        return reading
    position_of = {name: position for position, name in enumerate(reading.names)}
    more = np.zeros((2, len(reading.names)))
    for each in pods:
        measured = 1.0 - reading.unmeasured_share(each.pod)
        if measured <= 0:
            continue
        amounts = measured * np.array(expects.expected_for(each.pod)[:2])
        for name, sign in ((each.from_node, -1.0), (each.to_node, 1.0)):
            position = position_of.get(name or "")
            if position is not None:
                more[:, position] += sign * amounts
    is_changed: BoolArray = (more != 0).any(axis=0)
    if not is_changed.any():
        return reading
    return replace(reading, columns=_moved(reading, request, more, is_changed), precomputed={})


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


class HotNodes:
    """Of the readings of one source, in their order. A node that carries what it did then, and was
    hot here before where it was then, is judged as it was; any other one by what it carries here:
    one that was hot is, until it has cooled."""

    def __init__(self, request: TrafficRequest) -> None:
        self._request = request
        self._then: frozenset[str] = frozenset()
        self._here: frozenset[str] = frozenset()

    def judged(self, then: Reading, here: Reading) -> Reading:
        """`here` is `then` after pods were moved."""
        if RECEIVE_COLUMN not in here.columns:
            return here
        names, share = here.names, here.columns[SHARE]
        was_hot_then, was_hot = _are_in(self._then, names), _are_in(self._here, names)
        may_be_hot = here.columns[MAY_BE_HOT] > 0
        cooled = self._request.hot_share - self._request.cooling_share
        by_share = may_be_hot & (share >= np.where(was_hot, cooled, self._request.hot_share))
        differs = (share != then.columns[SHARE]) | (was_hot != was_hot_then)
        is_hot_then = then.columns[IS_HOT] > 0
        is_hot = np.where(differs, by_share, is_hot_then)
        # A node of which nothing is known has not cooled.
        self._then = _named(is_hot_then | (was_hot_then & ~may_be_hot), names)
        self._here = _named(is_hot | (was_hot & ~may_be_hot), names)
        return replace(here, columns={**here.columns, IS_HOT: is_hot.astype(np.float64)})


def _are_in(some: frozenset[str], names: Sequence[str]) -> BoolArray:
    return np.array([name in some for name in names], np.bool_)


def _named(is_one: BoolArray, names: Sequence[str]) -> frozenset[str]:
    return frozenset(names[row] for row in np.flatnonzero(is_one).tolist())
