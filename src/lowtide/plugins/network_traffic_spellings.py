"""The args that earlier NetworkTraffic plugins took, put into today's.

There were three of them: one called `network_traffic` (ip, deviceName or device_name, timeRange or
time_range in minutes), one with the same fields in seconds, and one for v1beta1
(prometheusAddress, networkInterface, timeRangeInMinutes).
"""

from typing import Any

from lowtide.framework.args import OlderArgs, Spelling
from lowtide.readings.address import shown_address

SNAKE_NAME = "network_traffic"
_V1BETA1 = "kubescheduler.config.k8s.io/v1beta1"

# Field of old -> field of today.
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
    """None when nothing in these args is of old."""
    is_v1beta1 = spelling.api_version == _V1BETA1
    of_old = [name for name in _FIELDS if name in given]
    if not of_old and not (is_v1beta1 and set(given) == {"prometheusAddress"}):
        return None
    written_as = {_FIELDS[name]: name for name in of_old}
    modern: dict[str, Any] = {name: value for name, value in given.items() if name not in _FIELDS}
    for name in of_old:
        modern[_FIELDS[name]] = _today(name, given[name], spelling)
    if is_v1beta1 or any(name in given for name in _OF_V1BETA1):
        modern["devices"] = modern.get("devices") or [_DEFAULT_DEVICE]
        modern.setdefault("window", _DEFAULT_WINDOW)
    modern.setdefault("measure", "sumOverTime")
    modern.setdefault("scoring", "relative")
    modern.setdefault("direction", "receive")
    modern.setdefault("nodeLabel", _label(given, spelling))
    modern.setdefault("logReadings", True)
    shown = {**modern, "prometheusAddress": shown_address(str(modern.get("prometheusAddress", "")))}
    return OlderArgs(modern, f"in an older spelling; today it is {_in_yaml(shown)}", written_as)


def _today(name: str, value: Any, spelling: Spelling) -> Any:
    match _FIELDS[name]:
        case "devices":
            return [value] if value else []
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
    def shown(value: Any) -> str:
        if isinstance(value, list):
            return "[" + ", ".join(map(shown, value)) + "]"
        return str(value).lower() if isinstance(value, bool) else str(value)

    return "{" + ", ".join(f"{name}: {shown(value)}" for name, value in args.items()) + "}"
