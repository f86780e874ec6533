"""Where a pod fits: the rows that pass the filters and have room beside nominated pods. If none is
left, rejections give way. Used by `decide` and by the advisor."""

from collections.abc import Mapping

import msgspec
import numpy as np

from lowtide.cluster.columns import BoolArray
from lowtide.framework.asking import UNTIMED, Asking
from lowtide.framework.decision import NodeRejection
from lowtide.framework.verdict import Verdict
from lowtide.framework.what_if import rejections_with_nominated
from lowtide.objects.pod import Pod


class Feasibility(msgspec.Struct, frozen=True):
    feasible: BoolArray  # by row
    count: int  # of feasible rows
    rejected: Mapping[int, NodeRejection]  # by row: for room of nominated pods, or by extenders
    has_given_way: bool = False  # every row was rejected; in `feasible` that gave way
    is_narrowed: bool = False  # whether `feasible` differs from what passes the filters

    def without(self, rejected: Mapping[int, NodeRejection]) -> "Feasibility":
        """The same without the rows that extenders reject."""
        feasible = _less(self.feasible, rejected, None)
        count = int(np.count_nonzero(feasible))
        return Feasibility(
            feasible, count, {**self.rejected, **rejected}, self.has_given_way, is_narrowed=True
        )


def feasibility(
    pod: Pod,
    verdict: Verdict,
    *,
    waited_seconds: float,
    among: BoolArray | None = None,
    asking: Asking = UNTIMED,
) -> Feasibility:
    """`among` limits the rows to these; None means all."""
    state, feasible = verdict.state, verdict.feasible
    preceding = state.nominated_pods.preceding(pod)
    rejected = (
        {} if preceding is None else rejections_with_nominated(preceding, verdict, asking=asking)
    )
    if rejected or among is not None:
        feasible = _less(feasible, rejected, among)
    count = int(np.count_nonzero(feasible))
    if count:
        is_narrowed = feasible is not verdict.feasible and count < np.count_nonzero(
            verdict.feasible
        )
        return Feasibility(feasible, count, rejected, is_narrowed=bool(is_narrowed))
    later = rejected
    if preceding is not None:
        later = rejections_with_nominated(
            preceding, verdict, waited_seconds=waited_seconds, asking=asking
        )
    feasible = _less(verdict.feasible_after(waited_seconds), later, among)
    count = int(np.count_nonzero(feasible))
    return Feasibility(feasible, count, rejected, has_given_way=True, is_narrowed=True)


def _less(
    feasible: BoolArray, rejected: Mapping[int, NodeRejection], among: BoolArray | None
) -> BoolArray:
    feasible = feasible.copy() if among is None else feasible & among
    feasible[list(rejected)] = False
    return feasible
