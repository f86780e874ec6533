"""Matches tolerations against taints, and node and label selectors against labels."""

from collections.abc import Iterable, Mapping, Sequence

from lowtide.objects.meta import LabelRequirement, LabelSelector
from lowtide.objects.node import Taint
from lowtide.objects.pod import Toleration

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def matches_requirement(requirement: LabelRequirement, value: str | None) -> bool:
    """True if the label's value meets the requirement; None means that the label is absent."""
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compare(requirement, value)
        case _:
            return False


def is_valid_requirement(requirement: LabelRequirement) -> bool:
    """True if Kubernetes can parse it as a node selector requirement. A term with an invalid
    requirement matches nothing."""
    match requirement.operator:
        case "In" | "NotIn":
            return bool(requirement.values)
        case "Exists" | "DoesNotExist":
            return not requirement.values
        case "Gt" | "Lt":
            return len(requirement.values) == 1 and _whole_number(requirement.values[0]) is not None
        case _:
            return False


def matches_selector(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """True if the selector matches. None matches nothing, an empty selector everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return matches_all(selector.match_expressions, labels)


def matches_all(requirements: Sequence[LabelRequirement], labels: Mapping[str, str]) -> bool:
    return all(matches_requirement(each, labels.get(each.key)) for each in requirements)


def _compare(requirement: LabelRequirement, value: str | None) -> bool:
    have, bound = _whole_number(value), _whole_number(*requirement.values[:1])
    if have is None or bound is None:
        return False
    return have > bound if requirement.operator == "Gt" else have < bound


def _whole_number(text: str | None = None) -> int | None:
    if text is None:
        return None
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None
