"""The affinity and anti-affinity terms of a pod, parsed once.

`indexes/existing_terms` keeps the terms of placed pods; InterPodAffinity also reads those of the
pod to place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from lowtide.cluster.pod_selection import PodSelection, requirements_of
from lowtide.objects.matching import matches_all
from lowtide.objects.meta import LabelRequirement, LabelSelector, as_int32
from lowtide.objects.pod import Affinity, Pod, PodAffinityTerm, once
from lowtide.objects.selector_problems import selector_problem

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Purpose(Enum):
    """What a term that a placed pod carries means for another pod that it matches."""

    ATTRACTS = "required affinity"
    REJECTS = "required anti-affinity"
    WEIGHS = "preferred, for or against"


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """The pods that a term matches, and the node label whose values are the domains.

    `selection` holds the listed namespaces; it is None if no pod can match. `of_namespaces` is what
    the term's namespaceSelector requires of other namespaces; None if these never match.
    """

    topology_key: str
    selection: PodSelection | None
    of_namespaces: tuple[LabelRequirement, ...] | None = None

    def __hash__(self) -> int:
        others = self.of_namespaces
        keys = None if others is None else tuple((each.key, each.operator) for each in others)
        return hash((self.topology_key, self.selection, keys))

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Whether the term matches the pod, whose namespace has these labels."""
        if self.selection is None:
            return False
        return (
            pod.namespace in (self.selection.namespaces or ())
            or self.matches_namespace(namespace_labels)
        ) and matches_all(self.selection.requirements, pod.labels)

    def matches_namespace(self, labels: Mapping[str, str]) -> bool:
        """Whether a namespace with these labels matches though it is not listed."""
        return self.of_namespaces is not None and matches_all(self.of_namespaces, labels)


@dataclass(frozen=True, slots=True)
class Preference:
    """A preferred term; the weight is negative for anti-affinity."""

    weight: int
    term: AffinityTerm


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All terms of a pod. A list with an invalid term is empty, and `problems` says why."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferences: tuple[Preference, ...] = ()
    problems: tuple[str, ...] = ()

    def carried(self) -> Iterator[tuple[Purpose, int, AffinityTerm]]:
        """What the terms mean for later pods: (purpose, weight, term), 0 for a required term."""
        for term in self.affinity:
            yield Purpose.ATTRACTS, 0, term
        for term in self.anti_affinity:
            yield Purpose.REJECTS, 0, term
        for preference in self.preferences:
            yield Purpose.WEIGHS, preference.weight, preference.term


NO_TERMS = PodTerms()


def has_affinity_terms(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)


def read_terms(pod: Pod) -> PodTerms:
    affinity = pod.spec.affinity
    if affinity is None or not has_affinity_terms(pod):
        return NO_TERMS
    return _Reader(pod).read(affinity)


# `read_terms`, cached on the pod: for the pod that represents its signature in many evaluations.
terms_of = once(read_terms)


class _Reader:
    """Parses one pod's terms and collects problems."""

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self._problems: list[str] = []

    def read(self, affinity: Affinity) -> PodTerms:
        near, far = affinity.pod_affinity, affinity.pod_anti_affinity
        wanted = near.preferred if near else []
        unwanted = far.preferred if far else []
        required = self._terms(
            near.required if near else [], "requiredAffinityTerms", f"podAffinity.{_REQUIRED}[{{}}]"
        )
        rejected = self._terms(
            far.required if far else [],
            "requiredAntiAffinityTerms",
            f"podAntiAffinity.{_REQUIRED}[{{}}]",
        )
        preferred = self._terms(
            [each.pod_affinity_term for each in wanted],
            "preferredAffinityTerms",
            f"podAffinity.{_PREFERRED}[{{}}].podAffinityTerm",
        )
        disliked = self._terms(
            [each.pod_affinity_term for each in unwanted],
            "preferredAntiAffinityTerms",
            f"podAntiAffinity.{_PREFERRED}[{{}}].podAffinityTerm",
        )
        return PodTerms(
            affinity=required,
            anti_affinity=rejected,
            preferences=(
                *(
                    Preference(as_int32(given.weight), term)
                    for given, term in zip(wanted, preferred, strict=False)
                ),
                *(
                    Preference(-as_int32(given.weight), term)
                    for given, term in zip(unwanted, disliked, strict=False)
                ),
            ),
            problems=tuple(self._problems),
        )

    def _terms(
        self, given: Sequence[PodAffinityTerm], called: str, path: str
    ) -> tuple[AffinityTerm, ...]:
        """Empty if one term is invalid: kube-scheduler then uses none of the list either."""
        for number, term in enumerate(given):
            problem = selector_problem(term.label_selector, "labelSelector")
            problem = problem or selector_problem(term.namespace_selector, "namespaceSelector")
            if problem is not None:
                at = f"spec.affinity.{path.format(number)}"
                self._problems.append(f"{called}: {at}.{problem}")
                return ()
        return tuple(self._term(term) for term in given)

    def _term(self, given: PodAffinityTerm) -> AffinityTerm:
        """`matchLabelKeys` need no work: the API server has merged them into the selector."""
        is_own = not given.namespaces and given.namespace_selector is None
        selection = None
        if given.label_selector is not None:
            selection = PodSelection.from_requirements(
                requirements_of(given.label_selector),
                namespaces=[self._pod.namespace] if is_own else given.namespaces,
                counts_terminating=True,
            )
        others = given.namespace_selector
        return AffinityTerm(
            topology_key=given.topology_key,
            selection=selection,
            of_namespaces=None if others is None else _in_order(others),
        )


def _in_order(selector: LabelSelector) -> tuple[LabelRequirement, ...]:
    """The selector's requirements in a fixed order, so that equal selectors compare equal."""
    return PodSelection.from_requirements(
        requirements_of(selector), namespaces=None, counts_terminating=True
    ).requirements
