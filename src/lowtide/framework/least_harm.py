"""Which of several possible evictions does the least harm, as kube-scheduler counts it.

DefaultPreemption chooses with it, and `decide` chooses again when extenders reject candidates."""

import math
from collections.abc import Sequence

from lowtide.framework.plugin import Eviction, PostFiltered
from lowtide.objects.pod import Pod
from lowtide.objects.times import epoch_seconds

_PRIORITY_OFFSET = 2**31  # makes every priority positive, so that fewer victims are better


def least_harmful(evictions: Sequence[Eviction], turn: int) -> PostFiltered:
    """The best of at least one eviction. Equally good ones take turns, in the order of their
    nodes' names."""
    harms = [_harm(each) for each in evictions]
    lowest = min(harms)
    tied = [each for each, harm in zip(evictions, harms, strict=True) if harm == lowest]
    tied.sort(key=lambda each: each.node_name)
    chosen = tied[turn % len(tied)]
    return PostFiltered(
        nominated_node_name=chosen.node_name,
        eviction=chosen,
        candidates=tuple(evictions),
        tied_nodes=tuple(each.node_name for each in tied),
    )


def start_time_of(pod: Pod) -> float:
    """In seconds since 1970; infinite for a pod that has not started."""
    seconds = epoch_seconds(pod.status.start_time) if pod.status.start_time else None
    return math.inf if seconds is None else seconds


def _harm(eviction: Eviction) -> tuple[float, ...]:
    """The criteria in order: violated budgets, the highest priority of a victim, the sum of
    priorities, the number of victims, and how early the most important victim started."""
    victims = eviction.victims
    return (
        eviction.budget_violations,
        victims[0].spec.priority,
        sum(victim.spec.priority + _PRIORITY_OFFSET for victim in victims),
        len(victims),
        -start_time_of(victims[0]),
    )
