"""A pod on a node, and what it takes there. ClusterState keeps one per bound or assumed pod."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import msgspec

from lowtide.cluster.affinity_terms import has_affinity_terms
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import LARGEST, QuantityError
from lowtide.objects.requests import (
    CPU,
    MEMORY,
    are_large,
    is_resize_infeasible,
    known_requests,
    nonzero_requests,
)

if TYPE_CHECKING:
    from lowtide.cluster.indexes.index import Index

# By resource: the name of what scoring counts for a pod, kube's defaults included.
NONZERO = {CPU: "nonzero cpu", MEMORY: "nonzero memory"}
WILDCARD_IP = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class HostPort:
    protocol: str
    port: int
    ip: str

    def conflicts(self, ip: str) -> bool:
        return WILDCARD_IP in (ip, self.ip) or ip == self.ip


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Footprint:
    """What a pod takes from its node."""

    amounts: dict[str, int]  # what it requests by resource, and what scoring counts by NONZERO
    host_ports: tuple[HostPort, ...]
    is_clamped: bool = False  # whether an amount is beyond LARGEST, or cannot be read
    is_large: bool = False  # whether sums and products of its amounts need care
    has_affinity_terms: bool = False
    has_volumes: bool = False
    # Those of ClusterState that such a pod concerns; Footprints knows them.
    indexes: "tuple[Index, ...]" = field(default=(), init=False, repr=False, compare=False)

    @property
    def requests(self) -> dict[str, int]:
        nonzero = NONZERO.values()
        return {name: amount for name, amount in self.amounts.items() if name not in nonzero}


class PlacedPod(msgspec.Struct, frozen=True):
    pod: Pod
    node_name: str
    footprint: Footprint
    is_assumed: bool

    def looks_like(self, other: "PlacedPod") -> bool:
        """Whether no plugin can tell the two apart: then no row has to be judged again.

        The API server lets nothing else change in the spec of a pod that has its node.
        """
        return self.takes_like(other) and self.pod.labels == other.pod.labels

    def takes_like(self, other: "PlacedPod") -> bool:
        """Whether no plugin can tell the two apart but by their labels."""
        return (
            self.node_name == other.node_name
            and self.footprint == other.footprint
            and self.pod.is_terminating == other.pod.is_terminating
            and self.pod.spec.priority == other.pod.spec.priority
            and self.pod.metadata.annotations == other.pod.metadata.annotations
        )


def footprint_of(pod: Pod) -> Footprint:
    try:
        requests = known_requests(pod)
        cpu_milli, memory_bytes = nonzero_requests(pod)
        amounts = {**requests, NONZERO[CPU]: cpu_milli, NONZERO[MEMORY]: memory_bytes}
        is_clamped = LARGEST in requests.values()
    except QuantityError:
        # A running pod that cannot be read takes a place, and nothing that could be counted.
        amounts, is_clamped = {}, True
    return Footprint(
        amounts,
        host_ports_of(pod),
        is_clamped,
        is_large=are_large(amounts),
        has_affinity_terms=has_affinity_terms(pod),
        has_volumes=bool(pod.spec.volumes),
    )


_encode = msgspec.json.Encoder().encode


class Footprints:
    """What pods take. Very many are alike: then it is worked out once, and kept once, as long as
    any of them is there."""

    def __init__(self, indexes: "Sequence[Index]" = ()) -> None:
        self._indexes = indexes
        self._by_key: WeakValueDictionary[bytes, Footprint] = WeakValueDictionary()

    def footprint(self, pod: Pod) -> Footprint:
        spec = pod.spec
        # All that it is worked out of.
        key = _encode(
            [
                spec.containers,
                spec.init_containers,
                spec.overhead,
                spec.resources,
                has_affinity_terms(pod),
                bool(spec.volumes),
                _reported_by_kubelet(pod),
            ]
        )
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = footprint_of(pod)
            concerned = tuple([each for each in self._indexes if each.concerns(found)])
            object.__setattr__(found, "indexes", concerned)
        return found


def _reported_by_kubelet(pod: Pod) -> list[Any] | None:
    """What runs may take something else than its spec says, while it is resized. None where
    nothing is told of that, as where the feature is off."""
    status = pod.status
    told = [
        (each.name, each.resources, each.allocated_resources)
        for each in status.container_statuses + status.init_container_statuses
        if each.resources is not None or each.allocated_resources
    ]
    if not told and status.resources is None and not status.allocated_resources:
        return None
    return [told, status.resources, status.allocated_resources, is_resize_infeasible(pod)]


def host_ports_of(pod: Pod) -> tuple[HostPort, ...]:
    """Ports of containers, and of init containers that go on running beside them."""
    containers = [*pod.spec.containers, *(c for c in pod.spec.init_containers if c.is_sidecar)]
    return tuple(
        HostPort(port.protocol or "TCP", port.host_port, port.host_ip or WILDCARD_IP)
        for container in containers
        for port in container.ports
        if port.host_port > 0
    )
