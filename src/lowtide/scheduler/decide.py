"""decide: the best node for one pod, and why. Pure: it reads the verdicts and changes nothing.

Called by the machine for each pod, and by the offline modes.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lowtide.cluster.columns import BoolArray, IntArray
from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.verdict import Verdict
from lowtide.framework.verdicts import Verdicts
from lowtide.objects.pod import Pod

KEPT_NODES = 20


def decide(
    pod: Pod,
    verdicts: Verdicts,
    *,
    turn: int,
    waited_seconds: float = 0.0,
    keep: int = KEPT_NODES,
    full: bool = False,
) -> Decision:
    """`turn` says which of equally good nodes is chosen, so that they take turns.

    `waited_seconds` is how long the pod has been waiting: some refusals give way in time.

    The decision keeps the `keep` best nodes in full; with `full`, all nodes and every rejection,
    and scores even where a single node is left.
    """
    state = verdicts.state
    verdict = verdicts.of(pod)
    found = _Found(pod, verdicts.profile.scheduler_name, verdict, state)
    if verdict.pod_rejection is not None:
        return found.pod_rejected()
    promised = _refused_for_nominated(pod, verdict, state)
    feasible = verdict.feasible
    if promised:
        feasible = feasible.copy()
        feasible[list(promised)] = False
    count = int(np.count_nonzero(feasible))
    is_narrowed = bool(promised)
    if count == 0:
        feasible = verdict.feasible_after(waited_seconds)
        feasible[list(_refused_for_nominated(pod, verdict, state, waited_seconds))] = False
        count, is_narrowed = int(np.count_nonzero(feasible)), True
    if count == 0:
        return found.nowhere(promised, full, verdict.gives_way_after(waited_seconds))
    nominated = state.row_of(pod.status.nominated_node_name)
    by_nomination = nominated is not None and bool(feasible[nominated])
    if nominated is not None and by_nomination and not full:
        return found.at(nominated, count, by_nomination=True)
    if count == 1 and not full:
        return found.at(int(np.argmax(feasible)), count)
    ranked = verdict.rank_among(feasible) if is_narrowed else verdict.rank()
    best = found.best(ranked, feasible if is_narrowed else None, count, turn, keep, promised, full)
    if by_nomination:
        return replace(best, node_name=pod.status.nominated_node_name, by_nomination=True)
    return best


class _Found:
    """Writes a Decision down."""

    def __init__(
        self, pod: Pod, scheduler_name: str, verdict: Verdict, state: ClusterState
    ) -> None:
        self._pod = pod
        self._scheduler_name = scheduler_name
        self._verdict = verdict
        self._state = state

    def at(self, row: int, feasible_count: int, *, by_nomination: bool = False) -> Decision:
        return Decision(
            pod=self._pod,
            scheduler_name=self._scheduler_name,
            node_name=self._state.names[row],
            node_count=self._state.count,
            feasible_count=feasible_count,
            by_nomination=by_nomination,
        )

    def best(
        self,
        ranked: IntArray,
        feasible: BoolArray | None,
        feasible_count: int,
        turn: int,
        keep: int,
        promised: Mapping[int, NodeRejection],
        full: bool,
    ) -> Decision:
        row = best_row(ranked, turn)
        kept = [r for r in _top(ranked, len(ranked) if full else keep) if ranked[r] >= 0]
        return Decision(
            pod=self._pod,
            scheduler_name=self._scheduler_name,
            node_name=self._state.names[row],
            node_count=self._state.count,
            feasible_count=feasible_count,
            scores=self._verdict.scores_of(kept, ranked, feasible),
            rejections=self._rejections(promised, given_way=kept) if full else {},
            narrowed_to=self._verdict.narrowed_to,
        )

    def pod_rejected(self) -> Decision:
        assert self._verdict.pod_rejection is not None
        rejected_by, rejection = self._verdict.pod_rejection
        return Decision(
            pod=self._pod,
            scheduler_name=self._scheduler_name,
            node_name=None,
            node_count=self._state.count,
            feasible_count=0,
            pod_rejection=rejection,
            rejected_by=frozenset([rejected_by]),
        )

    def nowhere(
        self, promised: Mapping[int, NodeRejection], full: bool, gives_way_after: float
    ) -> Decision:
        counts = Counter(self._verdict.reason_counts())
        names = set(self._verdict.rejected_by())
        for row, rejection in promised.items():
            before = self._verdict.rejection_at(row)
            counts.subtract(before.reasons if before else ())
            counts.update(rejection.reasons)
            names.add(rejection.plugin)
        return Decision(
            pod=self._pod,
            scheduler_name=self._scheduler_name,
            node_name=None,
            node_count=self._state.count,
            feasible_count=0,
            rejected_by=frozenset(names),
            reason_counts=+counts,
            gives_way_after=gives_way_after,
            rejections=self._rejections(promised) if full else {},
            narrowed_to=self._verdict.narrowed_to,
        )

    def _rejections(
        self, promised: Mapping[int, NodeRejection], given_way: Sequence[int] = ()
    ) -> dict[str, NodeRejection]:
        """By node; of rows where the refusals have given way, nothing is told."""
        found = {}
        for row in sorted(set(range(self._state.count)).difference(given_way)):
            name = self._state.names[row]
            rejection = promised.get(row)
            if rejection is not None:
                also = self._verdict.rejections_besides(row, rejection.plugin)
                rejection = replace(rejection, also=also)
            else:
                rejection = self._verdict.rejection_at(row)
            if rejection is not None:
                found[name] = rejection
        return found


def best_row(ranked: IntArray, turn: int) -> int:
    """One of the rows with the highest rank; equal ones take turns."""
    ties = np.flatnonzero(ranked == ranked.max())
    return int(ties[turn % len(ties)])


def _top(ranked: IntArray, keep: int) -> list[int]:
    """The rows with the highest ranks, best first, equal ones in the order of the table."""
    if keep < len(ranked):
        lowest_kept = np.partition(ranked, len(ranked) - keep)[len(ranked) - keep]
        candidates = np.flatnonzero(ranked >= lowest_kept)
    else:
        candidates = np.arange(len(ranked))
    order = np.argsort(-ranked[candidates], kind="stable")[:keep]
    rows: list[int] = candidates[order].tolist()
    return rows


def _refused_for_nominated(
    pod: Pod, verdict: Verdict, state: ClusterState, waited_seconds: float = -math.inf
) -> dict[int, NodeRejection]:
    """Nodes that have room for the pod, but not beside the pods they were promised to.

    Each node is judged with only the pods nominated to it that matter as much or more. Nothing
    gives way to a pod before it is said how long it has waited.
    """
    pods_by_row = {}
    for node_name, nominated in state.nominated().items():
        row = state.row_of(node_name)
        rivals = [
            rival
            for uid, rival in nominated.items()
            if uid != pod.uid and rival.spec.priority >= pod.spec.priority
        ]
        if row is not None and rivals and not verdict.is_excluded(row):
            pods_by_row[row] = rivals
    if not pods_by_row:
        return {}
    rows = np.array(list(pods_by_row), np.intp)
    nodes = state.nodes().take(rows).with_pods(dict(enumerate(pods_by_row.values())))
    rejections = verdict.rejections_on(nodes, waited_seconds)
    return {int(rows[position]): rejection for position, rejection in rejections.items()}
