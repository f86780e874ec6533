"""Leaders: the rows that rank highest. A Ranking keeps one and reports which ranks change."""

from bisect import bisect_left, insort
from collections.abc import Iterator

import numpy as np

from lowtide.cluster.columns import IntArray, Rows

# To find `keep` rows, look at about 4 times as many, and at most 16 times as many.
_ABOUT, _MOST = 4, 16
_SOME = 8  # to guess a rank that few rows exceed, look at one row of 8
# Keeping more rows in order takes as long as a new search for the best.
_MOST_IN_ORDER = 8192
_BYTES_PER_KEY = 40

# A row's key is smaller the higher the rank, and among equal ranks the lower the row.
_ROW_BITS = 32
_ROW = (1 << _ROW_BITS) - 1
_TOO_HIGH = 1 << (63 - _ROW_BITS)  # ranks that do not fit a 64-bit key; weights may be that large


class Leaders:
    """Finds the rows that rank highest.

    While each pod changes the ranks of few rows, the best rows are kept in order. Otherwise only a
    rank that few rows exceed is remembered. It is a good guess for the next search."""

    def __init__(self) -> None:
        self._asked = 0  # calls of `best` since `all_moved`
        self.keys: list[int] | None = None  # of all rows whose rank is at least `_reached`, sorted
        self._reached = 0
        self._exceeded: int | None = None

    def all_moved(self) -> None:
        self.keys, self._asked = None, 0

    @property
    def bytes_kept(self) -> int:
        return 0 if self.keys is None else _BYTES_PER_KEY * len(self.keys)

    def moved(self, row: int, before: int, after: int) -> None:
        """Record that a row's rank changed; the rank of an infeasible row is below 0."""
        if self.keys is None:
            return
        if before >= self._reached:
            del self.keys[bisect_left(self.keys, row - (before << _ROW_BITS))]
        if after >= self._reached:
            insort(self.keys, row - (after << _ROW_BITS))

    def best(self, ranked: IntArray, keep: int, turn: int) -> tuple[int, Rows]:
        """Like `best_of`, without infeasible rows, for the ranks whose changes `moved` and
        `all_moved` report. At least one row must be feasible."""
        keys = self.keys
        has_too_few = keys is not None and len(keys) < keep and self._reached > 0
        if self._asked == 1 or has_too_few:
            keys = self._put_in_order(ranked, keep)
        self._asked += 1
        if keys is None:
            row, kept = self.best_of(ranked, keep, turn)
            return row, kept if ranked[kept[-1]] >= 0 else kept[ranked[kept] >= 0]
        highest = keys[0] >> _ROW_BITS
        place = turn % bisect_left(keys, (highest + 1) << _ROW_BITS)
        best = keys[:keep] if place < keep else [keys[place], *keys[: keep - 1]]
        return keys[place] & _ROW, np.array([key & _ROW for key in best], np.intp)

    def best_of(self, ranked: IntArray, keep: int, turn: int) -> tuple[int, Rows]:
        """The chosen row, and the `keep` best rows in order, including it. Rows that tie for the
        highest rank are chosen in turn."""
        best, kept = self._highest(ranked, keep)
        place = turn % len(best)
        if place >= len(kept):  # more than `keep` rows tie
            kept = np.concatenate([best[place : place + 1], kept[:-1]])
        return int(best[place]), kept

    def _put_in_order(self, ranked: IntArray, keep: int) -> list[int] | None:
        """Sort the best rows into `keys` and return these. None if sorting would take too long or
        finds too few."""
        step = _SOME if len(ranked) > _MOST_IN_ORDER // _SOME else 1
        self._reached = max(_nth_highest(ranked[::step], _MOST * keep // step), 0)
        rows: Rows = (ranked >= self._reached).nonzero()[0]
        self.keys, ranks = None, ranked[rows]
        if len(rows) > _MOST_IN_ORDER or ranks.max(initial=0) >= _TOO_HIGH:
            return None
        keys = rows - (ranks << _ROW_BITS)
        keys.sort()
        self.keys = keys.tolist()
        return self.keys if len(self.keys) >= keep or self._reached == 0 else None

    def _highest(self, ranked: IntArray, keep: int) -> tuple[Rows, Rows]:
        """All rows that tie for the highest rank, by row; and the `keep` best rows, best first."""
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
        """Guesses of a rank that few rows exceed. The last one is right."""
        if self._exceeded is not None:
            yield self._exceeded
        for step in (_SOME, 1):  # a sample of the rows is usually enough
            yield _nth_highest(ranked[::step], _ABOUT * keep // step)


def _split(ranked: IntArray, exceeded: int, keep: int) -> tuple[Rows, Rows]:
    """The rows that rank above `exceeded`; and those equal to it, if the first are too few."""
    above: Rows = (ranked > exceeded).nonzero()[0]
    if len(above) >= keep:
        return above, above[:0]
    return above, (ranked == exceeded).nonzero()[0]


def _nth_highest(ranked: IntArray, number: int) -> int:
    at = max(len(ranked) - max(number, 1), 0)
    return np.partition(ranked, at).item(at)
