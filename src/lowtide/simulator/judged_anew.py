"""A recorded reading as another request would have judged it, as far as what was recorded tells: by
another direction of the busiest link, and by other thresholds. `rerun` asks for each reading."""

from dataclasses import replace
from typing import Final

import numpy as np

from lowtide.cluster.columns import BoolArray, FloatArray
from lowtide.cluster.reading import Reading
from lowtide.readings.columns import (
    CAPACITY,
    HIGHEST_VALUE,
    IS_HOT,
    MAY_BE_HOT,
    RECEIVE_COLUMN,
    SHARE,
    STATE,
    TRANSMIT_COLUMN,
    VALUE_COLUMN,
)
from lowtide.readings.judging import loaded
from lowtide.readings.reading import FRESH
from lowtide.readings.request import TrafficRequest

_OF_NO_MATTER: Final = ("access",)
_THRESHOLDS: Final = ("hot_share", "cooling_share")
_AS_FAR_AS_FLOATS_TELL: Final = 1e-6


def taken_as_recorded(recorded: TrafficRequest, request: TrafficRequest) -> list[str]:
    """What the request asks for in another way that cannot be judged anew, in words."""
    judged = [*_OF_NO_MATTER, *_THRESHOLDS]
    if _has_both_directions(recorded):
        judged.append("direction")
    found = []
    for name in TrafficRequest.__struct_fields__:
        then, here = getattr(recorded, name), getattr(request, name)
        if name not in judged and then != here:
            found.append(f"{name.replace('_', ' ')} {_shown(then)} -> {_shown(here)}")
    return found


class JudgedAnew:
    """Of the readings of one source, in their order."""

    def __init__(self, recorded: TrafficRequest, request: TrafficRequest) -> None:
        self.recorded = recorded
        self._request = request
        self._turns = recorded.direction != request.direction and _has_both_directions(recorded)
        self._cools = any(getattr(recorded, name) != getattr(request, name) for name in _THRESHOLDS)
        self._hot: frozenset[str] = frozenset()
        self._on_several_links = 0

    @property
    def is_needed(self) -> bool:
        return self._turns or self._cools

    @property
    def inexactness(self) -> str:
        """What is not quite as it would have been, in words; empty where all is."""
        if not self._on_several_links:
            return ""
        return (
            f"asks for the direction {self._request.direction} instead of "
            f"{self.recorded.direction}; on {self._on_several_links} nodes with traffic on several "
            "links only the busiest one is judged by it"
        )

    def judged(self, reading: Reading) -> Reading:
        if RECEIVE_COLUMN not in reading.columns or not self.is_needed:
            return reading
        columns, others = dict(reading.columns), dict(reading.of_others)
        if self._turns:
            self._turn(columns, others)
        columns[IS_HOT] = self._judged_hot(reading, columns)
        return replace(reading, columns=columns, of_others=others, precomputed={})

    def _turn(self, columns: dict[str, FloatArray], others: dict[str, float]) -> None:
        receive, transmit = columns[RECEIVE_COLUMN], columns[TRANSMIT_COLUMN]
        is_trusted = (columns[STATE] == FRESH) & np.isfinite(columns[SHARE])
        was = _value(self.recorded, receive, transmit)
        is_more = is_trusted & (columns[VALUE_COLUMN] > was * (1 + _AS_FAR_AS_FLOATS_TELL))
        self._on_several_links = max(self._on_several_links, int(is_more.sum()))
        share = loaded(self._request, receive, transmit) / columns[CAPACITY]
        columns[SHARE] = _with_average(share, is_trusted)
        value = _with_average(_value(self._request, receive, transmit), is_trusted)
        columns[VALUE_COLUMN] = value
        if is_trusted.any():
            highest = float(value[is_trusted].max())
            columns[HIGHEST_VALUE] = np.full(len(value), highest)
            others[HIGHEST_VALUE] = highest
            others[SHARE] = float(columns[SHARE][is_trusted].mean())
            others[VALUE_COLUMN] = float(value[is_trusted].mean())

    def _judged_hot(self, reading: Reading, columns: dict[str, FloatArray]) -> FloatArray:
        """One that was hot is, until it has cooled."""
        may_be = columns[MAY_BE_HOT] > 0
        was_hot = np.array([name in self._hot for name in reading.names], np.bool_)
        cooled = self._request.hot_share - self._request.cooling_share
        is_hot = may_be & (columns[SHARE] >= np.where(was_hot, cooled, self._request.hot_share))
        names = reading.names
        stay = {names[row] for row in np.flatnonzero(was_hot & ~may_be).tolist()}
        self._hot = frozenset(stay | {names[row] for row in np.flatnonzero(is_hot).tolist()})
        return is_hot.astype(np.float64)


def _has_both_directions(request: TrafficRequest) -> bool:
    return request.direction in ("max", "sum") and not request.template and request.is_rate


def _value(request: TrafficRequest, receive: FloatArray, transmit: FloatArray) -> FloatArray:
    """Of a node with one link."""
    value = loaded(request, receive, transmit)
    if request.direction == "sum":
        value = 2 * value
    return value * request.window_seconds if request.measure == "increase" else value


def _with_average(values: FloatArray, is_trusted: BoolArray) -> FloatArray:
    average = float(values[is_trusted].mean()) if is_trusted.any() else np.nan
    return np.where(is_trusted, values, average)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value) if value != "" else "none"
