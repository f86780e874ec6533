"""A decision as a recording keeps it: the node, and enough of why to tell two decisions apart.

`event_form` writes it after the event that led to it; `replaying` compares."""

from typing import Final

import msgspec
import numpy as np

from lowtide.framework.plugin import Eviction
from lowtide.records.hashed_names import HashedNames
from lowtide.scheduler.actions import Decided

BEST_KEPT: Final = 3


class EvictionForm(msgspec.Struct, frozen=True):
    node: str
    victims: list[str]  # uids, the most important first


class DecisionForm(
    msgspec.Struct,
    frozen=True,
    rename="camel",
    omit_defaults=True,
    tag_field="event",
    tag="Decided",
):
    """`best` are the best few nodes with `totals`, and `scores` has what each plugin adds to each
    of these, in the order of the plugins. `reasons` say for how many nodes each counts; where names
    are hashed, in which reasons may be, `reason_counts` has the numbers alone."""

    pod: str  # namespace/name
    uid: str
    scheduler_name: str
    attempt: int
    node: str | None = None
    nodes: int = 0
    feasible: int = 0
    best: list[str] = []
    totals: list[int] = []
    scores: dict[str, list[int]] = {}
    unschedulable_plugins: list[str] = []
    reasons: dict[str, int] = {}
    reason_counts: list[int] = []
    eviction: EvictionForm | None = None


def decision_form(decided: Decided, *, with_reasons: bool) -> DecisionForm:
    decision = decided.decision
    table, reasons = decision.scores, dict(decision.reason_counts)
    if decision.pod_rejection is not None:
        reasons = {decision.pod_rejection.reason: decision.node_count}
    found = decision.post_filtered
    eviction = None if found is None else found.eviction
    # A row for each plugin, a column for each node.
    weighted = np.array(table.weights)[:, None] * table.normalized[:, :BEST_KEPT]
    return DecisionForm(
        pod=decision.pod.key,
        uid=decision.pod.uid,
        scheduler_name=decision.scheduler_name,
        attempt=decided.attempts,
        node=decision.node_name,
        nodes=decision.node_count,
        feasible=decision.feasible_count,
        best=list(table.node_names[:BEST_KEPT]),
        totals=table.totals[:BEST_KEPT].tolist(),
        scores=dict(zip(table.plugins, weighted.tolist(), strict=True)),
        unschedulable_plugins=sorted(decision.rejected_by),
        reasons={reason: reasons[reason] for reason in sorted(reasons)} if with_reasons else {},
        reason_counts=[] if with_reasons else sorted(reasons.values()),
        eviction=None if eviction is None else _eviction_form(eviction),
    )


def _eviction_form(eviction: Eviction) -> EvictionForm:
    return EvictionForm(eviction.node_name, [victim.uid for victim in eviction.victims])


def with_hashed_names(form: DecisionForm, hashed: HashedNames) -> DecisionForm:
    eviction = form.eviction
    return msgspec.structs.replace(
        form,
        pod=hashed.name(form.pod),
        uid=hashed.uid(form.uid),
        node=None if form.node is None else hashed.name(form.node),
        best=[hashed.name(name) for name in form.best],
        eviction=None if eviction is None else _with_hashed(eviction, hashed),
    )


def _with_hashed(eviction: EvictionForm, hashed: HashedNames) -> EvictionForm:
    return EvictionForm(
        hashed.name(eviction.node), [hashed.uid(victim) for victim in eviction.victims]
    )


def what_differs(recorded: DecisionForm, replayed: DecisionForm) -> str:
    """In words, the most telling first; "" where nothing does."""
    if recorded == replayed:
        return ""
    if (recorded.pod, recorded.attempt) != (replayed.pod, replayed.attempt):
        return f"pod {replayed.pod} had its turn instead (attempt {replayed.attempt})"
    plugin = first_plugin_that_differs(recorded, replayed)
    for name, told in (
        ("nodes", "nodes are known"),
        ("feasible", "nodes fit"),
        ("unschedulable_plugins", "rejected it"),
        ("reasons", "are the reasons"),
    ):
        one, other = getattr(recorded, name), getattr(replayed, name)
        if one != other and not plugin:
            return f"{_shown(one)} {told} by the recording, {_shown(other)} by the replay"
    if plugin:
        return (
            f"{plugin} scores {_scored(recorded, plugin)}, and in the replay "
            f"{_scored(replayed, plugin)}"
        )
    if recorded.eviction != replayed.eviction:
        return "other pods are evicted"
    return "the nodes that were equally good were taken in another order"


def first_plugin_that_differs(recorded: DecisionForm, replayed: DecisionForm) -> str:
    """Of plugins that scored in either, about nodes that are among the best in both; "" for
    none."""
    if not recorded.best or not replayed.best:
        return ""  # one of them had nothing to score
    common = [name for name in recorded.best if name in replayed.best]
    for plugin in dict.fromkeys([*recorded.scores, *replayed.scores]):
        if plugin not in recorded.scores or plugin not in replayed.scores:
            return plugin
        for name in common:
            if _score(recorded, plugin, name) != _score(replayed, plugin, name):
                return plugin
    return ""


def _score(form: DecisionForm, plugin: str, node_name: str) -> int:
    return form.scores[plugin][form.best.index(node_name)]


def _scored(form: DecisionForm, plugin: str) -> str:
    scores = form.scores.get(plugin)
    if scores is None:
        return "nothing"
    return ", ".join(f"{name} {score}" for name, score in zip(form.best, scores, strict=True))


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {reason}" for reason, count in value.items()) or "no reasons"
    if isinstance(value, list):
        return ", ".join(value) or "nobody"
    return str(value)
