"""DefaultPreemption: for a pod that fits nowhere, chooses pods of lower priority to evict, on the
node where that does the least harm."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from lowtide.framework.decision import NodeRejection
from lowtide.framework.least_harm import least_harmful
from lowtide.framework.plugin import Eviction, Nodes, Pod, PostFilterContext, PostFiltered
from lowtide.objects.policy import PodDisruptionBudget
from lowtide.plugins.default_preemption_victims import Budgets, dry_run

_NEVER = "not eligible due to preemptionPolicy=Never."
_TERMINATING = "not eligible due to a terminating pod on the nominated node."
# Lowtide's own text: kube-scheduler has no rejections that give way.
_GIVES_WAY = "not eligible while a node with room is rejected for its load alone."
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_NO_VICTIMS = NodeRejection(
    "", ("No preemption victims found for incoming pod",), eviction_helps=False
)

DISRUPTION_TARGET = "DisruptionTarget"
BY_SCHEDULER = "PreemptionByScheduler"
_FEWEST_AT_ONCE = 50  # nodes; searching fewer takes as long


class DefaultPreemptionArgs(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True
):
    min_candidate_nodes_percentage: int = 10
    """Percentage of nodes to find victims on before the search may end. Bounds: 0 to 100."""
    min_candidate_nodes_absolute: int = 100
    """Number of nodes to find victims on before the search may end. The larger of both counts; one
    must be above 0. Bounds: at least 0."""

    def problems(self) -> Iterator[tuple[str, str]]:
        """In kube-scheduler's words."""
        percentage, absolute = (
            self.min_candidate_nodes_percentage,
            self.min_candidate_nodes_absolute,
        )
        names = ("minCandidateNodesPercentage", "minCandidateNodesAbsolute")
        if not 0 <= percentage <= 100:
            yield names[0], f"Invalid value: {percentage}: not in valid range [0, 100]"
        if absolute < 0:
            yield names[1], f"Invalid value: {absolute}: not in valid range [0, inf)"
        if percentage == absolute == 0:
            for name, other in (names, names[::-1]):
                yield name, f"Invalid value: 0: cannot be zero at the same time as {other}"

    def candidates_among(self, count: int) -> int:
        """How many of `count` nodes to find before the search may end."""
        by_percentage = count * self.min_candidate_nodes_percentage // 100
        return min(count, max(by_percentage, self.min_candidate_nodes_absolute))


class DefaultPreemption:
    name = "DefaultPreemption"
    kinds = (PodDisruptionBudget,)
    args = DefaultPreemptionArgs

    def __init__(self, args: DefaultPreemptionArgs) -> None:
        self._args = args

    def post_filter(self, pod: Pod, nodes: Nodes, rejected: PostFilterContext) -> PostFiltered:
        """Choose an eviction; the machine carries it out."""
        not_eligible = _why_not_eligible(pod, nodes, rejected)
        if not_eligible is not None:
            return PostFiltered(f"preemption: {not_eligible}")
        found = self._search(pod, nodes, rejected)
        if not found.evictions and found.errors:
            return PostFiltered(f"preemption: {'; '.join(found.errors)}", is_error=True)
        if not found.evictions:
            reason = f"preemption: {_in_words(found.rejected, len(nodes))}"
            return PostFiltered(reason, nominated_node_name="", still_rejected=found.rejected)
        chosen = least_harmful(found.evictions, rejected.turn)
        return replace(chosen, still_rejected=found.rejected)

    def _search(self, pod: Pod, nodes: Nodes, rejected: PostFilterContext) -> "_Found":
        """Search the nodes until there are enough candidates and one breaks no budget. `turn`
        moves the node to start from."""
        rows = np.flatnonzero(rejected.eviction_may_help)
        has_victims = nodes.lowest_priority[rows] < pod.spec.priority
        total = _Found(dict.fromkeys(nodes.take(rows[~has_victims]).names, _NO_VICTIMS))
        if not has_victims.any():
            return total
        wanted = self._args.candidates_among(len(rows))
        rows = np.roll(rows, -(rejected.turn % len(rows)))
        rows = rows[nodes.lowest_priority[rows] < pod.spec.priority]
        budgets = Budgets(nodes)
        breaks_none = False  # whether some candidate breaks no budget
        while len(rows):
            batch, rows = rows[:wanted], rows[wanted:]
            tried = dry_run(pod, nodes, batch, rejected, budgets)
            total.rejected.update(tried.rejected)
            # If only few candidates are missing, do not search a whole batch for them.
            missing = wanted - len(total.evictions)
            at_once = max(missing, _FEWEST_AT_ONCE) if missing > 0 else wanted
            for eviction in tried.evictions(at_once):
                if not eviction.victims:
                    total.errors.append(_expected_victims(eviction.node_name))
                    continue
                total.evictions.append(eviction)
                breaks_none |= not eviction.budget_violations
                if breaks_none and len(total.evictions) >= wanted:
                    return total
        return total


@dataclass(frozen=True, slots=True)
class _Found:
    """The nodes where eviction does not help, by name; the candidates; and errors."""

    rejected: dict[str, NodeRejection]
    evictions: list[Eviction] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def _expected_victims(node_name: str) -> str:
    return f'expected at least one victim pod on node "{node_name}"'


def _why_not_eligible(pod: Pod, nodes: Nodes, rejected: PostFilterContext) -> str | None:
    if pod.spec.preemption_policy == "Never":
        return _NEVER
    if rejected.gives_way_after < math.inf:
        return _GIVES_WAY
    row = nodes.position_of(pod.status.nominated_node_name)
    # If evicting on the nominated node no longer helps, the other nodes are searched again.
    if row is None or not rejected.eviction_may_help[row]:
        return None
    is_awaited = any(
        each.spec.priority < pod.spec.priority and _is_being_preempted(each)
        for each in nodes.pods(row)
    )
    return _TERMINATING if is_awaited else None


def _is_being_preempted(pod: Pod) -> bool:
    if not pod.is_terminating:
        return False
    for condition in pod.status.conditions:
        if condition.type == DISRUPTION_TARGET:
            return condition.status == "True" and condition.reason == BY_SCHEDULER
    return False


def _in_words(rejected: dict[str, NodeRejection], node_count: int) -> str:
    counts = Counter(reason for each in rejected.values() for reason in each.reasons)
    counts[_NOT_HELPFUL] += node_count - len(rejected)
    counted = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
    return f"0/{node_count} nodes are available: {', '.join(counted)}."
