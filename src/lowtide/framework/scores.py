"""How one rule scores, kept for every row: raw, and normalised to 0..100."""

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.nodes import Nodes
from lowtide.framework.asking import Asking
from lowtide.framework.plugin import MAX_SCORE, PluginError
from lowtide.framework.profile import Weighted
from lowtide.framework.scaling import scaled
from lowtide.framework.stale import NO_ROWS, Stale
from lowtide.objects.pod import Pod

# From 0 to 100, kept in a byte: the less a verdict takes, the more of it is in reach.
SmallArray = npt.NDArray[np.int8]


class Scores:
    """Scaled again as a whole only when the highest raw score changes."""

    def __init__(
        self, weighted: Weighted, raw: IntArray, normalized: SmallArray, asking: Asking
    ) -> None:
        """The arrays have room for every row; normalised scores are zeros."""
        rule = weighted.rule
        self.rule = rule
        self._ask = asking
        self.weight = weighted.weight
        self._is_never_silent = weighted.is_never_silent
        self.has_opinion = False
        self._is_heard = False  # whether what it said counts in somebody's totals
        self.raw = raw
        self.normalized = normalized
        self.reads_feasible = weighted.reads_feasible
        self._scale = weighted.scale
        self._has_normalize = weighted.has_normalize
        self.is_as_given = self._scale is None and not self._has_normalize
        self._highest = 0
        self._has_highest = False

    def judge(self, pod: Pod, nodes: Nodes, feasible: BoolArray, rows: Rows | slice) -> None:
        self.put(self.asked(pod, nodes, feasible), rows)

    def put(self, raw: IntArray | None, rows: Rows | slice) -> None:
        had_opinion, self.has_opinion = self.has_opinion, raw is not None
        if raw is None:
            return
        if not had_opinion or (self._has_highest and bool((self.raw[rows] == self._highest).any())):
            self._has_highest = False
        self.raw[rows] = raw

    def put_one(self, raw: int, row: int) -> None:
        """Where the rule has an opinion, and had one."""
        if self._has_highest and self.raw[row] == self._highest:
            self._has_highest = False
        self.raw[row] = raw

    def put_as_given(self, raw: int, row: int, feasible: BoolArray) -> int:
        """The same where the raw score is what counts; returns the points that the row gains."""
        self.raw[row] = raw
        if not 0 <= raw <= MAX_SCORE:
            if feasible[row]:
                self._refuse(raw)
            raw = min(max(raw, 0), MAX_SCORE)
        self._is_heard = True
        gained = self.weight * (raw - int(self.normalized[row]))
        self.normalized[row] = raw
        return gained

    def rescale(
        self, pod: Pod, feasible: BoolArray, judged: Rows, refiltered: Rows, stale: Stale
    ) -> tuple[Rows, IntArray | int]:
        """Brings the normalised scores up to date; returns the rows that may have changed, and what
        they gain by that in points.

        `judged` rows have new raw scores, `refiltered` ones may have changed feasibility.
        """
        touched = stale.union([judged, refiltered]) if len(refiltered) else judged
        if not self.has_opinion:
            return self._withdrawn(stale) if self._is_heard else (NO_ROWS, 0)
        if not len(touched):
            return NO_ROWS, 0
        if self.is_as_given and len(touched) == 1:
            row = int(touched[0])
            return touched, self.put_as_given(int(self.raw[row]), row, feasible)
        if self._has_normalize:
            if not feasible.any():
                return NO_ROWS, 0  # nothing of it counts, and a node that comes is refiltered
            nodes = stale.nodes(stale.everything)
            values = self.normalized_among(pod, nodes, feasible, self.raw)
            return stale.everything, self._write(stale.everything, values, stale)
        if self._scale is not None:
            few = None if touched is stale.everything else touched
            if self._finds_new_highest(feasible, few):
                touched = stale.everything
        some = stale.index(touched)
        values = self._checked(scaled(self.raw[some], self._highest, self._scale), feasible[some])
        return touched, self._write(touched, values, stale)

    def _write(self, rows: Rows, values: IntArray, stale: Stale) -> IntArray:
        """The points that the rows gain."""
        some = stale.index(rows)
        gained: IntArray = values - self.normalized[some] if self._is_heard else values
        self._is_heard = True
        self.normalized[some] = values
        return gained if self.weight == 1 else self.weight * gained

    def _withdrawn(self, stale: Stale) -> tuple[Rows, IntArray]:
        """What it said does not count any more."""
        gained = self._write(stale.everything, np.zeros(len(stale.everything), np.int64), stale)
        self._is_heard = False
        return stale.everything, gained

    def raw_among(self, pod: Pod, nodes: Nodes, feasible: BoolArray) -> IntArray:
        """The raw scores if only these nodes were feasible; nothing of it is kept."""
        if not self.reads_feasible:
            return self.raw[: len(feasible)]
        raw = self.asked(pod, nodes, feasible)
        return np.zeros(len(feasible), np.int64) if raw is None else raw

    def normalized_among(
        self, pod: Pod, nodes: Nodes, feasible: BoolArray, raw: IntArray
    ) -> IntArray:
        """Some node has to be feasible where the rule normalises by itself."""
        raw = raw[: len(feasible)]
        if self._has_normalize:
            normalized: IntArray = self._ask(self.rule, "normalize", pod, nodes, raw, feasible)
            _check_scores(self.rule.name, normalized, len(raw))
        else:
            normalized = scaled(raw, _highest_of(raw, feasible), self._scale)
        return self._checked(normalized, feasible)

    def asked(self, pod: Pod, nodes: Nodes, feasible: BoolArray) -> IntArray | None:
        raw: IntArray | None = self._ask(self.rule, "score", pod, nodes, feasible)
        if raw is None and self._is_never_silent:
            return np.zeros(len(nodes), np.int64)
        if raw is not None:
            _check_scores(self.rule.name, raw, len(nodes))
        return raw

    def _finds_new_highest(self, feasible: BoolArray, touched: Rows | None) -> bool:
        """`touched` is None where any row may have changed, or have gone."""
        before, had_highest = self._highest, self._has_highest
        raw = self.raw[: len(feasible)]
        if had_highest and touched is not None and not (raw[touched] == before).any():
            # Nobody who had the highest score was touched: only a higher one can have come.
            self._highest = max(before, _highest_of(raw[touched], feasible[touched]))
        else:
            self._highest = _highest_of(raw, feasible)
        self._has_highest = True
        return not had_highest or self._highest != before

    def _checked(self, normalized: IntArray, feasible: BoolArray) -> IntArray:
        """What is said of nodes that are not feasible does not count, and is made to fit."""
        # Read as unsigned, what is below 0 is very large.
        if normalized.view(np.uint64).max(initial=0) <= MAX_SCORE:
            return normalized
        wrong = feasible & ((normalized < 0) | (normalized > MAX_SCORE))
        if wrong.any():
            self._refuse(int(normalized[wrong][0]))
        return normalized.clip(0, MAX_SCORE)

    def _refuse(self, score: int) -> NoReturn:
        raise PluginError(
            f"plugin {self.rule.name!r} returns an invalid score {score}, "
            f"it should in the range of [0, {MAX_SCORE}] after normalizing",
            rule_name=self.rule.name,
        )


def _highest_of(raw: IntArray, feasible: BoolArray) -> int:
    counting: IntArray = raw * feasible  # faster than to leave the others out
    return int(counting.max(initial=0))


def _check_scores(name: str, scores: Any, count: int) -> None:
    problem = _problem_of(scores, count)
    if problem:
        raise PluginError(f"{name}{problem}", rule_name=name)


def _problem_of(scores: Any, count: int) -> str:
    if not isinstance(scores, np.ndarray):
        return f" scores with {scores!r}; scores are an int64 array, one a node"
    if scores.ndim != 1:
        return f": scores of the shape {scores.shape} for {count} nodes"
    if len(scores) != count:
        return f": {len(scores)} scores for {count} nodes"
    return "" if scores.dtype == np.int64 else f" scores in {scores.dtype}; scores are int64"
