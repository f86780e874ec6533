"""The log lines of the scheduler, in kube-scheduler's wording, and what rules say of their scores.

Called by live; written from events and decisions."""

from collections.abc import Hashable, Iterable

import numpy as np

from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import Decision, RuleScore
from lowtide.framework.plugin import PluginError, ask, readings_of
from lowtide.framework.profile import Profile
from lowtide.framework.scores import Scores
from lowtide.logs import Log
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.readings.capacity import CAPACITY_ANNOTATION, is_capacity_readable
from lowtide.readings.demand import READABLE_TRAFFIC, TRAFFIC_ANNOTATION, is_readable
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.events import Event

log = Log("scheduler")


def tell_event(event: Event, state: ClusterState) -> None:
    """`state` is what was believed before this event."""
    match event:
        case Added(object=Pod() as pod) if not is_readable(pod):
            _tell_unreadable("pod", pod.key, TRAFFIC_ANNOTATION, pod.metadata, READABLE_TRAFFIC)
        case Added(object=Node() as node) if not is_capacity_readable(node):
            _tell_unreadable(
                "node", node.name, CAPACITY_ANNOTATION, node.metadata, "10G, in bits/s"
            )
    if not log.enabled(2):
        return
    match event:
        case Added(object=Pod() as pod):
            log.v(2, f"Add event for {_kind_of(pod)} pod", pod=pod.key)
        case Deleted(object=Pod() as pod):
            log.v(2, f"Delete event for {_kind_of(pod)} pod", pod=pod.key)
        case Modified(object=Pod() as pod) if pod.spec.node_name:
            placed = state.placed(pod.uid)
            if placed is None or placed.is_assumed:  # it has just been bound
                log.v(2, "Delete event for unscheduled pod", pod=pod.key)
                log.v(2, "Add event for scheduled pod", pod=pod.key)


def _tell_unreadable(
    kind: str, name: str, annotation: str, metadata: ObjectMeta, right: str
) -> None:
    log.warning(
        "An annotation cannot be read, and does not count",
        **{kind: name},
        annotation=annotation,
        value=metadata.annotations[annotation],
        right=right,
    )


def tell_decision(decided: Decided, profile: Profile) -> None:
    if not log.enabled(2):
        return
    decision = decided.decision
    log.v(2, "Attempting to schedule pod", pod=decision.pod.key)
    _tell_scores(decision, profile)
    if decision.gave_way is not None:
        log.v(
            2,
            "A refusal gave way, as no other node was left",
            pod=decision.pod.key,
            node=decision.node_name,
            plugin=decision.gave_way.plugin,
            reasons=list(decision.gave_way.reasons),
        )
    if decision.node_name is None:
        log.v(
            2,
            "Unable to schedule pod; no fit; waiting",
            pod=decision.pod.key,
            err=decision.fit_error,
        )


def _tell_scores(decision: Decision, profile: Profile) -> None:
    """In the words of the rules that have some."""
    best = decision.best
    for weighted in profile.scorers:
        rule = weighted.rule
        scores = {
            node.node_name: node.by_rule[rule.name] for node in best if rule.name in node.by_rule
        }
        if not scores or not hasattr(rule, "in_words"):
            continue
        try:
            for line in ask(rule, "in_words", scores):
                log.v(2, f"[{rule.name}] {line}")
        except PluginError as error:
            log.error("Scores cannot be told", err=error)


def tell_reading(source: Hashable, profiles: Iterable[Profile], state: ClusterState) -> None:
    """What each node's traffic would score now, for rules that are to log their readings."""
    for profile in profiles:
        for weighted in profile.scorers:
            rule = weighted.rule
            if source not in readings_of(rule) or not getattr(rule, "tells_readings", False):
                continue
            try:
                scores = _scores_of_all(Scores(weighted), state.nodes())
                for line in ask(rule, "in_words", scores, brief=True) if scores else ():
                    log.info(f"[{rule.name}] {line}")
            except PluginError as error:
                log.error("A reading cannot be told", err=error)


def _scores_of_all(scores: Scores, nodes: Nodes) -> dict[str, RuleScore]:
    """As if every node were feasible for a pod that asks for nothing."""
    count = len(nodes)
    pod, every = Pod(), np.ones(count, np.bool_)
    scores.judge(pod, nodes, every, nodes.rows, count)
    if not scores.has_opinion or not count:
        return {}
    normalized = scores.normalized_among(pod, nodes, every, scores.raw)
    columns = zip(nodes.names, scores.raw.tolist(), normalized.tolist(), strict=True)
    return {name: RuleScore(one, other, scores.weight * other) for name, one, other in columns}


def _kind_of(pod: Pod) -> str:
    return "scheduled" if pod.spec.node_name else "unscheduled"
