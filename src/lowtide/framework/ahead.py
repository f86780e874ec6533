"""What rules would say of some rows if one more pod of the shape came to each of them.

To judge one row costs a rule as much as to judge hundreds at once, and after a pod was placed just
one row is new. So a Verdict has the rows judged ahead that the next pods of the shape will probably
go to; where one then really came, and nothing else, what was said is true."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lowtide.cluster.columns import IntArray, Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.overlay import imagined
from lowtide.cluster.state import ClusterState
from lowtide.framework.stale import NO_ROWS
from lowtide.objects.pod import Pod

_ROWS_AHEAD = 256
_MOST_UIDS = 4096
Answers = Sequence[npt.NDArray[np.generic]]  # by rule: one value per row


class Uids:
    """The pods that a verdict was asked about lately."""

    def __init__(self) -> None:
        self._uids: set[str] = set()

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids

    def add(self, uid: str) -> None:
        if len(self._uids) >= _MOST_UIDS:
            self._uids.clear()  # those that came meanwhile are judged again
        self._uids.add(uid)


class Faced(NamedTuple):
    """What rules are asked about: few rows as they are, and then those ahead with one more pod."""

    few: Rows
    ahead: Rows
    nodes: Nodes


class Ahead:
    """`uids` are the pods of this one's shape: whoever came has to be one of them."""

    def __init__(self, state: ClusterState, pod: Pod, uids: Uids) -> None:
        self._state = state
        self._pod = pod
        self._uids = uids
        self._position_of: dict[int, int] = {}  # by row
        self._versions: IntArray = np.empty(0, np.int64)  # of the rows, when they were judged
        self._answers: Answers = ()

    def forget(self) -> None:
        self._position_of = {}

    def said_of_one(self, row: int) -> list[int] | None:
        """What each rule said of this row as it is now; None where that is not known."""
        position = self._position_of.get(row)
        if position is None:
            return None
        uid = self._state.log.came_since(row, int(self._versions[position]))
        if uid is None or uid not in self._uids:
            return None
        return [int(answer[position]) for answer in self._answers]

    def said_of(self, rows: Rows) -> tuple[dict[int, list[int]], list[int]]:
        """By row: what each rule said of it as it is now; and the rows where that is not known."""
        known: dict[int, list[int]] = {}
        unknown: list[int] = []
        for row in rows.tolist():
            said = self.said_of_one(row)
            if said is None:
                unknown.append(row)
            else:
                known[row] = said
        return known, unknown

    def face(self, unknown: list[int], ranked: IntArray) -> Faced:
        """These rows, and with them some to judge ahead; `ranked` is how rows ranked before."""
        few, ahead = np.array(unknown, np.intp), self._rows_ahead(unknown, ranked)
        nodes = self._state.nodes().take(np.concatenate([few, ahead]))
        if len(ahead):
            one_more = (imagined(self._pod),)
            nodes = nodes.with_placed(dict.fromkeys(range(len(few), len(nodes)), one_more))
        return Faced(few, ahead, nodes)

    def keep(self, rows: Rows, answers: Answers) -> None:
        self._position_of = dict(zip(rows.tolist(), range(len(rows)), strict=True))
        self._versions = self._state.log.versions[rows]
        self._answers = answers

    def _rows_ahead(self, changed: list[int], ranked: IntArray) -> Rows:
        """None where what came to these are pods of other shapes, or no pods."""
        for row in changed:
            uid = self._state.log.came_last(row)
            if uid is not None and uid in self._uids:
                return _next_rows(ranked[: self._state.count], after=row)
        return NO_ROWS


def _next_rows(ranked: IntArray, after: int) -> Rows:
    """Where the next pods will probably go: the best rows, of equal ones those after that row."""
    if len(ranked) <= _ROWS_AHEAD:
        return np.flatnonzero(ranked >= 0)
    best = np.flatnonzero(ranked == ranked.max())
    if len(best) < _ROWS_AHEAD:
        return np.argpartition(ranked, -_ROWS_AHEAD)[-_ROWS_AHEAD:]
    return np.take(best, np.searchsorted(best, after) + np.arange(_ROWS_AHEAD), mode="wrap")
