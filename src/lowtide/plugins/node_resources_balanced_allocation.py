"""NodeResourcesBalancedAllocation: prefers nodes where the pod makes resource use more even.

It uses the formula of v1.36, which compares the node's balance with and without the pod.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from lowtide.framework.plugin import (
    MAX_SCORE,
    BoolArray,
    FloatArray,
    IntArray,
    Nodes,
    Pod,
)
from lowtide.objects.requests import CPU, MEMORY, asked_requests, is_counted, is_scalar

_ShortArray = npt.NDArray[np.int16]  # a quarter of the memory of int64


class BalancedResource(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: str
    """A resource such as `cpu`."""
    weight: int = 1
    """Accepted, but has no effect. Bounds: 0 to 1."""


class NodeResourcesBalancedAllocationArgs(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True
):
    resources: tuple[BalancedResource, ...] = (BalancedResource(CPU), BalancedResource(MEMORY))
    """The resources to balance; name each once."""

    def problems(self) -> Iterator[tuple[str, str]]:
        """What is wrong beyond types: field and text."""
        names = [each.name for each in self.resources]
        for each in self.resources:
            if each.weight not in (0, 1):
                yield (
                    "resources",
                    f"the weight of resource {each.name} must be 1, not {each.weight}",
                )
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                yield "resources", f"resource {name} is listed twice; name it once"


class NodeResourcesBalancedAllocation:
    name = "NodeResourcesBalancedAllocation"
    args = NodeResourcesBalancedAllocationArgs

    def __init__(self, args: NodeResourcesBalancedAllocationArgs) -> None:
        self._resources = [each.name for each in args.resources]

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        requests = asked_requests(pod)
        counted = [
            resource
            for resource in self._resources
            if is_counted(resource) and (requests.get(resource, 0) or not is_scalar(resource))
        ]
        if not any(requests.get(resource, 0) for resource in counted):
            return None
        capacities = [nodes.allocatable(resource) for resource in counted]
        all_have_all = all(map(nodes.all_have, counted))
        counts = None if all_have_all else np.array(capacities) > 0  # (resources, nodes)
        before: list[FloatArray] = []  # the share of each resource that is used
        after: list[FloatArray] = []
        for resource, capacity in zip(counted, capacities, strict=True):
            whole = capacity if all_have_all else np.maximum(capacity, 1)
            divisor = whole.astype(np.float64)
            used, wanted = nodes.requested(resource), requests.get(resource, 0)
            before.append(np.minimum(used, whole) / divisor)
            after.append(nodes.sum_up_to(whole, used, wanted) / divisor if wanted else before[-1])
        gain = _balance(after, counts)
        gain -= _balance(before, counts)
        half = MAX_SCORE // 2
        gain += half
        gain -= gain >> 15  # adds 1 where it is below 0, so that halving rounds toward 0
        gain >>= 1
        gain += half
        return gain.astype(np.int64)


def _balance(shares: Sequence[FloatArray], counts: BoolArray | None) -> _ShortArray:
    """100 if all resources are used to the same share, less the further the shares lie apart.
    `counts` says which nodes have which resource; None if all have all."""
    if len(shares) == 2 and counts is None:
        spread = _spread_of_two(*shares)
    else:
        table = np.array(shares)
        spread = _spread(table, np.ones(table.shape, np.bool_) if counts is None else counts)
    evenness = np.subtract(1, spread, out=spread)
    evenness *= MAX_SCORE
    return evenness.astype(np.int16)


def _spread_of_two(one: FloatArray, other: FloatArray) -> FloatArray:
    distance: FloatArray = one - other
    np.abs(distance, out=distance)
    distance *= 0.5
    return distance


def _spread(shares: FloatArray, counts: BoolArray) -> FloatArray:
    """The standard deviation over the resources that a node has; for two, half their distance. Both
    arrays are (resources, nodes)."""
    number = counts.sum(axis=0)
    mean = np.where(counts, shares, 0).sum(axis=0) / np.maximum(number, 1)
    squares = np.where(counts, (shares - mean) ** 2, 0).sum(axis=0)
    deviation = np.sqrt(squares / np.maximum(number, 1))
    lowest = np.where(counts, shares, np.inf).min(axis=0)
    highest = np.where(counts, shares, -np.inf).max(axis=0)
    with np.errstate(invalid="ignore"):
        half_distance = (highest - lowest) / 2
    return np.where(number == 2, half_distance, np.where(number < 2, 0.0, deviation))
