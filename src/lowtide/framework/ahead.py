"""What rules would say of some rows if another pod of the shape came to each of them, or a few.

To judge one row costs a rule as much as to judge hundreds at once, and after a pod was placed just
one row is new. So a Verdict has the rows judged ahead that the next pods of the shape will probably
go to; where they then really came, and nothing else, what was said is true."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lowtide.cluster.change_log import MOST_COMINGS
from lowtide.cluster.columns import IntArray, Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.overlay import imagined
from lowtide.cluster.state import ClusterState
from lowtide.framework.stale import NO_ROWS
from lowtide.objects.pod import Pod

_ROWS_AHEAD = 256
# Pods on a row: where nodes are alike, some come to one before the next.
_MOST_PODS_AHEAD = MOST_COMINGS
_MOST_WITHOUT_USE = 4
_TRIED_EVERY = 256
_BYTES_PER_ROW_AHEAD = 150  # besides the answers
Answers = Sequence[npt.NDArray[np.integer]]  # by rule


def bytes_ahead(row_count: int, rule_count: int) -> int:
    """What is kept by the filters and by the rules that score, of so many rows in all."""
    answers = 8 * rule_count * _MOST_PODS_AHEAD
    return min(row_count, _ROWS_AHEAD) * (2 * _BYTES_PER_ROW_AHEAD + answers)


class Faced(NamedTuple):
    """What rules are asked about: few rows as they are, and then those ahead, each with one more
    pod, each with two more, and so on."""

    few: Rows
    ahead: Rows
    rows: Rows  # all of that, in order
    nodes: Nodes


class Faces:
    """What the rules of a verdict are asked about where pods of its shape came to rows: those that
    filter and those that score are mostly asked about the same."""

    def __init__(self, state: ClusterState, pod: Pod) -> None:
        self._state = state
        self._pod = pod
        self.shape = object()  # pods that come are known by it
        self._last: tuple[int, list[int], Faced] | None = None
        self._without_use = 0

    def forget(self) -> None:
        """Filters and scores were asked."""
        self._last = None

    def was_of_use(self) -> None:
        """What was judged ahead came true, and nobody had to be asked."""
        self._without_use = 0

    def of(self, unknown: list[int], ranked: IntArray) -> Faced:
        """These rows, and with them some to judge ahead; `ranked` is how rows ranked before."""
        position = self._state.log.position
        if self._last is None or self._last[:2] != (position, unknown):
            self._last = position, unknown, self._made(unknown, self._rows_ahead(unknown, ranked))
        return self._last[2]

    def _made(self, unknown: list[int], ahead: Rows) -> Faced:
        few = np.array(unknown, np.intp)
        rows = np.concatenate([few, *[ahead] * _MOST_PODS_AHEAD])
        nodes = self._state.nodes().take(rows)
        if len(ahead):
            more = np.repeat(np.arange(1, _MOST_PODS_AHEAD + 1), len(ahead))
            times = np.concatenate([np.zeros(len(few), np.int64), more])
            nodes = nodes.with_copies(imagined(self._pod), times)
        return Faced(few, ahead, rows, nodes)

    def _rows_ahead(self, changed: list[int], ranked: IntArray) -> Rows:
        """None where what came to these are pods of other shapes, or no pods; and where that was of
        no use lately, as where pods of other shapes come to the same rows, but for a try."""
        self._without_use += 1
        if self._without_use > _MOST_WITHOUT_USE and self._without_use % _TRIED_EVERY:
            return NO_ROWS
        for row in changed:
            if self._state.log.came_last(row) is self.shape:
                return _next_rows(ranked[: self._state.count], after=row)
        return NO_ROWS


class Ahead:
    """What some rules of a verdict said of the rows that they judged ahead."""

    def __init__(self, state: ClusterState, faces: Faces) -> None:
        self._state = state
        self._faces = faces
        self._position_of: dict[int, int] = {}  # by row
        self._versions: list[int] = []  # of the rows, when they were judged
        self._answers: Answers = ()

    def forget(self) -> None:
        self._position_of = {}

    def said_of_one(self, row: int) -> list[int] | None:
        """What each rule said of this row as it is now, where that is all there is to know; None
        where it is not known."""
        said = self._said_of(row)
        if said is not None:
            self._faces.was_of_use()
        return said

    def _said_of(self, row: int) -> list[int] | None:
        position = self._position_of.get(row)
        if position is None:
            return None
        came = self._state.log.came_since(row, self._versions[position], self._faces.shape)
        if not came:
            return None
        at = position + (came - 1) * len(self._position_of)
        return [answer.item(at) for answer in self._answers]

    def said_of(self, rows: Rows) -> tuple[dict[int, list[int]], list[int]]:
        """By row: what each rule said of it as it is now; and the rows where that is not known."""
        if not self._position_of:
            return {}, rows.tolist()
        known: dict[int, list[int]] = {}
        unknown: list[int] = []
        for row in rows.tolist():
            said = self._said_of(row)
            if said is None:
                unknown.append(row)
            else:
                known[row] = said
        if known and not unknown:
            self._faces.was_of_use()
        return known, unknown

    def keep(self, rows: Rows, answers: Answers) -> None:
        """`answers` are those of each rule, in the order in which it faced the rows."""
        if not len(rows):
            self.forget()
            return
        self._position_of = dict(zip(rows.tolist(), range(len(rows)), strict=True))
        self._versions = self._state.log.versions[rows].tolist()
        self._answers = answers


def _next_rows(ranked: IntArray, after: int) -> Rows:
    """Where the next pods will probably go: the best rows, of equal ones those after that row."""
    if len(ranked) <= _ROWS_AHEAD:
        return np.flatnonzero(ranked >= 0)
    best = np.flatnonzero(ranked == ranked.max())
    if len(best) < _ROWS_AHEAD:
        return np.argpartition(ranked, -_ROWS_AHEAD)[-_ROWS_AHEAD:]
    return np.take(best, np.searchsorted(best, after) + np.arange(_ROWS_AHEAD), mode="wrap")
