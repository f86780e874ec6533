"""Tolerations, node selector requirements and label selectors."""

from typing import Any

import msgspec
import pytest

from lowtide.objects.matching import (
    is_tolerated,
    is_valid_requirement,
    matches_all,
    matches_requirement,
    matches_selector,
    tolerates,
)
from lowtide.objects.meta import LabelRequirement, LabelSelector
from lowtide.objects.node import Taint
from lowtide.objects.pod import Toleration

GPU = Taint(key="gpu", value="a100", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "is_match"),
    [
        pytest.param(
            {"key": "gpu", "operator": "Equal", "value": "a100", "effect": "NoSchedule"},
            True,
            id="matches when all is equal",
        ),
        pytest.param({"key": "gpu", "value": "a100"}, True, id="takes no operator for Equal"),
        pytest.param(
            {"key": "gpu", "operator": "Exists"}, True, id="ignores the value with Exists"
        ),
        pytest.param({"operator": "Exists"}, True, id="matches any key without a key"),
        pytest.param(
            {"operator": "Equal", "value": "a100"}, True, id="compares values without a key too"
        ),
        pytest.param({"operator": "Equal", "value": "b"}, False, id="needs the value to be equal"),
        pytest.param({}, False, id="needs an empty value when it is empty"),
        pytest.param(
            {"key": "gpu", "operator": "Exists", "effect": ""}, True, id="matches any effect"
        ),
        pytest.param(
            {"key": "gpu", "operator": "Exists", "effect": "NoExecute"},
            False,
            id="does not match another effect",
        ),
        pytest.param(
            {"operator": "Exists", "effect": "NoExecute"},
            False,
            id="does not match another effect without a key either",
        ),
        pytest.param({"key": "disk", "operator": "Exists"}, False, id="does not match another key"),
        pytest.param(
            {"key": "gpu", "operator": "Lt", "value": "a100"},
            False,
            id="does not know operators that are off by default",
        ),
    ],
)
def test_a_toleration(toleration: dict[str, str], is_match: bool) -> None:
    assert tolerates(msgspec.convert(toleration, Toleration), GPU) is is_match


def test_an_empty_toleration_matches_a_taint_without_value() -> None:
    assert tolerates(Toleration(), Taint(key="gpu", effect="NoSchedule"))


def test_one_toleration_of_several_is_enough() -> None:
    others = [Toleration(key="disk", operator="Exists"), Toleration(key="gpu", operator="Exists")]
    assert is_tolerated(GPU, others)
    assert not is_tolerated(GPU, others[:1])
    assert not is_tolerated(GPU, [])


@pytest.mark.parametrize(
    ("operator", "values", "matching"),
    [
        pytest.param("In", ["a", "5"], {"a", "5"}, id="In wants one of the values"),
        pytest.param("NotIn", ["a"], {"b", "5", "-5", "five", None}, id="NotIn accepts absence"),
        pytest.param("Exists", [], {"a", "b", "5", "-5", "five"}, id="Exists wants any value"),
        pytest.param("DoesNotExist", [], {None}, id="DoesNotExist wants none"),
        pytest.param("Gt", ["4"], {"5"}, id="Gt compares whole numbers"),
        pytest.param("Gt", ["5"], set(), id="Gt rejects the bound itself"),
        pytest.param("Lt", ["5"], {"-5"}, id="Lt compares whole numbers"),
        pytest.param("Lt", ["-4"], {"-5"}, id="Lt takes negative bounds"),
        pytest.param("Gt", ["x"], set(), id="Gt matches nothing without a number"),
        pytest.param("Gt", [], set(), id="Gt matches nothing without a bound"),
        pytest.param("Lt", [str(2**63)], set(), id="Lt matches nothing beyond int64"),
        pytest.param("Like", ["a"], set(), id="an unknown operator matches nothing"),
    ],
)
def test_a_requirement(operator: str, values: list[str], matching: set[str | None]) -> None:
    requirement = LabelRequirement("key", operator, values)
    candidates: list[str | None] = ["a", "b", "5", "-5", "five", None]
    assert {value for value in candidates if matches_requirement(requirement, value)} == matching


@pytest.mark.parametrize(
    ("operator", "values", "is_valid"),
    [
        ("In", ["a"], True),
        ("In", [], False),
        ("NotIn", ["a", "b"], True),
        ("NotIn", [], False),
        ("Exists", [], True),
        ("Exists", ["a"], False),
        ("DoesNotExist", [], True),
        ("DoesNotExist", ["a"], False),
        ("Gt", ["+5"], True),
        ("Gt", ["5", "6"], False),
        ("Gt", ["5.0"], False),
        ("Lt", ["-5"], True),
        ("Lt", [str(2**63)], False),
        ("Lt", [], False),
        ("Like", ["a"], False),
    ],
)
def test_what_kube_can_parse(operator: str, values: list[str], is_valid: bool) -> None:
    assert is_valid_requirement(LabelRequirement("key", operator, values)) is is_valid


@pytest.mark.parametrize(
    ("selector", "is_match"),
    [
        pytest.param(None, False, id="matches nothing when there is none"),
        pytest.param({}, True, id="matches everything when it is empty"),
        pytest.param({"matchLabels": {"app": "web"}}, True, id="wants equal labels"),
        pytest.param({"matchLabels": {"app": "db"}}, False, id="rejects other labels"),
        pytest.param({"matchLabels": {"zone": ""}}, False, id="tells absent from empty"),
        pytest.param(
            {"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]},
            True,
            id="reads expressions",
        ),
        pytest.param(
            {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["back"]}],
            },
            False,
            id="wants labels and expressions",
        ),
    ],
)
def test_a_label_selector(selector: dict[str, Any] | None, is_match: bool) -> None:
    wanted = None if selector is None else msgspec.convert(selector, LabelSelector)
    assert matches_selector(wanted, {"app": "web", "tier": "front"}) is is_match


def test_all_requirements_must_match() -> None:
    is_web = LabelRequirement("app", "In", ["web"])
    has_tier = LabelRequirement("tier", "Exists", [])
    assert matches_all([is_web, has_tier], {"app": "web", "tier": ""})
    assert not matches_all([is_web, has_tier], {"app": "web"})
    assert matches_all([], {})
