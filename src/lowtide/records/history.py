"""What the last readings said of each node's link, for charts: bounded in bytes."""

from collections import deque
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from lowtide.cluster.columns import FloatArray
from lowtide.cluster.reading import Reading
from lowtide.readings.columns import CAPACITY, RECEIVE_COLUMN, SHARE, TRANSMIT_COLUMN

_FIELDS = (RECEIVE_COLUMN, TRANSMIT_COLUMN, SHARE)
MOST_READINGS = 720
MOST_BYTES = 24 * 1024 * 1024


class _Moment(msgspec.Struct, frozen=True, gc=False):
    at: float
    names: Sequence[str]
    values: npt.NDArray[np.float32]  # a row per field


class NodeHistory(msgspec.Struct, frozen=True):
    times: list[float]
    receive: list[float | None]
    transmit: list[float | None]
    share: list[float | None]
    capacity: float | None


class History:
    def __init__(self, most_readings: int = MOST_READINGS, most_bytes: int = MOST_BYTES) -> None:
        self._most_readings = most_readings
        self._most_bytes = most_bytes
        self._moments: deque[_Moment] = deque()
        self._bytes = 0
        self._capacity: tuple[Sequence[str], FloatArray] = (), np.empty(0)

    def note(self, reading: Reading, at: float) -> None:
        columns = [reading.columns.get(field) for field in _FIELDS]
        known = [column for column in columns if column is not None]
        if len(known) < len(_FIELDS):
            return
        moment = _Moment(at, reading.names, np.array(known, np.float32))
        self._moments.append(moment)
        self._bytes += moment.values.nbytes
        self._capacity = reading.names, reading.columns[CAPACITY]
        while len(self._moments) > self._most_readings or self._bytes > self._most_bytes:
            self._bytes -= self._moments.popleft().values.nbytes

    def node_history(self, node_name: str) -> NodeHistory:
        times: list[float] = []
        found: list[list[float | None]] = [[] for _ in _FIELDS]
        positions: dict[int, int | None] = {}  # most readings share one list of names
        for moment in tuple(self._moments):  # another thread may note meanwhile
            key = id(moment.names)
            if key not in positions:
                positions[key] = _position(moment.names, node_name)
            position = positions[key]
            if position is None:
                continue
            times.append(moment.at)
            for values, value in zip(found, moment.values[:, position].tolist(), strict=True):
                values.append(value if np.isfinite(value) else None)
        names, capacity = self._capacity
        last = _position(names, node_name)
        receive, transmit, share = found
        known = None if last is None else float(capacity[last])
        return NodeHistory(times, receive, transmit, share, known)


def _position(names: Sequence[str], node_name: str) -> int | None:
    try:
        return names.index(node_name)
    except ValueError:
        return None
