"""NodeUsage: prefers nodes with low measured use of CPU, memory or a mix of both.

metrics-server measures it; it arrives as a published reading. A node without a value counts as
average."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec
import numpy as np

from lowtide.config.types import Duration, Weight
from lowtide.framework.decision import PluginScore
from lowtide.framework.log_words import LogsScores
from lowtide.framework.plugin import (
    LARGEST_RAW,
    MAX_SCORE,
    FloatArray,
    IntArray,
    Nodes,
    Pod,
)
from lowtide.objects.requests import CPU, MEMORY
from lowtide.readings.usage import (
    CPU_MILLI,
    EXPECTED_CPU_MILLI,
    EXPECTED_MEMORY_BYTES,
    MEMORY_BYTES,
    NEUTRAL_CPU_MILLI,
    NEUTRAL_CPU_SHARE,
    NEUTRAL_MEMORY_SHARE,
    UsageRequest,
)

Columns = Mapping[str, FloatArray]

# By resource: the columns of the measured use, of pods just placed, and of the share that stands
# for an unknown one.
_COLUMNS: Final = {
    CPU: (CPU_MILLI, EXPECTED_CPU_MILLI, NEUTRAL_CPU_SHARE),
    MEMORY: (MEMORY_BYTES, EXPECTED_MEMORY_BYTES, NEUTRAL_MEMORY_SHARE),
}
_STALE_AFTER_SECONDS: Final = 300.0
_POLLS_UNTIL_STALE: Final = 4
_LONGEST_POLL_INTERVAL_HOURS: Final = 24
_MILLION: Final = 10**6


class NodeUsageArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    unit: Literal["share", "millicores"] = "share"
    """`share` of allocatable, or `millicores` of CPU."""
    cpu: Weight = 1
    """Weight of CPU in the mix."""
    memory: Weight = 0
    """Weight of memory in the mix; `cpu: 0` and `memory: 1` uses memory alone."""
    poll_interval_seconds: Duration = msgspec.field(default=15.0, name="pollInterval")
    """How often to query metrics-server. Bounds: 1s to 24h."""

    def problems(self) -> Iterator[tuple[str, str]]:
        """What is wrong beyond types: field and text."""
        if self.poll_interval_seconds < 1:
            yield "pollInterval", f"must be at least 1s, not {self.poll_interval_seconds:g}s"
        elif self.poll_interval_seconds > _LONGEST_POLL_INTERVAL_HOURS * 3600:
            longest, given = _LONGEST_POLL_INTERVAL_HOURS, self.poll_interval_seconds / 3600
            yield "pollInterval", f"must be at most {longest}h, not {given:.6g}h"
        if self.unit == "millicores" and (self.memory or not self.cpu):
            yield "unit", "millicores counts cpu alone: leave cpu and memory out, or write share"
        elif not self.cpu and not self.memory:
            yield "cpu", "is 0, and so is memory: one of them must be at least 1"

    def request(self) -> UsageRequest:
        """What to measure. Valid only if `problems` finds none."""
        every_seconds = self.poll_interval_seconds
        return UsageRequest(
            every_seconds=every_seconds,
            stale_after_seconds=max(_STALE_AFTER_SECONDS, _POLLS_UNTIL_STALE * every_seconds),
        )


class NodeUsage(LogsScores):
    name = "NodeUsage"
    args = NodeUsageArgs

    def __init__(self, args: NodeUsageArgs) -> None:
        self.request = args.request()
        self.readings = (self.request,)
        self._unit = args.unit
        self._weights = {CPU: args.cpu, MEMORY: args.memory}
        if args.unit == "share":
            self.scale = "lowest_best"
        else:
            self.normalize = _stretched

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        columns = nodes.reading(self.request)
        if not columns or not len(nodes):
            return None
        if self._unit == "share":
            return self._used_shares(columns, nodes)
        return self._distances(columns, nodes)

    def score_log_lines(
        self, scores: Mapping[str, PluginScore], nodes: Nodes, *, brief: bool = False
    ) -> Iterator[str]:
        if self._unit == "share":
            for name, score in scores.items():
                yield f"[{self.name}] node '{name}' usage: {score.raw * 100 / _MILLION:.2f} %"
        else:
            columns = nodes.reading(self.request)
            for name, score in scores.items():
                used = _millicores_in_words(columns, nodes.position_of(name))
                yield f"Node [ {name} ] Cpu Usage Value: {used}, Score: {score.raw}"
        final = " ".join(f"{{{name} {score.normalized}}}" for name, score in scores.items())
        yield f"[{self.name}] Nodes final score: [{final}]"

    def _distances(self, columns: Columns, nodes: Nodes) -> IntArray | None:
        """The lowest usage of a feasible node, minus this node's usage, plus 1. The best gets 1."""
        # The neutral value is the same for all nodes, and NaN while no node has a value.
        if np.isnan(columns[NEUTRAL_CPU_MILLI][0]):
            return None
        whole = nodes.everything
        used, feasible = _millicores(whole.reading(self.request)), whole.feasible
        lowest = int(used[feasible].min() if feasible.any() else used.min())
        return lowest - _millicores(columns) + 1

    def _used_shares(self, columns: Columns, nodes: Nodes) -> IntArray | None:
        """Used shares in millionths of allocatable. A resource without any value is left out."""
        counted = {
            resource: weight
            for resource, weight in self._weights.items()
            if weight and not np.isnan(columns[_COLUMNS[resource][2]][0])
        }
        if not counted:
            return None
        total = np.zeros(len(nodes))
        for resource, weight in counted.items():
            total += weight * _share(resource, columns, nodes)
        return _whole(total / sum(counted.values()) * _MILLION)


def _share(resource: str, columns: Columns, nodes: Nodes) -> FloatArray:
    measured, expected, neutral = (columns[field] for field in _COLUMNS[resource])
    has = nodes.allocatable(resource)
    whole = np.maximum(has, 1)
    known = np.where(np.isnan(measured), neutral, measured / whole)
    return np.where(has > 0, known + expected / whole, 1.0)


def _millicores(columns: Columns) -> IntArray:
    """Each node's use of CPU; a node without a value counts as average."""
    measured = columns[CPU_MILLI]
    known = np.where(np.isnan(measured), columns[NEUTRAL_CPU_MILLI], measured)
    return _whole(known + columns[EXPECTED_CPU_MILLI])


def _millicores_in_words(columns: Columns, position: int | None) -> str:
    """The measured use of a node, and the expected use of pods just placed."""
    if not columns or position is None:
        return "unknown"
    fields = (CPU_MILLI, NEUTRAL_CPU_MILLI, EXPECTED_CPU_MILLI)
    measured, neutral, expected = (float(columns[field][position]) for field in fields)
    if not np.isnan(measured):
        used = f"{measured:.0f}"
    elif np.isnan(neutral):
        used = "unknown"
    else:
        used = f"unknown, counted as {neutral:.0f}"
    return f"{used} + {expected:.0f} of pods just placed" if expected else used


def _whole(values: FloatArray) -> IntArray:
    rounded: IntArray = np.rint(np.clip(values, 0, LARGEST_RAW)).astype(np.int64)
    return rounded


def _stretched(pod: Pod, nodes: Nodes, raw: IntArray) -> IntArray:
    """The best feasible node gets 100, the worst 0; if all are equal, all get 100."""
    feasible = nodes.feasible
    best, worst = int(raw[feasible].max()), int(raw[feasible].min())
    if best == worst:
        return np.full(len(raw), MAX_SCORE, np.int64)
    stretched: IntArray = (raw - worst) * MAX_SCORE // (best - worst)
    return np.clip(stretched, 0, MAX_SCORE)
