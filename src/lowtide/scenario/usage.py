"""Turns `readings.usage` of a scenario into samples as metrics-server returns them."""

from collections.abc import Mapping
from typing import Any

from lowtide.objects.quantity import QuantityError, parse_nano
from lowtide.objects.requests import CPU, MEMORY
from lowtide.readings.usage import UsageSample, amount_of
from lowtide.scenario.scenario import ScenarioError

AGE = "age_seconds"
_FIELDS = (CPU, MEMORY, AGE)


def usage_samples(given: Mapping[str, Any]) -> dict[str, UsageSample]:
    """The samples at time 0, by node. A plain number is millicores; strings and fields are
    quantities."""
    return {name: _one(f"readings.usage.{name}", value) for name, value in given.items()}


def _one(where: str, given: Any) -> UsageSample:
    if isinstance(given, str):
        given = {CPU: given}
    elif not isinstance(given, Mapping):
        return UsageSample(cpu_milli=_number(where, given), at=0.0)
    unknown = sorted(set(given) - set(_FIELDS))
    if unknown:
        raise ScenarioError(
            f"{where} has the unknown field {unknown[0]!r}; valid are {', '.join(_FIELDS)}"
        )
    for resource in (CPU, MEMORY):
        if resource in given:
            _check_quantity(f"{where}.{resource}", given[resource])
    return UsageSample(
        cpu_milli=amount_of(given, CPU),
        memory_bytes=amount_of(given, MEMORY),
        at=-_number(f"{where}.{AGE}", given.get(AGE, 0)),
    )


def _number(where: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not given >= 0:
        raise ScenarioError(f"{where} is {given!r}; it must be a number, 0 or more")
    try:
        return float(given)
    except OverflowError:
        digits = len(str(given))
        raise ScenarioError(f"{where} has {digits} digits, too many for a number") from None


def _check_quantity(where: str, given: Any) -> None:
    try:
        nano = parse_nano(given)
    except (QuantityError, TypeError) as error:
        raise ScenarioError(f"{where}: {error}") from None
    if nano < 0:
        right = "it must be a quantity such as 500m, 0 or more"
        raise ScenarioError(f"{where}: {given!r} is negative; {right}")
