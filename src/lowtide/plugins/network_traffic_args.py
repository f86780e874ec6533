"""The args of NetworkTraffic, their validation, and the measuring request made from them."""

import math
import re
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from lowtide.config.durations import seconds_from_duration
from lowtide.config.types import Amount, Duration
from lowtide.objects.quantity import QuantityError
from lowtide.readings.access import PrometheusArgs
from lowtide.readings.address import parse_address, shown_address
from lowtide.readings.amounts import BITS_PER_BYTE, bytes_per_second
from lowtide.readings.request import (
    DEVICES_PLACEHOLDER,
    WINDOW_PLACEHOLDER,
    Direction,
    LinkCapacity,
    MatchLabel,
    Measure,
    TrafficRequest,
)

Policy = Literal["neutral", "avoid", "reject"]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]

_PERCENT = re.compile(r"[0-9]{1,3}%")
_LONGEST_WINDOW_HOURS = 8760
_LONGEST_POLL_INTERVAL_HOURS = 24
_STALE_AFTER_SECONDS = 60
_POLLS_UNTIL_STALE = 4
# A smaller number was probably written without its unit.
_LEAST_POD_BITS_PER_SECOND = 1e3
_LEAST_LINK_BITS_PER_SECOND = 1e6

_NAMES_WITH_COMMAS = re.compile(r"[\w.@:-]*(?:,[\w.@:-]*)+")
_NOT_IN_RE2 = re.compile(r"\(\?<?[=!]|(?<!\\)\\[1-9]")
# An escaped quote does not start a string. Searching an end for each would take quadratic time.
_STRING_OR_COMMENT = re.compile(
    r'"(?:\\.|[^"\\])*"|' r"'(?:\\.|[^'\\])*'|`[^`]*`|#[^\n]*|\\.", re.DOTALL
)
_GROUP = re.compile(r"\(\?P<([A-Za-z_]\w*)>")
_PLACEHOLDER = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_OPENED_BY = {")": "(", "]": "[", "}": "{"}
_OPENING = "([{\"'`"  # a quote that remains after strings are removed is never closed


class LinkCapacityArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    match_labels: dict[str, str]
    """Labels that a Node must have for this entry to apply."""
    capacity: Amount
    """The link's capacity in each direction, in bits/s such as `10G`. Bounds: at least 1M."""


class NotFreshArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How to treat nodes without a fresh reading, and when to ignore all readings."""

    stale: Policy = "neutral"
    """A node without a new value for 60 s or four polls, whichever is longer."""
    missing: Policy = "neutral"
    """A node without a value."""
    implausible: Policy = "neutral"
    """A node whose value is NaN, negative or ambiguous."""
    brake_percent: Percent = 50
    """If more than this percentage of nodes has no fresh reading, all readings are ignored."""


class HotNodesArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    soft_percent: Percent = 75
    """From this link utilization on, a node's score is halved; it falls further above. Bounds: 0 to
    `hardPercent`."""
    hard_percent: Percent = 90
    """The filter rejects nodes from this link utilization on. Bounds: 1 to 100."""
    cooling_percent: Percent = 10
    """A hot node stays hot until its utilization is this far below `hardPercent`. Bounds: below
    `hardPercent`."""
    patience_seconds: Duration = msgspec.field(name="patience", default=0.0)
    """How long a pod waits if every node is hot, before it goes to the best one. Bounds: at least
    0s."""


class NetworkTrafficArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    prometheus_address: str = ""
    """Address of Prometheus or a compatible server. `kube-service://NAMESPACE/SERVICE:PORT` goes
    through the API server."""
    prometheus: PrometheusArgs = PrometheusArgs()
    """[How to reach it](network-traffic.md#prometheus-as-you-run-it)."""
    devices: list[str] = []
    """Device names, exact or as regular expressions. Default: all but virtual devices."""
    window: Amount = "1m"
    """The time over which traffic is measured. For a rate it is widened to four scrapes, with one
    warning. Bounds: 1s to 8760h."""
    poll_interval: Amount = "15s"
    """How often to query Prometheus. Bounds: 1s to 24h."""
    measure: Measure = "rate"
    """`rate` is bytes/s; `sumOverTime` needs `scoring: relative`."""
    query: str | None = None
    """Your own query instead of `measure` and `direction`; must return one value per node.
    `$devices` and `$window` stand for the device matcher and the window."""
    direction: Direction = "max"
    """Which traffic counts: one direction, the larger of both (`max`), or both (`sum`)."""
    scoring: Literal["utilization", "relative"] = "utilization"
    """`utilization`: the free part of the link. `relative`: `100 - value * 100 / highest`."""
    node_label: MatchLabel = "auto"
    """The label that [names the node](network-traffic.md#which-series-belongs-to-which-node)."""
    link_capacities: list[LinkCapacityArgs] = []
    """Link capacities of nodes that report no speed, such as
    `[{matchLabels: {node.kubernetes.io/instance-type: m5.large}, capacity: 10G}]`."""
    pod_traffic: Amount = "5%"
    """Expected traffic of a pod about which nothing is known: bits/s such as `250M`, or a share of
    the median link such as `5%` (`relative`: of the busiest node's traffic). Bounds: at least 1k,
    at most 100%."""
    learn_pod_traffic: bool = True
    """Learn the traffic of each owner's pods from `container_network_*`."""
    not_fresh: NotFreshArgs = NotFreshArgs()
    """[What a node without a fresh reading counts
    as](network-traffic.md#what-a-node-without-a-reading-counts-as)."""
    hot_nodes: HotNodesArgs = HotNodesArgs()
    """[Which nodes are too busy](network-traffic.md#hot-nodes)."""
    log_readings: bool = False
    """Log each node's traffic and final score once per reading, for the first 100 nodes."""

    def problems(self) -> Iterator[tuple[str, str]]:
        """What is wrong beyond types: field and text."""
        yield from _time_problems("window", self.window, _LONGEST_WINDOW_HOURS)
        yield from _time_problems("pollInterval", self.poll_interval, _LONGEST_POLL_INTERVAL_HOURS)
        if self.measure == "sumOverTime" and self.scoring == "utilization":
            yield (
                "scoring",
                "must be relative with measure: sumOverTime, which is no rate and which older "
                "spellings imply; for utilization write measure: rate",
            )
        if self.query is not None:
            yield from self._query_problems(self.query)
        for device in self.devices:
            problem = _device_problem(device)
            if problem:
                yield "devices", problem
        yield from self._bandwidth_problems()
        hot = self.hot_nodes
        if hot.soft_percent > hot.hard_percent:
            yield (
                "hotNodes",
                f"softPercent must not be above hardPercent ({hot.hard_percent}), "
                f"not {hot.soft_percent}",
            )
        if hot.cooling_percent >= hot.hard_percent:
            yield (
                "hotNodes",
                f"coolingPercent must be below hardPercent ({hot.hard_percent}), "
                f"not {hot.cooling_percent}",
            )
        if hot.patience_seconds < 0:
            yield "hotNodes", f"patience must not be negative, not {hot.patience_seconds:g}s"
        yield from self._access_problems()

    def request(self) -> TrafficRequest:
        """What to measure. Valid only if `problems` finds none."""
        every_seconds = seconds_from_duration(self.poll_interval)
        # Rounded first: as a float, 1.1m is not exactly 66 seconds.
        window_seconds = math.ceil(round(seconds_from_duration(self.window), 3))
        is_share = _PERCENT.fullmatch(self.pod_traffic) is not None
        return TrafficRequest(
            access=self.prometheus.access(self.prometheus_address),
            devices=tuple(self.devices),
            window_seconds=window_seconds,
            measure=self.measure,
            template=self.query or "",
            direction=self.direction,
            match_label=self.node_label,
            every_seconds=every_seconds,
            stale_after_seconds=max(_STALE_AFTER_SECONDS, _POLLS_UNTIL_STALE * every_seconds),
            capacities=tuple(map(_capacity, self.link_capacities)),
            pod_bytes_per_second=0.0 if is_share else bytes_per_second(self.pod_traffic),
            pod_share=int(self.pod_traffic[:-1]) / 100 if is_share else 0.0,
            is_relative=self.scoring == "relative",
            learns_from_pods=self.learn_pod_traffic,
            brake_share=self.not_fresh.brake_percent / 100,
            hot_share=self.hot_nodes.hard_percent / 100,
            cooling_share=self.hot_nodes.cooling_percent / 100,
        )

    def _query_problems(self, query: str) -> Iterator[tuple[str, str]]:
        if not query.strip():
            wanted = "must be PromQL that gives one value per node, or be left out"
            yield "query", f"{wanted}, not {query!r}"
        for problem in (_unknown_placeholder(query), _unbalanced(query)):
            if problem:
                yield "query", problem
        if self.measure != "rate":
            yield "measure", f"must be left out with a query of your own, not {self.measure}"
        if self.direction != "max":
            yield "direction", f"must be left out with a query of your own, not {self.direction}"

    def _access_problems(self) -> Iterator[tuple[str, str]]:
        for field, text in self.prometheus.problems():
            yield "prometheus", f"{field} {text}"
        basic = self.prometheus.basic_auth
        if basic is not None and basic.username and not basic.password_file:
            yield "prometheus", "basicAuth must have a passwordFile beside its username"
        if not self.prometheus_address.strip() or not self.prometheus.addresses:
            return
        alone, first = self.prometheus_address, self.prometheus.addresses[0]
        if not _is_one_place(alone, first):
            yield (
                "prometheusAddress",
                f"is {shown_address(alone)}, while prometheus.addresses begins with "
                f"{shown_address(first)}; leave one of the two out",
            )

    def _bandwidth_problems(self) -> Iterator[tuple[str, str]]:
        yield from self._pod_traffic_problems()
        for each in self.link_capacities:
            bits = _bits_per_second(each.capacity)
            if bits is None:
                yield (
                    "linkCapacities",
                    f"must have a capacity in bits/s such as 10G, not {each.capacity!r}",
                )
            elif bits < _LEAST_LINK_BITS_PER_SECOND:
                yield (
                    "linkCapacities",
                    f"must have a capacity of at least 1M, in bits/s, not {each.capacity!r}; "
                    "ten gigabits are written 10G",
                )
        if any(not each.match_labels for each in self.link_capacities):
            yield "linkCapacities", "must have matchLabels that say which nodes it is for"

    def _pod_traffic_problems(self) -> Iterator[tuple[str, str]]:
        given = self.pod_traffic
        if _PERCENT.fullmatch(given) is not None:
            if int(given[:-1]) > 100:
                yield "podTraffic", f"must be at most 100% of the median link, not {given!r}"
            return
        bits = _bits_per_second(given)
        if bits is None:
            yield (
                "podTraffic",
                "must be a bandwidth in bits/s such as 250M, or a share of the median link such "
                f"as 5%, not {given!r}",
            )
        elif bits < _LEAST_POD_BITS_PER_SECOND:
            yield (
                "podTraffic",
                f"must be at least 1k, in bits/s, not {given!r}; a share of the median link is "
                "written 5%, and megabits 250M",
            )


def _device_problem(device: str) -> str:
    """The problem with one entry of `devices`, or ""."""
    if not device:
        return (
            "must have names or regular expressions such as eth0 or en.*, and one is empty; "
            "leave devices out for all but virtual ones"
        )
    if re.search(r"\s", device):
        return f"must have names without spaces, one for each device, not {device!r}"
    if _NAMES_WITH_COMMAS.fullmatch(device):
        shown = ", ".join(filter(None, device.split(",")))
        return f"must have one entry for each device, such as [{shown}], not {device!r}"
    try:
        re.compile(device)
    except re.error as error:
        return f"{device!r} is not a regular expression: {error}"
    if _NOT_IN_RE2.search(device):
        return (
            f"{device!r} looks ahead, behind or back, which Prometheus's expressions (RE2) cannot; "
            "name the devices that count"
        )
    return ""


def _time_problems(field: str, text: str, longest_hours: int) -> Iterator[tuple[str, str]]:
    try:
        seconds = seconds_from_duration(text)
    except ValueError:
        yield field, f"must be a time such as 30s, 1m or 1h, not {text!r}"
        return
    if seconds < 1:
        yield field, f"must be at least 1s, not {text}"
    elif seconds > longest_hours * 3600:
        yield field, f"must be at most {longest_hours}h, not {text}"


def _unknown_placeholder(query: str) -> str:
    """The problem with a placeholder, or "". `$name` may also be a group in a regular expression of
    the query, for label_replace."""
    groups = set(_GROUP.findall(query))
    for found in _PLACEHOLDER.finditer(query):
        is_known = found[0] in (DEVICES_PLACEHOLDER, WINDOW_PLACEHOLDER)
        if not is_known and (found[1] or found[2]) not in groups:
            known = f"{DEVICES_PLACEHOLDER} and {WINDOW_PLACEHOLDER}"
            return f"may have {known}, not {found[0]}, which nothing stands for"
    return ""


def _unbalanced(query: str) -> str:
    """The problem with brackets and quotes, or "". Prometheus checks the rest."""
    opened: list[str] = []
    for one in _STRING_OR_COMMENT.sub("", query):
        if one in _OPENED_BY:
            if not opened:
                return f"must open what it closes: nothing opens {one!r} in {query!r}"
            if opened[-1] != _OPENED_BY[one]:
                break
            opened.pop()
        elif one in _OPENING:
            opened.append(one)
    return f"must close what it opens: {opened[-1]!r} is not closed in {query!r}" if opened else ""


def _is_one_place(address: str, other: str) -> bool:
    """True also if an address is invalid, which is reported elsewhere."""
    try:
        return parse_address(address) == parse_address(other)
    except ValueError:
        return True


def _bits_per_second(text: str) -> float | None:
    try:
        return bytes_per_second(text) * BITS_PER_BYTE
    except QuantityError:
        return None


def _capacity(given: LinkCapacityArgs) -> LinkCapacity:
    return LinkCapacity(
        labels=tuple(sorted(given.match_labels.items())),
        bytes_per_second=bytes_per_second(given.capacity),
    )
