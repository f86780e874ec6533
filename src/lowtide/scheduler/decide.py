"""decide: the best node for one pod, and why. Pure: it reads verdicts and changes no cluster state.

`deciding` is the same with questions to extenders; the machine runs it for each pod.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec
import numpy as np
from msgspec.structs import replace

from lowtide.cluster.columns import IntArray, Rows
from lowtide.config.types import Extender
from lowtide.framework.asking import UNTIMED, Asking
from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.least_harm import least_harmful
from lowtide.framework.plugin import PostFiltered
from lowtide.framework.profile import Profile
from lowtide.framework.ranking import RankedAmong
from lowtide.framework.verdict import Verdict
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.framework.what_if import PostFilterContext, PostFilterOutcome, post_filtered, what_if
from lowtide.objects.pod import Pod
from lowtide.scheduler.extending import (
    EXTENDER,
    MOST_POINTS,
    ExtenderDialogue,
    ExtenderError,
    agreed_by_extenders,
    points_of_extenders,
    rejected_by_extenders,
)
from lowtide.scheduler.feasibility import Feasibility, feasibility

KEPT_NODES = 20


def decide(
    pod: Pod,
    verdicts: VerdictCache,
    *,
    turn: int,
    waited_seconds: float = 0.0,
    keep: int = KEPT_NODES,
    full: bool = False,
    asking: Asking = UNTIMED,
) -> Decision:
    """Decide without extenders. The arguments are as in `deciding`."""
    dialogue = deciding(
        pod,
        verdicts,
        turn=turn,
        waited_seconds=waited_seconds,
        keep=keep,
        full=full,
        asking=asking,
    )
    try:
        question = next(dialogue)
    except StopIteration as ended:
        decision: Decision = ended.value
        return decision
    raise RuntimeError(f"decide has no extenders to ask {question}")


def decided_now(pod: Pod, verdicts: VerdictCache, *, turn: int, waited_seconds: float) -> Decision:
    """For explanations: decide in full as if the pod had no node. Changes nothing."""
    elsewhere = verdicts.without(pod.uid)
    return decide(pod, elsewhere, turn=turn, waited_seconds=waited_seconds, full=True)


def deciding(
    pod: Pod,
    verdicts: VerdictCache,
    *,
    turn: int,
    waited_seconds: float = 0.0,
    keep: int = KEPT_NODES,
    full: bool = False,
    extenders: tuple[Extender, ...] = (),
    asking: Asking = UNTIMED,
    signature: bytes | None = None,
) -> ExtenderDialogue[Decision]:
    """A generator: it yields questions to extenders, is sent their answers, and returns the
    Decision.

    `turn` picks among equally good nodes. `waited_seconds` settles which rejections give way. The
    decision keeps the `keep` best nodes; with `full`, all nodes and every rejection, and it has
    scores even if a single node is left."""
    verdict = verdicts.verdict_on(pod, asking, signature)
    profile = verdicts.profile
    writer = DecisionWriter(pod, profile.scheduler_name, verdict, turn, keep, full)
    participants = _Participants(profile, verdict, turn, waited_seconds, extenders, asking)
    if verdict.pod_rejection is not None:
        return (yield from participants.with_post_filters(writer.pod_rejected(), {}))
    fit = feasibility(pod, verdict, waited_seconds=waited_seconds, asking=asking)
    nominated = verdict.state.row_of(pod.status.nominated_node_name)
    if nominated is not None and not fit.feasible[nominated]:
        nominated = None
    if extenders:
        fit, nominated = yield from participants.left(pod, fit, nominated)
    if fit.count == 0:
        nowhere = writer.nowhere(fit, verdict.gives_way_after(waited_seconds))
        return (yield from participants.with_post_filters(nowhere, fit.rejected))
    if not full and (fit.count == 1 or nominated is not None):
        return writer.unscored(fit, nominated)
    among = verdict.rank_among(fit.feasible, asking) if fit.is_narrowed else None
    ranked = verdict.rank(asking) if among is None else among.ranked
    points = (yield from participants.points(pod, ranked)) if extenders else None
    return writer.best(fit, ranked, among=among, points=points, nominated=nominated)


class DecisionWriter(msgspec.Struct, frozen=True):
    """Makes the Decision, for `deciding` and for the advisor. `turn`, `keep` and `full` are as in
    `deciding`."""

    _pod: Pod
    _scheduler_name: str
    _verdict: Verdict
    _turn: int
    _keep: int = KEPT_NODES
    _full: bool = False

    def unscored(self, fit: Feasibility, nominated: int | None) -> Decision:
        """For the node that the pod is nominated to, or else for the only feasible node."""
        row = int(np.argmax(fit.feasible)) if nominated is None else nominated
        return Decision(
            pod=self._pod,
            scheduler_name=self._scheduler_name,
            node_name=self._verdict.state.names[row],
            node_count=self._verdict.state.count,
            feasible_count=fit.count,
            by_nomination=nominated is not None,
            gave_way=self._gave_way(row, fit),
            signature=self._verdict.signature,
        )

    def best(
        self,
        fit: Feasibility,
        ranked: IntArray,
        *,
        among: RankedAmong | None,
        points: IntArray | None = None,
        nominated: int | None = None,
    ) -> Decision:
        """For the `nominated` row, or else for the row that ranks highest. `among` is set if only
        the rows of `fit` were ranked. Extenders add `points` to the ranks."""
        verdict, state = self._verdict, self._verdict.state
        keep = len(ranked) if self._full else self._keep
        if among is None and points is None:
            row, kept = verdict.leaders.best(ranked, keep, self._turn)
        else:
            if points is not None:
                ranked = ranked + points
            row, kept = verdict.leaders.best_of(ranked, keep, self._turn)
            kept = kept[fit.feasible[kept]]
        scores = verdict.scores_of(kept, ranked, among)
        if points is not None:
            scores = scores.with_points(EXTENDER, points[kept])
        if nominated is not None:
            row = nominated
        return Decision(
            pod=self._pod,
            scheduler_name=self._scheduler_name,
            node_name=state.names[row],
            node_count=state.count,
            feasible_count=fit.count,
            scores=scores,
            by_nomination=nominated is not None,
            rejections=self._rejections(fit, given_way=kept) if self._full else {},
            narrowed_to=verdict.narrowed_to,
            gave_way=self._gave_way(row, fit) if fit.has_given_way else None,
            signature=verdict.signature,
        )

    def pod_rejected(self) -> Decision:
        assert self._verdict.pod_rejection is not None
        rejected_by, rejection = self._verdict.pod_rejection
        return Decision(
            pod=self._pod,
            scheduler_name=self._scheduler_name,
            node_name=None,
            node_count=self._verdict.state.count,
            feasible_count=0,
            pod_rejection=rejection,
            rejected_by=frozenset([rejected_by]),
            touched=self._verdict.touched_by([rejected_by]),
        )

    def nowhere(self, fit: Feasibility, gives_way_after: float) -> Decision:
        counts = Counter(self._verdict.reason_counts())
        names = set(self._verdict.rejected_by())
        for before, after in (*self._nominated_but_excluded(), *self._rejected_besides(fit)):
            counts.subtract(before.reasons if before else ())
            counts.update(after.reasons)
            names.add(after.plugin)
        return Decision(
            pod=self._pod,
            scheduler_name=self._scheduler_name,
            node_name=None,
            node_count=self._verdict.state.count,
            feasible_count=0,
            rejected_by=frozenset(names),
            touched=self._verdict.touched_by(names),
            reason_counts=+counts,
            gives_way_after=gives_way_after,
            rejections=self._rejections(fit) if self._full else {},
            narrowed_to=self._verdict.narrowed_to,
        )

    def _gave_way(self, row: int, fit: Feasibility) -> NodeRejection | None:
        if not fit.has_given_way:
            return None
        return fit.rejected.get(row) or self._verdict.rejection_at(row)

    def _rejected_besides(
        self, fit: Feasibility
    ) -> Iterator[tuple[NodeRejection | None, NodeRejection]]:
        """For each row of `fit.rejected`: the filters' own rejection, and the one that counts."""
        for row, rejection in fit.rejected.items():
            yield self._verdict.rejection_at(row), rejection

    def _nominated_but_excluded(self) -> Iterator[tuple[NodeRejection, NodeRejection]]:
        """As in kube-scheduler, the filters judge the nominated node before the pre-filters
        exclude nodes. So the filters' reasons count there."""
        state = self._verdict.state
        row = state.row_of(self._pod.status.nominated_node_name)
        if row is None or not self._verdict.is_excluded(row):
            return
        before = self._verdict.rejection_at(row)
        after = what_if(self._verdict).rejections(state.nodes().take(np.array([row]))).get(0)
        if before is not None and after is not None:
            yield before, after

    def _rejections(
        self, fit: Feasibility, given_way: Rows | tuple[()] = ()
    ) -> dict[str, NodeRejection]:
        """By node, without the rows whose rejections gave way."""
        state = self._verdict.state
        is_reported = np.ones(state.count, np.bool_)
        is_reported[list(given_way)] = False
        found = dict(self._verdict.rejections_at(np.flatnonzero(is_reported)))
        for row, rejection in fit.rejected.items():
            if is_reported[row]:
                also = self._verdict.other_rejections(row, rejection.plugin)
                found[row] = replace(rejection, also=also)
        return {state.names[row]: found[row] for row in sorted(found)}


class _Participants(msgspec.Struct, frozen=True):
    """Asks extenders during a decision, and postFilter plugins for a pod that fits nowhere."""

    _profile: Profile
    _verdict: Verdict
    _turn: int
    _waited_seconds: float
    _extenders: tuple[Extender, ...]
    _asking: Asking

    def left(
        self, pod: Pod, fit: Feasibility, nominated: int | None
    ) -> ExtenderDialogue[tuple[Feasibility, int | None]]:
        """What extenders leave. If they accept the nominated node, they are not asked about
        others."""
        if nominated is not None and not (yield from self._rejected(pod, [nominated])):
            return fit, nominated
        if not fit.count:
            return fit, None
        rejected = yield from self._rejected(pod, np.flatnonzero(fit.feasible).tolist())
        return fit.without(rejected), None

    def _rejected(self, pod: Pod, rows: list[int]) -> ExtenderDialogue[dict[int, NodeRejection]]:
        """Those of these rows that an extender rejects."""
        names = self._verdict.state.names
        row_of = {names[row]: row for row in rows}
        rejected = yield from rejected_by_extenders(self._extenders, pod, tuple(row_of))
        return {row_of[name]: rejection for name, rejection in rejected.items()}

    def points(self, pod: Pod, ranked: IntArray) -> ExtenderDialogue[IntArray]:
        """What the extenders add to these ranks. A node that is not feasible gets so few points
        that it ranks below every feasible one."""
        names = self._verdict.state.names
        rows = np.flatnonzero(ranked >= 0).tolist()
        by_name = yield from points_of_extenders(
            self._extenders, pod, tuple(names[row] for row in rows)
        )
        points = -2 * MOST_POINTS - ranked
        points[rows] = [by_name.get(names[row], 0) for row in rows]
        return points

    def with_post_filters(
        self, decision: Decision, also_rejected: Mapping[int, NodeRejection]
    ) -> ExtenderDialogue[Decision]:
        """The decision with what postFilter plugins can do for the pod. As in filtering,
        rejections that give way with time do so only if nothing else is left."""
        if decision.node_count == 0:
            return decision
        found = self._post_filtered(decision, also_rejected, -math.inf)
        again_after = decision.gives_way_after
        for waited in self._verdict.waits:
            if found is None or found.answer.eviction is not None or again_after < math.inf:
                break
            later = self._post_filtered(decision, also_rejected, waited)
            if waited <= self._waited_seconds:
                found = later
            elif later is not None and later.answer.eviction is not None:
                again_after = waited  # by then there are pods to evict
        if found is None:
            return decision
        answer = found.answer
        if answer.eviction is not None and self._extenders:
            answer = yield from self._agreed(decision.pod, found)
        return replace(
            decision,
            post_filtered=answer,
            post_filtered_by=found.plugin_name,
            gives_way_after=again_after,
        )

    def _post_filtered(
        self, decision: Decision, also_rejected: Mapping[int, NodeRejection], waited_seconds: float
    ) -> PostFilterOutcome | None:
        context = PostFilterContext(
            decision.pod,
            self._verdict,
            profile=self._profile,
            asking=self._asking,
            also_rejected=also_rejected,
            turn=self._turn,
            gives_way_after=decision.gives_way_after,
            waited_seconds=waited_seconds,
        )
        state = self._verdict.state
        return post_filtered(self._profile, decision.pod, state, context, self._asking)

    def _agreed(self, pod: Pod, found: PostFilterOutcome) -> ExtenderDialogue[PostFiltered]:
        """The same eviction, another one that the extenders accept, or none."""
        candidates = found.answer.candidates
        try:
            left = yield from agreed_by_extenders(self._extenders, pod, candidates)
        except ExtenderError as error:
            return PostFiltered(f"preemption: {error}", is_error=True)
        if left == candidates:
            return found.answer
        if left:
            return least_harmful(left, self._turn)
        reasons = [*found.reasons_before, "preemption: no candidate node for preemption"]
        return PostFiltered(", ".join(reasons))
