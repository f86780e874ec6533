"""Translates the args of earlier NetworkTraffic plugins into today's.

There were three such plugins: `network_traffic` (ip, deviceName or device_name, timeRange or
time_range in minutes), one with the same fields in seconds, and one for v1beta1
(prometheusAddress, networkInterface, timeRangeInMinutes).
"""

from collections.abc import Iterator
from typing import Any

from lowtide.config.durations import seconds_from_duration
from lowtide.framework.args import OlderArgs, Spelling
from lowtide.readings.address import parse_address, shown_address

SNAKE_NAME = "network_traffic"
_V1BETA1 = "kubescheduler.config.k8s.io/v1beta1"

# Older field -> today's field.
_FIELDS = {
    "ip": "prometheusAddress",
    "deviceName": "devices",
    "device_name": "devices",
    "networkInterface": "devices",
    "timeRange": "window",
    "time_range": "window",
    "timeRangeInMinutes": "window",
}
_OF_V1BETA1 = ("networkInterface", "timeRangeInMinutes")
_DEFAULT_DEVICE = "ens192"
_DEFAULT_WINDOW = "5m"


def older_args(given: dict[str, Any], spelling: Spelling) -> OlderArgs | None:
    """Today's args for older ones; None if no field has an older spelling."""
    is_v1beta1 = spelling.api_version == _V1BETA1
    of_old = [name for name in _FIELDS if name in given]
    if not of_old and not (is_v1beta1 and set(given) == {"prometheusAddress"}):
        return None
    written_as = {_FIELDS[name]: name for name in of_old}
    modern: dict[str, Any] = {name: value for name, value in given.items() if name not in _FIELDS}
    for name in of_old:
        if given[name] not in (None, ""):
            modern[_FIELDS[name]] = _today(name, given[name], spelling)
    if is_v1beta1 or any(name in given for name in _OF_V1BETA1):
        modern["devices"] = modern.get("devices") or [_DEFAULT_DEVICE]
        modern.setdefault("window", _DEFAULT_WINDOW)
    has_own_query = modern.get("query") is not None
    if not has_own_query:
        modern.setdefault("measure", "sumOverTime")
    modern.setdefault("scoring", "relative")
    if not has_own_query:
        modern.setdefault("direction", "receive")
    modern.setdefault("nodeLabel", _label(given, spelling))
    modern.setdefault("logReadings", True)
    shown = {**modern, "prometheusAddress": shown_address(str(modern.get("prometheusAddress", "")))}
    return OlderArgs(
        modern,
        f"in an older spelling; today it is {_in_yaml(shown)}",
        written_as,
        tuple(_contradictions(given, spelling)),
    )


def _contradictions(given: dict[str, Any], spelling: Spelling) -> Iterator[tuple[str, str]]:
    """The fields that set the same value twice, differently. Empty fields do not count."""
    said: dict[str, str] = {}
    for name in (*dict.fromkeys(_FIELDS.values()), *_FIELDS):
        if given.get(name) in (None, "", []):
            continue
        today = _FIELDS.get(name, name)
        first = said.setdefault(today, name)
        meanings = [_meaning(today, _today(each, given[each], spelling)) for each in (first, name)]
        if meanings[0] != meanings[1]:
            here, there = (_shown(today, given[each]) for each in (name, first))
            yield (
                name,
                f"is {here} beside {first}: {there}, and both say {today}; leave one of them out",
            )


def _meaning(field: str, value: Any) -> Any:
    """A value that is equal for two spellings of one address or one time."""
    try:
        match field:
            case "prometheusAddress":
                return parse_address(str(value))
            case "window":
                return seconds_from_duration(str(value))
    except ValueError:
        pass
    return value


def _shown(field: str, value: Any) -> str:
    return shown_address(str(value)) if field == "prometheusAddress" else _value_in_yaml(value)


def _today(name: str, value: Any, spelling: Spelling) -> Any:
    match _FIELDS.get(name):
        case "devices":
            return [value]
        case "window" if isinstance(value, int) and not isinstance(value, bool):
            return f"{value}{_unit(name, spelling)}"
        case _:
            return value


def _unit(name: str, spelling: Spelling) -> str:
    if name in ("time_range", "timeRangeInMinutes"):
        return "m"
    return "m" if SNAKE_NAME in spelling.names else "s"


def _label(given: dict[str, Any], spelling: Spelling) -> str:
    if any(name in given for name in _OF_V1BETA1) or spelling.api_version == _V1BETA1:
        return "kubernetes_node"
    return "nodename" if SNAKE_NAME in spelling.names else "instance"


def _in_yaml(args: dict[str, Any]) -> str:
    pairs = (f"{name}: {_value_in_yaml(value)}" for name, value in args.items())
    return "{" + ", ".join(pairs) + "}"


def _value_in_yaml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_value_in_yaml, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)
