"""How busy links would be had pods gone elsewhere: what is measured, less what each such pod is
expected to carry where it is, and that where it would have been. Shadow mode compares the two."""

import msgspec
import numpy as np
from msgspec.structs import replace

from lowtide.cluster.columns import FloatArray
from lowtide.cluster.indexes.ledger import Ledger
from lowtide.cluster.state import ClusterState
from lowtide.objects.pod import Pod
from lowtide.readings.columns import CAPACITY, RECEIVE_COLUMN, SHARE, TRANSMIT_COLUMN
from lowtide.readings.demand import EXPECTED_RECEIVE, EXPECTED_TRANSMIT
from lowtide.readings.judging import share_after, share_with
from lowtide.readings.request import TrafficRequest

_BOOKED = " elsewhere"  # behind the uid


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


class PredictedLinks:
    """A pod that would be elsewhere is booked there: it counts in the traffic of that node for the
    decisions that follow, so that not every pod would go to the one quiet node."""

    def __init__(self, request: TrafficRequest, state: ClusterState) -> None:
        self._request = request
        self._state = state
        self._moved: dict[str, _Moved] = {}  # by uid

    @property
    def moved_count(self) -> int:
        return len(self._moved)

    def move(self, pod: Pod, from_node: str, to_node: str) -> None:
        """`pod` as it was before it had a node, so that none of it counts as measured."""
        self.forget(pod.uid)
        self._moved[pod.uid] = _Moved(from_node, to_node)
        booked = replace(pod, metadata=replace(pod.metadata, uid=pod.uid + _BOOKED))
        self._state.ledgers.book(booked, to_node)

    def forget(self, uid: str) -> None:
        """The pod is gone, and would be."""
        if self._moved.pop(uid, None) is not None:
            self._state.ledgers.unbook(uid + _BOOKED)

    def hottest(self) -> Hottest | None:
        """None while nothing is measured."""
        ledger = self._state.ledgers.ledger(self._request)
        shares = None if ledger is None else self._shares(ledger)
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

    def _shares(self, ledger: Ledger) -> tuple[FloatArray, FloatArray] | None:
        count = self._state.count
        if not ledger.is_sampled or not count:
            return None
        columns = {name: column.array[:count] for name, column in ledger.columns.items()}
        into, out = self._amounts(ledger)
        carried = np.array([columns[RECEIVE_COLUMN], columns[TRANSMIT_COLUMN]])
        if EXPECTED_RECEIVE in columns:
            carried += [columns[EXPECTED_RECEIVE], columns[EXPECTED_TRANSMIT]]
        carried -= into  # what is booked is not there
        capacity = columns[CAPACITY]
        actual = share_with(self._request, carried[0], carried[1], capacity, columns[SHARE])
        if np.isnan(actual).all():
            return None
        would_be = np.maximum(carried + into - out, 0.0)
        before, after = (carried[0], carried[1]), (would_be[0], would_be[1])
        return actual, share_after(self._request, before, after, capacity, actual)

    def _amounts(self, ledger: Ledger) -> tuple[FloatArray, FloatArray]:
        """What comes to each row and what goes from it, by direction."""
        into, out = np.zeros((2, self._state.count)), np.zeros((2, self._state.count))
        for uid, moved in self._moved.items():
            amounts = ledger.counted(uid + _BOOKED)
            if amounts is None:
                continue
            for name, where in ((moved.to_node, into), (moved.from_node, out)):
                row = self._state.row_of(name)
                if row is not None:
                    where[:, row] += amounts[:2]
        return into, out
