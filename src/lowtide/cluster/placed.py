"""A pod on a node, and what it takes there. ClusterState keeps one per bound or assumed pod."""

from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from lowtide.objects.pod import Pod
from lowtide.objects.quantity import LARGEST, QuantityError
from lowtide.objects.requests import (
    are_large,
    is_resize_infeasible,
    known_requests,
    nonzero_requests,
)

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
    """What a pod takes from its node: requests by resource, and host ports."""

    requests: dict[str, int]
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int
    host_ports: tuple[HostPort, ...]
    is_clamped: bool = False  # whether an amount is beyond LARGEST, or cannot be read
    is_large: bool = False  # whether sums and products of its amounts need care


class PlacedPod(msgspec.Struct, frozen=True):
    pod: Pod
    node_name: str
    footprint: Footprint
    is_assumed: bool

    def looks_like(self, other: "PlacedPod") -> bool:
        """Whether no rule can tell the two apart: then no row has to be judged again.

        The API server lets nothing else change in the spec of a pod that has its node.
        """
        return self.takes_like(other) and self.pod.labels == other.pod.labels

    def takes_like(self, other: "PlacedPod") -> bool:
        """Whether no rule can tell the two apart but by their labels."""
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
    except QuantityError:
        # A running pod that cannot be read takes a place, and nothing that could be counted.
        return Footprint({}, 0, 0, host_ports_of(pod), is_clamped=True)
    is_clamped = LARGEST in requests.values()
    return Footprint(
        requests,
        cpu_milli,
        memory_bytes,
        host_ports_of(pod),
        is_clamped,
        is_large=are_large(requests),
    )


_encode = msgspec.json.Encoder().encode


class Footprints:
    """What pods take. Very many are alike: then it is worked out once, and kept once, as long as
    any of them is there."""

    def __init__(self) -> None:
        self._by_spec: WeakValueDictionary[bytes, Footprint] = WeakValueDictionary()

    def of(self, pod: Pod) -> Footprint:
        key = _key_of(pod)
        footprint = self._by_spec.get(key)
        if footprint is None:
            footprint = self._by_spec[key] = footprint_of(pod)
        return footprint


def _key_of(pod: Pod) -> bytes:
    """All that it is worked out of, as a key."""
    spec, told = pod.spec, _told_by_kubelet(pod)
    return _encode([spec.containers, spec.init_containers, spec.overhead, spec.resources, told])


def _told_by_kubelet(pod: Pod) -> list[Any] | None:
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
