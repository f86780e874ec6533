"""What a file says that Prometheus would answer to plugins' own queries."""

from typing import Any

import pytest

from lowtide.scenario.queries import query_values
from lowtide.scenario.scenario import ScenarioError


def test_values_are_by_query_and_by_node() -> None:
    given = {"up": {"a": 1, "b": 0.5}, "node_load1": {}}
    assert query_values(given) == {"up": {"a": 1.0, "b": 0.5}, "node_load1": {}}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param(
            [1], "readings.queries['up'] must be an object of values by node, not list", id="a list"
        ),
        pytest.param({"a": "1"}, "readings.queries['up'].a is '1', not a number", id="a text"),
        pytest.param({"a": True}, "readings.queries['up'].a is True, not a number", id="a truth"),
        pytest.param(
            {"a": 10**400},
            "readings.queries['up'].a has 401 digits, too many for a number",
            id="too large a number",
        ),
    ],
)
def test_values_are_rejected_that_are(given: Any, told: str) -> None:
    with pytest.raises(ScenarioError) as rejection:
        query_values({"up": given})
    assert str(rejection.value) == told
