"""What would be said of a pod now, for explanations: looked at without changing anything. The
machine, the advisor and the shadow answer with it."""

from collections.abc import Iterator
from contextlib import contextmanager

from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.plugin import PluginError, PodRejection
from lowtide.framework.profile import Profile
from lowtide.framework.verdicts import Verdicts
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.scheduler.decide import decide

NO_RULE = ""  # instead of the name of the rule that refused a pod


def decided_now(pod: Pod, verdicts: Verdicts, *, turn: int, waited_seconds: float) -> Decision:
    """In full, as if the pod had no node. Extenders are not asked."""
    with as_if_it_had_no_node(pod, verdicts) as aside:
        return decide(pod, aside, turn=turn, waited_seconds=waited_seconds, full=True)


@contextmanager
def as_if_it_had_no_node(pod: Pod, verdicts: Verdicts) -> Iterator[Verdicts]:
    """Others to ask meanwhile: those that are kept, and who decides by them, notice nothing."""
    state = verdicts.state
    counted = state.ledgers.counted(pod.uid)
    placed = state.remove_pod(pod.uid)
    try:
        yield verdicts.aside()
    finally:
        if placed is not None:
            state.put_back(placed, counted)


def rejection_now(pod: Pod, node_name: str, verdicts: Verdicts) -> NodeRejection | None:
    """Why a pending pod would be refused on this node; None where it would not be."""
    row = verdicts.state.row_of(node_name)
    if row is None:
        return None
    verdict = verdicts.of(pod)
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
