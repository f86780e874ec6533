"""Turns `readings.traffic` of a scenario into a TrafficReading."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lowtide.cluster.columns import FloatArray
from lowtide.objects.node import Node
from lowtide.readings.capacity import StatedCapacities
from lowtide.readings.demand import Owners
from lowtide.readings.judging import NOTHING_BEFORE, judged
from lowtide.readings.links import LARGEST_MEASURED, Links, Measured
from lowtide.readings.reading import STATES, State, TrafficReading
from lowtide.readings.request import RECEIVE, TRANSMIT, TrafficRequest, directions
from lowtide.scenario.scenario import ScenarioError

_FIELDS = ("receive", "transmit", "capacity", "age_seconds", "state", "expected", "value")

Given = Mapping[str, Any]


def traffic_reading(request: TrafficRequest, given: Given, nodes: Sequence[Node]) -> TrafficReading:
    """Build the reading. A plain number is a fresh value in the unit of the measure, and never
    implausible.

    `expected` is added to the measured value. The values already include the traffic of the
    scenario's pods. A node that is not in `given` has no reading."""
    for name, of_node in given.items():
        _check(name, of_node)
    by_row = [_fields(given.get(node.name, {})) for node in nodes]
    names = [node.name for node in nodes]
    reading = judged(
        request,
        nodes,
        _links(request, by_row, names),
        NOTHING_BEFORE,
        now=0.0,
        window_seconds=request.window_seconds,
        owners=Owners(),
        stated=StatedCapacities(request.capacities).stated_for(nodes),
    )
    states = [
        _state(fields.get("state"), STATES[code], name)
        for fields, code, name in zip(by_row, reading.state.tolist(), names, strict=True)
    ]
    return replace(
        reading,
        state=np.array([STATES.index(one) for one in states], np.int8),
        sampled_at=math.inf,
    )


def _links(request: TrafficRequest, by_row: Sequence[Given], names: Sequence[str]) -> Links:
    """The links, one per node."""
    at = -_column(by_row, names, "age_seconds", 0.0)
    by_direction = {}
    for name in directions(request):
        value = _in_direction(name, request, by_row, names)
        value = value + _column(by_row, names, "expected", 0.0)
        is_given = np.isfinite(value)
        by_direction[name] = Measured(
            value=np.where(is_given, np.minimum(value, LARGEST_MEASURED), math.nan),
            is_unsound=np.zeros(len(names), np.bool_),
            at=np.where(is_given, at, math.nan),
            is_answered=is_given,
            is_ambiguous=np.zeros(len(names), np.bool_),
        )
    speed = _column(by_row, names, "capacity", math.nan)
    speed = np.where((speed > 0) & np.isfinite(speed), speed, math.nan)
    return Links(
        row=np.arange(len(names)),
        device=("",) * len(names),
        speed=speed,
        by_direction=by_direction,
        fastest=speed,
    )


def _in_direction(
    direction: str, request: TrafficRequest, by_row: Sequence[Given], names: Sequence[str]
) -> FloatArray:
    """The value of this direction, else the one for both. If both directions count and only the
    other one is given, this one is 0."""
    value = _column(by_row, names, "value", math.nan)
    if direction not in (RECEIVE, TRANSMIT):
        return value
    own = _column(by_row, names, direction, math.nan)
    found = np.where(np.isnan(own), value, own)
    if len(directions(request)) == 1:
        return found
    other = TRANSMIT if direction == RECEIVE else RECEIVE
    only_other = np.isnan(found) & ~np.isnan(_column(by_row, names, other, math.nan))
    return np.where(only_other, 0.0, found)


def _column(
    by_row: Sequence[Given], names: Sequence[str], field: str, default: float
) -> FloatArray:
    return np.array(
        [
            default
            if fields.get(field) is None
            else _number(fields[field], f"readings.traffic.{name}.{field}")
            for name, fields in zip(names, by_row, strict=True)
        ],
        np.float64,
    )


def _fields(given: Any) -> Given:
    return given if isinstance(given, Mapping) else {"value": given}


def _check(name: str, given: Any) -> None:
    where = f"readings.traffic.{name}"
    if not isinstance(given, Mapping):
        _number(given, where)
        return
    unknown = set(given) - set(_FIELDS)
    if unknown:
        raise ScenarioError(
            f"{where} has the unknown field {sorted(unknown)[0]!r}; valid are {', '.join(_FIELDS)}"
        )
    for field in _FIELDS:
        if field != "state" and given.get(field) is not None:
            _number(given[field], f"{where}.{field}")


def _state(given: Any, found: State, name: str) -> State:
    if given is None:
        return found
    try:
        return State(given)
    except ValueError:
        states = ", ".join(state.value for state in State)
        raise ScenarioError(
            f"readings.traffic.{name}.state is {given!r}; valid are {states}"
        ) from None


def _number(value: Any, where: str) -> float:
    try:
        if isinstance(value, bool):
            raise TypeError
        return float(value)
    except OverflowError:
        digits = len(str(value))
        raise ScenarioError(f"{where} has {digits} digits, too many for a number") from None
    except (TypeError, ValueError):
        raise ScenarioError(f"{where} is {value!r}, not a number") from None
