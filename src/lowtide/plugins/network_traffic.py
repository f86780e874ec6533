"""NetworkTraffic: prefers nodes whose network is quiet.

What is measured arrives as a published reading; a node without a fresh one counts as average.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec
import numpy as np

from lowtide.framework.decision import RuleScore
from lowtide.framework.plugin import MAX_SCORE, READING, BoolArray, IntArray, Nodes, Pod
from lowtide.plugins.network_traffic_spellings import older_args
from lowtide.readings.columns import NEUTRAL_SHARE, NEUTRAL_VALUE, SHARE, VALUE
from lowtide.readings.request import Direction, MatchLabel, Measure, TrafficRequest

# Larger raw values would overflow when they are multiplied by 100.
_LARGEST_RAW = 2**56
_SECONDS = re.compile(r"([1-9][0-9]*)(s|m|h)")
_STALE_AFTER_SECONDS = 60
_POLLS_UNTIL_STALE = 4
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600}


class NetworkTrafficArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    prometheus_address: str = ""
    devices: list[str] = []
    window: str = "1m"
    poll_interval: str = "15s"
    measure: Measure = "rate"
    direction: Direction = "max"
    scoring: Literal["utilization", "relative"] = "utilization"
    node_label: MatchLabel = "auto"
    log_readings: bool = False

    def problems(self) -> Iterator[tuple[str, str]]:
        """What is wrong beyond types: field and text."""
        for field, text in (("window", self.window), ("pollInterval", self.poll_interval)):
            if _SECONDS.fullmatch(text) is None:
                yield field, f"must be a time such as 30s, 1m or 1h, not {text!r}"
        if self.measure == "sumOverTime" and self.scoring == "utilization":
            yield "scoring", "must be relative with measure: sumOverTime, which is no rate"
        for device in self.devices:
            try:
                re.compile(device)
            except re.error as error:
                yield "devices", f"{device!r} is not a regular expression: {error}"

    def request(self) -> TrafficRequest:
        """What is to be measured; only right when there are no problems."""
        every_seconds = _seconds(self.poll_interval)
        return TrafficRequest(
            prometheus_address=self.prometheus_address,
            devices=tuple(self.devices),
            window_seconds=_seconds(self.window),
            measure=self.measure,
            direction=self.direction,
            match_label=self.node_label,
            every_seconds=every_seconds,
            stale_after_seconds=max(_STALE_AFTER_SECONDS, _POLLS_UNTIL_STALE * every_seconds),
        )


def _seconds(text: str) -> int:
    number, unit = text[:-1], text[-1]
    return int(number) * _UNIT_SECONDS[unit]


class NetworkTraffic:
    name = "NetworkTraffic"
    reads = READING
    args = NetworkTrafficArgs
    older_args = staticmethod(older_args)

    def __init__(self, args: NetworkTrafficArgs) -> None:
        self.request = args.request()
        self.readings = (self.request,)
        self.tells_readings = args.log_readings
        self._scoring = args.scoring
        self.scale = "lowest_best" if args.scoring == "relative" else None

    def score(self, pod: Pod, nodes: Nodes, feasible: BoolArray) -> IntArray | None:
        columns = nodes.reading(self.request)
        # The neutral value is one for all nodes; there is none while no node has a fresh reading.
        if not columns or not len(nodes) or np.isnan(columns[NEUTRAL_VALUE][0]):
            return None
        if self._scoring == "relative":
            value = np.where(np.isnan(columns[VALUE]), columns[NEUTRAL_VALUE], columns[VALUE])
            raw: IntArray = np.clip(np.nan_to_num(value), 0, _LARGEST_RAW).astype(np.int64)
            return raw
        share = np.where(np.isnan(columns[SHARE]), columns[NEUTRAL_SHARE], columns[SHARE])
        # Rounded up: a link that carries something is not as good as an idle one.
        used_percent = np.clip(np.nan_to_num(share), 0, 1) * MAX_SCORE
        # 0.07 * 100 is a little above 7: without rounding first it would count as 8.
        used_percent = np.ceil(used_percent.round(9))
        free_percent: IntArray = MAX_SCORE - used_percent.astype(np.int64)
        return free_percent

    def in_words(self, scores: Mapping[str, RuleScore], *, brief: bool = False) -> Iterator[str]:
        """Relative scores in the wording of the first plugins of this name."""
        if self._scoring == "relative":
            for name, score in scores.items():
                yield f"node '{name}' bandwidth: {score.raw}"
            if not brief:
                yield from _sums_in_words(scores)
        else:
            for name, score in scores.items():
                yield f"node '{name}' link use: {MAX_SCORE - score.raw} %"
        final = " ".join(f"{{{name} {score.normalized}}}" for name, score in scores.items())
        yield f"Nodes final score: [{final}]"


def _sums_in_words(scores: Mapping[str, RuleScore]) -> Iterator[str]:
    highest = max(score.raw for score in scores.values())
    yield f"highest score: {highest}"
    for name, score in scores.items():
        yield f"operation: {MAX_SCORE} - ( {score.raw} * {MAX_SCORE} / {highest})"
        yield f"node '{name}' final score: {score.normalized}"
