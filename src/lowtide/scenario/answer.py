"""What was decided for a scenario, in the form of recorded decisions (`expected`)."""

from typing import Any

from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.plugin import PodRejection

SUCCESS = "Success"
UNSCHEDULABLE = "Unschedulable"
UNRESOLVABLE = "UnschedulableAndUnresolvable"


def gated(scenario_id: str, plugin: str, rejection: PodRejection) -> dict[str, Any]:
    verdict = {"plugin": plugin, "code": UNRESOLVABLE, "reasons": [rejection.reason]}
    return {"id": scenario_id, "preenqueue": {plugin: verdict}}


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
            "fit_error": decision.fit_error,
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
        return {**answer, "fit_error": decision.fit_error}
    total = {node.node_name: node.total for node in decision.best}
    answer |= {"scores": _scores(decision), "total": total}
    if decision.by_nomination:
        name = decision.node_name
        return {**answer, "selected_by_nomination": name, "best": [name]}
    highest = max(total.values())
    return {**answer, "best": sorted(name for name, score in total.items() if score == highest)}


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
