"""Formats the decision for a scenario like a recorded decision (`expected`)."""

from collections.abc import Mapping, Sequence
from typing import Any

from lowtide.config.types import EnabledPlugin
from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.plugin import PodRejection, PostFiltered

SUCCESS = "Success"
UNSCHEDULABLE = "Unschedulable"
UNRESOLVABLE = "UnschedulableAndUnresolvable"
ERROR = "Error"


# The extension points of an effective profile, in the order in which they run.
_SHOWN_POINTS = ("preFilter", "filter", "postFilter", "preScore", "score")


def gated(scenario_id: str, plugin: str, rejection: PodRejection) -> dict[str, Any]:
    verdict = {"plugin": plugin, "code": UNRESOLVABLE, "reasons": [rejection.reason]}
    return {"id": scenario_id, "preenqueue": {plugin: verdict}}


def rejected_unread(scenario_id: str, reason: str, node_count: int) -> dict[str, Any]:
    """The answer for a pod whose spec cannot be read, so that no plugin was called."""
    fit_error = f"0/{node_count} nodes are available: {reason}."
    return {
        "id": scenario_id,
        "prefilter": {"code": UNRESOLVABLE, "reasons": [reason]},
        "fit_error": fit_error,
        "fit_error_final": fit_error,
    }


def answered(scenario_id: str, decision: Decision, node_names: list[str]) -> dict[str, Any]:
    """The answer for a decision, which must have been made with `full`."""
    if decision.pod_rejection is not None:
        return {
            "id": scenario_id,
            "prefilter": {
                "code": _code(decision.pod_rejection.eviction_helps),
                "plugin": next(iter(decision.rejected_by)),
                "reasons": [decision.pod_rejection.reason],
            },
            **_rejection(decision),
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
        return {**answer, **_rejection(decision)}
    total = {node.node_name: node.total for node in decision.best}
    answer |= {"scores": _scores(decision), "total": total}
    if decision.by_nomination:
        name = decision.node_name
        return {**answer, "selected_by_nomination": name, "best": [name]}
    highest = max(total.values())
    return {**answer, "best": sorted(name for name, score in total.items() if score == highest)}


def effective_profile(expansion: Mapping[str, Sequence[EnabledPlugin]]) -> dict[str, Any]:
    """The enabled plugins of each extension point, in order; for `score` with weights."""
    profile: dict[str, Any] = {
        point: [plugin.name for plugin in expansion.get(point, ())] for point in _SHOWN_POINTS
    }
    profile["score"] = [[plugin.name, plugin.weight] for plugin in expansion.get("score", ())]
    return profile


def _rejection(decision: Decision) -> dict[str, Any]:
    """The messages for a pod that fits on no node, and the result of postFilter."""
    rejection: dict[str, Any] = {
        "fit_error": decision.fit_error,
        "fit_error_final": decision.fit_error_final,
    }
    if decision.post_filtered is not None:
        rejection["postfilter"] = _postfilter(decision.post_filtered, decision.post_filtered_by)
    return rejection


def _postfilter(found: PostFiltered, plugin: str) -> dict[str, Any]:
    eviction = found.eviction
    status = ERROR if found.is_error else UNSCHEDULABLE if eviction is None else SUCCESS
    result: dict[str, Any] = {
        "status": status,
        "message": found.reason,
        "nominated_node": eviction.node_name if eviction else "",
        "victims": [pod.key for pod in eviction.victims] if eviction else [],
    }
    if plugin:
        result["plugin"] = plugin
    if found.candidates:
        result["tied_nodes"] = list(found.tied_nodes)
        result["candidates"] = {
            each.node_name: {
                "victims": [pod.key for pod in each.victims],
                "pdb_violations": each.budget_violations,
            }
            for each in sorted(found.candidates, key=lambda each: each.node_name)
        }
    if found.still_rejected:
        result["dry_run_rejected"] = {
            name: _verdict(rejection) for name, rejection in sorted(found.still_rejected.items())
        }
    return result


def _scores(decision: Decision) -> dict[str, Any]:
    scores: dict[str, dict[str, Any]] = {}
    for node in decision.best:
        for plugin, score in node.by_plugin.items():
            scores.setdefault(plugin, {})[node.node_name] = {
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
