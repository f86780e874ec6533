"""Reads `readings.queries` of a scenario: Prometheus's answers to plugins' own queries."""

from collections.abc import Mapping
from typing import Any

from lowtide.scenario.scenario import ScenarioError


def query_values(given: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The values by query, exactly as the plugin spells it, and by node."""
    return {promql: _by_node(promql, by_node) for promql, by_node in given.items()}


def _by_node(promql: str, by_node: Any) -> dict[str, float]:
    where = f"readings.queries[{promql!r}]"
    if not isinstance(by_node, Mapping):
        kind = type(by_node).__name__
        raise ScenarioError(f"{where} must be an object of values by node, not {kind}")
    return {name: _number(f"{where}.{name}", value) for name, value in by_node.items()}


def _number(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScenarioError(f"{where} is {value!r}, not a number")
    try:
        return float(value)
    except OverflowError:
        digits = len(str(value))
        raise ScenarioError(f"{where} has {digits} digits, too many for a number") from None
