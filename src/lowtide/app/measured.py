"""What /metrics tells of what is measured: over all requests of a kind, the worst of them counts.

Called by measuring when somebody asks."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from lowtide.cluster.reading import Reading
from lowtide.readings.prometheus_query import without_value
from lowtide.readings.reading import STATES, TrafficReading, aged
from lowtide.readings.usage import without_usage
from lowtide.telemetry.metrics import SourceNumbers

KNOWN = "known"
UNKNOWN = "unknown"


def traffic_numbers(
    readings: Collection[TrafficReading], polls: Mapping[str, int], now: float
) -> SourceNumbers:
    """Each node counts once, in the worst state that a reading gives it at `now`."""
    worst: dict[str, int] = {}
    for reading in readings:
        for name, code in zip(reading.names, aged(reading, now).state.tolist(), strict=True):
            worst[name] = max(worst.get(name, 0), code)
    counts = Counter(STATES[code].value for code in worst.values())
    return SourceNumbers(
        nodes_by_state={state.value: counts[state.value] for state in STATES} if readings else {},
        age_seconds=_age_seconds([reading.sampled_at for reading in readings], now),
        polls=polls,
    )


def is_any_ignored(readings: Collection[TrafficReading], now: float) -> bool | None:
    """Whether traffic does not count somewhere, as too few nodes are fresh; None before it is
    known."""
    return any(aged(reading, now).is_ignored for reading in readings) if readings else None


def usage_numbers(
    readings: Collection[Reading], node_names: Sequence[str], polls: Mapping[str, int], now: float
) -> SourceNumbers:
    """A node is known where every reading knows its usage."""
    unknown = {name for reading in readings for name in without_usage(reading, node_names)}
    return _known_numbers(readings, unknown, node_names, polls, now)


def query_numbers(
    readings: Collection[Reading], node_names: Sequence[str], polls: Mapping[str, int], now: float
) -> SourceNumbers:
    """A node is known where every plugin's own query has a value of it."""
    unknown = {name for reading in readings for name in without_value(reading, node_names)}
    return _known_numbers(readings, unknown, node_names, polls, now)


def _known_numbers(
    readings: Collection[Reading],
    unknown: Collection[str],
    node_names: Sequence[str],
    polls: Mapping[str, int],
    now: float,
) -> SourceNumbers:
    counts = {KNOWN: len(node_names) - len(unknown), UNKNOWN: len(unknown)}
    return SourceNumbers(
        nodes_by_state=counts if readings else {},
        # Without a sample a reading is dated by its poll, not by what was measured.
        age_seconds=_age_seconds([each.sampled_at for each in readings if each.names], now),
        polls=polls,
    )


def _age_seconds(sampled_at: Sequence[float], now: float) -> float | None:
    """Of the oldest; what was never sampled has no age."""
    times = [at for at in sampled_at if not math.isnan(at)]
    return now - min(times) if times else None
