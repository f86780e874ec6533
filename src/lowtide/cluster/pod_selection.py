"""Which pods a plugin counts or a term matches: by labels, by namespaces, terminating or not."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lowtide.objects.matching import matches_all
from lowtide.objects.meta import LabelRequirement, LabelSelector
from lowtide.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class PodSelection:
    """The pods that meet all requirements, in these namespaces; None stands for every namespace."""

    requirements: tuple[LabelRequirement, ...]
    namespaces: frozenset[str] | None
    counts_terminating: bool
    _hash: int = field(init=False, repr=False, compare=False)  # computed once: it is used often

    def __post_init__(self) -> None:
        requirements = tuple([(r.key, r.operator, tuple(r.values)) for r in self.requirements])
        hashed = hash((requirements, self.namespaces, self.counts_terminating))
        object.__setattr__(self, "_hash", hashed)

    @classmethod
    def from_requirements(
        cls,
        requirements: Iterable[LabelRequirement],
        *,
        namespaces: Iterable[str] | None,
        counts_terminating: bool,
    ) -> "PodSelection":
        """The same requirements give an equal selection, whatever their order."""
        return cls(
            requirements=tuple(sorted(requirements, key=_order)),
            namespaces=None if namespaces is None else frozenset(namespaces),
            counts_terminating=counts_terminating,
        )

    def __hash__(self) -> int:
        return self._hash

    def matches(self, pod: Pod) -> bool:
        """Whether the pod is selected, terminating or not."""
        is_inside = self.namespaces is None or pod.namespace in self.namespaces
        return is_inside and matches_all(self.requirements, pod.labels)

    def counts(self, pod: Pod) -> bool:
        return (self.counts_terminating or not pod.is_terminating) and self.matches(pod)

    @property
    def labels(self) -> Iterator[tuple[str, str]]:
        """Labels that every selected pod has."""
        for each in self.requirements:
            if each.operator == "In" and len(each.values) == 1:
                yield each.key, each.values[0]


def requirements_of(selector: LabelSelector) -> tuple[LabelRequirement, ...]:
    """The whole selector as requirements, `matchLabels` included."""
    return (*labels_required(selector.match_labels), *selector.match_expressions)


def labels_required(labels: Mapping[str, str]) -> tuple[LabelRequirement, ...]:
    """These labels with these values, as requirements."""
    return tuple(LabelRequirement(key, "In", [value]) for key, value in labels.items())


def _order(requirement: LabelRequirement) -> tuple[str, str, list[str]]:
    return (requirement.key, requirement.operator, requirement.values)
