"""The rows that rank highest, and which of them has its turn. Scoring keeps one of these between
pods, and tells it of each rank that changes; `decide` asks it."""

from bisect import bisect_left, insort
from collections.abc import Iterator

import numpy as np

from lowtide.cluster.columns import IntArray, Rows

# So many times as many rows as are asked for are compared with each other: about, and at the most.
_ABOUT, _MOST = 4, 16
_SOME = 8  # of so many rows one is looked at where their ranks are not known yet
# To keep more in order takes as long as to look for the best anew.
_MOST_IN_ORDER = 8192
_BYTES_PER_KEY = 40

# The higher the rank, and then the lower the row, the smaller is a row's key.
_ROW_BITS = 32
_ROW = (1 << _ROW_BITS) - 1
_TOO_HIGH = 1 << (63 - _ROW_BITS)  # for a key of 64 bits; weights may be that large


class Leaders:
    """Where the last pod moved few rows, the best ones are kept in order for the next. Else it
    remembers only a rank that few exceed, which mostly is still so, and puts those in order."""

    def __init__(self) -> None:
        self._asked = 0  # times since all moved
        self._keys: list[int] | None = None  # of all rows that reach the rank, the best first
        self._reached = 0
        self._exceeded: int | None = None

    @property
    def are_in_order(self) -> bool:
        return self._keys is not None

    def all_moved(self) -> None:
        self._keys, self._asked = None, 0

    @property
    def bytes_kept(self) -> int:
        return 0 if self._keys is None else _BYTES_PER_KEY * len(self._keys)

    def moved(self, row: int, before: int, after: int) -> None:
        """From one rank to another; rows that are not feasible have one below 0."""
        if self._keys is None:
            return
        if before >= self._reached:
            del self._keys[bisect_left(self._keys, row - (before << _ROW_BITS))]
        if after >= self._reached:
            insort(self._keys, row - (after << _ROW_BITS))

    def best(self, ranked: IntArray, keep: int, turn: int) -> tuple[int, Rows]:
        """As `best_of` says of the ranks whose moves it is told, less the rows that are not
        feasible; some have to be."""
        if self._asked == 1 or (self._keys is not None and not self._are_enough(keep)):
            self._put_in_order(ranked, keep)
        self._asked += 1
        if self._keys is None or not self._are_enough(keep):
            row, kept = self.best_of(ranked, keep, turn)
            return row, kept if ranked[kept[-1]] >= 0 else kept[ranked[kept] >= 0]
        highest = self._keys[0] >> _ROW_BITS
        place = turn % bisect_left(self._keys, (highest + 1) << _ROW_BITS)
        keys = self._keys[:keep]
        if place >= keep:
            keys = [self._keys[place], *keys[:-1]]
        return self._keys[place] & _ROW, np.array([key & _ROW for key in keys], np.intp)

    def best_of(self, ranked: IntArray, keep: int, turn: int) -> tuple[int, Rows]:
        """One of the rows that rank highest, which take turns; and the `keep` best rows, the best
        first, with that one among them."""
        best, kept = self._highest(ranked, keep)
        place = turn % len(best)
        if place >= len(kept):  # of very many that are equally good
            kept = np.concatenate([best[place : place + 1], kept[:-1]])
        return int(best[place]), kept

    def _are_enough(self, keep: int) -> bool:
        return self._keys is not None and (len(self._keys) >= keep or self._reached == 0)

    def _put_in_order(self, ranked: IntArray, keep: int) -> None:
        step = _SOME if len(ranked) > _MOST_IN_ORDER // _SOME else 1
        self._reached = max(_nth_highest(ranked[::step], _MOST * keep // step), 0)
        rows: Rows = (ranked >= self._reached).nonzero()[0]
        self._keys, ranks = None, ranked[rows]
        if len(rows) <= _MOST_IN_ORDER and ranks.max(initial=0) < _TOO_HIGH:
            keys = rows - (ranks << _ROW_BITS)
            keys.sort()
            self._keys = keys.tolist()

    def _highest(self, ranked: IntArray, keep: int) -> tuple[Rows, Rows]:
        """All that rank highest, in order; and the `keep` best ones."""
        for exceeded in self._guesses(ranked, keep):
            above, level = _split(ranked, exceeded, keep)
            if len(above) <= _MOST * keep and len(above) + len(level) >= keep:
                break
        self._exceeded = exceeded
        if not len(above):
            return level, level[:keep]
        values = ranked[above]
        best = above[values == np.maximum.reduce(values)]
        if len(best) >= keep:
            return best, best[:keep]
        order = (-values).argsort(kind="stable")[:keep]
        return best, np.concatenate([above[order], level[: keep - len(order)]])

    def _guesses(self, ranked: IntArray, keep: int) -> Iterator[int]:
        """Ranks that few rows exceed, the last one for certain."""
        if self._exceeded is not None:
            yield self._exceeded
        for step in (_SOME, 1):  # to put some rows in order mostly tells enough
            yield _nth_highest(ranked[::step], _ABOUT * keep // step)


def _split(ranked: IntArray, exceeded: int, keep: int) -> tuple[Rows, Rows]:
    """The rows that exceed it, and if those are too few the rows that reach it."""
    above: Rows = (ranked > exceeded).nonzero()[0]
    if len(above) >= keep:
        return above, above[:0]
    return above, (ranked == exceeded).nonzero()[0]


def _nth_highest(ranked: IntArray, number: int) -> int:
    at = max(len(ranked) - max(number, 1), 0)
    parted = ranked.copy()
    parted.partition(at)
    return parted.item(at)
