"""What was decided for a scenario, in the form of recorded decisions (`expected`)."""

from collections.abc import Mapping, Sequence
from typing import Any

from lowtide.config.types import EnabledPlugin
from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.plugin import PodRejection, PostFiltered

SUCCESS = "Success"
UNSCHEDULABLE = "Unschedulable"
UNRESOLVABLE = "UnschedulableAndUnresolvable"
ERROR = "Error"


# The extension points at which a profile is told, in the order in which they are asked.
_TOLD_POINTS = ("preFilter", "filter", "postFilter", "preScore", "score")


def gated(scenario_id: str, plugin: str, rejection: PodRejection) -> dict[str, Any]:
    verdict = {"plugin": plugin, "code": UNRESOLVABLE, "reasons": [rejection.reason]}
    return {"id": scenario_id, "preenqueue": {plugin: verdict}}


def refused_unread(scenario_id: str, reason: str, node_count: int) -> dict[str, Any]:
    """The pod's own spec cannot be read, so no rule was asked."""
    said = f"0/{node_count} nodes are available: {reason}."
    return {
        "id": scenario_id,
        "prefilter": {"code": UNRESOLVABLE, "reasons": [reason]},
        "fit_error": said,
        "fit_error_final": said,
    }


def answered(scenario_id: str, decision: Decision, node_names: list[str]) -> dict[str, Any]:
    """`decision` must have been made with `full`."""
    if decision.pod_rejection is not None:
        return {
            "id": scenario_id,
            "prefilter": {
                "code": _code(decision.pod_rejection.eviction_helps),
                "plugin": next(iter(decision.rejected_by)),
                "reasons": [decision.pod_rejection.reason],
            },
            **_refusal(decision),
        }
    prefilter: dict[str, Any] = {"code": SUCCESS}
    if decision.narrowed_to is not None:
        prefilter["nodes"] = sorted(decision.narrowed_to)
    answer: dict[str, Any] = {
        "id": scenario_id,
        "prefilter": prefilter,
        "filter": {name: _verdict(decision.rejections.get(name)) for name in sorted(node_names)},
    }
    if decision.node_name is None:
        return {**answer, **_refusal(decision)}
    total = {node.node_name: node.total for node in decision.best}
    answer |= {"scores": _scores(decision), "total": total}
    if decision.by_nomination:
        name = decision.node_name
        return {**answer, "selected_by_nomination": name, "best": [name]}
    highest = max(total.values())
    return {**answer, "best": sorted(name for name, score in total.items() if score == highest)}


def effective_profile(expansion: Mapping[str, Sequence[EnabledPlugin]]) -> dict[str, Any]:
    """What ended up enabled at each extension point, in order; `score` with weights."""
    told: dict[str, Any] = {
        point: [plugin.name for plugin in expansion.get(point, ())] for point in _TOLD_POINTS
    }
    told["score"] = [[plugin.name, plugin.weight] for plugin in expansion.get("score", ())]
    return told


def _refusal(decision: Decision) -> dict[str, Any]:
    """The sentences of a pod that fits nowhere, and what could be done about it."""
    said: dict[str, Any] = {
        "fit_error": decision.fit_error,
        "fit_error_final": decision.fit_error_final,
    }
    if decision.post_filtered is not None:
        said["postfilter"] = _postfilter(decision.post_filtered, decision.post_filtered_by)
    return said


def _postfilter(found: PostFiltered, plugin: str) -> dict[str, Any]:
    eviction = found.eviction
    status = ERROR if found.is_error else UNSCHEDULABLE if eviction is None else SUCCESS
    told: dict[str, Any] = {
        "status": status,
        "message": found.reason,
        "nominated_node": eviction.node_name if eviction else "",
        "victims": [pod.key for pod in eviction.victims] if eviction else [],
    }
    if plugin:
        told["plugin"] = plugin
    if found.candidates:
        told["tied_nodes"] = list(found.tied_nodes)
        told["candidates"] = {
            each.node_name: {
                "victims": [pod.key for pod in each.victims],
                "pdb_violations": each.budget_violations,
            }
            for each in sorted(found.candidates, key=lambda each: each.node_name)
        }
    if found.still_refused:
        told["dry_run_rejected"] = {
            name: _verdict(rejection) for name, rejection in sorted(found.still_refused.items())
        }
    return told


def _scores(decision: Decision) -> dict[str, Any]:
    scores: dict[str, dict[str, Any]] = {}
    for node in decision.best:
        for rule, score in node.by_rule.items():
            scores.setdefault(rule, {})[node.node_name] = {
                "raw": score.raw,
                "normalized": score.normalized,
                "weighted": score.weighted,
            }
    return scores


def _verdict(rejection: NodeRejection | None) -> Any:
    if rejection is None:
        return "ok"
    verdict: dict[str, Any] = {
        "plugin": rejection.plugin,
        "code": _code(rejection.eviction_helps),
        "reasons": sorted(rejection.reasons),
    }
    if rejection.also:
        verdict["also"] = {other.plugin: _verdict(other) for other in rejection.also}
    if rejection.excluded_by:
        verdict["excluded_by"] = list(rejection.excluded_by)
    return verdict


def _code(eviction_helps: bool) -> str:
    return UNSCHEDULABLE if eviction_helps else UNRESOLVABLE
