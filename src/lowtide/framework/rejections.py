"""What one filter refuses, kept for every row: a bit per reason."""

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowtide.cluster.columns import BoolArray, Rows
from lowtide.framework.decision import NodeRejection
from lowtide.framework.plugin import PluginError, Rejection

Bits = npt.NDArray[np.uint64]

_MOST_REASONS = 64
_NOT_AT_ALL = -math.inf  # so long has a pod waited to which nothing gives way


class _Reason(NamedTuple):
    text: str
    eviction_helps: bool
    gives_way_after: float  # infinity: never


class Rejections:
    """No array while the filter refuses nothing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.bits: Bits | None = None
        self._reasons: dict[_Reason, np.uint64] = {}  # with their bits, in order

    def start_again(self) -> None:
        """Every row is about to be judged: reasons that nobody gives any more are let go."""
        self.bits = None
        self._reasons = {}

    def judge(self, rejections: Iterable[Rejection], rows: Rows, capacity: int) -> None:
        self.put(rows, self.read(rejections, len(rows)), capacity)

    def read(self, rejections: Iterable[Rejection], count: int) -> Bits | None:
        """The reasons for refusing each of so many nodes, None where none is refused; nothing of it
        is kept."""
        found: Bits | None = None
        for rejection in self._checked(rejections):
            mask = rejection.mask
            _check_mask(self.name, mask, count)
            bit = self._bit(rejection)  # also of an empty mask: reasons keep their order
            if np.count_nonzero(mask):
                refused = mask * bit
                found = refused if found is None else found | refused
        return found

    def put(self, rows: Rows | slice, found: Bits | None, capacity: int) -> None:
        if self.bits is None:
            if found is None or not np.count_nonzero(found):
                return
            self.bits = np.zeros(capacity, np.uint64)
        self.bits[rows] = 0 if found is None else found

    def put_one(self, row: int, found: int, capacity: int) -> None:
        if self.bits is not None:
            self.bits[row] = found
        elif found:
            self.put(np.array([row]), np.array([found], np.uint64), capacity)

    def refused_anew(self, before: Bits | None, everything: Rows) -> Rows:
        """The rows that it refuses and did not before all were judged, or the other way round."""
        if before is None and self.bits is None:
            return everything[:0]
        if before is None or self.bits is None:
            return everything
        count = len(everything)
        return np.flatnonzero((before[:count] != 0) != (self.bits[:count] != 0))

    def stands(self, count: int, waited_seconds: float) -> BoolArray | None:
        """Where it refuses a pod that has waited so long; None: nowhere."""
        if self.bits is None:
            return None
        stands: BoolArray = self.bits[:count] & self._firm(waited_seconds) != 0
        return stands

    def eviction_helps(self, count: int) -> BoolArray:
        """Where every reason it gives is the pods on the node; nowhere while it gives none."""
        if self.bits is None:
            return np.zeros(count, np.bool_)
        for_good = sum(1 << n for n, each in enumerate(self._reasons) if not each.eviction_helps)
        bits = self.bits[:count]
        helps: BoolArray = (bits != 0) & (bits & np.uint64(for_good) == 0)
        return helps

    @property
    def waits(self) -> set[float]:
        """How long a pod has to wait until some refusals give way."""
        return {reason.gives_way_after for reason in self._reasons} - {math.inf}

    def refuses(self, row: int, waited_seconds: float = _NOT_AT_ALL) -> bool:
        return self.bits is not None and bool(self.bits[row] & self._firm(waited_seconds))

    def as_node_rejection(self, row: int, also: tuple[NodeRejection, ...] = ()) -> NodeRejection:
        reasons = self._reasons_at(row)
        return NodeRejection(
            plugin=self.name,
            reasons=tuple(reason.text for reason in reasons),
            eviction_helps=all(reason.eviction_helps for reason in reasons),
            also=also,
        )

    def alike(self, rows: Rows) -> Iterator[Rows]:
        """These rows, all of which it refuses, in groups of equal reasons."""
        assert self.bits is not None
        bits = self.bits[rows]
        for each in np.unique(bits):
            yield rows[bits == each]

    def _firm(self, waited_seconds: float) -> np.uint64:
        """The bits of the reasons that do not give way to a pod that has waited so long."""
        firm = [n for n, each in enumerate(self._reasons) if each.gives_way_after > waited_seconds]
        return np.uint64(sum(1 << number for number in firm))

    def _reasons_at(self, row: int) -> list[_Reason]:
        bits = 0 if self.bits is None else int(self.bits[row])
        return [each for number, each in enumerate(self._reasons) if bits >> number & 1]

    def _bit(self, rejection: Rejection) -> np.uint64:
        after = rejection.gives_way_after
        reason = _Reason(
            rejection.reason, rejection.eviction_helps, math.inf if after is None else after
        )
        bit = self._reasons.get(reason)
        if bit is None:
            if len(self._reasons) == _MOST_REASONS:
                raise PluginError(
                    f"{self.name} gives more than {_MOST_REASONS} different reasons for one pod; "
                    "leave node names out of reasons",
                    rule_name=self.name,
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
            f"{self.name}.filter answers with {answer!r}; "
            "it must yield Rejection(mask, reason), or nothing",
            rule_name=self.name,
        )


def _check_mask(name: str, mask: Any, count: int) -> None:
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (count,):
        raise PluginError(
            f"{name} answers with {mask!r}; it must be {count} booleans, one a node", rule_name=name
        )
