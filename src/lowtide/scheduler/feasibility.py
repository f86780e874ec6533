"""Where a pod fits: what the filters leave, less nodes that are promised to other pods; and where
that is nothing, what gives way. Used by `decide` and by the advisor."""

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
    count: int  # of the rows where it is
    rejected: Mapping[int, NodeRejection]  # rows, because of nominated pods or by extenders
    has_given_way: bool = False  # every node was rejected; what is left gave way
    is_narrowed: bool = False  # whether this is not just what the filters leave

    def without(self, rejected: Mapping[int, NodeRejection]) -> "Feasibility":
        """Less what extenders reject."""
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
    """`among` are the rows that can be had at all; all of them where it is None."""
    state, feasible = verdict.state, verdict.feasible
    rivals = state.nominations.preceding(pod)
    rejected = {} if rivals is None else rejections_with_nominated(rivals, verdict, asking=asking)
    if rejected or among is not None:
        feasible = _less(feasible, rejected, among)
    count = int(np.count_nonzero(feasible))
    if count:
        is_narrowed = feasible is not verdict.feasible and count < np.count_nonzero(
            verdict.feasible
        )
        return Feasibility(feasible, count, rejected, is_narrowed=bool(is_narrowed))
    later = rejected
    if rivals is not None:
        later = rejections_with_nominated(
            rivals, verdict, waited_seconds=waited_seconds, asking=asking
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
