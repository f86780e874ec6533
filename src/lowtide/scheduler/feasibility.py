"""Where a pod fits: what the filters leave, less what is promised to other pods; and where that is
nothing, what gives way. Used by `decide` and by the advisor."""

import math
from collections.abc import Mapping

import msgspec
import numpy as np

from lowtide.cluster.columns import BoolArray
from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import NodeRejection
from lowtide.framework.refused import rivals_of
from lowtide.framework.verdict import Verdict
from lowtide.objects.pod import Pod


class Fitting(msgspec.Struct, frozen=True):
    feasible: BoolArray
    count: int  # of the rows where it is
    promised: Mapping[int, NodeRejection]  # rows that are refused because of nominated pods
    has_given_way: bool = False  # every node was refused; what is left gave way
    is_narrowed: bool = False  # whether this is not just what the filters leave


def fitting(
    pod: Pod,
    verdict: Verdict,
    state: ClusterState,
    *,
    waited_seconds: float,
    among: BoolArray | None = None,
) -> Fitting:
    """`among` are the rows that can be had at all; all of them where it is None."""
    promised = refused_for_nominated(pod, verdict, state)
    by_filters = verdict.feasible
    feasible = _less(by_filters, promised, among)
    count = int(np.count_nonzero(feasible))
    if count:
        is_narrowed = feasible is not by_filters and count < int(np.count_nonzero(by_filters))
        return Fitting(feasible, count, promised, is_narrowed=is_narrowed)
    later = refused_for_nominated(pod, verdict, state, waited_seconds)
    feasible = _less(verdict.feasible_after(waited_seconds), later, among)
    count = int(np.count_nonzero(feasible))
    return Fitting(feasible, count, promised, has_given_way=True, is_narrowed=True)


def _less(
    feasible: BoolArray, promised: Mapping[int, NodeRejection], among: BoolArray | None
) -> BoolArray:
    if among is not None:
        feasible = feasible & among
    elif promised:
        feasible = feasible.copy()
    if promised:
        feasible[list(promised)] = False
    return feasible


def refused_for_nominated(
    pod: Pod, verdict: Verdict, state: ClusterState, waited_seconds: float = -math.inf
) -> dict[int, NodeRejection]:
    """Nodes that have room for the pod, but not beside the pods they were promised to.

    Each node is judged with only the pods nominated to it that matter as much or more. Nothing
    gives way to a pod before it is said how long it has waited.
    """
    rivals = rivals_of(pod, state)
    if rivals is None:
        return {}
    nodes = rivals.with_them(state.nodes())
    if verdict.narrowed_to is not None:
        excluded = [verdict.is_excluded(row) for row in rivals.rows.tolist()]
        nodes = nodes.take(np.flatnonzero(~np.array(excluded, np.bool_)))
    rows = nodes.rows.tolist()
    rejections = verdict.rejections_on(nodes, waited_seconds)
    return {rows[position]: rejection for position, rejection in rejections.items()}
