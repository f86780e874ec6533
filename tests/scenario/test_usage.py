"""`readings.usage` of a scenario."""

import math
from typing import Any

import msgspec
import pytest

from lowtide.scenario.scenario import ScenarioError
from lowtide.scenario.usage import usage_samples

NAN = "unknown"


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(264, (264, NAN, 0), id="takes a number for millicores"),
        pytest.param("264m", (264, NAN, 0), id="takes a text for a quantity of cpu"),
        pytest.param("2", (2000, NAN, 0), id="takes a text without unit for cores"),
        pytest.param({"cpu": "264m", "memory": "1Gi"}, (264, 2**30, 0), id="takes both resources"),
        pytest.param({"cpu": 2, "memory": 5}, (2000, 5, 0), id="takes bare quantities"),
        pytest.param({"memory": "1Ki", "age_seconds": 7}, (NAN, 1024, -7), id="takes an age"),
    ],
)
def test_one_node(given: Any, want: tuple[Any, ...]) -> None:
    (sample,) = usage_samples({"a": given}).values()
    found = msgspec.structs.astuple(sample)[:3]
    assert tuple(NAN if math.isnan(each) else each for each in found) == want


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(
            True, "readings.usage.a is True; it must be a number, 0 or more", id="a truth"
        ),
        pytest.param(
            -1, "readings.usage.a is -1; it must be a number, 0 or more", id="less than 0"
        ),
        pytest.param(
            math.nan, "readings.usage.a is nan; it must be a number, 0 or more", id="no number"
        ),
        pytest.param(
            10**400,
            "readings.usage.a has 401 digits, too many for a number",
            id="more than any number",
        ),
        pytest.param(
            {"cpu": "-5"},
            "readings.usage.a.cpu: '-5' is negative; it must be a quantity such as 500m, 0 or more",
            id="a negative quantity",
        ),
        pytest.param(
            {"cpus": 1},
            "readings.usage.a has the unknown field 'cpus'; valid are cpu, memory, age_seconds",
            id="another field",
        ),
        pytest.param(
            {"memory": "much"},
            "readings.usage.a.memory: 'much' is not a quantity such as 500m, 2, 1.5Gi or 2e3",
            id="no quantity",
        ),
        pytest.param(
            {"age_seconds": "old"},
            "readings.usage.a.age_seconds is 'old'; it must be a number, 0 or more",
            id="no age",
        ),
    ],
)
def test_rejected(given: Any, want: str) -> None:
    with pytest.raises(ScenarioError) as rejected:
        usage_samples({"a": given})
    assert str(rejected.value) == want
