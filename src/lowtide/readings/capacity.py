"""Link capacities of nodes whose exporter reports no link speed: from the node's annotation, the
configuration, or the highest rate seen on other nodes. Used by the meter and by judging."""

import enum
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, NamedTuple

import numpy as np

from lowtide.cluster.columns import BoolArray, FloatArray, IntArray
from lowtide.objects.node import Node
from lowtide.objects.quantity import QuantityError
from lowtide.readings.amounts import LEAST_BYTES_PER_SECOND, bytes_per_second
from lowtide.readings.peaks import Peaks, TwoPeaks
from lowtide.readings.request import LinkCapacity

CAPACITY_ANNOTATION: Final = "lowtide.dev/link-capacity"
INSTANCE_TYPE: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")


class CapacitySource(enum.Enum):
    """Where a node's capacity comes from, best first."""

    SPEED = "link speed"
    ANNOTATION = "node annotation"
    CONFIG = "configuration"
    SAME_TYPE = "busiest node of its type"
    CLUSTER = "busiest node"
    UNKNOWN = "unknown"


SOURCES: Final = tuple(CapacitySource)


def is_given(source: IntArray) -> BoolArray:
    """True where the capacity was reported or configured, not guessed from other nodes' traffic."""
    stated: BoolArray = source <= SOURCES.index(CapacitySource.CONFIG)
    return stated


@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """The stated capacity of each node's link: from its annotation, else from the configuration.
    One element per node, except `kinds`."""

    kind: IntArray  # index into `kinds`
    kinds: Sequence[str]  # distinct instance types
    capacity: FloatArray  # bytes per second; 0 if not stated
    source: IntArray  # index into SOURCES


class StatedCapacities:
    """Reads the stated capacities, and rereads only nodes that changed since the last call."""

    def __init__(self, configured: Sequence[LinkCapacity]) -> None:
        self._configured = configured
        self._nodes: Sequence[Node] = ()
        self._per_node: list[_NodeCapacity] = []
        self._stated = _stated([])

    def stated_for(self, nodes: Sequence[Node]) -> Stated:
        per_node = self._per_node[: len(nodes)]
        is_other = map(operator.is_not, nodes, self._nodes)
        for row in compress(range(len(nodes)), is_other):
            per_node[row] = self._read(nodes[row])
        per_node += [self._read(node) for node in nodes[len(per_node) :]]
        if per_node != self._per_node:
            self._stated = _stated(per_node)
        self._nodes, self._per_node = nodes, per_node
        return self._stated

    def _read(self, node: Node) -> "_NodeCapacity":
        annotated = annotated_capacity(node)
        if annotated > 0:
            return _NodeCapacity(
                _type_of(node), annotated, SOURCES.index(CapacitySource.ANNOTATION)
            )
        for one in self._configured:
            if _has_labels(node, one):
                by_config = SOURCES.index(CapacitySource.CONFIG)
                return _NodeCapacity(_type_of(node), one.bytes_per_second, by_config)
        return _NodeCapacity(_type_of(node), 0.0, SOURCES.index(CapacitySource.UNKNOWN))


class _NodeCapacity(NamedTuple):
    kind: str
    capacity: float  # 0 if not stated
    source: int


def _stated(per_node: Sequence[_NodeCapacity]) -> Stated:
    numbers: dict[str, int] = {}
    kind = [numbers.setdefault(each.kind, len(numbers)) for each in per_node]
    return Stated(
        kind=np.array(kind, np.int64),
        kinds=tuple(numbers),
        capacity=np.array([each.capacity for each in per_node], np.float64),
        source=np.array([each.source for each in per_node], np.int64),
    )


def capacities_without_speed(
    stated: Stated, peaks: Peaks, names: Sequence[str]
) -> tuple[FloatArray, IntArray]:
    """For each node, its capacity in bytes per second (NaN if unknown) and its index in SOURCES."""
    capacity = np.full(len(names), math.nan)
    source = np.full(len(names), SOURCES.index(CapacitySource.UNKNOWN))
    row_of = {name: row for row, name in enumerate(names)} if peaks.of_kind else {}
    every_row = np.zeros_like(stated.kind)
    of_others = _highest_of_others([peaks.of_all()], every_row, row_of)
    _overwrite(capacity, source, of_others, CapacitySource.CLUSTER)
    of_kind = [peaks.of_kind.get(kind, ()) if kind else () for kind in stated.kinds]
    of_others = _highest_of_others(of_kind, stated.kind, row_of)
    _overwrite(capacity, source, of_others, CapacitySource.SAME_TYPE)
    is_stated = stated.capacity > 0
    capacity[is_stated] = stated.capacity[is_stated]
    source[is_stated] = stated.source[is_stated]
    return np.maximum(capacity, LEAST_BYTES_PER_SECOND), source


def annotated_capacity(node: Node) -> float:
    """Bytes per second; NaN if the annotation is absent or cannot be parsed."""
    text = node.metadata.annotations.get(CAPACITY_ANNOTATION)
    if text is None:
        return math.nan
    try:
        return bytes_per_second(text)
    except QuantityError:
        return math.nan


def is_capacity_readable(node: Node) -> bool:
    """True if the node has no capacity annotation or a valid one."""
    is_given = CAPACITY_ANNOTATION in node.metadata.annotations
    return not is_given or not math.isnan(annotated_capacity(node))


def _overwrite(
    capacity: FloatArray, source: IntArray, better: FloatArray, of_source: CapacitySource
) -> None:
    known = better > 0
    capacity[known] = better[known]
    source[known] = SOURCES.index(of_source)


def _has_labels(node: Node, capacity: LinkCapacity) -> bool:
    return all(node.labels.get(key) == value for key, value in capacity.labels)


def _type_of(node: Node) -> str:
    labels, (key, older_key) = node.labels, INSTANCE_TYPE
    return labels.get(key) or labels.get(older_key, "")


def _highest_of_others(
    peaks: Sequence[TwoPeaks], group: IntArray, row_of: Mapping[str, int]
) -> FloatArray:
    """For each node, the highest peak of another node in its group; NaN if there is none."""
    highest = np.array([each[0].bytes_per_second if each else math.nan for each in peaks])
    found: FloatArray = highest[group]
    for number, each in enumerate(peaks):
        row = row_of.get(each[0].node_name) if each else None
        if row is not None and group[row] == number:
            found[row] = each[1].bytes_per_second if len(each) > 1 else math.nan
    return found
