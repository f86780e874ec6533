"""Where a pod fits: what the filters leave, less what is promised to other pods; and where that is
nothing, what gives way. Used by `decide` and by the advisor."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lowtide.cluster.columns import BoolArray
from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import NodeRejection
from lowtide.framework.refused import rivals_of
from lowtide.framework.verdict import Verdict
from lowtide.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Fitting:
    feasible: BoolArray
    promised: Mapping[int, NodeRejection]  # rows that are refused because of nominated pods
    has_given_way: bool = False  # every node was refused; what is left gave way

    @property
    def is_narrowed(self) -> bool:
        """Whether this is not just what the filters leave."""
        return bool(self.promised) or self.has_given_way


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
    feasible = _less(verdict.feasible, promised, among)
    if feasible.any():
        return Fitting(feasible, promised)
    later = refused_for_nominated(pod, verdict, state, waited_seconds)
    feasible = _less(verdict.feasible_after(waited_seconds), later, among)
    return Fitting(feasible, promised, has_given_way=True)


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
    pods_by_row = {
        row: rivals for row, rivals in rivals_of(pod, state).items() if not verdict.is_excluded(row)
    }
    if not pods_by_row:
        return {}
    rows = np.array(list(pods_by_row), np.intp)
    nodes = state.nodes().take(rows).with_pods(dict(enumerate(pods_by_row.values())))
    rejections = verdict.rejections_on(nodes, waited_seconds)
    return {int(rows[position]): rejection for position, rejection in rejections.items()}
