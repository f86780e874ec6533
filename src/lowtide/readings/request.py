"""What a plugin wants measured, and the PromQL that measures it.

Plugins make a TrafficRequest from their args; telemetry's poller sends its queries."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from lowtide.readings.access import PrometheusAccess

Measure = Literal["rate", "increase", "sumOverTime"]
Direction = Literal["receive", "transmit", "max", "sum"]
MatchLabel = Literal["auto", "node", "kubernetes_node", "nodename", "instance"]

# The names of the queries, which are also the keys of their answers.
RECEIVE: Final = "receive"
TRANSMIT: Final = "transmit"
VALUE: Final = "value"  # of the user's own query
UNAME: Final = "uname"
SPEED: Final = "speed"
FLAGS: Final = "flags"
PARENT: Final = "parent"  # the number of the device that carries this one
NUMBER: Final = "number"  # the device's own number
POD_RECEIVE: Final = "pod_receive"
POD_TRANSMIT: Final = "pod_transmit"

# The labels that may name a node. Of an answer's labels, only these and `device` are read.
TARGET_LABELS: Final = ("node", "kubernetes_node", "nodename", "instance", "job")
DEVICE_LABELS: Final = (*TARGET_LABELS, "device")
UNAME_LABELS: Final = ("nodename", "instance", "job")

# Devices without traffic of their own, or whose traffic a real device also counts.
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
# Control characters break a quoted string; lone surrogates cannot be encoded as UTF-8.
UNSPEAKABLE: Final = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


class LinkCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """The link capacity of nodes with these labels."""

    labels: tuple[tuple[str, str], ...]
    bytes_per_second: float


class TrafficRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure and how to judge it. Also a key: equal requests share one poller.

    A device of only letters, digits and `. _ @ : -` is an exact name, so `eth0.100` is that VLAN
    alone. Any other character makes it a regular expression for the whole name. No devices means
    all but virtual ones. A `template` is the user's own query, sent instead of one per direction.
    """

    access: PrometheusAccess
    devices: tuple[str, ...] = ()
    window_seconds: int = 60
    measure: Measure = "rate"
    template: str = ""
    direction: Direction = "max"
    match_label: MatchLabel = "auto"
    every_seconds: float = 15.0
    stale_after_seconds: float = 60.0
    capacities: tuple[LinkCapacity, ...] = ()
    pod_bytes_per_second: float = 0.0  # of a pod with unknown traffic; 0: use pod_share
    pod_share: float = 0.05  # of the median link, or of the busiest node's traffic
    is_relative: bool = False  # compare nodes with the busiest node, not with their capacity
    learns_from_pods: bool = True
    brake_share: float = 0.5  # if more nodes than this share are not fresh, no node is trusted
    hot_share: float = 0.9
    cooling_share: float = 0.1

    @property
    def is_rate(self) -> bool:
        """True if values measure traffic that can be compared with capacities and pods."""
        return self.measure != "sumOverTime"


def directions(request: TrafficRequest) -> tuple[str, ...]:
    """The names of the queries that a node's value needs."""
    if request.template:
        return (VALUE,)
    match request.direction:
        case "receive":
            return (RECEIVE,)
        case "transmit":
            return (TRANSMIT,)
        case "max" | "sum":
            return (RECEIVE, TRANSMIT)


def traffic_queries(
    request: TrafficRequest, window_seconds: int, *, has_all_labels: bool = False
) -> dict[str, str]:
    """The queries of each poll, PromQL by name. The window may be wider than requested.

    Unless `has_all_labels`, rates return only the labels that are read."""
    devices, window = device_matcher(request.devices), duration(window_seconds)
    if request.template:
        return {VALUE: filled(request.template, devices, window)}
    asked = {}
    for direction in directions(request):
        counter = f"node_network_{direction}_bytes_total{{{devices}}}"
        promql = f"{FUNCTIONS[request.measure]}({counter}[{window}])"
        if request.is_rate:
            # A target that stopped answering keeps a falling rate while the window holds samples;
            # its counter disappears at the first failed scrape.
            promql = f"{promql} and {counter}"
            promql = promql if has_all_labels else _thinned(promql, DEVICE_LABELS)
        asked[direction] = promql
    return asked


def link_queries(request: TrafficRequest) -> dict[str, str]:
    """The queries whose answers rarely change: the nodes' names and their devices."""
    devices = device_matcher(request.devices)
    asked = {}
    if request.match_label in ("auto", "nodename"):
        name = "node_uname_info"
        asked[UNAME] = _thinned(name, UNAME_LABELS) if request.is_rate else name
    metrics = {SPEED: "speed_bytes"}
    if not request.template:
        metrics |= {FLAGS: "flags", PARENT: "iface_link", NUMBER: "iface_id"}
    for name, metric in metrics.items():
        asked[name] = _thinned(f"node_network_{metric}{{{devices}}}", DEVICE_LABELS)
    return asked


def _thinned(promql: str, labels: Sequence[str]) -> str:
    """The query with only these labels, which halves the answer or better."""
    return f"max by ({', '.join(labels)}) ({promql})"


def pod_queries(request: TrafficRequest, window_seconds: int) -> dict[str, str]:
    """The queries for each pod's traffic, summed over its containers and devices."""
    if not request.learns_from_pods or not request.is_rate:
        return {}
    window = duration(window_seconds)
    return {
        name: f"sum by (namespace, pod) (rate(container_network_{direction}_bytes_total"
        f'{{pod!="",interface!="lo"}}[{window}]))'
        for name, direction in ((POD_RECEIVE, RECEIVE), (POD_TRANSMIT, TRANSMIT))
    }


def sample_query(direction: str, targets: Sequence[Mapping[str, str]]) -> str:
    """A query for the raw samples of these targets' counters over the last 15 minutes."""
    instances = dict.fromkeys(labels.get("instance", "") for labels in targets)
    devices = dict.fromkeys(labels.get("device", "") for labels in targets)
    return (
        f"node_network_{direction}_bytes_total"
        f"{{instance=~{quoted('|'.join(map(re.escape, instances)))},"
        f"device=~{quoted('|'.join(map(re.escape, devices)))}}}[15m]"
    )


def pod_sample_query(pods: Sequence[Mapping[str, str]]) -> str:
    """A query for the raw samples of these pods' counters over the last 15 minutes."""
    names = dict.fromkeys(labels.get("pod", "") for labels in pods)
    namespaces = dict.fromkeys(labels.get("namespace", "") for labels in pods)
    return (
        "container_network_receive_bytes_total"
        f"{{namespace=~{quoted('|'.join(map(re.escape, namespaces)))},"
        f'pod=~{quoted("|".join(map(re.escape, names)))},interface!="lo"}}[15m]'
    )


DEVICES_PLACEHOLDER: Final = "$devices"
WINDOW_PLACEHOLDER: Final = "$window"


def filled(template: str, devices: str, window: str) -> str:
    """The user's query with its placeholders replaced."""
    return template.replace(DEVICES_PLACEHOLDER, devices).replace(WINDOW_PLACEHOLDER, window)


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
    # The group keeps a flag or a | of one expression from affecting the others.
    return device.replace(".", r"\.") if is_exact(device) else f"(?:{device})"


def quoted(text: str) -> str:
    """A PromQL string literal that means exactly this text."""
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    return '"' + UNSPEAKABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped) + '"'


def duration(seconds: int) -> str:
    """The duration in PromQL, such as 15s, 3m or 1h."""
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
