"""How fast a node's link is, where its exporter does not say: the node's annotation, the
configuration, or the highest rate seen on other nodes. The meter calls it."""

import enum
import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from lowtide.cluster.columns import BoolArray, FloatArray, IntArray
from lowtide.objects.node import Node
from lowtide.objects.quantity import QuantityError
from lowtide.readings.amounts import bytes_per_second
from lowtide.readings.request import LinkCapacity

CAPACITY_ANNOTATION: Final = "lowtide.dev/link-capacity"
INSTANCE_TYPE: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")


class CapacitySource(enum.Enum):
    """Where a node's capacity was learned, best first."""

    SPEED = "link speed"
    ANNOTATION = "node annotation"
    CONFIG = "configuration"
    SAME_TYPE = "busiest node of its type"
    CLUSTER = "busiest node"
    UNKNOWN = "unknown"


SOURCES: Final = tuple(CapacitySource)


def is_said(source: IntArray) -> BoolArray:
    """Where the capacity was said by somebody, not guessed from what other nodes carry."""
    said: BoolArray = source <= SOURCES.index(CapacitySource.CONFIG)
    return said


def capacities_without_speed(
    nodes: Sequence[Node], configured: Sequence[LinkCapacity], peaks: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Bytes per second and its source (a number of SOURCES) for each node.

    `peaks` are the highest rates seen so far; a node is never judged by its own."""
    capacity = np.full(len(nodes), math.nan)
    source = np.full(len(nodes), SOURCES.index(CapacitySource.UNKNOWN))
    numbers = {"": 0}
    types = np.array([numbers.setdefault(_type_of(node), len(numbers)) for node in nodes], np.int64)
    _take(capacity, source, _highest_of_others(peaks, np.zeros_like(types)), CapacitySource.CLUSTER)
    of_type = _highest_of_others(peaks, types)
    of_type[types == numbers[""]] = math.nan
    _take(capacity, source, of_type, CapacitySource.SAME_TYPE)
    _take(capacity, source, _configured(nodes, configured), CapacitySource.CONFIG)
    annotated = np.array([annotated_capacity(node) for node in nodes], np.float64)
    _take(capacity, source, annotated, CapacitySource.ANNOTATION)
    return capacity, source


def annotated_capacity(node: Node) -> float:
    """NaN where the node has no annotation, or one that cannot be read."""
    text = node.metadata.annotations.get(CAPACITY_ANNOTATION)
    if text is None:
        return math.nan
    try:
        return bytes_per_second(text)
    except QuantityError:
        return math.nan


def is_capacity_readable(node: Node) -> bool:
    """Whether the node's annotation, if it has one, says something."""
    is_given = CAPACITY_ANNOTATION in node.metadata.annotations
    return not is_given or not math.isnan(annotated_capacity(node))


def _take(
    capacity: FloatArray, source: IntArray, better: FloatArray, of_source: CapacitySource
) -> None:
    known = better > 0
    capacity[known] = better[known]
    source[known] = SOURCES.index(of_source)


def _configured(nodes: Sequence[Node], configured: Sequence[LinkCapacity]) -> FloatArray:
    return np.array(
        [
            next(
                (one.bytes_per_second for one in configured if _has_labels(node, one)),
                math.nan,
            )
            for node in nodes
        ]
        if configured
        else np.full(len(nodes), math.nan),
        np.float64,
    )


def _has_labels(node: Node, capacity: LinkCapacity) -> bool:
    return all(node.labels.get(key) == value for key, value in capacity.labels)


def _type_of(node: Node) -> str:
    labels, (key, older_key) = node.labels, INSTANCE_TYPE
    return labels.get(key) or labels.get(older_key, "")


def _highest_of_others(peaks: FloatArray, groups: IntArray) -> FloatArray:
    """For each node the highest peak among others of its group; NaN where there is none."""
    found = np.full(len(peaks), math.nan)
    for group in np.unique(groups):
        members = np.flatnonzero((groups == group) & (peaks > 0))
        if not len(members):
            continue
        busiest = members[np.argmax(peaks[members])]
        others = members[members != busiest]
        found[groups == group] = peaks[busiest]
        found[busiest] = peaks[others].max() if len(others) else math.nan
    return found
