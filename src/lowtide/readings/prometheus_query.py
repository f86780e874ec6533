"""What an outsider's rule wants measured: one PromQL query, and a value of each node by it.

The rule names a PrometheusQuery in its `readings` and reads it; telemetry polls, and the offline
modes take the values from a file."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from lowtide.cluster.columns import FloatArray
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.one_node import OneNode
from lowtide.cluster.reading import Reading
from lowtide.objects.node import Node
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.matching import NodeMatcher, identity_of
from lowtide.readings.request import MatchLabel
from lowtide.readings.series import Series

VALUE: Final = "value"  # the only column of the reading


class PrometheusQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Equal queries are one poller's work, so this is also a key.

    The query gives one series per node, which is matched to it as those of NetworkTraffic are, by
    `match_label`. Of several series of a node the highest value counts; a value that is no finite
    number does not. What was answered counts until it is stale."""

    access: PrometheusAccess
    promql: str
    every_seconds: float = 15.0
    stale_after_seconds: float = 60.0
    match_label: MatchLabel = "auto"

    def __post_init__(self) -> None:
        if not self.promql.strip():
            raise ValueError("the promql of a PrometheusQuery must not be empty")
        for field in ("every_seconds", "stale_after_seconds"):
            seconds = getattr(self, field)
            if not seconds > 0:
                raise ValueError(f"{field} of a PrometheusQuery must be above 0, not {seconds}")

    def values(self, nodes: Nodes) -> FloatArray:
        """One for each position; NaN where nothing is known."""
        column = nodes.reading(self).get(VALUE)
        return np.full(len(nodes), math.nan) if column is None else column

    def value(self, node: OneNode) -> float:
        """NaN where nothing is known."""
        return node.reading(self).get(VALUE, math.nan)

    @property
    def asks_who_is_who(self) -> bool:
        """Whether instances may have to be told apart by node_uname_info."""
        return self.match_label in ("auto", "nodename")


def values_by_node(
    query: PrometheusQuery,
    series: Sequence[Series],
    uname: Iterable[Series],
    nodes: Sequence[Node],
) -> dict[str, float]:
    """By name, of the nodes that a series belongs to."""
    matcher = NodeMatcher([identity_of(node) for node in nodes], uname, query.match_label)
    found: dict[str, float] = {}
    for one, rows in zip(series, matcher.candidates(series), strict=True):
        if len(rows) == 1 and math.isfinite(one.value):
            name = nodes[rows[0]].name
            found[name] = max(one.value, found.get(name, -math.inf))
    return found


def query_reading(values: Mapping[str, float], *, sampled_at: float) -> Reading:
    """Any other node has no value."""
    column = np.array(list(values.values()), np.float64)
    # Also where no value is known, rules find the column.
    return Reading(tuple(values), {VALUE: column}, {VALUE: math.nan}, sampled_at=sampled_at)


def without_value(reading: Reading, node_names: Iterable[str]) -> tuple[str, ...]:
    """The nodes that this reading knows nothing of, sorted."""
    known = dict(zip(reading.names, reading.columns[VALUE].tolist(), strict=True))
    return tuple(sorted(name for name in node_names if math.isnan(known.get(name, math.nan))))
