"""How one plugin scores, kept for every row: raw, and normalized to 0..100."""

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.framework.evaluation import ChangedRows
from lowtide.framework.lookahead import NO_ROWS
from lowtide.framework.plugin import LARGEST_RAW, MAX_SCORE, PluginError, Scale
from lowtide.framework.profile import Weighted

# From 0 to 100, kept in a byte: the less a verdict takes, the more of it is in reach.
SmallArray = npt.NDArray[np.int8]

# From raw scores of every row to 0..100.
Normalize = Callable[[IntArray], IntArray]


class Scores:
    """Scaled again as a whole only when the highest raw score changes."""

    def __init__(
        self,
        weighted: Weighted,
        raw: IntArray,
        normalized: SmallArray,
    ) -> None:
        """The arrays have room for every row; normalized scores are zeros."""
        self.plugin = weighted.plugin
        self.weight = weighted.weight
        self.has_opinion = False
        self._counts = False  # whether what it scored is in somebody's totals
        self.raw = raw
        self.normalized = normalized
        self._scale = weighted.scale
        self.asks = weighted.has_normalize  # the plugin, which normalizes by itself
        self.is_as_given = self._scale is None and not weighted.has_normalize
        self._highest = 0
        self._has_highest = False

    def keep_all(
        self, raw: IntArray | None, feasible: BoolArray, normalize: Normalize | None
    ) -> IntArray | None:
        """Every row; returns what each gains in points, None where that is nothing. `normalize`
        asks the plugin, where it normalizes by itself."""
        everywhere = slice(len(feasible))
        self.has_opinion = raw is not None
        if raw is None:
            return self._withdrawn(everywhere) if self._counts else None
        self.raw[everywhere] = raw
        if self.asks and not np.count_nonzero(feasible):
            return None  # nothing of it counts, and a node that comes is refiltered
        if self._scale is not None:
            self._highest, self._has_highest = _highest_of(raw, feasible), True
        values = self._normalized(raw, feasible, self._highest, normalize)
        return self._write(everywhere, values)

    def put(self, raw: IntArray | int, rows: Rows | int) -> None:
        """Some rows, where the plugin has an opinion, and had one; they are to be rescaled."""
        if self._has_highest and np.count_nonzero(self.raw[rows] == self._highest):
            self._has_highest = False
        self.raw[rows] = raw

    def put_one_as_given(self, raw: int, row: int, feasible: BoolArray) -> int:
        """The same of one row where the raw score is what counts; returns the points that it gains.
        It is what a placed pod leaves to do."""
        self.raw[row] = raw
        if not 0 <= raw <= MAX_SCORE:
            if feasible[row]:
                self._reject(raw)
            raw = min(max(raw, 0), MAX_SCORE)
        gained = self.weight * (raw - self.normalized.item(row))
        self.normalized[row] = raw
        return gained

    def rescale(
        self,
        feasible: BoolArray,
        judged: Rows,
        refiltered: Rows,
        *,
        changes: ChangedRows,
        normalize: Normalize | None,
    ) -> tuple[Rows, IntArray | int]:
        """Brings the normalized scores up to date; returns the rows that may have changed, and what
        they gain by that in points.

        `judged` rows have new raw scores, `refiltered` ones may have changed feasibility.
        """
        touched = changes.union([judged, refiltered]) if len(refiltered) else judged
        if not self.has_opinion or not len(touched):
            return NO_ROWS, 0
        if self.is_as_given and len(touched) == 1:
            row = int(touched[0])
            return touched, self.put_one_as_given(self.raw.item(row), row, feasible)
        if self.asks:
            if not np.count_nonzero(feasible):
                return NO_ROWS, 0  # nothing of it counts, and a node that comes is refiltered
            values = self.normalized_among(feasible, self.raw, normalize)
            return changes.everything, self._write(slice(len(feasible)), values)
        if self._scale is not None:
            few = None if touched is changes.everything else touched
            if self._finds_new_highest(feasible, few):
                touched = changes.everything
        some = changes.index(touched)
        values = self.checked(scaled(self.raw[some], self._highest, self._scale), feasible[some])
        return touched, self._write(some, values)

    def normalized_among(
        self, feasible: BoolArray, raw: IntArray, normalize: Normalize | None
    ) -> IntArray:
        """Some node has to be feasible where the plugin normalizes by itself."""
        raw = raw[: len(feasible)]
        highest = 0 if self._scale is None else _highest_of(raw, feasible)
        return self._normalized(raw, feasible, highest, normalize)

    def checked(self, normalized: IntArray, feasible: BoolArray) -> IntArray:
        """What is said of nodes that are not feasible does not count, and is made to fit."""
        if are_in_range(normalized):
            return normalized
        wrong = feasible & ((normalized < 0) | (normalized > MAX_SCORE))
        if wrong.any():
            self._reject(int(normalized[wrong][0]))
        return normalized.clip(0, MAX_SCORE)

    def _write(self, rows: Rows | slice, values: IntArray) -> IntArray:
        """The points that the rows gain."""
        gained: IntArray = values - self.normalized[rows] if self._counts else values
        self._counts = True
        self.normalized[rows] = values
        return gained if self.weight == 1 else self.weight * gained

    def _withdrawn(self, everywhere: slice) -> IntArray:
        """What it said does not count any more."""
        gained = self._write(everywhere, np.zeros(everywhere.stop, np.int64))
        self._counts = False
        return gained

    def _normalized(
        self, raw: IntArray, feasible: BoolArray, highest: int, normalize: Normalize | None
    ) -> IntArray:
        if self.asks and normalize is not None:
            normalized = normalize(raw)
            check_scores(self.plugin.name, normalized, len(raw))
        else:
            normalized = scaled(raw, highest, self._scale)
        return self.checked(normalized, feasible)

    def _finds_new_highest(self, feasible: BoolArray, touched: Rows | None) -> bool:
        """`touched` is None where any row may have changed, or have gone."""
        before, had_highest = self._highest, self._has_highest
        raw = self.raw[: len(feasible)]
        if had_highest and touched is not None and not np.count_nonzero(raw[touched] == before):
            # Nobody who had the highest score was touched: only a higher one can have come.
            self._highest = max(before, _highest_of(raw[touched], feasible[touched]))
        else:
            self._highest = _highest_of(raw, feasible)
        self._has_highest = True
        return not had_highest or self._highest != before

    def _reject(self, score: int) -> NoReturn:
        raise PluginError(
            f"plugin {self.plugin.name!r} returns an invalid score {score}, "
            f"it should in the range of [0, {MAX_SCORE}] after normalizing",
            plugin_name=self.plugin.name,
        )


def are_in_range(scores: IntArray) -> bool:
    """Whether all are from 0 to 100. Read as unsigned, what is below 0 is very large."""
    return bool(np.maximum.reduce(scores.view(np.uint64), axis=None, initial=0) <= MAX_SCORE)


def scaled(raw: IntArray, highest: int, scale: Scale) -> IntArray:
    """Raw scores to 0..100, in integers that truncate toward zero as Go's do. `highest` is the
    largest raw score among the feasible nodes, at least 0."""
    if scale is None:
        return raw
    if highest <= 0:
        return np.full(len(raw), MAX_SCORE if scale == "lowest_best" else 0, np.int64)
    if highest > LARGEST_RAW:
        shift = highest.bit_length() - LARGEST_RAW.bit_length() + 1
        raw, highest = raw >> shift, highest >> shift
    share = truncating_divide(raw * MAX_SCORE, highest)
    return MAX_SCORE - share if scale == "lowest_best" else share


def truncating_divide(numerator: IntArray, denominator: int) -> IntArray:
    """Integer division toward zero, for a denominator above zero."""
    if np.minimum.reduce(numerator, initial=0) >= 0:
        return numerator // denominator
    quotient: IntArray = np.abs(numerator) // denominator
    return np.where(numerator < 0, -quotient, quotient)


def check_scores(name: str, scores: Any, count: int) -> None:
    problem = _problem_of(scores, count)
    if problem:
        raise PluginError(f"{name}{problem}", plugin_name=name)


def _highest_of(raw: IntArray, feasible: BoolArray) -> int:
    counting: IntArray = raw * feasible  # faster than to leave the others out
    return int(np.maximum.reduce(counting, initial=0))


def _problem_of(scores: Any, count: int) -> str:
    if not isinstance(scores, np.ndarray):
        return f" scores with {scores!r}; scores are an int64 array, one a node"
    if scores.ndim != 1:
        return f": scores of the shape {scores.shape} for {count} nodes"
    if len(scores) != count:
        return f": {len(scores)} scores for {count} nodes"
    return "" if scores.dtype == np.int64 else f" scores in {scores.dtype}; scores are int64"
