"""What a pod asks of the pods around it: the terms of its affinity and anti-affinity, read once.

`indexes/existing_terms` keeps those of placed pods; InterPodAffinity reads those of the pod to be
placed.
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
    """What a term that a pod carries means for another pod that it matches."""

    ATTRACTS = "required affinity"
    REJECTS = "required anti-affinity"
    WEIGHS = "preferred, for or against"


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Some pods, by labels and namespace, and the label of nodes that tells domains apart.

    `selection` holds the namespaces that are listed, and is None where no pod can match;
    `of_namespaces` are the labels that any other namespace needs, None where no other is meant.
    """

    topology_key: str
    selection: PodSelection | None
    of_namespaces: tuple[LabelRequirement, ...] | None = None

    def __hash__(self) -> int:
        others = self.of_namespaces
        keys = None if others is None else tuple((each.key, each.operator) for each in others)
        return hash((self.topology_key, self.selection, keys))

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Whether this is about the pod, whose namespace has these labels."""
        if self.selection is None:
            return False
        return (
            pod.namespace in (self.selection.namespaces or ())
            or self.matches_namespace(namespace_labels)
        ) and matches_all(self.selection.requirements, pod.labels)

    def matches_namespace(self, labels: Mapping[str, str]) -> bool:
        """Whether a namespace with these labels is meant though it is not listed."""
        return self.of_namespaces is not None and matches_all(self.of_namespaces, labels)


@dataclass(frozen=True, slots=True)
class Preference:
    """A preferred term; the weight is below 0 where the pod would rather not be there."""

    weight: int
    term: AffinityTerm


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All terms of a pod. A list with a term that makes no sense is empty, and has a problem."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferences: tuple[Preference, ...] = ()
    problems: tuple[str, ...] = ()

    def carried(self) -> Iterator[tuple[Purpose, int, AffinityTerm]]:
        """What they mean for pods that come later, with weights where they weigh."""
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


# The same, for the pod that stands for its signature and is asked about again and again.
terms_of = once(read_terms)


class _Reader:
    """Reads one pod's terms and notes what is wrong with them."""

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
        """None of them where one makes no sense: kube-scheduler then goes by none either."""
        for number, term in enumerate(given):
            problem = selector_problem(term.label_selector, "labelSelector")
            problem = problem or selector_problem(term.namespace_selector, "namespaceSelector")
            if problem is not None:
                at = f"spec.affinity.{path.format(number)}"
                self._problems.append(f"{called}: {at}.{problem}")
                return ()
        return tuple(self._term(term) for term in given)

    def _term(self, given: PodAffinityTerm) -> AffinityTerm:
        """The keys of `matchLabelKeys` are in the selector already: the API server put them in."""
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
    """The same selector gives the same requirements, in whatever order they were written."""
    return PodSelection.from_requirements(
        requirements_of(selector), namespaces=None, counts_terminating=True
    ).requirements
