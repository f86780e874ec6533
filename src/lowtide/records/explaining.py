"""Why a pod went where it went, or why it waits: an Explanation, made of records when somebody
asks, and of what a running process would decide now. `cli/explain` prints it."""

from collections.abc import Iterable, Sequence

import msgspec

from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import Decision, NodeScore
from lowtide.records.flips import Flip, ScoreFlip, compared, flips_of, score_flips_of
from lowtide.records.record import DecisionRecord
from lowtide.records.remedies import Remedy, hints_of, remedies_of, why_not

WITHOUT_STATE = (
    "what would make it fit cannot be told from a record: it keeps how many nodes were rejected "
    "and "
    "why, not by which plugins each; ask the running process while the pod waits"
)


class PluginComparison(msgspec.Struct, frozen=True):
    """Weighted points."""

    plugin: str
    chosen: int
    other: int


class WhyNot(msgspec.Struct, frozen=True):
    """`rejections` name each plugin that rejects the node, with its reasons. `comparison` has what
    each plugin scored this node and the chosen one. `is_current`: the record does not hold the
    node, so it was judged when asked. `all_rejected`: why every node was rejected, where the
    record does not tell the nodes apart."""

    node: str
    chosen: str | None
    rejections: list[str] = []
    comparison: list[PluginComparison] = []
    total: int | None = None
    chosen_total: int | None = None
    is_current: bool = False
    all_rejected: str | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """`records` have the newest first; all else is about that one."""

    pod: str
    records: list[DecisionRecord]
    waiting_for: str | None = None  # what it waits for that is no decision's fault
    score_changes: list[ScoreFlip] = []
    weight_changes: list[Flip] = []
    change_messages: list[str] = []
    remedies: list[Remedy] = []
    hints: list[str] = []  # instead of remedies, where only records are there,
    no_remedies_reason: str | None = None  # and why
    preempted_by: DecisionRecord | None = None
    why_not: WhyNot | None = None


class UnknownNodeError(ValueError):
    """Somebody asked about a node that is not known; the sentence says so."""


def explained(
    pod_key: str,
    records: Sequence[DecisionRecord],
    others: Iterable[DecisionRecord],
    *,
    uid: str = "",
    node_name: str | None = None,
    now: Decision | None = None,
    state: ClusterState | None = None,
    waits: str | None = None,
) -> Explanation:
    """`others` are records in which the pod may be a victim. `now` is a full decision of the
    moment, with the state that it was made of; without it only what was recorded can be told.
    `uid` is the pod's: of an earlier one of its name, records are told as what was before."""
    newest = _newest(records, uid)
    flips = [] if newest is None else flips_of(newest)
    score_flips = [] if newest is None else score_flips_of(newest)
    remedies, hints, without_remedies = [], [], None
    if state is None and newest is not None and _waits(newest):
        hints, without_remedies = hints_of(newest.unschedulable_plugins), WITHOUT_STATE
    if now is not None and state is not None and (newest is None or newest.node is None):
        remedies = remedies_of(now, state)
    return Explanation(
        pod=pod_key,
        records=list(records),
        waiting_for=waits,
        score_changes=score_flips,
        weight_changes=flips,
        change_messages=[
            *(flip.in_words for flip in score_flips[:1]),
            *(flip.in_words for flip in flips),
        ],
        remedies=remedies,
        hints=hints,
        no_remedies_reason=without_remedies,
        preempted_by=next((each for each in others if has_victim(each, pod_key)), None),
        why_not=None if node_name is None else _why_not(newest, node_name, now, state),
    )


def needs_now(records: Sequence[DecisionRecord], uid: str, node_name: str | None) -> bool:
    """Whether the records alone do not tell: of a pod that waits, what would make it fit, and of
    nodes that were not kept, anything."""
    newest = _newest(records, uid)
    if newest is None or (
        newest.node is None and not (newest.neutral_reason and newest.actual_node)
    ):
        return True
    return node_name is not None and _recorded_why_not(newest, node_name) is None


def _newest(records: Sequence[DecisionRecord], uid: str) -> DecisionRecord | None:
    if not records or (uid and records[0].uid != uid):
        return None
    return records[0]


def _waits(record: DecisionRecord) -> bool:
    return record.node is None and record.actual_node is None and not record.neutral_reason


def has_victim(record: DecisionRecord, pod_key: str) -> bool:
    return record.preemption is not None and pod_key in record.preemption.victims


def _why_not(
    record: DecisionRecord | None,
    node_name: str,
    now: Decision | None,
    state: ClusterState | None,
) -> WhyNot:
    if record is not None:
        found = _recorded_why_not(record, node_name)
        if found is not None:
            return found
    if now is None or state is None:
        if record is not None and _rejects_every_node(record):
            return WhyNot(node_name, None, all_rejected=_all_rejected(record))
        raise UnknownNodeError(
            f"the record says nothing of node {node_name}: it keeps the best "
            f"{0 if record is None else len(record.best)} nodes; ask the running process"
        )
    if state.row_of(node_name) is None:
        raise UnknownNodeError(f"no node is called {node_name}")
    chosen, other = now.scores.node_score(now.node_name), now.scores.node_score(node_name)
    return WhyNot(
        node_name,
        now.node_name,
        rejections=why_not(now, node_name),
        comparison=[] if chosen is None or other is None else _compared(chosen, other),
        total=None if other is None else other.total,
        chosen_total=None if chosen is None else chosen.total,
        is_current=True,
    )


def _rejects_every_node(record: DecisionRecord) -> bool:
    return (
        record.node is None
        and record.nodes > 0
        and not record.feasible
        and not record.neutral_reason
    )


def _all_rejected(record: DecisionRecord) -> str:
    """With how many nodes have each reason; what rejects the pod itself is in the message."""
    nodes = "the only node was" if record.nodes == 1 else f"all {record.nodes} nodes were"
    most_first = sorted(record.reasons.items(), key=lambda each: (-each[1], each[0]))
    counted = ", ".join(f"{count} {reason}" for reason, count in most_first)
    return f"{nodes} rejected: {counted}" if counted else str(record.message)


def _compared(chosen: NodeScore, other: NodeScore) -> list[PluginComparison]:
    return [
        PluginComparison(plugin, score.weighted, other.by_plugin[plugin].weighted)
        for plugin, score in chosen.by_plugin.items()
    ]


def _recorded_why_not(record: DecisionRecord, node_name: str) -> WhyNot | None:
    chosen = record.chosen
    other = next((each for each in record.best if each.node == node_name), None)
    if other is None or chosen is None:
        return None
    return WhyNot(
        node_name,
        record.node,
        comparison=[PluginComparison(*row) for row in compared(record, node_name)],
        total=other.total,
        chosen_total=chosen.total,
    )
