"""The args of NetworkTraffic: what users write, what is wrong with it, and the request it makes."""

import re
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from lowtide.config.types import Duration
from lowtide.objects.quantity import QuantityError
from lowtide.readings.access import PrometheusArgs
from lowtide.readings.amounts import bytes_per_second
from lowtide.readings.request import (
    Direction,
    LinkCapacity,
    MatchLabel,
    Measure,
    TrafficRequest,
)

Policy = Literal["neutral", "avoid", "reject"]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]

_SECONDS = re.compile(r"([1-9][0-9]*)(s|m|h)")
_PERCENT = re.compile(r"[0-9]{1,3}%")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600}
_STALE_AFTER_SECONDS = 60
_POLLS_UNTIL_STALE = 4


class LinkCapacityArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    match_labels: dict[str, str]
    capacity: str


class NotFreshArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What becomes of nodes whose reading is not fresh, and when no reading is believed at all."""

    stale: Policy = "neutral"
    missing: Policy = "neutral"
    implausible: Policy = "neutral"
    brake_percent: Percent = 50


class HotNodesArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    soft_percent: Percent = 75
    hard_percent: Percent = 90
    cooling_percent: Percent = 10
    patience_seconds: Duration = msgspec.field(name="patience", default=0.0)


class NetworkTrafficArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    prometheus_address: str = ""
    prometheus: PrometheusArgs = PrometheusArgs()
    devices: list[str] = []
    window: str = "1m"
    poll_interval: str = "15s"
    measure: Measure = "rate"
    query: str = ""
    direction: Direction = "max"
    scoring: Literal["utilization", "relative"] = "utilization"
    node_label: MatchLabel = "auto"
    link_capacities: list[LinkCapacityArgs] = []
    pod_traffic: str = "5%"
    learn_pod_traffic: bool = True
    not_fresh: NotFreshArgs = NotFreshArgs()
    hot_nodes: HotNodesArgs = HotNodesArgs()
    log_readings: bool = False

    def problems(self) -> Iterator[tuple[str, str]]:
        """What is wrong beyond types: field and text."""
        for field, text in (("window", self.window), ("pollInterval", self.poll_interval)):
            if _SECONDS.fullmatch(text) is None:
                yield field, f"must be a time such as 30s, 1m or 1h, not {text!r}"
        if self.measure == "sumOverTime" and self.scoring == "utilization":
            yield "scoring", "must be relative with measure: sumOverTime, which is no rate"
        if self.query and self.measure != "rate":
            yield "measure", f"must be left out with a query of your own, not {self.measure}"
        for device in self.devices:
            try:
                re.compile(device)
            except re.error as error:
                yield "devices", f"{device!r} is not a regular expression: {error}"
        yield from self._bandwidth_problems()
        hot = self.hot_nodes
        if hot.soft_percent > hot.hard_percent:
            yield (
                "hotNodes",
                f"softPercent must not be above hardPercent ({hot.hard_percent}), "
                f"not {hot.soft_percent}",
            )
        if hot.cooling_percent > hot.hard_percent:
            yield (
                "hotNodes",
                f"coolingPercent must not be above hardPercent ({hot.hard_percent}), "
                f"not {hot.cooling_percent}",
            )
        if hot.patience_seconds < 0:
            yield "hotNodes", f"patience must not be negative, not {hot.patience_seconds:g}s"
        for field, text in self.prometheus.problems():
            yield "prometheus", f"{field} {text}"

    def request(self) -> TrafficRequest:
        """What is to be measured; only right when there are no problems."""
        every_seconds = _seconds(self.poll_interval)
        is_share = _PERCENT.fullmatch(self.pod_traffic) is not None
        return TrafficRequest(
            access=self.prometheus.access(self.prometheus_address),
            devices=tuple(self.devices),
            window_seconds=_seconds(self.window),
            measure=self.measure,
            template=self.query,
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

    def _bandwidth_problems(self) -> Iterator[tuple[str, str]]:
        if _PERCENT.fullmatch(self.pod_traffic) is None and not _is_bandwidth(self.pod_traffic):
            yield (
                "podTraffic",
                "must be a bandwidth in bits/s such as 250M, or a share of the median link such "
                f"as 5%, not {self.pod_traffic!r}",
            )
        for each in self.link_capacities:
            if not _is_bandwidth(each.capacity):
                yield (
                    "linkCapacities",
                    f"must have a capacity in bits/s such as 10G, not {each.capacity!r}",
                )
        if any(not each.match_labels for each in self.link_capacities):
            yield "linkCapacities", "must have matchLabels that say which nodes it is for"


def _is_bandwidth(text: str) -> bool:
    try:
        return bytes_per_second(text) > 0
    except QuantityError:
        return False


def _capacity(given: LinkCapacityArgs) -> LinkCapacity:
    return LinkCapacity(
        labels=tuple(sorted(given.match_labels.items())),
        bytes_per_second=bytes_per_second(given.capacity),
    )


def _seconds(text: str) -> int:
    number, unit = text[:-1], text[-1]
    return int(number) * _UNIT_SECONDS[unit]
