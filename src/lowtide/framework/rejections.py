"""Filtering: which rows the filters reject for one pod signature, and why. It is one of the two
Evaluations of a Verdict, and keeps Rejections for each filter: one bit per row and reason."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowtide.cluster.changes import FEASIBLE_ANYWHERE
from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import Asking
from lowtide.framework.decision import NodeRejection
from lowtide.framework.evaluation import Answers, ChangedRows, Evaluation, PluginsAt
from lowtide.framework.lookahead import NO_ROWS, LookaheadBatches
from lowtide.framework.plugin import PluginError, Rejection
from lowtide.framework.pre_filters import PreFilters
from lowtide.objects.pod import Pod

Bits = npt.NDArray[np.uint64]

_MOST_REASONS = 64
NOT_AT_ALL = -math.inf  # as seconds that a pod has waited: no rejection gives way to it
_EXCLUDED = -1  # in place of a filter's number: a pre-filter left the row out


class Filtering(Evaluation):
    method = "filter"
    rejections: list["Rejections"]  # by filter
    # By row: the number of the first filter that rejects it; the count of filters if none does;
    # -1 if a pre-filter left it out.
    first_rejecting: npt.NDArray[np.int16]
    feasible: BoolArray
    # Rows that became feasible or infeasible since scores were refreshed; None: any row.
    refiltered: set[int] | None

    def __init__(
        self,
        filters: PluginsAt,
        pre_filters: PluginsAt,
        *,
        state: ClusterState,
        pod: Pod,
        batches: LookaheadBatches,
    ) -> None:
        super().__init__(filters, state, pod, batches)
        self.pre_filters = PreFilters(pre_filters.plugins, state, pod)

    def start_again(self, capacity: int) -> None:
        """Forget all answers, and make arrays of this length for new ones."""
        self.judge_all_again()
        self.pre_filters.start_again(capacity)
        self._capacity = capacity
        self._settled_count = 0
        self._overfull: list[int] = []
        self.rejections = [Rejections(plugin.name) for plugin in self.plugins]
        self.first_rejecting = np.zeros(capacity, np.int16)
        self.feasible = np.zeros(capacity, np.bool_)
        self.refiltered = None

    def refresh(self, ranked: IntArray, asking: Asking) -> ChangedRows | None:
        """Bring all answers up to date. Return what had changed; None if nothing had. `ranked` is
        the last ranking, by which the lookahead chooses rows."""
        if self.judged_at == self._state.log.position:
            return None
        if self._state.count < self._settled_count:
            # A new node may reuse these rows.
            self.feasible[self._state.count : self._settled_count] = False
        changes = ChangedRows(self._state, self.judged_at, asking, self.feasible)
        pre_filters = self.pre_filters
        is_other_for_all = changes.concern(pre_filters.logged) and pre_filters.refresh(changes)
        known = None if is_other_for_all else self.use_lookahead(changes)
        if known is not None and not changes.concern(self.groups.not_local_logged):
            self._settle_one(known)
        else:
            parts = list(self.judge(changes, ranked, known=known).values())
            if known is not None:
                parts.append(np.array([known]))
            if is_other_for_all:
                parts.append(changes.everything)
            elif self._state.count > self._settled_count:
                parts.append(changes.everything[self._settled_count :])
            self._settle(changes.union(parts), changes)
        self.judged_at = self._state.log.position
        return changes

    # How answers are kept.

    def _depends_on(self, number: int, touched: int) -> None:
        if touched & FEASIBLE_ANYWHERE:
            name = self.plugins[number].name
            text = f"{name}.filter: only score and normalize may ask which nodes are feasible"
            raise PluginError(text, plugin_name=name)
        super()._depends_on(number, touched)

    def _read(self, number: int, answer: Any, count: int) -> Answers | None:
        try:
            return self.rejections[number].read(answer, count)
        except TooManyReasonsError:
            self._overfull.append(number)
            return None

    def _keep_all(self, number: int, answer: Any, changes: ChangedRows) -> Rows:
        rejections = self.rejections[number]
        before = rejections.bits
        rejections.start_again()
        if before is None and isinstance(answer, list) and not answer:  # the usual case
            return NO_ROWS
        everything = changes.everything
        bits = rejections.read(answer, len(everything))
        rejections.put(changes.index(everything), bits, self._capacity)
        return rejections.changed_rows(before, everything)

    def _keep(self, answers: Mapping[int, Answers | None], rows: Rows) -> Sequence[int]:
        for number, bits in answers.items():
            self.rejections[number].put(rows, bits, self._capacity)
        # Judging every row forgets the reasons that rows gave before: all may have room then.
        again, self._overfull = self._overfull, []
        return again

    def _keep_one(self, numbers: Sequence[int], row: int, answers: Sequence[int]) -> None:
        for number, bits in zip(numbers, answers, strict=True):
            kept = self.rejections[number]
            if kept.bits is not None:
                kept.bits[row] = bits
            elif bits:
                kept.put(np.array([row]), np.array([bits], np.uint64), self._capacity)

    # Which rows are feasible.

    def _settle(self, rows: Rows, changes: ChangedRows) -> None:
        """Set `first_rejecting` and `feasible` for these rows."""
        self._settled_count = self._state.count
        if not len(rows):
            return
        if len(rows) == 1:
            self._settle_one(int(rows[0]))
            return
        some = changes.index(rows)
        first = np.empty(len(rows), np.int16)
        first.fill(len(self.plugins))
        for number in reversed(range(len(self.plugins))):
            bits = self.rejections[number].bits
            if bits is not None:
                np.putmask(first, bits[some] != 0, number)
        if self.pre_filters.kept:
            first[self.pre_filters.leaves_out(rows)] = _EXCLUDED
        feasible = first == len(self.plugins)
        if rows is changes.everything:
            self.refiltered = None
        elif self.refiltered is not None:
            self.refiltered.update(rows[self.feasible[rows] != feasible].tolist())
        self.first_rejecting[some] = first
        self.feasible[some] = feasible

    def _settle_one(self, row: int) -> None:
        """The same for one row. This is the hot path: placing a pod changes one row."""
        first = len(self.plugins)
        for number, rejections in enumerate(self.rejections):
            if rejections.bits is not None and rejections.bits.item(row):
                first = number
                break
        if self.pre_filters.kept and self.pre_filters.leaves_out(np.array([row]))[0]:
            first = _EXCLUDED
        feasible = first == len(self.plugins)
        if self.refiltered is not None and self.feasible.item(row) is not feasible:
            self.refiltered.add(row)
        self.first_rejecting[row] = first
        self.feasible[row] = feasible


class TooManyReasonsError(PluginError):
    """A filter has no bit left for one more reason."""


class _Reason(NamedTuple):
    text: str
    eviction_helps: bool
    gives_way_after: float  # infinity: never


class Rejections:
    """The rows that one filter rejects, and the reasons. `bits` is None while it rejects none."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.bits: Bits | None = None
        self._reasons: dict[_Reason, np.uint64] = {}  # to its bit, in the order of the bits

    def start_again(self) -> None:
        """Forget all rows and reasons, before every row is judged again."""
        self.bits = None
        self._reasons = {}

    def read(self, answer: Iterable[Rejection], count: int) -> Bits | None:
        """The bits of the reasons for each of `count` nodes; None if no node is rejected. `put`
        keeps them."""
        found: Bits | None = None
        for rejection in self._checked(answer):
            mask = rejection.mask
            _check_mask(self.name, mask, count)
            bit = self._bit(rejection)  # for an empty mask too: it fixes the order of reasons
            if np.count_nonzero(mask):
                rejected = mask * bit
                found = rejected if found is None else found | rejected
        return found

    def put(self, rows: Rows | slice, found: Bits | None, capacity: int) -> None:
        if self.bits is None:
            if found is None or not np.count_nonzero(found):
                return
            self.bits = np.zeros(capacity, np.uint64)
        self.bits[rows] = 0 if found is None else found

    def changed_rows(self, before: Bits | None, everything: Rows) -> Rows:
        """The rows that are rejected now and were not before, or the other way round. May return
        all rows."""
        if before is None and self.bits is None:
            return everything[:0]
        if before is None or self.bits is None:
            return everything
        count = len(everything)
        return np.flatnonzero((before[:count] != 0) != (self.bits[:count] != 0))

    def still_rejected(self, rows: Rows | slice, waited_seconds: float) -> BoolArray | None:
        """Which of these rows are still rejected for a pod that has waited so long. None if the
        filter rejects no row."""
        if self.bits is None:
            return None
        stands: BoolArray = self.bits[rows] & self._firm(waited_seconds) != 0
        return stands

    def eviction_helps(self, count: int) -> BoolArray:
        """By row: whether it is rejected, and eviction helps against every reason."""
        if self.bits is None:
            return np.zeros(count, np.bool_)
        for_good = sum(1 << n for n, each in enumerate(self._reasons) if not each.eviction_helps)
        bits = self.bits[:count]
        helps: BoolArray = (bits != 0) & (bits & np.uint64(for_good) == 0)
        return helps

    @property
    def waits(self) -> set[float]:
        """The waiting times in seconds after which some reasons give way."""
        return {reason.gives_way_after for reason in self._reasons} - {math.inf}

    def rejects(self, row: int) -> bool:
        return self.bits is not None and bool(self.bits[row])

    def as_node_rejection(self, row: int, also: tuple[NodeRejection, ...] = ()) -> NodeRejection:
        bits = 0 if self.bits is None else int(self.bits[row])
        reasons = [each for number, each in enumerate(self._reasons) if bits >> number & 1]
        return NodeRejection(
            plugin=self.name,
            reasons=tuple(reason.text for reason in reasons),
            eviction_helps=all(reason.eviction_helps for reason in reasons),
            also=also,
        )

    def alike(self, rows: Rows) -> Iterator[Rows]:
        """These rows in groups with equal reasons. The filter must reject all of them."""
        assert self.bits is not None
        bits = self.bits[rows]
        for each in np.unique(bits):
            yield rows[bits == each]

    def _firm(self, waited_seconds: float) -> np.uint64:
        """The bits of the reasons that still count after a pod has waited so long."""
        firm = [n for n, each in enumerate(self._reasons) if each.gives_way_after > waited_seconds]
        return np.uint64(sum(1 << number for number in firm))

    def _bit(self, rejection: Rejection) -> np.uint64:
        after = rejection.gives_way_after
        reason = _Reason(
            rejection.reason, rejection.eviction_helps, math.inf if after is None else after
        )
        bit = self._reasons.get(reason)
        if bit is None:
            if len(self._reasons) == _MOST_REASONS:
                raise TooManyReasonsError(
                    f"{self.name} gives more than {_MOST_REASONS} different reasons for one pod; "
                    "leave node names out of reasons",
                    plugin_name=self.name,
                )
            bit = self._reasons[reason] = np.uint64(1 << len(self._reasons))
        return bit

    def _checked(self, answer: Any) -> Iterable[Rejection]:
        if isinstance(answer, Iterable):
            for each in answer:
                if not isinstance(each, Rejection) or not isinstance(each.reason, str):
                    break
            else:
                return answer
        raise PluginError(
            f"{self.name}.filter returned {answer!r}; "
            "it must yield Rejection(mask, reason), or nothing",
            plugin_name=self.name,
        )


def _check_mask(name: str, mask: Any, count: int) -> None:
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (count,):
        raise PluginError(
            f"{name} returned the mask {mask!r}; it must be {count} booleans, one per node",
            plugin_name=name,
        )
