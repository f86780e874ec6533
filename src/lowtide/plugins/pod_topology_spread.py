"""PodTopologySpread: spreads matching pods evenly over the domains of a topology key, such as zones
or hosts. `DoNotSchedule` constraints reject nodes; `ScheduleAnyway` ones only lower scores."""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowtide.cluster.columns import Rows
from lowtide.framework.plugin import (
    MAX_SCORE,
    NODE,
    NODES,
    OBJECTS,
    OTHERS,
    PODS,
    BoolArray,
    Change,
    FloatArray,
    IntArray,
    Nodes,
    Pod,
    PodRejection,
    Rejection,
)
from lowtide.objects.matching import matches_selector
from lowtide.objects.node import Node
from lowtide.objects.pod import TopologySpreadConstraint
from lowtide.objects.selector_problems import selector_problem
from lowtide.objects.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from lowtide.plugins.node_affinity import matches_required
from lowtide.plugins.pod_topology_spread_constraints import (
    DO_NOT_SCHEDULE,
    HOSTNAME,
    SCHEDULE_ANYWAY,
    Constraint,
    Constraints,
    PodTopologySpreadArgs,
)
from lowtide.plugins.taint_toleration import has_untolerated

_UNEVEN = "node(s) didn't match pod topology spread constraints"
_NO_LABEL = f"{_UNEVEN} (missing required label)"
# Stands for the count of a missing other domain: more pods than any domain has.
_NO_OTHER = 2**31 - 1


class PodTopologySpread:
    name = "PodTopologySpread"
    retry_on = NODE | PODS | NODES | OTHERS | OBJECTS
    kinds = (Service, ReplicationController, ReplicaSet, StatefulSet)
    args = PodTopologySpreadArgs

    def __init__(self, args: PodTopologySpreadArgs) -> None:
        self._defaults = args.constraints
        self._constraints = Constraints(args.constraints)
        self._is_system = args.is_system

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | None:
        for number, constraint in enumerate(pod.spec.topology_spread_constraints):
            path = f"spec.topologySpreadConstraints[{number}].labelSelector"
            problem = selector_problem(constraint.label_selector, path)
            if problem is not None:
                return PodRejection(problem)
        return None

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        constraints = self._constraints.constraints_for(pod, nodes, DO_NOT_SCHEDULE)
        if not constraints:
            return
        table = _Table(pod, nodes.everything, constraints)
        is_rejected = np.zeros(len(nodes), np.bool_)
        for constraint in constraints:
            # A node is rejected for the first constraint that it does not meet.
            lacks_label = (nodes.label_numbers(constraint.topology_key)[0] < 0) & ~is_rejected
            yield Rejection(lacks_label, _NO_LABEL)
            is_rejected |= lacks_label
            is_uneven = (_skew(constraint, table, nodes) > constraint.max_skew) & ~is_rejected
            yield Rejection(is_uneven, _UNEVEN, eviction_helps=True)
            is_rejected |= is_uneven

    def may_help(self, pod: Pod, change: Change) -> bool:
        own = pod.spec.topology_spread_constraints
        hard = [
            each for each in own or self._defaults if each.when_unsatisfiable == DO_NOT_SCHEDULE
        ]
        if isinstance(change.thing, Node):
            return _may_node_help(hard, change)
        if not own or not isinstance(change.thing, Pod):
            # Default constraints take their selector from Services and controllers, so any pod may
            # be counted.
            return not own
        return any(_may_pod_help(given, pod, change) for given in hard)

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        constraints = self._constraints.constraints_for(pod, nodes, SCHEDULE_ANYWAY)
        if not constraints:
            return None
        needed = self._needed(pod, constraints)
        table = _Table(pod, nodes.everything, needed)
        is_scored = table.with_keys(nodes.everything.feasible)
        total = _cost(constraints[0], table, nodes, is_scored)
        for constraint in constraints[1:]:
            total += _cost(constraint, table, nodes, is_scored)
        has_keys = _has_keys(needed, nodes)
        raw = np.rint(total, out=total).astype(np.int64)
        return raw if has_keys is None else raw * has_keys

    def normalize(self, pod: Pod, nodes: Nodes, raw: IntArray) -> IntArray:
        """Fewest pods score best; a node without the needed keys gets 0."""
        has_keys, feasible = None, nodes.feasible
        if not self._is_lenient(pod):
            constraints = self._constraints.constraints_for(pod, nodes, SCHEDULE_ANYWAY)
            has_keys = _has_keys(constraints, nodes)
        is_scored = feasible if has_keys is None else feasible & has_keys
        scored = raw if np.count_nonzero(is_scored) == len(raw) else raw[is_scored]
        highest = int(np.maximum.reduce(scored, initial=0))
        if highest == 0:
            normalized = np.full(len(raw), MAX_SCORE, np.int64)
        else:
            normalized = highest + int(np.minimum.reduce(scored)) - raw
            normalized *= MAX_SCORE
            normalized //= highest
        return normalized if has_keys is None else normalized * has_keys

    def _needed(self, pod: Pod, constraints: Sequence[Constraint]) -> Sequence[Constraint]:
        """The constraints whose keys a node must have to be scored."""
        return () if self._is_lenient(pod) else constraints

    def _is_lenient(self, pod: Pod) -> bool:
        """Whether nodes that lack a key are scored too, as with the built-in default constraints.
        With any other constraints they are not."""
        return self._is_system and not pod.spec.topology_spread_constraints


class _Table:
    """The matching pods of all counted nodes, summed by the value of a topology key. A node must
    have the keys of the `needed` constraints."""

    def __init__(self, pod: Pod, nodes: Nodes, needed: Sequence[Constraint]) -> None:
        self.pod = pod
        self._nodes = nodes
        self._has_keys = _has_keys(needed, nodes)
        self._parted: dict[str, _Parted] = {}  # by topology key

    def with_keys(self, feasible: BoolArray) -> BoolArray:
        """The feasible nodes that have the needed keys."""
        return feasible if self._has_keys is None else feasible & self._has_keys

    def is_counted(self, constraint: Constraint) -> BoolArray | None:
        """The nodes that count under the constraint's policies; None for all."""
        counted = self._has_keys
        if constraint.honors_affinity:
            counted = _both(self._matches_affinity, counted)
        if constraint.honors_taints:
            counted = _both(self._is_tolerated, counted)
        return counted

    def parted(self, constraint: Constraint, nodes: Nodes | None = None) -> "_Parted":
        """These nodes by the constraint's key; all nodes if none are given."""
        key = constraint.topology_key
        if nodes is not None and not nodes.is_whole:
            return _Parted.by_key(key, nodes)
        parted = self._parted.get(key)
        if parted is None:
            parted = self._parted[key] = _Parted.by_key(key, self._nodes)
        return parted

    def pods_by_value(self, constraint: Constraint) -> IntArray:
        parted = self.parted(constraint)
        pods, counted = _pods_on(constraint, self._nodes), self.is_counted(constraint)
        found = parted.summed(pods if counted is None else pods * counted)
        return found.astype(np.int64)

    def has_nodes_by_value(self, constraint: Constraint) -> BoolArray:
        parted = self.parted(constraint)
        counted = self.is_counted(constraint)
        numbers = parted.numbers if counted is None else parted.numbers[counted]
        return np.bincount(numbers, minlength=parted.size) > 0

    @cached_property
    def _matches_affinity(self) -> BoolArray | None:
        return matches_required(self.pod, self._nodes)

    @cached_property
    def _is_tolerated(self) -> BoolArray:
        return ~has_untolerated(self.pod, self._nodes)


class _Parted(NamedTuple):
    """Nodes by the value of a topology key. As in kube-scheduler, a node without the label counts
    as having an empty value."""

    numbers: Rows  # by position: the number of the node's value
    size: int  # an upper bound of the numbers
    lacking: BoolArray | None  # the nodes without the label; None if all have it

    @classmethod
    def by_key(cls, key: str, nodes: Nodes) -> "_Parted":
        numbers, values = nodes.label_numbers(key)
        if nodes.all_labelled(key):
            return cls(numbers, len(values) + 1, None)
        lacking = numbers < 0
        empty = values.index("") if "" in values else len(values)
        return cls(np.where(lacking, empty, numbers), len(values) + 1, lacking)

    def values_of(self, chosen: BoolArray) -> int:
        """The number of different values among the chosen nodes."""
        are_all = np.count_nonzero(chosen) == len(chosen)
        has_any = np.zeros(self.size, np.bool_)
        has_any[self.numbers if are_all else self.numbers[chosen]] = True
        return int(np.count_nonzero(has_any))

    def summed(self, amounts: IntArray) -> npt.NDArray[Any]:
        """The sum of the amounts by value. bincount needs floats, and converting them all here is
        faster than letting it convert them."""
        return np.bincount(self.numbers, amounts.astype(np.float64), self.size)


def _may_node_help(given: Sequence[TopologySpreadConstraint], change: Change) -> bool:
    """Whether a node with all keys came or went, or any node changed its labels or taints."""
    if change.before is not None and change.after is not None:
        return change.is_relabelled
    return all(each.topology_key in change.thing.labels for each in given)


def _may_pod_help(given: TopologySpreadConstraint, pod: Pod, change: Change) -> bool:
    """Whether another pod starts to count, or no longer counts."""
    if pod.namespace != change.thing.namespace:
        return False

    def is_counted(other: Pod) -> bool:
        return matches_selector(given.label_selector, other.labels) and all(
            other.labels.get(key) == pod.labels[key]
            for key in given.match_label_keys
            if key in pod.labels
        )

    def is_counted_and_stays(other: Pod) -> bool:
        return not other.is_terminating and is_counted(other)

    if change.after is None:
        return is_counted(change.before)
    return change.is_new(is_counted) or change.is_over(is_counted_and_stays)


def _cost(constraint: Constraint, table: _Table, nodes: Nodes, is_scored: BoolArray) -> FloatArray:
    """What one constraint adds to each node's score (lowest is best): the pods in the node's
    domain, weighted by the number of domains; 0 if the node lacks the label."""
    parted = table.parted(constraint, nodes)
    if constraint.topology_key == HOSTNAME:
        domains = int(np.count_nonzero(is_scored))
        cost = _weighted(_pods_on(constraint, nodes), domains, constraint)
    else:
        # Nodes without the label form one more domain.
        domains = table.parted(constraint).values_of(is_scored)
        cost = _weighted(table.pods_by_value(constraint), domains, constraint).take(parted.numbers)
    if parted.lacking is not None:
        cost[parted.lacking] = 0
    return cost


def _weighted(pods: IntArray, domains: int, constraint: Constraint) -> FloatArray:
    cost: FloatArray = pods * np.float64(math.log(domains + 2))
    cost += max(constraint.max_skew, 1) - 1  # a pod that was never validated may have less than 1
    return cost


def _skew(constraint: Constraint, table: _Table, nodes: Nodes) -> IntArray:
    """By how many pods each node's domain would exceed the emptiest one, with the pod there."""
    by_value = table.pods_by_value(constraint)
    numbers = table.parted(constraint, nodes).numbers
    pods = by_value[numbers] + int(constraint.matches(table.pod))
    known = by_value[table.has_nodes_by_value(constraint)]
    has_enough = len(known) >= constraint.min_domains
    hypothetical = _hypothetical_on(constraint, table, nodes)
    if hypothetical is None:
        return pods - (int(known.min()) if has_enough else 0)
    if not has_enough:
        return pods + hypothetical
    # A hypothesis changes only this node's domain, so the emptiest is that one or another one.
    first, second = np.sort(np.append(known, _NO_OTHER))[:2]
    others = np.where(by_value[numbers] == first, second, first)
    lowest: IntArray = np.minimum(by_value[numbers] + hypothetical, others)
    return pods + hypothetical - lowest


def _hypothetical_on(constraint: Constraint, table: _Table, nodes: Nodes) -> IntArray | None:
    """The pods that each node's domain gains or loses hypothetically; None without overlays."""
    if constraint.selection is None:
        return None
    hypothetical = nodes.hypothetical_matching(constraint.selection)
    if hypothetical is None:
        return None
    counted = table.is_counted(constraint)
    return hypothetical if counted is None else hypothetical * counted[nodes.rows]


def _pods_on(constraint: Constraint, nodes: Nodes) -> IntArray:
    if constraint.selection is None or not constraint.counts_pods:
        return np.zeros(len(nodes), np.int64)
    return nodes.pods_matching(constraint.selection)


def _has_keys(constraints: Sequence[Constraint], nodes: Nodes) -> BoolArray | None:
    """The nodes that have every key; None if all do."""
    has_keys = None
    for constraint in constraints:
        if not nodes.all_labelled(constraint.topology_key):
            has_key = nodes.label_numbers(constraint.topology_key)[0] >= 0
            has_keys = _both(has_key, has_keys)
    return has_keys


def _both(one: BoolArray | None, other: BoolArray | None) -> BoolArray | None:
    """Where both are true; None stands for all nodes."""
    if one is None or other is None:
        return other if one is None else one
    return one & other
