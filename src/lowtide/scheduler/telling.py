"""The log lines of the scheduler, in kube-scheduler's wording and in that of the first
NetworkTraffic plugins. Called by live; written from events and decisions."""

from lowtide.framework.decision import Decision
from lowtide.framework.plugin import MAX_SCORE
from lowtide.logs import Log
from lowtide.objects.events import Added, Deleted
from lowtide.objects.pod import Pod
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.events import Event

log = Log("scheduler")

TRAFFIC = "NetworkTraffic"


def tell_event(event: Event) -> None:
    if not log.enabled(2):
        return
    match event:
        case Added(object=Pod() as pod):
            log.v(2, f"Add event for {_kind_of(pod)} pod", pod=pod.key)
        case Deleted(object=Pod() as pod):
            log.v(2, f"Delete event for {_kind_of(pod)} pod", pod=pod.key)


def tell_decision(decided: Decided) -> None:
    if not log.enabled(2):
        return
    decision = decided.decision
    log.v(2, "Attempting to schedule pod", pod=decision.pod.key)
    _tell_traffic(decision)
    if decision.node_name is None:
        log.v(
            2,
            "Unable to schedule pod; no fit; waiting",
            pod=decision.pod.key,
            err=decision.fit_error,
        )


def _tell_traffic(decision: Decision) -> None:
    scored = [
        (node.node_name, node.by_rule[TRAFFIC]) for node in decision.best if TRAFFIC in node.by_rule
    ]
    if not scored:
        return
    highest = max(score.raw for _, score in scored)
    for name, score in scored:
        log.v(2, f"[NetworkTraffic] node '{name}' bandwidth: {score.raw}")
    log.v(2, f"[NetworkTraffic] highest score: {highest}")
    for name, score in scored:
        log.v(2, f"[NetworkTraffic] operation: {MAX_SCORE} - ( {score.raw} * 100 / {highest})")
        log.v(2, f"[NetworkTraffic] node '{name}' final score: {score.normalized}")
    final = " ".join(f"{{{name} {score.normalized}}}" for name, score in scored)
    log.v(2, f"[NetworkTraffic] Nodes final score: [{final}]")


def _kind_of(pod: Pod) -> str:
    return "scheduled" if pod.spec.node_name else "unscheduled"
