"""Turns metrics-server's samples of cpu and memory usage into a Reading.

The plugin NodeUsage requests it with a UsageRequest and scores from its columns. Telemetry polls
the samples; offline modes read them from a file."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from lowtide.cluster.columns import BoolArray, FloatArray
from lowtide.cluster.reading import Reading
from lowtide.config.durations import seconds_from_duration
from lowtide.objects.node_metrics import NodeMetrics
from lowtide.objects.pod import Pod, Quantities
from lowtide.objects.quantity import QuantityError, parse_nano
from lowtide.objects.requests import CPU, MEMORY, nonzero_requests, to_int
from lowtide.objects.times import epoch_seconds

# The columns of the reading. A measured column is NaN where no trusted value is known. A neutral
# column has the same value in every row: the average of the nodes with a value.
CPU_MILLI: Final = "cpu_milli"
MEMORY_BYTES: Final = "memory_bytes"
EXPECTED_CPU_MILLI: Final = "expected_cpu_milli"
EXPECTED_MEMORY_BYTES: Final = "expected_memory_bytes"
NEUTRAL_CPU_MILLI: Final = "neutral_cpu_milli"
NEUTRAL_CPU_SHARE: Final = "neutral_cpu_share"
NEUTRAL_MEMORY_SHARE: Final = "neutral_memory_share"

# metrics-server's own resolution, for samples without a window.
DEFAULT_WINDOW_SECONDS: Final = 60.0


class UsageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What NodeUsage wants measured. Also a key: equal requests share one poller."""

    every_seconds: float = 15.0
    stale_after_seconds: float = 300.0


class UsageSample(msgspec.Struct, frozen=True, gc=False):
    """The usage of one node at `at`, in seconds since 1970. Unknown numbers are NaN."""

    cpu_milli: float = math.nan
    memory_bytes: float = math.nan
    at: float = math.nan
    window_seconds: float = DEFAULT_WINDOW_SECONDS


class NoUsage(msgspec.Struct, frozen=True):
    """Why usage could not be read, in one sentence."""

    reason: str


class Allocatable(NamedTuple):
    cpu_milli: float
    memory_bytes: float


_NOTHING = Allocatable(0.0, 0.0)


class PodRequests:
    """Expects a new pod to use its requests, or kube-scheduler's defaults for missing ones
    (implements cluster.reading.Expectation)."""

    fields = (EXPECTED_CPU_MILLI, EXPECTED_MEMORY_BYTES)

    def expected_for(self, pod: Pod) -> tuple[float, ...]:
        try:
            return nonzero_requests(pod)
        except QuantityError:
            return (0.0, 0.0)  # a running pod may have unreadable requests; they count as 0


def sample_of(metrics: NodeMetrics) -> UsageSample:
    at = epoch_seconds(metrics.timestamp)
    return UsageSample(
        cpu_milli=amount_of(metrics.usage, CPU),
        memory_bytes=amount_of(metrics.usage, MEMORY),
        at=math.nan if at is None else at,
        window_seconds=_window_seconds(metrics.window),
    )


def amount_of(amounts: Quantities, resource: str) -> float:
    """Millicores for cpu, bytes for memory; NaN if the amount is missing or cannot be parsed."""
    try:
        return float(to_int(resource, parse_nano(amounts[resource])))
    except (KeyError, QuantityError):
        return math.nan


def not_ahead(samples: Mapping[str, UsageSample], now: float) -> dict[str, UsageSample]:
    """The samples, with times after `now` set to `now`. A node whose clock is ahead must not keep
    its samples fresh for longer, nor count pods as measured that started later."""
    return {
        name: msgspec.structs.replace(sample, at=now) if sample.at > now else sample
        for name, sample in samples.items()
    }


def usage_reading(
    request: UsageRequest,
    samples: Mapping[str, UsageSample],
    allocatable: Mapping[str, Allocatable],
    now: float,
) -> Reading:
    """Build the reading at `now`, without stale samples and negative amounts.

    `allocatable` lists the known nodes; the averages cover only these."""
    names = tuple(samples)
    at = np.array([samples[name].at for name in names], np.float64)
    is_fresh = now - at <= request.stale_after_seconds
    cpu = _trusted([samples[name].cpu_milli for name in names], is_fresh)
    memory = _trusted([samples[name].memory_bytes for name in names], is_fresh)
    is_known = np.array([name in allocatable for name in names], np.bool_)
    has = [allocatable.get(name, _NOTHING) for name in names]
    in_every_row = {
        EXPECTED_CPU_MILLI: 0.0,
        EXPECTED_MEMORY_BYTES: 0.0,
        NEUTRAL_CPU_MILLI: _mean(cpu[is_known]),
        NEUTRAL_CPU_SHARE: _mean(_shares(cpu, [each.cpu_milli for each in has])),
        NEUTRAL_MEMORY_SHARE: _mean(_shares(memory, [each.memory_bytes for each in has])),
    }
    same = {field: np.full(len(names), value) for field, value in in_every_row.items()}
    taken_at = at[np.isfinite(at)]
    windows = [samples[name].window_seconds for name in names]
    return Reading(
        names=names,
        columns={CPU_MILLI: cpu, MEMORY_BYTES: memory, **same},
        of_others={CPU_MILLI: math.nan, MEMORY_BYTES: math.nan, **in_every_row},
        expects=PodRequests(),
        # The median, because one lagging node must not make all pods count for longer. Without any
        # sample, pods that have run for a while count as measured.
        sampled_at=min(float(np.median(taken_at)), now) if len(taken_at) else now,
        window_seconds=float(np.median(windows)) if windows else DEFAULT_WINDOW_SECONDS,
    )


def without_usage(reading: Reading, node_names: Iterable[str]) -> tuple[str, ...]:
    """The names of the nodes without a cpu value in this reading, sorted."""
    used = dict(zip(reading.names, reading.columns[CPU_MILLI].tolist(), strict=True))
    return tuple(sorted(name for name in node_names if math.isnan(used.get(name, math.nan))))


def _trusted(amounts: Sequence[float], is_fresh: BoolArray) -> FloatArray:
    values = np.array(amounts, np.float64)
    return np.where(is_fresh & (values >= 0), values, np.nan)


def _shares(used: FloatArray, has: Sequence[float]) -> FloatArray:
    """Used share of each node; NaN if the node has nothing allocatable."""
    whole = np.array(has, np.float64)
    share: FloatArray = used / np.where(whole > 0, whole, np.nan)
    return share


def _mean(values: FloatArray) -> float:
    """The mean of the known values: a node without a value counts as average."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _window_seconds(text: str) -> float:
    try:
        return seconds_from_duration(text) or DEFAULT_WINDOW_SECONDS
    except ValueError:
        return DEFAULT_WINDOW_SECONDS
