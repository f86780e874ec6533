"""The rows that rank highest. A verdict keeps one of these between pods; `decide` asks it."""

import numpy as np

from lowtide.cluster.columns import IntArray, Rows

# So many times as many rows as are asked for are looked at, at the least and at the most.
_LEAST, _MOST = 4, 16


class Leaders:
    """Remembers only a rank that some of the best rows reach: for the next pod that is mostly still
    so, and few rows have to be compared with each other."""

    def __init__(self) -> None:
        self._floor = 0

    def best(self, ranked: IntArray, keep: int) -> tuple[Rows, Rows]:
        """All that rank highest, in order; and the `keep` best ones, the best first."""
        rows: Rows = (ranked >= self._floor).nonzero()[0]
        if not keep <= len(rows) <= _MOST * keep:
            self._floor = _nth_highest(ranked, _LEAST * keep)
            rows = (ranked >= self._floor).nonzero()[0]
        values = ranked[rows]
        best = rows[values == values.max()]
        if len(best) >= keep:
            return best, best[:keep]
        if len(rows) > _MOST * keep:  # of those that only just reach it, the first will do
            passed_over = (values == self._floor).nonzero()[0][keep:]
            rows, values = np.delete(rows, passed_over), np.delete(values, passed_over)
        return best, rows[(-values).argsort(kind="stable")[:keep]]


def _nth_highest(ranked: IntArray, number: int) -> int:
    at = max(len(ranked) - number, 0)
    parted = ranked.copy()
    parted.partition(at)
    return parted.item(at)
