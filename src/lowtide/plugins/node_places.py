"""NodePlaces: the nodes whose labels match the affinity of a volume, the topology of a storage
class, or the selector of a capacity. Used by `volume_finding`.

Thousands of volumes may each name one node, so such nodes are looked up instead of matched."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from lowtide.cluster.pod_selection import requirements_of
from lowtide.framework.plugin import BoolArray, Nodes
from lowtide.objects.matching import is_valid_requirement
from lowtide.objects.meta import LabelRequirement, LabelSelector
from lowtide.objects.pod import NodeSelectorTerm
from lowtide.objects.storage import TopologySelectorTerm, VolumeNodeAffinity

Positions = npt.NDArray[np.intp]


class NodePlaces:
    """Matches the nodes of one Nodes; caches a lookup by label."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._everywhere = np.arange(len(nodes))
        self._lookups: dict[str, Callable[[str], Positions]] = {}

    def has_access(self, affinity: VolumeNodeAffinity | None) -> BoolArray:
        """By position: whether a volume with this affinity can be used there."""
        if affinity is None or affinity.required is None:
            return np.ones(len(self._nodes), np.bool_)
        return self._meets(map(_requirements_of, affinity.required.node_selector_terms))

    def with_access(self, affinity: VolumeNodeAffinity | None) -> Positions:
        """The positions where a volume with this affinity can be used. Fast for many volumes."""
        if affinity is None or affinity.required is None:
            return self._everywhere
        terms = affinity.required.node_selector_terms
        if len(terms) == 1 and not terms[0].match_fields and _is_label(terms[0].match_expressions):
            # Nearly all of thousands of volumes look like this, so it must be fast.
            return self._with_label(terms[0].match_expressions[0])
        return np.flatnonzero(self.has_access(affinity))

    def in_topologies(self, terms: Sequence[TopologySelectorTerm]) -> BoolArray:
        """By position: whether a storage class with these topologies can provision a volume
        there."""
        if not terms:
            return np.ones(len(self._nodes), np.bool_)
        return self._meets(
            [LabelRequirement(e.key, "In", e.values) for e in term.match_label_expressions]
            for term in terms
        )

    def matching(self, selector: LabelSelector | None) -> Positions:
        """The matching positions. No selector matches no node; an empty one matches all."""
        if selector is None:
            return self._everywhere[:0]
        requirements = requirements_of(selector)
        if _is_label(requirements):
            return self._with_label(requirements[0])
        return np.flatnonzero(self._meets([requirements])) if requirements else self._everywhere

    def _meets(self, terms: Iterable[Sequence[LabelRequirement] | None]) -> BoolArray:
        """By position: whether all requirements of some term match. An empty or invalid term
        matches nothing."""
        found = np.zeros(len(self._nodes), np.bool_)
        for term in terms:
            if term and all(map(is_valid_requirement, term)):
                found |= np.logical_and.reduce([self._nodes.label_matches(each) for each in term])
        return found

    def _with_label(self, requirement: LabelRequirement) -> Positions:
        lookup = self._lookups.get(requirement.key)
        if lookup is None:
            lookup = self._lookups[requirement.key] = self._lookup(requirement.key)
        if len(requirement.values) == 1:
            return lookup(requirement.values[0])
        return np.concatenate([lookup(value) for value in dict.fromkeys(requirement.values)])

    def _lookup(self, key: str) -> Callable[[str], Positions]:
        """A function from a value of the label to the positions that have it."""
        numbers, values = self._nodes.label_numbers(key)
        number_of = self._nodes.label_number_of(key)
        order = np.argsort(numbers, kind="stable")
        starts = np.searchsorted(numbers[order], np.arange(len(values) + 1)).tolist()
        nowhere = order[:0]

        def positions(value: str) -> Positions:
            number = number_of(value)
            return nowhere if number is None else order[starts[number] : starts[number + 1]]

        return positions


def _is_label(requirements: Sequence[LabelRequirement]) -> bool:
    """Whether the only requirement is one label In some values."""
    return (
        len(requirements) == 1 and requirements[0].operator == "In" and requirements[0].values != []
    )


def _requirements_of(term: NodeSelectorTerm) -> Sequence[LabelRequirement] | None:
    """The label requirements of a term; None if it can match no node. Volume affinity does not see
    node names: `In` never matches, `NotIn` always does."""
    if any(field.operator != "NotIn" for field in term.match_fields):
        return None
    return term.match_expressions or (_ANY_NODE if term.match_fields else ())


_ANY_NODE = (LabelRequirement("", "DoesNotExist"),)
