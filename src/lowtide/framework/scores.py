"""Scores: one plugin's scores of every row, raw and normalized to 0..100. Ranking has one for each
score plugin."""

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.framework.evaluation import ChangedRows
from lowtide.framework.lookahead import NO_ROWS
from lowtide.framework.plugin import LARGEST_RAW, MAX_SCORE, PluginError, Scale
from lowtide.framework.profile import Weighted

# Scores from 0 to 100, one byte each, so that more of a verdict fits into the processor's cache.
SmallArray = npt.NDArray[np.int8]

# From raw scores of every row to 0..100.
Normalize = Callable[[IntArray], IntArray]


class Scores:
    """With `scale`, all rows are scaled again only when the highest raw score changes."""

    def __init__(
        self,
        weighted: Weighted,
        raw: IntArray,
        normalized: SmallArray,
    ) -> None:
        """Both arrays have room for every row; `normalized` starts as zeros."""
        self.plugin = weighted.plugin
        self.weight = weighted.weight
        self.has_opinion = False
        self._counts = False  # whether the totals include these scores
        self.raw = raw
        self.normalized = normalized
        self._scale = weighted.scale
        self.has_normalize = weighted.has_normalize  # the plugin has its own `normalize`
        self.is_as_given = self._scale is None and not weighted.has_normalize
        self._highest = 0
        self._has_highest = False

    def keep_all(
        self, raw: IntArray | None, feasible: BoolArray, normalize: Normalize | None
    ) -> IntArray | None:
        """Keep the raw scores of every row. Return by how much each row's total changes; None if
        by nothing. `normalize` calls the plugin's own `normalize`, if it has one."""
        everywhere = slice(len(feasible))
        self.has_opinion = raw is not None
        if raw is None:
            return self._withdrawn(everywhere) if self._counts else None
        self.raw[everywhere] = raw
        if self.has_normalize and not np.count_nonzero(feasible):
            return None  # no score counts, and a node that becomes feasible is refiltered
        if self._scale is not None:
            self._highest, self._has_highest = _highest_of(raw, feasible), True
        values = self._normalized(raw, feasible, self._highest, normalize)
        return self._write(everywhere, values)

    def put(self, raw: IntArray | int, rows: Rows | int) -> None:
        """Keep the raw scores of some rows, for a plugin that had an opinion before. Call `rescale`
        for them afterwards."""
        if self._has_highest and np.count_nonzero(self.raw[rows] == self._highest):
            self._has_highest = False
        self.raw[rows] = raw

    def put_one_as_given(self, raw: int, row: int, feasible: BoolArray) -> int:
        """Keep one row's raw score if it needs no scaling. Return the weighted gain: by how
        much the row's total changes. This is the hot path: placing a pod changes one row."""
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
        """Bring the normalized scores up to date. Return the rows that may have changed, and by how
        much their totals change.

        `judged` rows have new raw scores; `refiltered` ones may have changed feasibility.
        """
        touched = changes.union([judged, refiltered]) if len(refiltered) else judged
        if not self.has_opinion or not len(touched):
            return NO_ROWS, 0
        if self.is_as_given and len(touched) == 1:
            row = int(touched[0])
            return touched, self.put_one_as_given(self.raw.item(row), row, feasible)
        if self.has_normalize:
            if not np.count_nonzero(feasible):
                return NO_ROWS, 0  # no score counts, and a node that becomes feasible is refiltered
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
        """Normalize as if exactly these nodes were feasible. If the plugin has its own `normalize`,
        at least one must be."""
        raw = raw[: len(feasible)]
        highest = 0 if self._scale is None else _highest_of(raw, feasible)
        return self._normalized(raw, feasible, highest, normalize)

    def checked(self, normalized: IntArray, feasible: BoolArray) -> IntArray:
        """Raise PluginError if a feasible node's score is out of range. The scores of other nodes
        do not count, and are clipped."""
        if are_in_range(normalized):
            return normalized
        wrong = feasible & ((normalized < 0) | (normalized > MAX_SCORE))
        if wrong.any():
            self._reject(int(normalized[wrong][0]))
        return normalized.clip(0, MAX_SCORE)

    def _write(self, rows: Rows | slice, values: IntArray) -> IntArray:
        """Keep normalized scores. Return by how much the rows' totals change."""
        gained: IntArray = values - self.normalized[rows] if self._counts else values
        self._counts = True
        self.normalized[rows] = values
        return gained if self.weight == 1 else self.weight * gained

    def _withdrawn(self, everywhere: slice) -> IntArray:
        """Take all scores back. Return by how much the rows' totals change."""
        gained = self._write(everywhere, np.zeros(everywhere.stop, np.int64))
        self._counts = False
        return gained

    def _normalized(
        self, raw: IntArray, feasible: BoolArray, highest: int, normalize: Normalize | None
    ) -> IntArray:
        if self.has_normalize and normalize is not None:
            normalized = normalize(raw)
            check_scores(self.plugin.name, normalized, len(raw))
        else:
            normalized = scaled(raw, highest, self._scale)
        return self.checked(normalized, feasible)

    def _finds_new_highest(self, feasible: BoolArray, touched: Rows | None) -> bool:
        """Update the highest raw score; True if it changed. `touched` is None if any row may have
        changed or been removed."""
        before, had_highest = self._highest, self._has_highest
        raw = self.raw[: len(feasible)]
        if had_highest and touched is not None and not np.count_nonzero(raw[touched] == before):
            # No row with the highest score was touched, so it can only have risen.
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
    """Whether all are from 0 to 100. Read as unsigned, a negative score is very large."""
    return bool(np.maximum.reduce(scores.view(np.uint64), axis=None, initial=0) <= MAX_SCORE)


def scaled(raw: IntArray, highest: int, scale: Scale) -> IntArray:
    """Scale raw scores to 0..100 in integers, truncating toward zero as Go does. `highest` is the
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
    counting: IntArray = raw * feasible  # faster than raw[feasible]
    return int(np.maximum.reduce(counting, initial=0))


def _problem_of(scores: Any, count: int) -> str:
    if not isinstance(scores, np.ndarray):
        return f" returned the scores {scores!r}; they must be an int64 array, one per node"
    if scores.ndim != 1:
        return f": scores of the shape {scores.shape} for {count} nodes; they must be one per node"
    if len(scores) != count:
        return f": {len(scores)} scores for {count} nodes; they must be one per node"
    return (
        "" if scores.dtype == np.int64 else f" returned {scores.dtype} scores; they must be int64"
    )
