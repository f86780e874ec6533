"""NodeAffinity: applies the pod's nodeSelector, its required and preferred node affinity, and the
configuration's `addedAffinity`, which holds for every pod."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from lowtide.framework.plugin import (
    NODE,
    BoolArray,
    Change,
    IntArray,
    Nodes,
    Pod,
    PodRejection,
    Rejection,
)
from lowtide.objects.matching import is_valid_requirement, matches_all, matches_requirement
from lowtide.objects.meta import LabelRequirement, as_int32
from lowtide.objects.node import Node
from lowtide.objects.node_selector_problems import node_affinity_problem
from lowtide.objects.pod import NodeAffinity as Affinity
from lowtide.objects.pod import NodeSelector, NodeSelectorTerm, PreferredNodeTerm


class NodeAffinityArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    added_affinity: Affinity | None = None
    """Node affinity added to that of every pod of the profile. Same form as a pod's
    `spec.affinity.nodeAffinity`."""


class NodeAffinity:
    name = "NodeAffinity"
    retry_on = NODE
    scale = "highest_best"
    args = NodeAffinityArgs

    def __init__(self, args: NodeAffinityArgs) -> None:
        self._added = args.added_affinity or Affinity()

    def concerns(self, pod: Pod) -> bool:
        affinity = pod.spec.affinity
        has_own = affinity is not None and affinity.node_affinity is not None
        return has_own or bool(pod.spec.node_selector) or self._added != Affinity()

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | frozenset[str] | None:
        """If every required term names nodes, narrow the search to these names."""
        problem = _problem(pod)
        if problem is not None:
            return PodRejection(problem)
        required = _required(pod)
        if required is None:
            return None
        names_by_term = [_named_nodes(term) for term in required.node_selector_terms]
        if not names_by_term or any(names is None for names in names_by_term):
            return None
        names = frozenset(name for names in names_by_term for name in names or ())
        return names or PodRejection("pod affinity terms conflict")

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        added = None
        if self._added.required is not None:
            added = _matches_any(self._added.required.node_selector_terms, nodes)
            yield Rejection(~added, "node(s) didn't match scheduler-enforced node affinity")
        matches = matches_required(pod, nodes)
        if matches is not None:
            # A node that the added affinity rejects does not get this reason too.
            rejected = ~matches if added is None else added & ~matches
            yield Rejection(rejected, "node(s) didn't match Pod's node affinity/selector")

    def may_help(self, pod: Pod, change: Change) -> bool:
        return change.is_of_taints or change.is_new(lambda node: self._accepts(pod, node))

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        terms = [*_preferred(pod), *self._added.preferred]
        if not terms:
            return None
        scores = np.zeros(len(nodes), np.int64)
        for term in terms:
            if term.weight:
                scores += as_int32(term.weight) * _matches_term(term.preference, nodes)
        return scores

    def _accepts(self, pod: Pod, node: Node) -> bool:
        selector = pod.spec.node_selector.items()
        required = [each for each in (self._added.required, _required(pod)) if each is not None]
        return all(node.labels.get(key) == value for key, value in selector) and all(
            any(_is_met(term, node) for term in each.node_selector_terms) for each in required
        )


def matches_required(pod: Pod, nodes: Nodes) -> BoolArray | None:
    """By position: whether the pod's nodeSelector and required affinity match. None if it has
    neither."""
    required = _required(pod)
    if required is None and not pod.spec.node_selector:
        return None
    matches = np.ones(len(nodes), np.bool_)
    for key, value in pod.spec.node_selector.items():
        matches &= nodes.label_matches(LabelRequirement(key, "In", [value]))
    if required is not None:
        matches &= _matches_any(required.node_selector_terms, nodes)
    return matches


def _problem(pod: Pod) -> str | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return node_affinity_problem(affinity.node_affinity, "spec.affinity.nodeAffinity")


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    return affinity.node_affinity.required if affinity and affinity.node_affinity else None


def _preferred(pod: Pod) -> list[PreferredNodeTerm]:
    affinity = pod.spec.affinity
    return affinity.node_affinity.preferred if affinity and affinity.node_affinity else []


def _named_nodes(term: NodeSelectorTerm) -> set[str] | None:
    """The node names that a term allows by `metadata.name In`; None if it does not name nodes."""
    named = [
        set(field.values)
        for field in term.match_fields
        if field.key == "metadata.name" and field.operator == "In"
    ]
    return set.intersection(*named) if named else None


def _matches_any(terms: Sequence[NodeSelectorTerm], nodes: Nodes) -> BoolArray:
    matches = np.zeros(len(nodes), np.bool_)
    for term in terms:
        matches |= _matches_term(term, nodes)
    return matches


def _matches_term(term: NodeSelectorTerm, nodes: Nodes) -> BoolArray:
    """By position: whether all requirements match. An empty or invalid term matches nothing."""
    if not _is_usable(term):
        return np.zeros(len(nodes), np.bool_)
    matches = np.ones(len(nodes), np.bool_)
    for requirement in term.match_expressions:
        matches &= nodes.label_matches(requirement)
    for requirement in term.match_fields:
        is_named = nodes.is_named(requirement.values[0])
        matches &= is_named if requirement.operator == "In" else ~is_named
    return matches


def _is_met(term: NodeSelectorTerm, node: Node) -> bool:
    """The same for one node."""
    return (
        _is_usable(term)
        and matches_all(term.match_expressions, node.labels)
        and all(matches_requirement(each, node.name) for each in term.match_fields)
    )


def _is_usable(term: NodeSelectorTerm) -> bool:
    fields_are_usable = all(
        field.key == "metadata.name"
        and field.operator in ("In", "NotIn")
        and len(field.values) == 1
        for field in term.match_fields
    )
    return (
        bool(term.match_expressions or term.match_fields)
        and fields_are_usable
        and all(is_valid_requirement(each) for each in term.match_expressions)
    )
