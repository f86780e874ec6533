"""What is said of a label selector that makes no sense."""

from typing import Any

import msgspec
import pytest

from lowtide.objects.meta import LabelSelector
from lowtide.objects.selector_problems import selector_problem

KEY = "not a label key such as app or example.com/app"
VALUE = (
    "a label value has at most 63 letters, digits, '-', '_' and '.', "
    "and begins and ends with a letter or digit"
)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        pytest.param({}, None, id="accepts an empty selector"),
        pytest.param({"matchLabels": {"app": ""}}, None, id="accepts an empty value"),
        pytest.param(
            {"matchLabels": {"example.com/app": "a.b_c-1"}}, None, id="accepts a key with a prefix"
        ),
        pytest.param(expression("app", "In", "a", "b"), None, id="accepts In with values"),
        pytest.param(expression("app", "Exists"), None, id="accepts Exists"),
        pytest.param({"matchLabels": {"a" * 63: "b" * 63}}, None, id="accepts 63 letters"),
        pytest.param(
            expression("app", "In"),
            "at.matchExpressions[0].values: Invalid value: []: "
            "for 'in', 'notin' operators, values set can't be empty",
            id="rejects In without values",
        ),
        pytest.param(
            expression("app", "DoesNotExist", "a", "b"),
            'at.matchExpressions[0].values: Invalid value: ["a", "b"]: '
            "values set must be empty for exists and does not exist",
            id="rejects DoesNotExist with values",
        ),
        pytest.param(
            expression("app", "Gt", "5"),
            'at.matchExpressions[0].operator: "Gt" is not a valid label selector operator',
            id="rejects an operator of node selectors",
        ),
        pytest.param(
            expression("", "Exists"),
            f'at.matchExpressions[0].key: Invalid value: "": {KEY}',
            id="rejects an empty key",
        ),
        pytest.param(
            expression("app", "NotIn", "a", "b c"),
            f'at.matchExpressions[0].values[1]: Invalid value: "b c": {VALUE}',
            id="rejects a value with a blank",
        ),
        pytest.param(
            {"matchLabels": {"a/b/c": "x"}},
            f'at.matchLabels: Invalid value: "a/b/c": {KEY}',
            id="rejects a key with two slashes",
        ),
        pytest.param(
            {"matchLabels": {"/app": "x"}},
            f'at.matchLabels: Invalid value: "/app": {KEY}',
            id="rejects an empty prefix",
        ),
        pytest.param(
            {"matchLabels": {"a" * 64: "x"}},
            f'at.matchLabels: Invalid value: "{"a" * 64}": {KEY}',
            id="rejects a key of 64 letters",
        ),
        pytest.param(
            {"matchLabels": {"app": "-x"}},
            f'at.matchLabels[app]: Invalid value: "-x": {VALUE}',
            id="rejects a value that begins with a dash",
        ),
    ],
)
def test_problem(selector: dict[str, Any], problem: str | None) -> None:
    assert selector_problem(msgspec.convert(selector, LabelSelector), "at") == problem


def test_there_is_nothing_wrong_with_no_selector() -> None:
    assert selector_problem(None, "at") is None
