"""A plugin's own PromQL query, which gives one value per node.

A third-party plugin lists a PrometheusQuery in its `readings` and reads the values from it.
Telemetry polls them; offline modes read them from a file."""

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
    """A PromQL query with one series per node. Also a key: equal queries share one poller.

    Series are matched to nodes by `match_label`, as for NetworkTraffic. If a node has several
    series, the highest value counts; values that are not finite are ignored. An answer counts until
    it is stale."""

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
        """One value per position of `nodes`; NaN where it is unknown."""
        column = nodes.reading(self).get(VALUE)
        return np.full(len(nodes), math.nan) if column is None else column

    def value(self, node: OneNode) -> float:
        """The node's value; NaN if it is unknown."""
        return node.reading(self).get(VALUE, math.nan)

    @property
    def asks_who_is_who(self) -> bool:
        """True if matching series to nodes may need `node_uname_info`."""
        return self.match_label in ("auto", "nodename")


def values_by_node(
    query: PrometheusQuery,
    series: Sequence[Series],
    uname: Iterable[Series],
    nodes: Sequence[Node],
) -> dict[str, float]:
    """The value of each node that a series belongs to, by node name."""
    matcher = NodeMatcher([identity_of(node) for node in nodes], uname, query.match_label)
    found: dict[str, float] = {}
    for one, rows in zip(series, matcher.candidates(series), strict=True):
        if len(rows) == 1 and math.isfinite(one.value):
            name = nodes[rows[0]].name
            found[name] = max(one.value, found.get(name, -math.inf))
    return found


def query_reading(values: Mapping[str, float], *, sampled_at: float) -> Reading:
    """The reading with these values by node name; all other nodes have NaN."""
    column = np.array(list(values.values()), np.float64)
    # Even without any value, plugins must find the column.
    return Reading(tuple(values), {VALUE: column}, {VALUE: math.nan}, sampled_at=sampled_at)


def without_value(reading: Reading, node_names: Iterable[str]) -> tuple[str, ...]:
    """The names of the nodes without a value in this reading, sorted."""
    known = dict(zip(reading.names, reading.columns[VALUE].tolist(), strict=True))
    return tuple(sorted(name for name in node_names if math.isnan(known.get(name, math.nan))))
