"""The last decisions, with what was known when they were taken. Costs some microseconds for each;
what people read is made of it when they ask (`record`)."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping

import msgspec
import numpy as np
from msgspec.structs import replace

from lowtide.cluster.columns import Rows
from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import Decision, ScoreTable
from lowtide.framework.profile import Profile
from lowtide.records.measured import Measured, measured_by
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.decide import KEPT_NODES

KEPT_DECISIONS = 2000
_NO_ROWS = np.empty(0, np.intp)


class Kept(msgspec.Struct):
    """`number` counts all decisions from 1. `is_on` is where somebody else has put the pod; for
    advice it is known later."""

    number: int
    at: float
    decided: Decided
    seconds: float
    measured: Measured | None
    is_on: str | None = None


class Ring:
    """`clock` is the machine's: seconds since the epoch that only go on. With extenders the table
    may change between a decision and its note (`rows_may_change`)."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        state: ClusterState,
        clock: Callable[[], float],
        kept_decisions: int = KEPT_DECISIONS,
        *,
        rows_may_change: bool = True,
    ) -> None:
        self._rows_may_change = rows_may_change
        self._measured_by = {
            name: measured_by(profile, state) for name, profile in profiles.items()
        }
        self._state = state
        self._clock = clock
        self._kept: deque[Kept] = deque(maxlen=kept_decisions)
        self._newest: dict[str, Kept] = {}  # by uid
        self._count = 0

    @property
    def last_number(self) -> int:
        return self._count

    def note(self, decided: Decided, began_at: float, is_on: str | None = None) -> Kept:
        """In the same step as the decision, which may have put the pod on its node, or somebody
        else on the one that it `is_on`. Where the table has changed since, as events had been held
        for an extender's answer, nothing measured is kept."""
        decision = decided.decision
        pod = decision.pod
        measuring = self._measured_by[decision.scheduler_name]
        if len(decision.scores.node_names) > KEPT_NODES or decision.rejections:
            decision = replace(decision, scores=decision.scores.first(KEPT_NODES), rejections={})
            told = decided.priorities
            decided = replace(
                decided,
                decision=decision,
                priorities=None if told is None else told.first(KEPT_NODES),
            )
        measured = None
        if measuring is not None:
            rows, position = self._rows(decision, is_on or decision.node_name)
            measured = measuring.measured_on(rows, position, pod.uid) if len(rows) else None
        self._count += 1
        now = self._clock()
        kept = Kept(self._count, now, decided, now - began_at, measured, is_on)
        if len(self._kept) == self._kept.maxlen:
            oldest = self._kept[0]
            uid = oldest.decided.decision.pod.uid
            if self._newest.get(uid) is oldest:
                del self._newest[uid]
        self._kept.append(kept)
        self._newest[pod.uid] = kept
        return kept

    def went_to(self, uid: str, node_name: str) -> None:
        """Where the pod is that advice was given about last."""
        kept = self._newest.get(uid)
        if kept is not None and kept.decided.asked:
            kept.is_on = node_name

    def _rows(self, decision: Decision, counts_on: str | None) -> tuple[Rows, int | None]:
        """Of the nodes that were kept, and which of them the pod counts on; no rows where they are
        not what they were."""
        scores, chosen, state = decision.scores, decision.node_name, self._state
        if scores.node_names:
            names = scores.node_names
            position = names.index(counts_on) if counts_on in names else None
            if self._rows_may_change and not _are_rows_of(scores, state):
                return _NO_ROWS, None
            return scores.rows, position
        row = None if chosen is None else state.row_of(chosen)
        if row is None:
            return _NO_ROWS, None
        return np.array([row]), 0 if counts_on == chosen else None

    def newest_of(self, uid: str) -> Kept | None:
        return self._newest.get(uid)

    def after(self, number: int) -> Iterator[Kept]:
        """Those that came later, the oldest first."""
        first = self._count - len(self._kept)  # the number before the oldest
        for position in range(max(0, number - first), len(self._kept)):
            yield self._kept[position]

    def evicting(self, pod_key: str) -> Iterator[Kept]:
        """Those that took the pod off a node, the newest first."""
        for kept in reversed(self._kept):
            found = kept.decided.decision.post_filtered
            eviction = None if found is None else found.eviction
            if eviction is not None and any(each.key == pod_key for each in eviction.victims):
                yield kept

    def decisions_about(self, pod_key: str) -> Iterator[Kept]:
        """What was decided about a pod, by namespace/name, the newest first."""
        return (kept for kept in reversed(self._kept) if kept.decided.decision.pod.key == pod_key)


def _are_rows_of(scores: ScoreTable, state: ClusterState) -> bool:
    names, count = state.names, state.count
    return all(
        row < count and names[row] == name
        for row, name in zip(scores.rows.tolist(), scores.node_names, strict=True)
    )
