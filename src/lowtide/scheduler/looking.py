"""What would be said of a pod now, for explanations: looked at without changing anything. The
machine, the advisor and the shadow answer with it."""

import numpy as np

from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import Asking, ask
from lowtide.framework.changed_rows import NEVER, ChangedRows
from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.plugin import PluginError, PodRejection
from lowtide.framework.pre_filters import PreFilters
from lowtide.framework.profile import Profile
from lowtide.framework.rejections import Rejections
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.scheduler.decide import decide

NO_RULE = ""  # instead of the name of the rule that refused a pod


def decided_now(pod: Pod, verdicts: VerdictCache, *, turn: int, waited_seconds: float) -> Decision:
    """In full, as if the pod had no node. Extenders are not asked."""
    aside = verdicts.without(pod.uid)
    return decide(pod, aside, turn=turn, waited_seconds=waited_seconds, full=True)


def reasons_against(
    pod: Pod, row: int, profile: Profile, state: ClusterState, *, waited_seconds: float
) -> tuple[str, ...]:
    """Why the first plugin that rejects the pod on this row does so; none where it fits there. Only
    this row is judged, and nothing is kept. What gives way to a pod that has waited so long does
    not count."""
    concerned, rows = profile.concerned_by(pod), np.array([row])
    pre_filters = PreFilters(concerned.pre_filters.plugins, Asking(), state, pod)
    pre_filters.start_again(state.count)
    pre_filters.refresh(ChangedRows(state, NEVER))
    if pre_filters.pod_rejection is not None:
        return (pre_filters.pod_rejection[1].reason,)
    if pre_filters.leaves_out(rows)[0]:
        return pre_filters.exclusion_at(row).reasons
    one = state.nodes().take(rows)
    for rule in concerned.filters.plugins:
        rejections = Rejections(rule.name)
        rejections.judge(ask(rule, "filter", pod, one), np.array([0]), 1)
        if rejections.refuses(0, waited_seconds):
            return rejections.as_node_rejection(0).reasons
    return ()


def rejection_now(pod: Pod, node_name: str, verdicts: VerdictCache) -> NodeRejection | None:
    """Why a pending pod would be refused on this node; None where it would not be."""
    row = verdicts.state.row_of(node_name)
    if row is None:
        return None
    verdict = verdicts.verdict_on(pod)
    if verdict.pod_rejection is None:
        return verdict.rejection_at(row)
    rule_name, rejection = verdict.pod_rejection
    return NodeRejection(rule_name, (rejection.reason,), rejection.eviction_helps)


def gate_by(profile: Profile, pod: Pod) -> tuple[str, PodRejection] | None:
    """Who keeps a pod out of the queue, and why. A gate that cannot be read stays closed."""
    try:
        return profile.may_enqueue(pod)
    except (PluginError, QuantityError) as error:
        return NO_RULE, PodRejection(str(error))
