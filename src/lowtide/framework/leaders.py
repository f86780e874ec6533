"""The rows that rank highest. A verdict keeps one of these between pods; `decide` asks it."""

import numpy as np

from lowtide.cluster.columns import IntArray, Rows

# So many times as many rows as are asked for are compared with each other: about, and at the most.
_ABOUT, _MOST = 4, 16
_SOME = 8  # of so many rows one is looked at where their ranks are not known yet


class Leaders:
    """Remembers only a rank that few rows exceed: for the next pod that is mostly still so, and
    only those have to be put in order."""

    def __init__(self) -> None:
        self._exceeded = 0

    def best(self, ranked: IntArray, keep: int) -> tuple[Rows, Rows]:
        """All that rank highest, in order; and the `keep` best ones, the best first."""
        above, level = self._split(ranked, keep)
        for step in (_SOME, 1):  # to put some rows in order mostly tells enough
            if len(above) <= _MOST * keep and len(above) + len(level) >= keep:
                break
            self._exceeded = _nth_highest(ranked[::step], _ABOUT * keep // step)
            above, level = self._split(ranked, keep)
        if not len(above):
            return level, level[:keep]
        values = ranked[above]
        best = above[values == np.maximum.reduce(values)]
        if len(best) >= keep:
            return best, best[:keep]
        order = (-values).argsort(kind="stable")[:keep]
        return best, np.concatenate([above[order], level[: keep - len(order)]])

    def _split(self, ranked: IntArray, keep: int) -> tuple[Rows, Rows]:
        """The rows that exceed it, and if those are too few the rows that reach it."""
        above: Rows = (ranked > self._exceeded).nonzero()[0]
        if len(above) >= keep:
            return above, above[:0]
        return above, (ranked == self._exceeded).nonzero()[0]


def _nth_highest(ranked: IntArray, number: int) -> int:
    at = max(len(ranked) - max(number, 1), 0)
    parted = ranked.copy()
    parted.partition(at)
    return parted.item(at)
