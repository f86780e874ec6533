"""What a rule wants measured, and the PromQL that measures it.

Rules make a TrafficRequest from their args; the poller in telemetry sends its queries."""

import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

Measure = Literal["rate", "increase", "sumOverTime"]
Direction = Literal["receive", "transmit", "max", "sum"]
MatchLabel = Literal["auto", "node", "kubernetes_node", "nodename", "instance"]

# The names of the queries, which are also the keys of their answers.
RECEIVE: Final = "receive"
TRANSMIT: Final = "transmit"
UNAME: Final = "uname"
SPEED: Final = "speed"

# What carries no traffic of its own, or counts a second time what a real device counts.
VIRTUAL_DEVICES: Final = (
    "lo",
    "veth.*",
    "cali.*",
    "cni.*",
    "docker.*",
    "br-.*",
    "virbr.*",
    "flannel.*",
    "vxlan.*",
    "geneve.*",
    "tunl.*",
    "cilium.*",
    "lxc.*",
    "eni[0-9a-f]+",
    "azv.*",
    "kube-.*",
    "nodelocaldns",
    "dummy.*",
    "wg.*",
    "ovs-.*",
    "ifb.*",
)

FUNCTIONS: Final[dict[Measure, str]] = {
    "rate": "rate",
    "increase": "increase",
    "sumOverTime": "sum_over_time",
}
EXACT_DEVICE: Final = re.compile(r"[A-Za-z0-9._@:-]+")
# Control characters end or confuse a quoted string; lone surrogates have no UTF-8.
UNSPEAKABLE: Final = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


class TrafficRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Equal requests are one poller's work, so this is also a key.

    A device made only of letters, digits and `. _ @ : -` is an exact name (so `eth0.100` is that
    VLAN and nothing else); any other character makes it a regular expression, which must match
    the whole name. No devices means all but virtual ones."""

    prometheus_address: str
    devices: tuple[str, ...]
    window_seconds: int
    measure: Measure
    direction: Direction
    match_label: MatchLabel = "auto"
    every_seconds: float = 15.0
    stale_after_seconds: float = 60.0


def queries(request: TrafficRequest) -> dict[str, str]:
    """Name to PromQL: at most four, however many nodes there are."""
    devices = device_matcher(request.devices)
    function = FUNCTIONS[request.measure]
    window = duration(request.window_seconds)
    asked = {
        direction: f"{function}(node_network_{direction}_bytes_total{{{devices}}}[{window}])"
        for direction in directions(request)
    }
    if request.match_label in ("auto", "nodename"):
        asked[UNAME] = "node_uname_info"
    asked[SPEED] = f"node_network_speed_bytes{{{devices}}}"
    return asked


def directions(request: TrafficRequest) -> tuple[str, ...]:
    """The queries without which a node has no value."""
    match request.direction:
        case "receive":
            return (RECEIVE,)
        case "transmit":
            return (TRANSMIT,)
        case "max" | "sum":
            return (RECEIVE, TRANSMIT)


def device_matcher(devices: Sequence[str]) -> str:
    """The label matcher that selects these devices."""
    if not devices:
        return f"device!~{quoted('|'.join(VIRTUAL_DEVICES))}"
    if len(devices) == 1:
        operator = "=" if is_exact(devices[0]) else "=~"
        return f"device{operator}{quoted(devices[0])}"
    return f"device=~{quoted('|'.join(_alternative(device) for device in devices))}"


def is_exact(device: str) -> bool:
    return EXACT_DEVICE.fullmatch(device) is not None


def _alternative(device: str) -> str:
    # The group keeps a flag or a bar of one expression from reaching into the next.
    return device.replace(".", r"\.") if is_exact(device) else f"(?:{device})"


def quoted(text: str) -> str:
    """A PromQL string literal that means exactly this text."""
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    return '"' + UNSPEAKABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped) + '"'


def duration(seconds: int) -> str:
    """As people write it for Prometheus: 15s, 3m, 1h."""
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
