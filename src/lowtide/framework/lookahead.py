"""Lookahead: what plugins would answer about some rows with one to four more pods of the signature
on each of them.

A plugin judges hundreds of rows at the cost of one, and placing a pod changes just one row. So a
Verdict also asks about the rows where the next pods of the signature will probably go. If such pods
then come to a row, and nothing else changes it, the answer holds."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lowtide.cluster.change_log import MOST_ARRIVALS
from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.overlay import hypothetical_pod
from lowtide.cluster.state import ClusterState
from lowtide.objects.pod import Pod

NO_ROWS: Rows = np.empty(0, np.intp)
_ROWS_AHEAD = 256
# Several pods may come to one row before the next row is chosen.
_MOST_PODS_AHEAD = MOST_ARRIVALS
_MOST_WITHOUT_USE = 4
_TRIED_EVERY = 256
_BYTES_PER_ROW_AHEAD = 150  # besides the answers
AnswersAhead = Sequence[npt.NDArray[np.integer]]  # by plugin


def lookahead_bytes(row_count: int, plugin_count: int) -> int:
    """The memory that the lookahead of filters and scores takes for a table of this size."""
    answers = 8 * plugin_count * _MOST_PODS_AHEAD
    return min(row_count, _ROWS_AHEAD) * (2 * _BYTES_PER_ROW_AHEAD + answers)


class Batch(NamedTuple):
    """The rows that plugins judge at once. `nodes` has the rows `few` as they are, then the rows
    `ahead` with one more pod each, then with two more, and so on."""

    few: Rows
    ahead: Rows
    nodes: Nodes


class LookaheadBatches:
    """Makes the batch of rows to judge after pods of the signature were placed. Filters and scores
    usually need the same one, so `last` is kept until it is dropped."""

    def __init__(self, state: ClusterState, pod: Pod, signature: bytes) -> None:
        self._state = state
        self._pod = pod
        self.signature = signature
        self.last: tuple[int, list[int], Batch] | None = None
        self.without_use = 0  # batches since an answer from the lookahead was last used

    def batch(self, unknown: list[int], ranked: IntArray, feasible: BoolArray | None) -> Batch:
        """These rows, and some to judge ahead, chosen by the last ranking."""
        position = self._state.log.position
        if self.last is None or self.last[:2] != (position, unknown):
            made = self._made(unknown, self._rows_ahead(unknown, ranked), feasible)
            self.last = position, unknown, made
        return self.last[2]

    def _made(self, unknown: list[int], ahead: Rows, feasible: BoolArray | None) -> Batch:
        few = np.array(unknown, np.intp)
        rows = np.concatenate([few, *[ahead] * _MOST_PODS_AHEAD])
        nodes = self._state.nodes(feasible).take(rows)
        if len(ahead):
            more = np.repeat(np.arange(1, _MOST_PODS_AHEAD + 1), len(ahead))
            times = np.concatenate([np.zeros(len(few), np.int64), more])
            nodes = nodes.with_copies(hypothetical_pod(self._pod), times)
        return Batch(few, ahead, nodes)

    def _rows_ahead(self, changed: list[int], ranked: IntArray) -> Rows:
        """The rows to judge ahead. Returns no rows unless the last change of a changed row was the
        arrival of a pod of the signature. Returns no rows if recent lookahead answers were never
        used, for example because other pods come to the same rows; then only every 256th batch
        tries again."""
        self.without_use += 1
        if self.without_use > _MOST_WITHOUT_USE and self.without_use % _TRIED_EVERY:
            return NO_ROWS
        for row in changed:
            if self._state.log.last_arrival(row) == self.signature:
                return _next_rows(ranked[: self._state.count], after=row)
        return NO_ROWS


class Lookahead:
    """The answers of the local plugins of one Evaluation about rows judged ahead."""

    def __init__(self, state: ClusterState, batches: LookaheadBatches) -> None:
        self._state = state
        self._batches = batches
        self._position_of: dict[int, int] = {}  # by row
        self._versions: list[int] = []  # each row's version when it was judged
        self._answers: AnswersAhead = ()

    def forget(self) -> None:
        self._position_of = {}

    def keep(self, rows: Rows, answers: AnswersAhead) -> None:
        """Each plugin's answers hold the rows with one more pod first, then with two, and so on."""
        if not len(rows):
            self.forget()
            return
        self._position_of = dict(zip(rows.tolist(), range(len(rows)), strict=True))
        self._versions = self._state.log.versions[rows].tolist()
        self._answers = answers

    def answers_for(self, row: int) -> list[int] | None:
        """Each plugin's answer that holds for this row now; None if there is none."""
        position = self._position_of.get(row)
        if position is None:
            return None
        version, signature = self._versions[position], self._batches.signature
        came = self._state.log.arrivals_since(row, version, signature)
        if not came:
            return None
        at = position + (came - 1) * len(self._position_of)
        return [answer.item(at) for answer in self._answers]

    def split(self, rows: Rows) -> tuple[dict[int, list[int]], list[int]]:
        """The answers that hold now, by row; and the rows without such answers."""
        if not self._position_of:
            return {}, rows.tolist()
        known: dict[int, list[int]] = {}
        unknown: list[int] = []
        for row in rows.tolist():
            answers = self.answers_for(row)
            if answers is None:
                unknown.append(row)
            else:
                known[row] = answers
        return known, unknown


def _next_rows(ranked: IntArray, after: int) -> Rows:
    """The rows where the next pods will probably go: the best ones, and among equals those that
    follow the given row."""
    if len(ranked) <= _ROWS_AHEAD:
        return np.flatnonzero(ranked >= 0)
    best = np.flatnonzero(ranked == ranked.max())
    if len(best) < _ROWS_AHEAD:
        return np.argpartition(ranked, -_ROWS_AHEAD)[-_ROWS_AHEAD:]
    return np.take(best, np.searchsorted(best, after) + np.arange(_ROWS_AHEAD), mode="wrap")
