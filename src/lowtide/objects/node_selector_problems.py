"""Finds errors in a pod's node affinity that the API server would reject.

The plugin NodeAffinity rejects such a pod everywhere: honoring only the valid part could place it
on a wrong node.
"""

from collections.abc import Iterator

from lowtide.objects.matching import is_valid_requirement
from lowtide.objects.meta import LabelRequirement
from lowtide.objects.pod import NodeAffinity, NodeSelectorTerm

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_FIELD = "metadata.name"


def node_affinity_problem(affinity: NodeAffinity, path: str) -> str | None:
    """The first error with its field; None if the affinity is valid."""
    return next(_problems(affinity, path), None)


def _problems(affinity: NodeAffinity, path: str) -> Iterator[str]:
    if affinity.required is not None:
        at = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for number, term in enumerate(affinity.required.node_selector_terms):
            yield from _problems_of_term(term, f"{at}[{number}]")
    at = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
    for number, preferred in enumerate(affinity.preferred):
        yield from _problems_of_term(preferred.preference, f"{at}[{number}].preference")


def _problems_of_term(term: NodeSelectorTerm, path: str) -> Iterator[str]:
    for number, requirement in enumerate(term.match_expressions):
        yield from _problems_of_expression(requirement, f"{path}.matchExpressions[{number}]")
    for number, requirement in enumerate(term.match_fields):
        yield from _problems_of_field(requirement, f"{path}.matchFields[{number}]")


def _problems_of_expression(requirement: LabelRequirement, path: str) -> Iterator[str]:
    if not requirement.key:
        yield f"{path}.key: Required value: a label key such as app or example.com/app"
    elif requirement.operator not in _OPERATORS:
        yield f"{path}.operator: {_unknown(requirement.operator, _OPERATORS)}"
    elif not is_valid_requirement(requirement):
        yield f"{path}.values: Invalid value: {requirement.values}: {_wanted(requirement.operator)}"


def _problems_of_field(requirement: LabelRequirement, path: str) -> Iterator[str]:
    if requirement.key != _FIELD:
        yield f'{path}.key: Invalid value: "{requirement.key}": only {_FIELD} is supported'
    elif requirement.operator not in _FIELD_OPERATORS:
        yield f"{path}.operator: {_unknown(requirement.operator, _FIELD_OPERATORS)}"
    elif not requirement.values:
        yield f"{path}.values: Required value: name a node"


def _unknown(operator: str, known: tuple[str, ...]) -> str:
    operators = ", ".join(known)
    return f'Invalid value: "{operator}": not a valid selector operator; valid are {operators}'


def _wanted(operator: str) -> str:
    if operator in ("In", "NotIn"):
        return f"{operator} needs at least one value"
    return f"{operator} takes {'one whole number' if operator in ('Gt', 'Lt') else 'no value'}"
