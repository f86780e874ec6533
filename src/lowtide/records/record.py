"""A DecisionRecord: one decision in the form that people and programs read, as JSON. Made when
asked for, of what `ring` keeps; the page, `explain` and record files all have this form."""

import math
from typing import Self

import msgspec

from lowtide.framework.decision import Decision, NodeScore
from lowtide.objects.extender import MOST_PRIORITY
from lowtide.readings.amounts import bandwidth_text
from lowtide.readings.columns import (
    CAPACITY,
    IS_GUESSED,
    RECEIVE_COLUMN,
    SHARE,
    STATE,
    TRANSMIT_COLUMN,
)
from lowtide.readings.judging import share_with
from lowtide.readings.reading import STATES
from lowtide.records.measured import FIELDS, Measured
from lowtide.records.ring import Kept
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.decide import KEPT_NODES

_SHARE, _RECEIVE, _TRANSMIT, _CAPACITY = (
    FIELDS.index(field) for field in (SHARE, RECEIVE_COLUMN, TRANSMIT_COLUMN, CAPACITY)
)

# Which of several nodes with the most points is chosen.
TURNS = "equal nodes take turns"


class ScoreRecord(msgspec.Struct, frozen=True):
    raw: int
    normalized: int
    weighted: int


class TrafficRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Of one node, in bytes per second; `share` is what was measured of the busiest link's
    capacity, `added_...` what was placed since and is not measured yet."""

    share: float | None
    share_with_added: float | None
    receive: float | None
    transmit: float | None
    capacity: float | None
    is_capacity_guessed: bool
    state: str
    added_receive: float
    added_transmit: float


class NodeRecord(msgspec.Struct, frozen=True):
    node: str
    total: int | None
    scores: dict[str, ScoreRecord] = {}
    measured: TrafficRecord | None = None


class ReadingRecord(msgspec.Struct, frozen=True):
    """`expected_...` is what the pod itself was expected to carry, in bytes per second."""

    age_seconds: float | None
    window_seconds: float
    expected_receive: float | None
    expected_transmit: float | None


class PreemptionRecord(msgspec.Struct, frozen=True):
    node: str
    victims: list[str]


class PrioritiesRecord(msgspec.Struct, frozen=True):
    """What another scheduler was answered, 0 to 10: for the best nodes, the highest of all, and
    how many of the nodes that it asked about have that."""

    by_node: dict[str, int]
    highest: int
    highest_count: int


class DecisionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`node` is where the pod goes. Where another scheduler decides, `node` is advice:
    `actual_node` is where that scheduler put the pod, `extender_verb` is what it asked an
    extender, and `neutral_reason` is why plugins had no influence on the answer."""

    seq: int
    time: float
    pod: str
    uid: str
    scheduler: str
    attempt: int
    waited_seconds: float
    node: str | None
    nodes: int
    feasible: int
    margin: int | None = None
    runner_up: str | None = None
    by_nomination: bool = False
    best: list[NodeRecord] = []
    reading: ReadingRecord | None = None
    reasons: dict[str, int] = {}
    message: str | None = None
    unschedulable_plugins: list[str] = []
    preemption: PreemptionRecord | None = None
    seconds: float | None = None
    seconds_by_plugin: dict[str, float] = {}
    extender_verb: str = ""
    actual_node: str | None = None
    neutral_reason: str = ""
    priorities: PrioritiesRecord | None = None

    @classmethod
    def from_kept(cls, kept: Kept) -> Self:
        decided, decision = kept.decided, kept.decided.decision
        best = _best(decision, kept.measured)
        margin, runner_up = _margin(decision)
        return cls(
            seq=kept.number,
            time=kept.at,
            pod=decision.pod.key,
            uid=decision.pod.uid,
            scheduler=decision.scheduler_name,
            attempt=decided.attempts,
            waited_seconds=max(0.0, kept.at - decided.first_seen_at),
            node=decision.node_name,
            nodes=decision.node_count,
            feasible=decision.feasible_count,
            margin=margin,
            runner_up=runner_up,
            by_nomination=decision.by_nomination,
            best=best,
            reading=_reading(kept),
            reasons=dict(decision.reason_counts),
            message=_message(decided),
            unschedulable_plugins=sorted(decision.rejected_by),
            preemption=_preempts(decision),
            seconds=kept.seconds,
            seconds_by_plugin=dict(decided.spent.by_plugin),
            extender_verb=decided.asked,
            actual_node=kept.is_on,
            neutral_reason=decided.neutral,
            priorities=_priorities(decided),
        )

    @property
    def chosen(self) -> NodeRecord | None:
        return next((each for each in self.best if each.node == self.node), None)


class DecisionLine(msgspec.Struct, frozen=True, kw_only=True):
    """The same in brief, for a stream of them."""

    seq: int
    time: float
    pod: str
    node: str | None
    total: int | None
    margin: int | None
    runner_up: str | None
    share: float | None
    attempt: int
    message: str | None
    extender_verb: str = ""
    actual_node: str | None = None
    neutral_reason: str = ""

    @classmethod
    def from_kept(cls, kept: Kept) -> Self:
        decision = kept.decided.decision
        names, node = decision.scores.node_names, decision.node_name
        position = names.index(node) if node in names else None
        traffic = None
        if node is not None and (position is not None or not names):
            traffic = _traffic(kept.measured, position or 0)
        margin, runner_up = _margin(decision)
        return cls(
            seq=kept.number,
            time=kept.at,
            pod=decision.pod.key,
            node=node,
            total=None if position is None else int(decision.scores.totals[position]),
            margin=margin,
            runner_up=runner_up,
            share=None if traffic is None else traffic.share_with_added,
            attempt=kept.decided.attempts,
            message=_message(kept.decided),
            extender_verb=kept.decided.asked,
            actual_node=kept.is_on,
            neutral_reason=kept.decided.neutral,
        )


def _message(decided: Decided) -> str | None:
    """Why there is no node."""
    if decided.neutral:
        return f"neutral answer: {decided.neutral}"
    decision = decided.decision
    return None if decision.node_name is not None else decision.fit_error_final


def in_short(record: DecisionRecord) -> str:
    """Why a pod is on its node, in one line: `node-4: traffic 31 % of 10 Gb/s, score 742, next
    node-2 715`."""
    chosen = record.chosen
    parts = []
    if chosen is not None and chosen.measured is not None:
        share, capacity = chosen.measured.share_with_added, chosen.measured.capacity
        if share is not None and capacity:
            parts.append(f"traffic {share:.0%} of {bandwidth_text(capacity)}")
    if chosen is not None and chosen.total is not None:
        parts.append(f"score {chosen.total}")
    if chosen is not None and chosen.total is not None and record.margin is not None:
        parts.append(
            f"next {record.runner_up} {chosen.total - record.margin}"
            if record.margin
            else f"as {record.runner_up} has: {TURNS}"
        )
    if record.by_nomination:
        parts.append("it was promised to the pod")
    elif record.feasible == 1:
        parts.append("no other node was left")
    return f"{record.node}: {', '.join(parts)}"


def lead_in_words(record: DecisionRecord) -> str:
    """How far the node is ahead of the next best one; empty where none was compared. Among equal
    ones it is Lowtide's turn to choose, or of who asked."""
    margin, runner_up = record.margin, record.runner_up
    if margin is None or runner_up is None:
        return ""
    if margin == 0:
        words = f"as many points as {runner_up}"
        return words if record.extender_verb else f"{words}: {TURNS}"
    points = "1 point" if abs(margin) == 1 else f"{abs(margin)} points"
    return f"{points} {'ahead of' if margin > 0 else 'behind'} {runner_up}"


def priorities_in_words(record: DecisionRecord) -> str:
    """How many nodes share the first place in what another scheduler was answered."""
    told = record.priorities
    assert told is not None
    points = f"{told.highest} of {MOST_PRIORITY}"
    if told.highest_count == 1:
        return (
            f"{record.node} alone was answered {points}, the most; "
            "kube-scheduler adds its own scores."
        )
    counted = f"{told.highest_count} of {record.nodes} nodes were answered {points}, the most"
    if told.highest_count == record.nodes:
        counted = f"all {record.nodes} nodes were answered {points}"
    return f"{counted}; kube-scheduler picks among equal ones by itself, and adds its own scores."


def _best(decision: Decision, measured: Measured | None) -> list[NodeRecord]:
    scores = decision.best[:KEPT_NODES]
    if not scores and decision.node_name is not None:
        return [NodeRecord(decision.node_name, None, {}, _traffic(measured, 0))]
    return [
        NodeRecord(each.node_name, each.total, _plugins(each), _traffic(measured, position))
        for position, each in enumerate(scores)
    ]


def _plugins(scored: NodeScore) -> dict[str, ScoreRecord]:
    return {
        name: ScoreRecord(score.raw, score.normalized, score.weighted)
        for name, score in scored.by_plugin.items()
    }


def _traffic(measured: Measured | None, position: int) -> TrafficRecord | None:
    if measured is None:
        return None
    values = dict(zip(FIELDS, measured.read[position].tolist(), strict=True))
    added = measured.added
    added_receive, added_transmit = added[:, position].tolist()
    state = values[STATE]
    with_added = share_with(
        measured.request,
        measured.read[:, _RECEIVE] + added[0],
        measured.read[:, _TRANSMIT] + added[1],
        measured.read[:, _CAPACITY],
        measured.read[:, _SHARE],
    )
    return TrafficRecord(
        share=_known(values[SHARE]),
        share_with_added=_known(float(with_added[position])),
        receive=_known(values[RECEIVE_COLUMN]),
        transmit=_known(values[TRANSMIT_COLUMN]),
        capacity=_known(values[CAPACITY]),
        is_capacity_guessed=values[IS_GUESSED] > 0,
        state="missing" if math.isnan(state) else STATES[int(state)].value,
        added_receive=added_receive,
        added_transmit=added_transmit,
    )


def _reading(kept: Kept) -> ReadingRecord | None:
    measured = kept.measured
    if measured is None:
        return None
    receive, transmit = (None, None) if measured.of_pod is None else measured.of_pod[:2]
    dates = measured.dates
    is_dated = math.isfinite(dates.sampled_at)
    age_seconds = max(0.0, kept.at - dates.sampled_at) if is_dated else None
    return ReadingRecord(age_seconds, dates.window_seconds, receive, transmit)


def _margin(decision: Decision) -> tuple[int | None, str | None]:
    """To the best of the others."""
    scores = decision.scores
    if decision.node_name is None or len(scores.node_names) < 2:
        return None, None
    totals = dict(zip(scores.node_names, scores.totals.tolist(), strict=True))
    own = totals.pop(decision.node_name, None)
    runner_up = max(totals, key=lambda name: totals[name])
    return (None, None) if own is None else (own - totals[runner_up], runner_up)


def _priorities(decided: Decided) -> PrioritiesRecord | None:
    told = decided.priorities
    if told is None:
        return None
    names = decided.decision.scores.node_names
    by_node = dict(zip(names, told.of_kept.tolist(), strict=True))
    return PrioritiesRecord(by_node, told.highest, told.highest_count)


def _preempts(decision: Decision) -> PreemptionRecord | None:
    found = decision.post_filtered
    if found is None or found.eviction is None:
        return None
    victims = [victim.key for victim in found.eviction.victims]
    return PreemptionRecord(found.eviction.node_name, victims)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
