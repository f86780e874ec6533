"""The plain twin of InterPodAffinity: for each node it looks at every pod of the cluster again.

It reads the terms from the spec by itself; `test_pod_affinity` says that the two agree.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lowtide.framework.plugin import IntArray, Nodes, Pod, Rejection
from lowtide.objects.kinds import Namespace
from lowtide.objects.matching import matches_selector
from lowtide.objects.node import Node
from lowtide.objects.pod import PodAffinity, PodAffinityTerm

Placed = Sequence[tuple[Node, Pod]]


class PlainInterPodAffinity:
    name = "InterPodAffinity"

    def __init__(self, hard_weight: int, ignores_preferences_of_others: bool) -> None:
        self._hard_weight = hard_weight
        self._ignores_preferences_of_others = ignores_preferences_of_others

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        real = everybody(nodes.everything)
        if not near(pod).required and not away(pod).required and not rejections(pod, real, nodes):
            return
        for position in range(len(nodes)):
            node = nodes.node(position)
            others = [(where, other) for where, other in real if where.name != node.name]
            there = [(node, other) for other in nodes.pods(position)]
            reason = why_not(pod, node, [*others, *there], nodes)
            if reason is not None:
                mask = np.zeros(len(nodes), np.bool_)
                mask[position] = True
                yield Rejection(mask, reason, eviction_helps="anti-affinity" in reason)

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        has_own = bool(near(pod).preferred or away(pod).preferred)
        if self._ignores_preferences_of_others and not has_own:
            return None
        worth: dict[tuple[str, str], int] = {}
        for where, other in everybody(nodes.everything):
            for term, weight in self._weights(pod, other, nodes):
                if term.topology_key in where.labels:
                    pair = (term.topology_key, where.labels[term.topology_key])
                    worth[pair] = worth.get(pair, 0) + weight
        if not worth:
            return None
        labels = [nodes.node(at).labels for at in range(len(nodes))]
        return np.array(
            [sum(worth.get(pair, 0) for pair in each.items()) for each in labels], np.int64
        )

    def _weights(self, pod: Pod, other: Pod, nodes: Nodes) -> Iterator[tuple[PodAffinityTerm, int]]:
        """Of each term that makes these two care for each other."""
        for sign, mine, theirs in ((1, near(pod), near(other)), (-1, away(pod), away(other))):
            for each in mine.preferred:
                if wants(pod, each.pod_affinity_term, other, nodes):
                    yield each.pod_affinity_term, sign * each.weight
            for each in theirs.preferred:
                if is_wanted(pod, each.pod_affinity_term, other, nodes):
                    yield each.pod_affinity_term, sign * each.weight
        for term in near(other).required if self._hard_weight else ():
            if is_wanted(pod, term, other, nodes):
                yield term, self._hard_weight

    def normalize(self, raw: Sequence[int]) -> list[int]:
        """Of feasible nodes."""
        spread = max(raw) - min(raw)
        return [int(100 * ((value - min(raw)) / spread)) if spread else 0 for value in raw]


def why_not(pod: Pod, node: Node, placed: Placed, nodes: Nodes) -> str | None:
    required = near(pod).required
    if any(term.topology_key not in node.labels for term in required):
        return "node(s) didn't match pod affinity rules"
    friends = [
        where
        for where, other in placed
        if required and all(wants(pod, term, other, nodes) for term in required)
    ]
    has_friends = all(any(is_same(term, where, node) for where in friends) for term in required)
    is_first = not any(
        term.topology_key in where.labels for where in friends for term in required
    ) and all(wants(pod, term, pod, nodes) for term in required)
    if not has_friends and not is_first:
        return "node(s) didn't match pod affinity rules"
    for term in away(pod).required:
        for where, other in placed:
            if is_same(term, where, node) and wants(pod, term, other, nodes):
                return "node(s) didn't match pod anti-affinity rules"
    if any(is_same(term, where, node) for where, term in rejections(pod, placed, nodes)):
        return "node(s) didn't satisfy existing pods anti-affinity rules"
    return None


def rejections(pod: Pod, placed: Placed, nodes: Nodes) -> list[tuple[Node, PodAffinityTerm]]:
    """The terms by which others want this pod away, and where they are."""
    return [
        (where, term)
        for where, other in placed
        for term in away(other).required
        if term.topology_key in where.labels and is_wanted(pod, term, other, nodes)
    ]


def wants(pod: Pod, term: PodAffinityTerm, other: Pod, nodes: Nodes) -> bool:
    """Whether a term of the incoming pod is about another."""
    selector = term.namespace_selector
    found = nodes.objects(Namespace).get(("", other.namespace))
    is_inside = (
        other.namespace in listed(pod, term)
        or matches_selector(selector, {})
        or (found is not None and matches_selector(selector, found.metadata.labels))
    )
    return is_inside and matches_selector(term.label_selector, other.labels)


def is_wanted(pod: Pod, term: PodAffinityTerm, owner: Pod, nodes: Nodes) -> bool:
    """Whether a term of a pod that is there is about the incoming one."""
    found = nodes.objects(Namespace).get(("", pod.namespace))
    labels: Mapping[str, str] = found.metadata.labels if found is not None else {}
    is_inside = pod.namespace in listed(owner, term) or matches_selector(
        term.namespace_selector, labels
    )
    return is_inside and matches_selector(term.label_selector, pod.labels)


def listed(owner: Pod, term: PodAffinityTerm) -> list[str]:
    if not term.namespaces and term.namespace_selector is None:
        return [owner.namespace]
    return term.namespaces


def is_same(term: PodAffinityTerm, one: Node, other: Node) -> bool:
    key = term.topology_key
    return key in one.labels and one.labels[key] == other.labels.get(key)


def everybody(nodes: Nodes) -> Placed:
    return [(nodes.node(at), pod) for at in range(len(nodes)) for pod in nodes.pods(at)]


def near(pod: Pod) -> PodAffinity:
    return (pod.spec.affinity and pod.spec.affinity.pod_affinity) or PodAffinity()


def away(pod: Pod) -> PodAffinity:
    return (pod.spec.affinity and pod.spec.affinity.pod_anti_affinity) or PodAffinity()
