"""Finds the victims of a preemption on each node. Hypothetically, all pods of lower priority go.
They come back one by one as long as the pod still fits, budget-protected pods first.

Called by DefaultPreemption. Every step asks the filters about all nodes at once."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from lowtide.cluster.columns import Rows
from lowtide.framework.decision import NodeRejection
from lowtide.framework.least_harm import start_time_of
from lowtide.framework.plugin import Eviction, Nodes, Pod, PostFilterContext
from lowtide.objects.matching import is_valid_requirement, matches_selector
from lowtide.objects.meta import LabelSelector
from lowtide.objects.policy import PodDisruptionBudget


@dataclass(frozen=True, slots=True)
class DryRun:
    """Some nodes without their pods of lower priority. `rejected` has, by node name, where the
    preemptor does not fit even so."""

    emptied: Nodes
    lower: Sequence[Sequence[Pod]]  # by position: the removed pods
    rejected: dict[str, NodeRejection]
    asked: PostFilterContext
    budgets: "Budgets"

    def evictions(self, at_once: int) -> Iterator[Eviction]:
        """The eviction on each other node, in order. The search takes `at_once` nodes at a time,
        and goes on only while the caller iterates."""
        first = [0, *accumulate(map(len, self.lower))]
        names = self.emptied.names
        left = [at for at, name in enumerate(names) if name not in self.rejected]
        for start in range(0, len(left), at_once):
            searches = [
                _search(at, names[at], self.lower[at], first[at], self.budgets)
                for at in left[start : start + at_once]
            ]
            has_to_go = _reprieve(searches, self.emptied, self.asked, first[-1])
            yield from (search.eviction(has_to_go) for search in searches)


class Budgets:
    """The PodDisruptionBudgets of pods, for one search. Selectors are matched once for all pods
    with the same labels, because a large cluster has too many pods to match each."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._by_namespace: dict[str, _NamespaceBudgets] = {}
        self.has_any = bool(nodes.objects(PodDisruptionBudget))

    def budgets_for(self, pod: Pod) -> list[tuple[str, PodDisruptionBudget]]:
        """The budgets that select the pod, each with "namespace/name". Without those that already
        count the pod as disrupted."""
        if not pod.labels:
            return []
        inside = self._by_namespace.get(pod.namespace)
        if inside is None:
            found = self._nodes.objects_in(PodDisruptionBudget, pod.namespace)
            inside = self._by_namespace[pod.namespace] = _readable(found)
        if not inside.budgets:
            return []
        return [
            each
            for each in inside.selecting(pod.labels)
            if pod.name not in each[1].status.disrupted_pods
        ]


def dry_run(
    pod: Pod, nodes: Nodes, rows: Rows, rejected: PostFilterContext, budgets: Budgets
) -> DryRun:
    """Remove all pods of lower priority and ask the filters. `rows` are rows of the whole table
    `nodes`; each must have such a pod."""
    emptied, lower = nodes.take(rows).without_lower(pod.spec.priority)
    names = emptied.names
    still_rejected = {names[at]: rejection for at, rejection in rejected.on(emptied).items()}
    return DryRun(emptied, lower, still_rejected, rejected, budgets)


def _importance(pod: Pod) -> tuple[int, float, str]:
    """A sort key, most important pod first. The pod's key makes the order reproducible."""
    return (-pod.spec.priority, start_time_of(pod), pod.key)


@dataclass(frozen=True, slots=True)
class _Search:
    """The candidates of one node. A candidate's number counts the removed pods of all nodes. The
    candidates in `queue` are tried in this order: each stays if the preemptor still fits."""

    position: int
    node_name: str
    by_importance: Mapping[int, Pod]
    queue: Sequence[int]
    breaking: Collection[int]  # candidates whose eviction violates a budget

    def eviction(self, has_to_go: Sequence[bool]) -> Eviction:
        numbers = [number for number in self.by_importance if has_to_go[number]]
        return Eviction(
            self.node_name,
            victims=tuple(self.by_importance[number] for number in numbers),
            budget_violations=sum(number in self.breaking for number in numbers),
        )


def _search(
    position: int, node_name: str, pods: Sequence[Pod], first_number: int, budgets: Budgets
) -> _Search:
    ranked = sorted(
        (*_importance(pod), number) for number, pod in enumerate(pods, start=first_number)
    )
    by_importance = {number: pods[number - first_number] for *_, number in ranked}
    breaking = _breaking(by_importance, budgets) if budgets.has_any else {}
    # Budget-protected pods come first; within both groups the order stays.
    queue = [*breaking, *(number for number in by_importance if number not in breaking)]
    return _Search(position, node_name, by_importance, queue, breaking)


def _breaking(by_importance: Mapping[int, Pod], budgets: Budgets) -> dict[int, None]:
    """The candidates whose eviction violates a budget, after the evictions of those before them."""
    breaking: dict[int, None] = {}
    spent: Counter[str] = Counter()  # by the budget's namespace and name
    for number, pod in by_importance.items():
        for name, budget in budgets.budgets_for(pod):
            spent[name] += 1
            if spent[name] > budget.status.disruptions_allowed:
                breaking[number] = None
    return breaking


def _reprieve(
    searches: Sequence[_Search], nodes: Nodes, rejected: PostFilterContext, count: int
) -> Sequence[bool]:
    """By number: which of `count` candidates must go; all are removed from `nodes`. One step tries
    one pod of every node, because asking about all nodes costs little more than about one."""
    has_to_go = np.zeros(count, np.bool_)
    for step in range(max((len(search.queue) for search in searches), default=0)):
        tried = [search for search in searches if step < len(search.queue)]
        positions = np.array([search.position for search in tried], np.intp)
        numbers = np.array([search.queue[step] for search in tried], np.intp)
        fits = rejected.fits(nodes.take(positions).restoring(numbers))
        nodes = nodes.restoring(numbers[fits])
        has_to_go[numbers[~fits]] = True
    answer: list[bool] = has_to_go.tolist()
    return answer


_Selective = tuple[str, PodDisruptionBudget, LabelSelector]


@dataclass(frozen=True, slots=True)
class _NamespaceBudgets:
    budgets: Sequence[_Selective]
    label_keys: Sequence[str]  # the keys that selectors use; other labels do not matter
    known: dict[tuple[str | None, ...], list[tuple[str, PodDisruptionBudget]]] = field(
        default_factory=dict
    )

    def selecting(self, labels: Mapping[str, str]) -> list[tuple[str, PodDisruptionBudget]]:
        values = tuple([labels.get(key) for key in self.label_keys])
        matching = self.known.get(values)
        if matching is None:
            matching = self.known[values] = [
                (name, budget)
                for name, budget, selector in self.budgets
                if matches_selector(selector, labels)
            ]
        return matching


def _readable(found: Mapping[str, PodDisruptionBudget]) -> _NamespaceBudgets:
    """The budgets with a valid selector. One without, or with an invalid one, selects no pod."""
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
            budgets.append((f"{budget.metadata.namespace}/{name}", budget, selector))
            keys.update(dict.fromkeys(selector.match_labels))
            keys.update(dict.fromkeys(each.key for each in selector.match_expressions))
    return _NamespaceBudgets(budgets, tuple(keys))
