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

# By resource: the key in Footprint.amounts of what scoring counts, with kube-scheduler's defaults.
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

    amounts: dict[str, int]  # requests by resource; what scoring counts by the names in NONZERO
    host_ports: tuple[HostPort, ...]
    is_clamped: bool = False  # an amount is above LARGEST or cannot be parsed
    is_large: bool = False  # sums and products of its amounts may overflow int64
    has_affinity_terms: bool = False
    has_volumes: bool = False
    # The indexes of ClusterState that such a pod concerns; set by Footprints.
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

    def is_same_to_plugins(self, other: "PlacedPod") -> bool:
        """Whether no plugin can tell the two apart: then no row has to be evaluated again.

        The API server lets a few more fields of a pod with a node change: images,
        `activeDeadlineSeconds`, added tolerations. These do not count: they take nothing from a
        node.
        """
        return self.is_same_except_labels(other) and self.pod.labels == other.pod.labels

    def is_same_except_labels(self, other: "PlacedPod") -> bool:
        """Whether plugins can tell the two apart by their labels at most."""
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
        # A running pod whose requests cannot be parsed counts as a pod, but takes no resources.
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
    """The footprints of pods. Pods that are alike share one, which is computed once and kept as
    long as one of them exists."""

    def __init__(self, indexes: "Sequence[Index]" = ()) -> None:
        self._indexes = indexes
        self._by_key: WeakValueDictionary[bytes, Footprint] = WeakValueDictionary()

    def footprint(self, pod: Pod) -> Footprint:
        spec = pod.spec
        # Everything that the footprint depends on.
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
    """What the kubelet reports about a pod's resources: during a resize, they may differ from the
    spec. None if it reports nothing, for example because the feature is off."""
    status = pod.status
    containers = [
        (each.name, each.resources, each.allocated_resources)
        for each in status.container_statuses + status.init_container_statuses
        if each.resources is not None or each.allocated_resources
    ]
    if not containers and status.resources is None and not status.allocated_resources:
        return None
    return [containers, status.resources, status.allocated_resources, is_resize_infeasible(pod)]


def host_ports_of(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports of containers and of sidecars, which are init containers that keep running."""
    containers = [*pod.spec.containers, *(c for c in pod.spec.init_containers if c.is_sidecar)]
    return tuple(
        HostPort(port.protocol or "TCP", port.host_port, port.host_ip or WILDCARD_IP)
        for container in containers
        for port in container.ports
        if port.host_port > 0
    )
