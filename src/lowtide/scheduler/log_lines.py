"""The scheduler's log lines, in kube-scheduler's wording, and those of plugins about nodes.

`live` and the extender mode call it with events, decisions and answers."""

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np

from lowtide.cluster.columns import IntArray
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import ask, readings_of
from lowtide.framework.decision import NO_SCORES, Decision, PluginScore, ScoreTable
from lowtide.framework.log_words import LogsScores, LogsVerdicts
from lowtide.framework.plugin import PluginError
from lowtide.framework.profile import Profile, Weighted
from lowtide.framework.scores import Scores
from lowtide.logs import Log
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.readings.capacity import CAPACITY_ANNOTATION, is_capacity_readable
from lowtide.readings.demand import READABLE_TRAFFIC, TRAFFIC_ANNOTATION, is_readable
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.events import Event

log = Log("scheduler")

NODES_LOGGED = 100  # by each plugin; of the others, only the count


def log_event(event: Event, state: ClusterState) -> None:
    """`state` is as it was before this event."""
    match event:
        case Added(object=Pod() as pod) if not is_readable(pod):
            _log_unreadable("pod", pod.key, TRAFFIC_ANNOTATION, pod.metadata, READABLE_TRAFFIC)
        case Added(object=Node() as node) if not is_capacity_readable(node):
            _log_unreadable("node", node.name, CAPACITY_ANNOTATION, node.metadata, "10G, in bits/s")
    if not log.enabled(2):
        return
    match event:
        case Added(object=Pod() as pod):
            log.v(2, f"Add event for {_kind_of(pod)} pod", pod=pod.key)
        case Deleted(object=Pod() as pod):
            log.v(2, f"Delete event for {_kind_of(pod)} pod", pod=pod.key)
        case Modified(object=Pod() as pod) if pod.spec.node_name:
            placed = state.placed(pod.uid)
            if placed is None or placed.is_assumed:  # the pod has just been bound
                log.v(2, "Delete event for unscheduled pod", pod=pod.key)
                log.v(2, "Add event for scheduled pod", pod=pod.key)


def _log_unreadable(
    kind: str, name: str, annotation: str, metadata: ObjectMeta, right: str
) -> None:
    log.warning(
        "Ignoring an annotation that cannot be read",
        **{kind: name},
        annotation=annotation,
        value=metadata.annotations[annotation],
        right=right,
    )


def log_decision(decided: Decided, profile: Profile, nodes: Nodes) -> None:
    """`nodes` is the table after the decision. It may already count the pod."""
    if not log.enabled(2):
        return
    decision = decided.decision
    log.v(2, "Attempting to schedule pod", pod=decision.pod.key)
    _log_scores(decision.scores, profile, _as_decided(decision, nodes), level=2)
    if decision.gave_way is not None:
        log.v(
            2,
            "A rejection gave way, as no other node was left",
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


def log_filter(pod: Pod, profile: Profile, nodes: Nodes, *, at_info: bool) -> None:
    """What the filter plugins log about each of these nodes."""
    level = 0 if at_info else 2
    if not log.enabled(level):
        return
    logged = nodes if len(nodes) <= NODES_LOGGED else nodes.take(np.arange(NODES_LOGGED))
    for plugin in profile.plugins_for_point("filter"):
        if not isinstance(plugin, LogsVerdicts):
            continue
        try:
            lines = ask(plugin, "filter_log_lines", pod, logged)
            for line in _with_count(plugin, lines, more_nodes=len(nodes) - len(logged)):
                log.v(level, line)
        except (PluginError, QuantityError) as error:
            log.error("A plugin cannot log its verdicts", err=error)


def log_priorities(scores: ScoreTable, profile: Profile, nodes: Nodes, *, at_info: bool) -> None:
    """What the score plugins log about these scores. `nodes` has the nodes as they were scored."""
    level = 0 if at_info else 2
    if log.enabled(level):
        _log_scores(scores, profile, nodes, level=level)


def log_reading(source: Hashable, profiles: Iterable[Profile], state: ClusterState) -> None:
    """What each node would score now, for plugins that log their readings."""
    nodes = state.nodes()
    for profile in profiles:
        for weighted in profile.scorers:
            plugin = weighted.plugin
            if not isinstance(plugin, LogsScores) or not plugin.logs_readings:
                continue
            if source not in readings_of(plugin):
                continue
            try:
                scores = _scores_of_all(weighted, nodes)
                for line in _score_lines(plugin, scores, nodes, brief=True):
                    log.info(line)
            except PluginError as error:
                log.error("A plugin cannot log a reading", err=error)


def _log_scores(scores: ScoreTable, profile: Profile, nodes: Nodes, *, level: int) -> None:
    for weighted in profile.scorers:
        plugin = weighted.plugin
        try:
            for line in _score_lines(plugin, scores, nodes):
                log.v(level, line)
        except PluginError as error:
            log.error("A plugin cannot log its scores", err=error)


def _score_lines(
    plugin: Any, scores: ScoreTable, nodes: Nodes, *, brief: bool = False
) -> Iterator[str]:
    """The plugin's lines about the first of its scores; none where it has no scores."""
    has_scores = plugin.name in scores.plugins and scores.node_names
    if not isinstance(plugin, LogsScores) or not has_scores:
        return
    first = _first_scores(scores, plugin.name)
    lines = ask(plugin, "score_log_lines", first, nodes, brief=brief)
    yield from _with_count(plugin, lines, more_nodes=len(scores.node_names) - len(first))


def _first_scores(scores: ScoreTable, plugin_name: str) -> dict[str, PluginScore]:
    number = scores.plugins.index(plugin_name)
    columns = zip(
        scores.node_names[:NODES_LOGGED],
        scores.raw[number][:NODES_LOGGED].tolist(),
        scores.normalized[number][:NODES_LOGGED].tolist(),
        strict=True,
    )
    weight = scores.weights[number]
    return {name: PluginScore(raw, one, weight * one) for name, raw, one in columns}


def _with_count(plugin: Any, lines: Iterable[str], *, more_nodes: int) -> Iterator[str]:
    yield from lines
    if more_nodes:
        yield f"[{plugin.name}] and {more_nodes} more nodes"


def _as_decided(decision: Decision, nodes: Nodes) -> Nodes:
    """The table without the pod, as it was when the decision was made."""
    position = None if decision.node_name is None else nodes.position_of(decision.node_name)
    return nodes if position is None else nodes.without({position: {decision.pod.uid}})


def _scores_of_all(weighted: Weighted, nodes: Nodes) -> ScoreTable:
    """The scores as if every node were feasible, for a pod that requests nothing."""
    count = len(nodes)
    pod, every, plugin = Pod(), np.ones(count, np.bool_), weighted.plugin
    nodes = nodes.with_feasible(every)
    raw = ask(plugin, "score", pod, nodes)
    if raw is None or not count:
        return NO_SCORES

    def normalize(raw: IntArray) -> IntArray:
        normalized: IntArray = ask(plugin, "normalize", pod, nodes, raw)
        return normalized

    scores = Scores(weighted, np.zeros(count, np.int64), np.zeros(count, np.int8))
    scores.keep_all(raw, every, normalize)
    return ScoreTable(
        node_names=tuple(nodes.names),
        rows=nodes.rows,
        totals=scores.weight * scores.normalized.astype(np.int64),
        plugins=(plugin.name,),
        weights=(scores.weight,),
        raw=scores.raw[np.newaxis],
        normalized=scores.normalized[np.newaxis].astype(np.int64),
    )


def _kind_of(pod: Pod) -> str:
    return "scheduled" if pod.spec.node_name else "unscheduled"
