"""A plain twin of every vectorised plugin: it judges one node at a time, as slowly as it reads.

`test_twins` says that the two agree on any cluster. Only what parses and matches a single value is
shared with the plugins; sums over pods are made anew for each node.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from lowtide.cluster.placed import host_ports_of
from lowtide.framework.plugin import (
    IntArray,
    Nodes,
    OneNode,
    Pod,
    Rejection,
    filter_each,
    score_each,
)
from lowtide.objects.matching import is_tolerated, is_valid_requirement, matches_requirement
from lowtide.objects.node import Node, Taint
from lowtide.objects.pod import NodeAffinity, NodeSelector, NodeSelectorTerm
from lowtide.objects.requests import (
    is_extended,
    is_scalar,
    node_amounts,
    nonzero_requests,
    pod_requests,
    scored_requests,
)
from lowtide.plugins.pod_topology_spread_constraints import (
    Constraint,
    Constraints,
    PodTopologySpreadArgs,
)

FIRST = ("cpu", "memory", "ephemeral-storage")


class PlainNodeName:
    name = "NodeName"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        if pod.spec.node_name and pod.spec.node_name != node.name:
            return "node(s) didn't match the requested node name"
        return None


class PlainNodeUnschedulable:
    name = "NodeUnschedulable"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        cordon = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
        if node.object.spec.unschedulable and not is_tolerated(cordon, pod.spec.tolerations):
            return "node(s) were unschedulable"
        return None


class PlainTaintToleration:
    name = "TaintToleration"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        for taint in node.object.spec.taints:
            is_hard = taint.effect in ("NoSchedule", "NoExecute")
            if is_hard and not is_tolerated(taint, pod.spec.tolerations):
                return "node(s) had untolerated taint(s)"
        return None

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        soft = [t for t in pod.spec.tolerations if t.effect in ("", "PreferNoSchedule")]
        return sum(
            1
            for taint in node.object.spec.taints
            if taint.effect == "PreferNoSchedule" and not is_tolerated(taint, soft)
        )


class PlainNodeAffinity:
    name = "NodeAffinity"

    def __init__(self, added: NodeAffinity) -> None:
        self._added = added

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        if self._added.required and not _any_term(self._added.required, node):
            return "node(s) didn't match scheduler-enforced node affinity"
        wanted = pod.spec.node_selector
        own = _affinity(pod).required
        is_match = all(node.labels.get(key) == value for key, value in wanted.items())
        if not is_match or (own is not None and not _any_term(own, node)):
            return "node(s) didn't match Pod's node affinity/selector"
        return None

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        terms = [*_affinity(pod).preferred, *self._added.preferred]
        return sum(each.weight for each in terms if _term(each.preference, node))


class PlainNodePorts:
    name = "NodePorts"

    @filter_each(eviction_helps=True)
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        for wanted in host_ports_of(pod):
            for other in node.pods:
                for held in host_ports_of(other):
                    is_same = (wanted.protocol, wanted.port) == (held.protocol, held.port)
                    if is_same and ("0.0.0.0" in (wanted.ip, held.ip) or wanted.ip == held.ip):
                        return "node(s) didn't have free ports for the requested pod ports"
        return None


class PlainPodCount:
    """The first check of NodeResourcesFit."""

    name = "NodeResourcesFit"

    @filter_each(eviction_helps=True)
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        return "Too many pods" if len(node.pods) + 1 > _has(node).get("pods", 0) else None


class PlainShortage:
    """NodeResourcesFit for one resource, where pods are in the way."""

    name = "NodeResourcesFit"

    def __init__(self, resource: str) -> None:
        self._resource = resource

    @filter_each(eviction_helps=True)
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        wanted = pod_requests(pod).get(self._resource, 0)
        has = _has(node).get(self._resource, 0)
        used = sum(pod_requests(other).get(self._resource, 0) for other in node.pods)
        return f"Insufficient {self._resource}" if 0 < wanted <= has < wanted + used else None


class PlainExcess:
    """NodeResourcesFit for one resource, where the node is too small for the pod alone."""

    name = "NodeResourcesFit"

    def __init__(self, resource: str) -> None:
        self._resource = resource

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        wanted = pod_requests(pod).get(self._resource, 0)
        is_beyond = wanted > _has(node).get(self._resource, 0)
        return f"Insufficient {self._resource}" if wanted and is_beyond else None


def plain_fit(pod: Pod, ignored: Sequence[str]) -> Iterator[Any]:
    """Twins that reject together what NodeResourcesFit rejects."""
    yield PlainPodCount()
    for resource in {*FIRST, *pod_requests(pod)}:
        if is_extended(resource) and resource in ignored:
            continue
        if resource in FIRST or is_scalar(resource):
            yield PlainShortage(resource)
            yield PlainExcess(resource)


class PlainFitScore:
    """How NodeResourcesFit scores; `shape` is only for the ratio."""

    name = "NodeResourcesFit"

    def __init__(
        self, kind: str, weights: Mapping[str, int], shape: Sequence[tuple[int, int]]
    ) -> None:
        self._kind = kind
        self._weights = weights
        self._shape = shape

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        total = weights = 0
        for resource, weight in self._weights.items():
            wanted = scored_requests(pod).get(resource, 0)
            has = _has(node).get(resource, 0)
            is_counted = resource in FIRST or (is_scalar(resource) and wanted)
            if not is_counted or not has:
                continue
            share = self._share(wanted + _scored_use(node, resource), has)
            if self._kind == "RequestedToCapacityRatio" and not share:
                continue
            total += share * weight
            weights += weight
        if not weights:
            return 0
        if self._kind == "RequestedToCapacityRatio":
            return math.floor(Fraction(total, weights) + Fraction(1, 2))
        return total // weights

    def _share(self, used: int, has: int) -> int:
        if self._kind == "LeastAllocated":
            return 0 if used > has else (has - used) * 100 // has
        if self._kind == "MostAllocated":
            return min(used, has) * 100 // has
        percent = 100 if used > has else used * 100 // has
        return _on_shape([(at, score * 10) for at, score in self._shape], percent)


class PlainBalancedAllocation:
    name = "NodeResourcesBalancedAllocation"

    def __init__(self, resources: Sequence[str]) -> None:
        self._resources = resources

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        wanted = pod_requests(pod)
        counted = [r for r in self._resources if r in FIRST or (is_scalar(r) and wanted.get(r))]
        used = {r: sum(pod_requests(other).get(r, 0) for other in node.pods) for r in counted}
        before = _balance(used, node)
        after = _balance({r: used[r] + wanted.get(r, 0) for r in counted}, node)
        return 50 + math.trunc(Fraction(50 + after - before, 2))


class PlainImageLocality:
    name = "ImageLocality"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        whole = nodes.everything
        containers = [*pod.spec.init_containers, *pod.spec.containers]
        images = [each.image for each in containers]
        images += [each.image.reference for each in pod.spec.volumes if each.image]
        found = []
        for at in range(len(nodes)):
            held = 0
            for image in map(_tagged, images):
                size_bytes = _held(nodes.node(at), image)
                if size_bytes is not None:
                    others = [whole.node(each) for each in range(len(whole))]
                    count = sum(_held(other, image) is not None for other in others)
                    held += math.trunc(size_bytes * (count / len(whole)))
            lowest, highest = 23 * 2**20, 1000 * 2**20 * len(containers)
            held = min(max(held, lowest), highest)
            found.append(100 * (held - lowest) // (highest - lowest))
        return np.array(found, np.int64)


class PlainNodeDeclaredFeatures:
    name = "NodeDeclaredFeatures"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        needed = set()
        for container in [*pod.spec.init_containers, *pod.spec.containers]:
            for rule in container.restart_policy_rules:
                if rule.action == "RestartAllContainers":
                    needed.add("RestartAllContainersOnContainerExits")
        if pod.spec.host_network and pod.spec.host_users is False:
            needed.add("UserNamespacesHostNetworkSupport")
        if needed - set(node.object.status.declared_features):
            return "node(s) didn't match Pod's required features"
        return None


class PlainPodTopologySpread:
    """Counts the pods of the whole table again for every node and every constraint."""

    name = "PodTopologySpread"

    def __init__(self) -> None:
        self._defaults = PodTopologySpreadArgs().constraints

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        for position in range(len(nodes)):
            reason = self._reason(pod, nodes, position)
            if reason is not None:
                mask = np.zeros(len(nodes), np.bool_)
                mask[position] = True
                yield Rejection(mask, reason, eviction_helps="label" not in reason)

    def _reason(self, pod: Pod, nodes: Nodes, position: int) -> str | None:
        constraints = Constraints(self._defaults).constraints_for(pod, nodes, "DoNotSchedule")
        for each in constraints:
            value = nodes.node(position).labels.get(each.topology_key)
            if value is None:
                return (
                    "node(s) didn't match pod topology spread constraints (missing required label)"
                )
            counts: dict[str, int] = {}
            for node in _counted(pod, nodes, each, constraints):
                here = node.labels[each.topology_key]
                counts[here] = counts.get(here, 0) + _like(pod, each, node.pods)
                if node.name == nodes.names[position]:
                    counts[here] += _change(pod, each, nodes.pods(position), node.pods)
            lowest = min(counts.values()) if len(counts) >= each.min_domains else 0
            if counts.get(value, 0) + each.matches(pod) - lowest > each.max_skew:
                return "node(s) didn't match pod topology spread constraints"
        return None

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        constraints = Constraints(self._defaults).constraints_for(pod, nodes, "ScheduleAnyway")
        if not constraints:
            return None
        needed = constraints if pod.spec.topology_spread_constraints else []
        nodes_scored = [
            nodes.one(at)
            for at in range(len(nodes))
            if nodes.feasible[at]
            and all(each.topology_key in nodes.one(at).labels for each in needed)
        ]
        raw = np.zeros(len(nodes), np.int64)
        for at, name in enumerate(nodes.names):
            for node in nodes_scored:
                if node.name == name:
                    costs = [
                        self._cost(pod, nodes, c, needed, nodes_scored, at) for c in constraints
                    ]
                    raw[at] = math.floor(sum(costs) + 0.5)
        return raw

    def _cost(
        self,
        pod: Pod,
        nodes: Nodes,
        constraint: Constraint,
        needed: Sequence[Constraint],
        scored: Sequence[OneNode],
        position: int,
    ) -> float:
        key, node = constraint.topology_key, nodes.one(position)
        if key not in node.labels:
            return 0.0
        if key == "kubernetes.io/hostname":
            size, count = len(scored), _like(pod, constraint, node.pods)
        else:
            size = len({each.labels.get(key, "") for each in scored})
            count = sum(
                _like(pod, constraint, other.pods)
                for other in _counted(pod, nodes, constraint, needed)
                if other.labels.get(key, "") == node.labels[key]
            )
        return count * math.log(size + 2) + constraint.max_skew - 1

    def normalize(self, raw: Sequence[int], scored: Sequence[bool]) -> list[int]:
        """`scored` says which nodes are feasible and have the labels."""
        of_scored = [value for value, is_scored in zip(raw, scored, strict=True) if is_scored]
        highest, lowest = max(of_scored, default=0), min(of_scored, default=0)
        if not highest:
            return [100 if is_scored else 0 for is_scored in scored]
        return [
            100 * (highest + lowest - value) // highest if is_scored else 0
            for value, is_scored in zip(raw, scored, strict=True)
        ]


def _counted(
    pod: Pod, nodes: Nodes, constraint: Constraint, needed: Sequence[Constraint]
) -> Iterator[OneNode]:
    """The nodes of the whole table that a constraint counts pods on."""
    whole = nodes.everything
    for at in range(len(whole)):
        node = whole.one(at)
        is_rejected = list(
            PlainNodeAffinity(NodeAffinity()).filter(pod, whole.take(np.array([at])))
        )
        is_tainted = list(PlainTaintToleration().filter(pod, whole.take(np.array([at]))))
        if any(each.topology_key not in node.labels for each in needed):
            continue
        if constraint.honors_affinity and is_rejected:
            continue
        if constraint.honors_taints and is_tainted:
            continue
        yield node


def _like(pod: Pod, constraint: Constraint, others: Sequence[Pod]) -> int:
    if not constraint.counts_pods:
        return 0
    return sum(
        constraint.matches(other) and other.namespace == pod.namespace and not other.is_terminating
        for other in others
    )


def _change(pod: Pod, constraint: Constraint, thought: Sequence[Pod], real: Sequence[Pod]) -> int:
    """Pods that are on the node only hypothetically, less those that are gone hypothetically."""
    before, after = {each.uid for each in real}, {each.uid for each in thought}
    found = 0
    for other in (*thought, *real):
        if constraint.matches(other) and other.namespace == pod.namespace:
            found += (other.uid in after) - (other.uid in before)
    return found


def _balance(used: Mapping[str, int], node: OneNode) -> int:
    has = _has(node)
    shares = [min(used[r] / has[r], 1.0) for r in used if has.get(r)]
    if len(shares) < 2:
        return 100
    if len(shares) == 2:
        return int((1 - abs(shares[0] - shares[1]) / 2) * 100)
    mean = sum(shares) / len(shares)
    variance = sum((share - mean) * (share - mean) for share in shares) / len(shares)
    return int((1 - math.sqrt(variance)) * 100)


def _tagged(image: str) -> str:
    return image if ":" in image.split("/")[-1] else image + ":latest"


def _held(node: Node, image: str) -> int | None:
    """Its size, as the node lists it first."""
    return next((each.size_bytes for each in node.status.images if image in each.names), None)


def _on_shape(points: Sequence[tuple[int, int]], percent: int) -> int:
    for number, (at, score) in enumerate(points):
        if percent <= at:
            if number == 0:
                return score
            before, low = points[number - 1]
            return low + math.trunc(Fraction((score - low) * (percent - before), at - before))
    return points[-1][1]


def _has(node: OneNode) -> Mapping[str, int]:
    return node_amounts(node.object.status.allocatable).by_resource


def _scored_use(node: OneNode, resource: str) -> int:
    if resource in ("cpu", "memory"):
        which = ("cpu", "memory").index(resource)
        return sum(nonzero_requests(other)[which] for other in node.pods)
    return sum(pod_requests(other).get(resource, 0) for other in node.pods)


def _affinity(pod: Pod) -> NodeAffinity:
    affinity = pod.spec.affinity
    return (affinity.node_affinity if affinity else None) or NodeAffinity()


def _any_term(selector: NodeSelector, node: OneNode) -> bool:
    return any(_term(term, node) for term in selector.node_selector_terms)


def _term(term: NodeSelectorTerm, node: OneNode) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    for label in term.match_expressions:
        value = node.labels.get(label.key)
        if not is_valid_requirement(label) or not matches_requirement(label, value):
            return False
    for field in term.match_fields:
        if field.key != "metadata.name" or len(field.values) != 1:
            return False
        is_named = field.values[0] == node.name
        if field.operator not in ("In", "NotIn") or is_named != (field.operator == "In"):
            return False
    return True
