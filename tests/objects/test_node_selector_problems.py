"""What is wrong with node affinity, told with its field."""

from typing import Any

import msgspec
import pytest

from lowtide.objects.node_selector_problems import node_affinity_problem
from lowtide.objects.pod import NodeAffinity

TERMS = "p.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
FIRST = f"{TERMS}[0].matchExpressions[0]"


def expression(operator: str, *values: str, key: str = "zone") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}


def field(operator: str, *values: str, key: str = "metadata.name") -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": operator, "values": values}]}


def problem(required: list[Any], preferred: list[Any] | None = None) -> str | None:
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": required},
        "preferredDuringSchedulingIgnoredDuringExecution": preferred or [],
    }
    return node_affinity_problem(msgspec.convert(affinity, NodeAffinity), "p")


@pytest.mark.parametrize(
    "term",
    [
        pytest.param(expression("In", "a", "b"), id="a set of values"),
        pytest.param(expression("DoesNotExist"), id="no value where none is needed"),
        pytest.param(expression("Gt", "-3"), id="a whole number"),
        pytest.param(field("In", "a", "b"), id="names of nodes"),
        pytest.param({}, id="an empty term"),
    ],
)
def test_accepts(term: dict[str, Any]) -> None:
    assert problem([term], [{"weight": 1, "preference": term}]) is None


@pytest.mark.parametrize(
    ("term", "told"),
    [
        pytest.param(
            expression("Near"),
            '.operator: Invalid value: "Near": not a valid selector operator; '
            "valid are In, NotIn, Exists, DoesNotExist, Gt, Lt",
            id="an unknown operator",
        ),
        pytest.param(
            expression("In"),
            ".values: Invalid value: []: In needs at least one value",
            id="an empty set",
        ),
        pytest.param(
            expression("Exists", "a"),
            ".values: Invalid value: ['a']: Exists takes no value",
            id="a value too many",
        ),
        pytest.param(
            expression("Lt", "few"),
            ".values: Invalid value: ['few']: Lt takes one whole number",
            id="no whole number",
        ),
        pytest.param(
            expression("Exists", key=""),
            ".key: Required value: a label key such as app or example.com/app",
            id="a missing key",
        ),
    ],
)
def test_names_in_an_expression(term: dict[str, Any], told: str) -> None:
    assert problem([term]) == FIRST + told


@pytest.mark.parametrize(
    ("term", "told"),
    [
        pytest.param(
            field("In", "a", key="spec.x"),
            '.key: Invalid value: "spec.x": only metadata.name is supported',
            id="another key",
        ),
        pytest.param(
            field("Exists"),
            '.operator: Invalid value: "Exists": not a valid selector operator; '
            "valid are In, NotIn",
            id="an operator of labels",
        ),
        pytest.param(field("In"), ".values: Required value: name a node", id="no name"),
    ],
)
def test_names_in_a_field(term: dict[str, Any], told: str) -> None:
    assert problem([{}, term]) == f"{TERMS}[1].matchFields[0]{told}"


def test_preferences_are_looked_at_too() -> None:
    preferred = [{"weight": 1, "preference": expression("In")}]
    assert problem([], preferred) == (
        "p.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0]"
        ".values: Invalid value: []: In needs at least one value"
    )
