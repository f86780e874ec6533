"""Finds errors in a label selector that the API server would reject.

Called where plugins read a pod's selectors: a pod with an invalid one is rejected with the error.
"""

import re
from collections.abc import Iterator

from lowtide.objects.meta import LabelRequirement, LabelSelector

_PART = r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?"
_NAME = re.compile(_PART)
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LONGEST_NAME = 63
_LONGEST_PREFIX = 253


def selector_problem(selector: LabelSelector | None, path: str) -> str | None:
    """The first error with its field; None if the selector is valid."""
    return None if selector is None else next(_problems(selector, path), None)


def _problems(selector: LabelSelector, path: str) -> Iterator[str]:
    for key, value in selector.match_labels.items():
        at = f"{path}.matchLabels"
        yield from _problems_of_key(key, at)
        yield from _problems_of_value(value, f"{at}[{key}]")
    for number, requirement in enumerate(selector.match_expressions):
        yield from _problems_of_requirement(requirement, f"{path}.matchExpressions[{number}]")


def _problems_of_requirement(requirement: LabelRequirement, path: str) -> Iterator[str]:
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                text = "for 'in', 'notin' operators, values set can't be empty"
                yield f"{path}.values: Invalid value: []: {text}"
        case "Exists" | "DoesNotExist":
            if requirement.values:
                given = ", ".join(f'"{value}"' for value in requirement.values)
                text = "values set must be empty for exists and does not exist"
                yield f"{path}.values: Invalid value: [{given}]: {text}"
        case _:
            text = f'"{requirement.operator}" is not a valid label selector operator'
            yield f"{path}.operator: {text}"
    yield from _problems_of_key(requirement.key, f"{path}.key")
    for number, value in enumerate(requirement.values):
        yield from _problems_of_value(value, f"{path}.values[{number}]")


def _problems_of_key(key: str, path: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    has_prefix = not slash or (len(prefix) <= _LONGEST_PREFIX and _PREFIX.fullmatch(prefix))
    if not has_prefix or len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        yield f'{path}: Invalid value: "{key}": not a label key such as app or example.com/app'


def _problems_of_value(value: str, path: str) -> Iterator[str]:
    if value and (len(value) > _LONGEST_NAME or not _NAME.fullmatch(value)):
        text = "a label value has at most 63 letters, digits, '-', '_' and '.', "
        text += "and begins and ends with a letter or digit"
        yield f'{path}: Invalid value: "{value}": {text}'
