"""The `readings` of a scenario as the readings that rules are given."""

import math
from collections.abc import Mapping
from typing import Any

from lowtide.readings.reading import NodeReading, State, TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.scenario.scenario import ScenarioError

_FIELDS = ("receive", "transmit", "capacity", "age_seconds", "state", "expected", "value")


def traffic_reading(request: TrafficRequest, given: Mapping[str, Any]) -> TrafficReading:
    """Plain values are in the unit of the measure, fresh, and never judged implausible."""
    by_node = {name: _one(request, name, value) for name, value in given.items()}
    return TrafficReading(request=request, published_at=0.0, version=1, by_node=by_node)


def _one(request: TrafficRequest, name: str, given: Any) -> NodeReading:
    where = f"readings.traffic.{name}"
    if not isinstance(given, Mapping):
        return NodeReading(value=_number(given, where), at=0.0, state=State.FRESH)
    unknown = set(given) - set(_FIELDS)
    if unknown:
        raise ScenarioError(f"{where} has {sorted(unknown)[0]!r}; it may have {', '.join(_FIELDS)}")
    receive = _optional(given, "receive", where)
    transmit = _optional(given, "transmit", where)
    value = _optional(given, "value", where)
    if value is None:
        value = _in_direction(request, receive, transmit)
    age = _optional(given, "age_seconds", where) or 0.0
    return NodeReading(
        value=value,
        receive=receive,
        transmit=transmit,
        capacity_bytes_per_second=_optional(given, "capacity", where),
        at=-age,
        state=_state(given.get("state"), value, age > request.stale_after_seconds, where),
        expected=_optional(given, "expected", where) or 0.0,
    )


def _in_direction(request: TrafficRequest, receive: float | None, transmit: float | None) -> float:
    known = [amount for amount in (receive, transmit) if amount is not None]
    match request.direction:
        case "receive":
            known = [] if receive is None else [receive]
        case "transmit":
            known = [] if transmit is None else [transmit]
    if not known:
        return math.nan
    return sum(known) if request.direction == "sum" else max(known)


def _state(said: Any, value: float, is_old: bool, where: str) -> State:
    if said is not None:
        try:
            return State(said)
        except ValueError:
            states = ", ".join(state.value for state in State)
            raise ScenarioError(f"{where}.state is {said!r}; right would be {states}") from None
    if math.isnan(value):
        return State.MISSING
    return State.STALE if is_old else State.FRESH


def _optional(given: Mapping[str, Any], field: str, where: str) -> float | None:
    value = given.get(field)
    return None if value is None else _number(value, f"{where}.{field}")


def _number(value: Any, where: str) -> float:
    try:
        if isinstance(value, bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise ScenarioError(f"{where} is {value!r}, not a number") from None
