"""decide: the best node for one pod, and why. Pure: it reads the verdicts and changes nothing.

Called by the machine for each pod, and by the offline modes.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from lowtide.cluster.columns import BoolArray, IntArray
from lowtide.cluster.state import ClusterState
from lowtide.config.types import Extender
from lowtide.framework.asking import ask
from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.plugin import PostFiltered
from lowtide.framework.profile import Profile
from lowtide.framework.refused import RefusedPod, post_filtered
from lowtide.framework.verdict import Verdict
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.pod import Pod
from lowtide.scheduler.extending import (
    EXTENDER,
    MOST_POINTS,
    ExtenderDialogue,
    ExtenderError,
    agreed_by_extenders,
    points_of_extenders,
    refused_by_extenders,
)
from lowtide.scheduler.feasibility import fitting

KEPT_NODES = 20


def decide(
    pod: Pod,
    verdicts: VerdictCache,
    *,
    turn: int,
    waited_seconds: float = 0.0,
    keep: int = KEPT_NODES,
    full: bool = False,
) -> Decision:
    """Without extenders, so that nobody has to be asked."""
    course = deciding(pod, verdicts, turn=turn, waited_seconds=waited_seconds, keep=keep, full=full)
    try:
        question = next(course)
    except StopIteration as ended:
        decision: Decision = ended.value
        return decision
    raise RuntimeError(f"there are no extenders, and yet one is asked {question}")


def deciding(
    pod: Pod,
    verdicts: VerdictCache,
    *,
    turn: int,
    waited_seconds: float = 0.0,
    keep: int = KEPT_NODES,
    full: bool = False,
    extenders: tuple[Extender, ...] = (),
) -> ExtenderDialogue[Decision]:
    """The course of a decision: asks the extenders what it has to, and returns the Decision.

    `turn` says which of equally good nodes is chosen, so that they take turns.

    `waited_seconds` is how long the pod has been waiting: some refusals give way in time.

    The decision keeps the `keep` best nodes in full; with `full`, all nodes and every rejection,
    and scores even where a single node is left.
    """
    state = verdicts.state
    verdict = verdicts.verdict_on(pod)
    found = Found(pod, verdicts.profile.scheduler_name, verdict, state)
    helped = _Helped(verdicts.profile, state, verdict, turn, waited_seconds, extenders)
    if verdict.pod_rejection is not None:
        return (yield from helped.remedied(found.pod_rejected(), {}))
    fit = fitting(pod, verdict, state, waited_seconds=waited_seconds)
    feasible, promised, is_narrowed = fit.feasible, fit.promised, fit.is_narrowed
    count = fit.count
    if fit.has_given_way:
        found.has_given_way(promised)
    nominated = state.row_of(pod.status.nominated_node_name)
    by_nomination = nominated is not None and bool(feasible[nominated])
    if nominated is not None and by_nomination and extenders:
        by_nomination = not (yield from helped.refused(pod, [nominated]))
    if extenders and count and not by_nomination:
        refused = yield from helped.refused(pod, np.flatnonzero(feasible).tolist())
        promised, feasible = {**promised, **refused}, feasible.copy()
        feasible[list(refused)] = False
        count, is_narrowed = int(np.count_nonzero(feasible)), True
    if count == 0:
        nowhere = found.nowhere(promised, full, verdict.gives_way_after(waited_seconds))
        return (yield from helped.remedied(nowhere, promised))
    if nominated is not None and by_nomination and not full:
        return found.at(nominated, count, by_nomination=True)
    if count == 1 and not full:
        return found.at(int(np.argmax(feasible)), count)
    ranked = verdict.rank_among(feasible) if is_narrowed else verdict.rank()
    if extenders:
        by_rules, ranked = ranked, (yield from helped.preferred(pod, ranked))
        found.extenders_added(ranked - by_rules)
    best = found.best(ranked, feasible if is_narrowed else None, count, turn, keep, promised, full)
    if nominated is not None and by_nomination:
        name, gave_way = pod.status.nominated_node_name, found.gave_way(nominated)
        return replace(best, node_name=name, by_nomination=True, gave_way=gave_way)
    return best


class Found(msgspec.Struct):
    """Writes a Decision down; the advisor does so too."""

    _pod: Pod
    _scheduler_name: str
    _verdict: Verdict
    _state: ClusterState
    _given_way: Mapping[int, NodeRejection] | None = None
    _points: IntArray | None = None

    def has_given_way(self, promised: Mapping[int, NodeRejection]) -> None:
        """Every node was refused, some for the sake of promised pods; what is left gave way."""
        self._given_way = promised

    def extenders_added(self, points: IntArray) -> None:
        """To the rank of each row."""
        self._points = points

    def gave_way(self, row: int) -> NodeRejection | None:
        if self._given_way is None:
            return None
        return self._given_way.get(row) or self._verdict.rejection_at(row)

    def at(self, row: int, feasible_count: int, *, by_nomination: bool = False) -> Decision:
        return Decision(
            pod=self._pod,
            scheduler_name=self._scheduler_name,
            node_name=self._state.names[row],
            node_count=self._state.count,
            feasible_count=feasible_count,
            by_nomination=by_nomination,
            gave_way=self.gave_way(row),
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
        keep, leaders = len(ranked) if full else keep, self._verdict.leaders
        if feasible is None and self._points is None:
            row, kept = leaders.best(ranked, keep, turn)
        else:
            row, kept = leaders.best_of(ranked, keep, turn)
            kept = kept[self._verdict.feasible[kept] if feasible is None else feasible[kept]]
        scores = self._verdict.scores_of(kept, ranked, feasible)
        if self._points is not None:
            scores = scores.with_points(EXTENDER, self._points[kept])
        return Decision(
            pod=self._pod,
            scheduler_name=self._scheduler_name,
            node_name=self._state.names[row],
            node_count=self._state.count,
            feasible_count=feasible_count,
            scores=scores,
            rejections=self._rejections(promised, given_way=kept.tolist()) if full else {},
            narrowed_to=self._verdict.narrowed_to,
            gave_way=self.gave_way(row),
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
            touched=self._verdict.touched_by([rejected_by]),
        )

    def nowhere(
        self, promised: Mapping[int, NodeRejection], full: bool, gives_way_after: float
    ) -> Decision:
        counts = Counter(self._verdict.reason_counts())
        names = set(self._verdict.rejected_by())
        for excluded, after in self._nominated_but_excluded():
            counts.subtract(excluded.reasons)
            counts.update(after.reasons)
            names.add(after.plugin)
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
            touched=self._verdict.touched_by(names),
            reason_counts=+counts,
            gives_way_after=gives_way_after,
            rejections=self._rejections(promised) if full else {},
            narrowed_to=self._verdict.narrowed_to,
        )

    def _nominated_but_excluded(self) -> Iterator[tuple[NodeRejection, NodeRejection]]:
        """The node that the pod is nominated to is filtered before the pre-filters' choice counts,
        and is told of by what the filters say."""
        row = self._state.row_of(self._pod.status.nominated_node_name)
        if row is None or not self._verdict.is_excluded(row):
            return
        before = self._verdict.rejection_at(row)
        after = self._verdict.rejections_on(self._state.nodes().take(np.array([row]))).get(0)
        if before is not None and after is not None:
            yield before, after

    def _rejections(
        self, promised: Mapping[int, NodeRejection], given_way: Sequence[int] = ()
    ) -> dict[str, NodeRejection]:
        """By node; of rows where the refusals have given way, nothing is told."""
        is_told = np.ones(self._state.count, np.bool_)
        is_told[list(given_way)] = False
        found = dict(self._verdict.rejections_at(np.flatnonzero(is_told)))
        for row, rejection in promised.items():
            if is_told[row]:
                also = self._verdict.rejections_besides(row, rejection.plugin)
                found[row] = replace(rejection, also=also)
        return {self._state.names[row]: found[row] for row in sorted(found)}


class _Helped(msgspec.Struct, frozen=True):
    """What others say in the course of a decision: rules that can do something for a pod that
    fits nowhere, and extenders."""

    _profile: Profile
    _state: ClusterState
    _verdict: Verdict
    _turn: int
    _waited_seconds: float
    _extenders: tuple[Extender, ...]

    def refused(self, pod: Pod, rows: list[int]) -> ExtenderDialogue[dict[int, NodeRejection]]:
        """Of these rows, those that an extender leaves out."""
        names = self._state.names
        row_of = {names[row]: row for row in rows}
        refused = yield from refused_by_extenders(self._extenders, pod, tuple(row_of))
        return {row_of[name]: rejection for name, rejection in refused.items()}

    def preferred(self, pod: Pod, ranked: IntArray) -> ExtenderDialogue[IntArray]:
        """The ranks with what the extenders add."""
        names = self._state.names
        rows = np.flatnonzero(ranked >= 0).tolist()
        points = yield from points_of_extenders(
            self._extenders, pod, tuple(names[row] for row in rows)
        )
        preferred = np.full(len(ranked), -2 * MOST_POINTS, np.int64)  # below what any can sink to
        preferred[rows] = [int(ranked[row]) + points.get(names[row], 0) for row in rows]
        return preferred

    def remedied(
        self, decision: Decision, promised: Mapping[int, NodeRejection]
    ) -> ExtenderDialogue[Decision]:
        """With what can be done for a pod that fits nowhere. As in filtering, refusals that give
        way in time do so only where nothing else is left."""
        if decision.node_count == 0:
            return decision
        found = self._post_filtered(decision, promised, -math.inf)
        again_after = decision.gives_way_after
        for waited in self._verdict.waits:
            if found is None or found[0].eviction is not None or again_after < math.inf:
                break
            later = self._post_filtered(decision, promised, waited)
            if waited <= self._waited_seconds:
                found = later
            elif later is not None and later[0].eviction is not None:
                again_after = waited  # by then there is somebody to evict
        if found is None:
            return decision
        answer, by = found
        if answer.eviction is not None and self._extenders:
            answer = yield from self._agreed(decision.pod, answer)
        return replace(
            decision, post_filtered=answer, post_filtered_by=by, gives_way_after=again_after
        )

    def _post_filtered(
        self, decision: Decision, promised: Mapping[int, NodeRejection], waited_seconds: float
    ) -> tuple[PostFiltered, str] | None:
        refused = RefusedPod(
            decision.pod,
            self._verdict,
            profile=self._profile,
            state=self._state,
            promised=promised,
            turn=self._turn,
            gives_way_after=decision.gives_way_after,
            waited_seconds=waited_seconds,
        )
        return post_filtered(self._profile, decision.pod, self._state, refused)

    def _agreed(self, pod: Pod, answer: PostFiltered) -> ExtenderDialogue[PostFiltered]:
        """The same eviction, or another one that the extenders agree to, or none."""
        try:
            left = yield from agreed_by_extenders(self._extenders, pod, answer.candidates)
        except ExtenderError as error:
            return PostFiltered(f"preemption: {error}", is_error=True)
        if left == answer.candidates:
            return answer
        for rule in self._profile.at("postFilter"):
            if left and hasattr(rule, "choose"):
                chosen: PostFiltered = ask(rule, "choose", left, self._turn)
                return chosen
        said = [answer.said_before, "preemption: no candidate node for preemption"]
        return PostFiltered(", ".join(filter(None, said)))
