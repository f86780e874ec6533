"""Whom preemption would evict from each node: all that matter less go in thought, and come back one
by one as long as the pod still fits, first those that a PodDisruptionBudget protects.

Called by DefaultPreemption; every step asks the filters about all nodes at once."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lowtide.cluster.columns import Rows
from lowtide.framework.decision import NodeRejection
from lowtide.framework.plugin import Eviction, Nodes, Pod, Refused
from lowtide.objects.matching import is_valid_requirement, matches_selector
from lowtide.objects.meta import LabelSelector
from lowtide.objects.policy import PodDisruptionBudget
from lowtide.objects.times import epoch_seconds


@dataclass(frozen=True, slots=True)
class DryRun:
    """What became of some nodes: where an eviction helps, where it does not, what went wrong."""

    evictions: list[Eviction]  # in the order of the rows
    refused: dict[str, NodeRejection]
    errors: list[str]


class Budgets:
    """The budgets that count a pod, for one search. Many pods look the same to them, and each
    budget is matched once for all of these: in a large cluster there are far too many pods."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._by_namespace: dict[str, _NamespaceBudgets] = {}

    def of(self, pod: Pod) -> Iterator[tuple[str, PodDisruptionBudget]]:
        """By name, but for those that know already that the pod goes."""
        if not pod.labels:
            return
        inside = self._by_namespace.get(pod.namespace)
        if inside is None:
            found = self._nodes.objects_in(PodDisruptionBudget, pod.namespace)
            inside = self._by_namespace[pod.namespace] = _readable(found)
        for name, budget in inside.selecting(pod.labels):
            if pod.name not in budget.status.disrupted_pods:
                yield name, budget


def dry_run(pod: Pod, nodes: Nodes, rows: Rows, refused: Refused, budgets: Budgets) -> DryRun:
    """`rows` are those of the whole table `nodes`, each with some pod that matters less."""
    found = DryRun([], {}, [])
    potential = [_potential_victims(pod, nodes, row) for row in rows.tolist()]
    emptied = nodes.take(rows).without(
        {at: [victim.uid for victim in victims] for at, victims in enumerate(potential)}
    )
    still_refused = refused.on(emptied)
    searches = {}
    for at, (name, victims) in enumerate(zip(emptied.names, potential, strict=True)):
        if at in still_refused:
            found.refused[name] = still_refused[at]
        else:
            searches[at] = _Search(name, _by_budget(victims, budgets))
    _reprieve(searches, emptied, refused)
    for search in searches.values():
        if search.kept_out:
            found.evictions.append(search.eviction)
        else:
            found.errors.append(f'expected at least one victim pod on node "{search.node_name}"')
    return found


def start_time_of(pod: Pod) -> float:
    """In seconds since 1970; a pod that has not started yet starts in the future."""
    seconds = epoch_seconds(pod.status.start_time) if pod.status.start_time else None
    return math.inf if seconds is None else seconds


def _importance(pod: Pod) -> tuple[int, float, str]:
    """The most important pod has the lowest; names make a replay repeat."""
    return (-pod.spec.priority, start_time_of(pod), pod.key)


def _potential_victims(pod: Pod, nodes: Nodes, row: int) -> list[Pod]:
    """The most important ones first."""
    victims = [each for each in nodes.pods(row) if each.spec.priority < pod.spec.priority]
    return sorted(victims, key=_importance)


@dataclass(frozen=True, slots=True)
class _Candidate:
    pod: Pod
    violates_budget: bool


@dataclass(slots=True)
class _Search:
    """The victims of one node: each in `queue` is tried to be kept, in this order."""

    node_name: str
    queue: Sequence[_Candidate]
    kept_out: list[_Candidate] = field(default_factory=list)

    @property
    def eviction(self) -> Eviction:
        return Eviction(
            self.node_name,
            victims=tuple(sorted((each.pod for each in self.kept_out), key=_importance)),
            budget_violations=sum(each.violates_budget for each in self.kept_out),
        )


def _reprieve(searches: Mapping[int, _Search], nodes: Nodes, refused: Refused) -> None:
    """`searches` are by the position in `nodes`, where all potential victims are gone. One step
    tries one pod of every node: asking about all costs little more than asking about one."""
    for step in range(max((len(search.queue) for search in searches.values()), default=0)):
        tried = [at for at, search in searches.items() if step < len(search.queue)]
        uids = [searches[at].queue[step].pod.uid for at in tried]
        trial = nodes.take(np.array(tried, np.intp)).returning(dict(enumerate(uids)))
        fits = refused.fits(trial).tolist()
        nodes = nodes.returning(
            {at: uid for at, uid, is_kept in zip(tried, uids, fits, strict=True) if is_kept}
        )
        for at, is_kept in zip(tried, fits, strict=True):
            if not is_kept:
                searches[at].kept_out.append(searches[at].queue[step])


def _by_budget(victims: Iterable[Pod], budgets: Budgets) -> list[_Candidate]:
    """Those first that a budget protects; both parts keep their order."""
    spent: Counter[str] = Counter()  # by the budget's namespace and name
    protected: list[_Candidate] = []
    others: list[_Candidate] = []
    for pod in victims:
        violates = False
        for name, budget in budgets.of(pod):
            spent[f"{pod.namespace}/{name}"] += 1
            allowed = budget.status.disruptions_allowed
            violates |= spent[f"{pod.namespace}/{name}"] > allowed
        (protected if violates else others).append(_Candidate(pod, violates))
    return protected + others


_Selective = tuple[str, PodDisruptionBudget, LabelSelector]


@dataclass(frozen=True, slots=True)
class _NamespaceBudgets:
    budgets: Sequence[_Selective]
    label_keys: Sequence[str]  # all that some selector asks about: other labels change nothing
    known: dict[tuple[str | None, ...], list[tuple[str, PodDisruptionBudget]]] = field(
        default_factory=dict
    )

    def selecting(self, labels: Mapping[str, str]) -> list[tuple[str, PodDisruptionBudget]]:
        values = tuple(labels.get(key) for key in self.label_keys)
        matching = self.known.get(values)
        if matching is None:
            matching = self.known[values] = [
                (name, budget)
                for name, budget, selector in self.budgets
                if matches_selector(selector, labels)
            ]
        return matching


def _readable(found: Mapping[str, PodDisruptionBudget]) -> _NamespaceBudgets:
    """A budget without a selector, or with one that cannot be read, counts no pod."""
    budgets: list[_Selective] = []
    keys: dict[str, None] = {}
    for name, budget in found.items():
        selector = budget.spec.selector
        if selector is None or not (selector.match_labels or selector.match_expressions):
            continue
        if all(
            each.operator not in ("Gt", "Lt") and is_valid_requirement(each)
            for each in selector.match_expressions
        ):
            budgets.append((name, budget, selector))
            keys.update(dict.fromkeys(selector.match_labels))
            keys.update(dict.fromkeys(each.key for each in selector.match_expressions))
    return _NamespaceBudgets(budgets, tuple(keys))
