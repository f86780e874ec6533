"""How busy links would be had pods gone elsewhere: what is measured, less what each such pod is
expected to carry where it is, and that where it would have been. Shadow mode compares the two."""

import msgspec
import numpy as np

from lowtide.cluster.columns import FloatArray
from lowtide.cluster.state import ClusterState
from lowtide.readings.columns import CAPACITY, RECEIVE_COLUMN, SHARE, TRANSMIT_COLUMN
from lowtide.readings.demand import EXPECTED_RECEIVE, EXPECTED_TRANSMIT
from lowtide.readings.judging import loaded
from lowtide.readings.request import TrafficRequest


class Hottest(msgspec.Struct, frozen=True):
    """The busiest link as it is and as it would be, as shares of their capacity, and the 95th
    percentile of all links."""

    share: float
    node: str
    predicted_share: float
    predicted_node: str
    p95: float
    predicted_p95: float


class _Moved(msgspec.Struct, frozen=True):
    from_node: str
    to_node: str
    receive: float
    transmit: float


class PredictedLinks:
    def __init__(self, request: TrafficRequest, state: ClusterState) -> None:
        self._request = request
        self._state = state
        self._moved: dict[str, _Moved] = {}  # by uid
        self._by_node: dict[str, list[float]] = {}  # what comes to each node by that

    @property
    def moved_count(self) -> int:
        return len(self._moved)

    def move(self, uid: str, from_node: str, to_node: str, expected: dict[str, float]) -> None:
        receive, transmit = (
            expected.get(EXPECTED_RECEIVE, 0.0),
            expected.get(EXPECTED_TRANSMIT, 0.0),
        )
        self.forget(uid)
        moved = self._moved[uid] = _Moved(from_node, to_node, receive, transmit)
        self._count(moved, 1)

    def forget(self, uid: str) -> None:
        """The pod is gone, and would be."""
        moved = self._moved.pop(uid, None)
        if moved is not None:
            self._count(moved, -1)

    def hottest(self) -> Hottest | None:
        """None while nothing is measured."""
        shares = self._shares()
        if shares is None:
            return None
        actual, predicted = shares
        names = self._state.names
        worst, would_be = int(np.nanargmax(actual)), int(np.nanargmax(predicted))
        return Hottest(
            share=float(actual[worst]),
            node=names[worst],
            predicted_share=float(predicted[would_be]),
            predicted_node=names[would_be],
            p95=float(np.nanpercentile(actual, 95)),
            predicted_p95=float(np.nanpercentile(predicted, 95)),
        )

    def _shares(self) -> tuple[FloatArray, FloatArray] | None:
        ledger, count = self._state.ledgers.of(self._request), self._state.count
        if ledger is None or not ledger.is_sampled or not count:
            return None
        columns = {name: column.array[:count] for name, column in ledger.columns.items()}
        receive = columns[RECEIVE_COLUMN] + columns[EXPECTED_RECEIVE]
        transmit = columns[TRANSMIT_COLUMN] + columns[EXPECTED_TRANSMIT]
        actual = np.fmax(
            loaded(self._request, receive, transmit) / columns[CAPACITY], columns[SHARE]
        )
        if np.isnan(actual).all():
            return None
        more_receive, more_transmit = np.zeros(count), np.zeros(count)
        for name, (into, out) in self._by_node.items():
            row = self._state.row_of(name)
            if row is not None:
                more_receive[row], more_transmit[row] = into, out
        is_moved = (more_receive != 0) | (more_transmit != 0)
        after = loaded(
            self._request,
            np.maximum(receive + more_receive, 0.0),
            np.maximum(transmit + more_transmit, 0.0),
        )
        return actual, np.where(is_moved, after / columns[CAPACITY], actual)

    def _count(self, moved: _Moved, times: int) -> None:
        for name, sign in ((moved.from_node, -times), (moved.to_node, times)):
            amounts = self._by_node.setdefault(name, [0.0, 0.0])
            amounts[0] += sign * moved.receive
            amounts[1] += sign * moved.transmit
