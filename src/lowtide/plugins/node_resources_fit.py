"""NodeResourcesFit: rejects nodes with too few free resources, and scores nodes by how much of
their resources would be used."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec
import numpy as np

from lowtide.framework.plugin import (
    MAX_SCORE,
    NODE,
    TAKEN,
    Change,
    IntArray,
    Nodes,
    Pod,
    Rejection,
)
from lowtide.objects.node import Node
from lowtide.objects.quantity import LARGEST
from lowtide.objects.requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    asked_requests,
    is_counted,
    is_extended,
    is_scalar,
    node_amounts,
    pod_requests,
    scored_requests,
)
from lowtide.objects.requests import PODS as POD_COUNT

_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)
_LARGEST_TO_MULTIPLY = LARGEST // MAX_SCORE  # by MAX_SCORE, in 64 bits


class _Args(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    pass


class ResourceWeight(_Args, frozen=True):
    name: str
    """A resource such as `cpu`."""
    weight: int = 1
    """The resource's weight; 0 counts as 1. Bounds: 0 to 100."""


class ShapePoint(_Args, frozen=True):
    utilization: int
    """Percent of allocatable; must grow from point to point. Bounds: 0 to 100."""
    score: int
    """The score there; between points it is interpolated. Bounds: 0 to 10."""


class RequestedToCapacityRatio(_Args, frozen=True):
    shape: list[ShapePoint] = []
    """The curve from utilization to score; at least one point."""


class ScoringStrategy(_Args, frozen=True):
    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    """Prefer free nodes, prefer full nodes, or score by a curve."""
    resources: tuple[ResourceWeight, ...] = (ResourceWeight(CPU), ResourceWeight(MEMORY))
    """The resources that count in the score."""
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None
    """The curve, for `type: RequestedToCapacityRatio` only."""

    def problems(self) -> Iterator[str]:
        ratio = self.requested_to_capacity_ratio
        if self.type == "RequestedToCapacityRatio":
            yield from _shape_problems(ratio.shape if ratio else [])
        elif ratio is not None:
            yield "requestedToCapacityRatio goes only with type RequestedToCapacityRatio"
        for each in self.resources:
            if not 0 <= each.weight <= 100:  # 0 counts as 1
                yield (
                    f"the weight of resource {each.name} must lie within 1 to 100, "
                    f"not {each.weight}"
                )


class NodeResourcesFitArgs(_Args, frozen=True):
    ignored_resources: list[str] = []
    """Extended resources to ignore."""
    ignored_resource_groups: list[str] = []
    """Groups of extended resources to ignore: the part before the `/`."""
    scoring_strategy: ScoringStrategy = ScoringStrategy()
    """How to score nodes."""

    def problems(self) -> Iterator[tuple[str, str]]:
        """What is wrong beyond types: field and text."""
        for group in self.ignored_resource_groups:
            if "/" in group:
                text = f"{group!r} must not contain '/'; it is the part before it"
                yield "ignoredResourceGroups", text
        for text in self.scoring_strategy.problems():
            yield "scoringStrategy", text


class NodeResourcesFit:
    name = "NodeResourcesFit"
    retry_on = NODE | TAKEN
    args = NodeResourcesFitArgs

    def __init__(self, args: NodeResourcesFitArgs) -> None:
        self._args = args
        strategy = args.scoring_strategy
        self._resources = [(each.name, each.weight or 1) for each in strategy.resources]
        ratio = strategy.requested_to_capacity_ratio
        self._shape = ratio.shape if ratio else []

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        full = nodes.pod_count >= nodes.allocatable(POD_COUNT)
        yield Rejection(full, "Too many pods", eviction_helps=True)
        requests = asked_requests(pod)
        for resource in [*_FIRST, *sorted(set(requests) - set(_FIRST))]:
            wanted = requests.get(resource, 0)
            if wanted and not self._is_ignored(resource):
                yield from _shortages(resource, wanted, nodes)

    def may_help(self, pod: Pod, change: Change) -> bool:
        """A removed pod always makes room for one more, whatever it requested."""
        if change.after is None or change.is_of_taints:
            return True
        wanted = {
            resource: amount
            for resource, amount in asked_requests(pod).items()
            if amount and not self._is_ignored(resource)
        }
        if isinstance(change.after, Node):
            return _has_grown({**wanted, POD_COUNT: 1}, change)
        before, after = pod_requests(change.before), pod_requests(change.after)
        return any(before.get(resource, 0) > after.get(resource, 0) for resource in wanted)

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        requests = scored_requests(pod)
        total: IntArray = np.zeros(len(nodes), np.int64)
        weights: IntArray | int = 0
        strategy = self._args.scoring_strategy.type
        for resource, weight in self._resources:
            wanted = requests.get(resource, 0)
            if not is_counted(resource) or (not wanted and is_scalar(resource)):
                continue
            capacity = nodes.allocatable(resource)
            counts = None if nodes.all_have(resource) else capacity > 0  # None: on all nodes
            whole = capacity if counts is None else np.maximum(capacity, 1)
            used = nodes.sum_up_to(whole, _used(resource, nodes), wanted)
            score = self._share(strategy)(nodes, used, whole)
            if strategy == "RequestedToCapacityRatio":
                counts = (capacity > 0) & (score > 0)
            if weight != 1:
                score *= weight
            total += score if counts is None else score * counts
            weights = weights + (weight if counts is None else weight * counts)
        if strategy == "RequestedToCapacityRatio":
            mean = total / np.maximum(weights, 1)
            return np.floor(mean + 0.5).astype(np.int64)
        total //= max(weights, 1) if isinstance(weights, int) else np.maximum(weights, 1)
        return total

    def _share(self, strategy: str) -> Callable[[Nodes, IntArray, IntArray], IntArray]:
        if strategy == "LeastAllocated":
            return _least_allocated
        if strategy == "MostAllocated":
            return _most_allocated
        return self._by_shape

    def _by_shape(self, nodes: Nodes, used: IntArray, capacity: IntArray) -> IntArray:
        percent = _percent(nodes, used, capacity)
        points = [(point.utilization, point.score * 10) for point in self._shape]
        score = np.full(len(percent), points[-1][1], np.int64)
        for (left, low), (right, high) in reversed(list(pairwise(points))):
            rise = np.trunc((high - low) * (percent - left) / (right - left)).astype(np.int64)
            score = np.where(percent <= right, low + rise, score)
        return np.where(percent <= points[0][0], points[0][1], score)

    def _is_ignored(self, resource: str) -> bool:
        if not is_extended(resource):
            # A name that is neither a native nor an extended resource does not count at all.
            return not is_counted(resource)
        group = resource.partition("/")[0]
        return (
            resource in self._args.ignored_resources or group in self._args.ignored_resource_groups
        )


def _shape_problems(shape: Sequence[ShapePoint]) -> Iterator[str]:
    if not shape:
        yield "requestedToCapacityRatio.shape needs at least one point"
        return
    used = [point.utilization for point in shape]
    if not 0 <= used[0] <= used[-1] <= 100 or any(b <= a for a, b in pairwise(used)):
        given = ", ".join(map(str, used))
        yield f"the utilization of shape points must grow within 0 to 100, not {given}"
    scores = [point.score for point in shape]
    if not all(0 <= score <= 10 for score in scores):
        given = ", ".join(map(str, scores))
        yield f"the score of shape points must lie within 0 to 10, not {given}"


def _has_grown(wanted: Mapping[str, int], change: Change) -> bool:
    """Whether the node is large enough now, and has more of a wanted resource than before."""
    before: Mapping[str, int] = {} if change.before is None else _allocatable(change.before)
    after = _allocatable(change.after)
    return all(after.get(resource, 0) >= amount for resource, amount in wanted.items()) and any(
        after.get(resource, 0) > before.get(resource, 0) for resource in wanted
    )


def _allocatable(node: Node) -> Mapping[str, int]:
    return node_amounts(node.status.allocatable).by_resource


def _shortages(resource: str, wanted: int, nodes: Nodes) -> Iterator[Rejection]:
    capacity = nodes.allocatable(resource)
    short = wanted > capacity - nodes.requested(resource)
    reason = f"Insufficient {resource}"
    # Both are yielded even if nothing is short, so that reasons keep their order.
    beyond = short & (wanted > capacity) if np.count_nonzero(short) else short
    yield Rejection(short if beyond is short else short ^ beyond, reason, eviction_helps=True)
    yield Rejection(beyond, reason)


def _used(resource: str, nodes: Nodes) -> IntArray:
    if resource in (CPU, MEMORY):
        return nodes.nonzero_requested(resource)
    return nodes.requested(resource)


def _least_allocated(nodes: Nodes, used: IntArray, capacity: IntArray) -> IntArray:
    return _percent(nodes, capacity - used, capacity)


def _most_allocated(nodes: Nodes, used: IntArray, capacity: IntArray) -> IntArray:
    return _percent(nodes, used, capacity)


def _percent(nodes: Nodes, part: IntArray, capacity: IntArray) -> IntArray:
    """`part` in percent of the capacity, which is at least as large. Overwrites `part`."""
    large: list[int] = []
    if nodes.are_amounts_large:
        large = np.flatnonzero(part > _LARGEST_TO_MULTIPLY).tolist()
    exact = [int(part[row]) * MAX_SCORE // int(capacity[row]) for row in large]
    part *= MAX_SCORE
    part //= capacity
    if exact:
        part[large] = exact
    return part
