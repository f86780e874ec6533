"""Sums of a pod's requests and limits, for NodeResourcesFit and the cluster's columns.

Results are integers: cpu in millicores, everything else in whole units.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from lowtide.objects.pod import Container, ContainerStatus, Pod, PodStatus, Quantities, once
from lowtide.objects.quantity import LARGEST, QuantityError, milli, parse_nano, units

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

# kube-scheduler's defaults for containers without requests. Only scoring uses them.
DEFAULT_CPU_NANO = 100 * 10**6
DEFAULT_MEMORY_NANO = 200 * 1024 * 1024 * 10**9

NanoAmounts = dict[str, int]

# Sums of thousands of amounts up to this, and a hundred times one of them, fit into 64 bits.
LARGEST_PLAIN = 2**50


def pod_requests(pod: Pod) -> dict[str, int]:
    """All that the pod takes from a node, as NodeResourcesFit compares it at Filter."""
    nano = _total(pod, lambda container: _effective(container, pod))
    _replace_by_pod_level(pod, nano)
    _add(nano, _parse(pod.spec.overhead, "spec.overhead"))
    return {name: to_int(name, amount) for name, amount in nano.items()}


# `pod_requests`, computed once per pod.
known_requests = once(pod_requests)


@once
def asked_requests(pod: Pod) -> dict[str, int]:
    """The requests of a pending pod, from its spec alone; its status is ignored."""
    status = pod.status
    containers = status.container_statuses or status.init_container_statuses
    has_status = containers or status.resources is not None or status.allocated_resources
    return pod_requests(replace(pod, status=PodStatus())) if has_status else known_requests(pod)


def pod_limits(pod: Pod) -> dict[str, int]:
    """The pod's limits, for the resources that have one."""
    nano = _total(pod, _spec_limits)
    if pod.spec.resources is not None:
        nano |= _parse(pod.spec.resources.limits, "spec.resources.limits")
    overhead = _parse(pod.spec.overhead, "spec.overhead")
    _add(nano, {name: amount for name, amount in overhead.items() if name in nano})
    return {name: to_int(name, amount) for name, amount in nano.items()}


def nonzero_requests(pod: Pod) -> tuple[int, int]:
    """(millicores, memory bytes) of a pod on a node, with defaults for missing requests."""
    pod_level = pod.spec.resources.requests if pod.spec.resources else {}
    containers = [*pod.spec.containers, *pod.spec.init_containers]
    fill_cpu = not pod_level or not _is_requested(CPU, pod_level, containers)
    fill_memory = not pod_level or not _is_requested(MEMORY, pod_level, containers)

    def amounts(container: Container) -> NanoAmounts:
        return _with_defaults(_effective(container, pod), fill_cpu, fill_memory)

    nano = _total(pod, amounts)
    _replace_by_pod_level(pod, nano)
    _add(nano, _parse(pod.spec.overhead, "spec.overhead"))
    return to_int(CPU, nano.get(CPU, 0)), to_int(MEMORY, nano.get(MEMORY, 0))


@once
def scored_requests(pod: Pod) -> dict[str, int]:
    """The incoming pod's requests as NodeResourcesFit scores them: with defaults for missing
    requests, without pod-level resources."""

    def amounts(container: Container) -> NanoAmounts:
        return _with_defaults(_spec_requests(container), fill_cpu=True, fill_memory=True)

    nano = _total(pod, amounts)
    _add(nano, _parse(pod.spec.overhead, "spec.overhead"))
    return {name: to_int(name, amount) for name, amount in nano.items()}


def to_int(resource: str, nano: int) -> int:
    return milli(nano) if resource == CPU else units(nano)


def amounts_as_int(amounts: Quantities, where: str) -> dict[str, int]:
    return {name: to_int(name, nano) for name, nano in _parse(amounts, where).items()}


class NodeAmounts(NamedTuple):
    """A node's allocatable amounts. Larger amounts than LARGEST are capped; negative and unreadable
    ones count as 0, so that the node's other resources stay usable."""

    by_resource: Mapping[str, int]
    is_clamped: bool  # at least one amount was changed, or equals LARGEST

    def amount_of(self, resource: str) -> int:
        return self.by_resource.get(resource, 0)


def are_large(amounts: Mapping[str, int]) -> bool:
    """True if an amount is so large that sums and products may exceed 64 bits."""
    return max(amounts.values(), default=0) > LARGEST_PLAIN


NOTHING = NodeAmounts({}, is_clamped=False)


def node_amounts(allocatable: Quantities) -> NodeAmounts:
    amounts: dict[str, int] = {}
    is_clamped = False
    for name, quantity in allocatable.items():
        try:
            amount = to_int(name, parse_nano(quantity))
        except QuantityError:
            amount = -1
        amounts[name] = max(amount, 0)
        is_clamped |= not 0 <= amount < LARGEST
    return NodeAmounts(amounts, is_clamped)


def is_extended(resource: str) -> bool:
    """True for a resource outside Kubernetes' own namespace, such as a vendor's GPU."""
    return (
        "/" in resource
        and "kubernetes.io/" not in resource
        and not resource.startswith("requests.")
    )


def is_scalar(resource: str) -> bool:
    return (
        is_extended(resource)
        or resource.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in resource
    )


def is_counted(resource: str) -> bool:
    """True if the resource is counted on nodes; kube-scheduler ignores all others."""
    return resource in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(resource)


def _total(pod: Pod, amounts_of: Callable[[Container], NanoAmounts]) -> NanoAmounts:
    """For each resource, the larger of the running containers' sum and the peak during init."""
    total: NanoAmounts = {}
    for container in pod.spec.containers:
        _add(total, amounts_of(container))
    if not pod.spec.init_containers:
        return total
    sidecars: NanoAmounts = {}
    starting: NanoAmounts = {}
    for container in pod.spec.init_containers:
        amounts = amounts_of(container)
        if container.is_sidecar:
            _add(total, amounts)
            _add(sidecars, amounts)
            _raise_to(starting, sidecars)
        else:
            _add(amounts, sidecars)
            _raise_to(starting, amounts)
    _raise_to(total, starting)
    return total


def _effective(container: Container, pod: Pod) -> NanoAmounts:
    """The container's requests: from its spec, or the largest of spec and status during an in-place
    resize. An infeasible resize ignores the spec."""
    amounts = _spec_requests(container)
    status = _status_of(container, pod)
    if status is None:
        return amounts
    running = _parse(status.resources.requests, "status") if status.resources else {}
    allocated = _parse(status.allocated_resources, "status")
    if not running and not allocated:
        return amounts
    if is_resize_infeasible(pod):
        amounts = {}
    _raise_to(amounts, running)
    _raise_to(amounts, allocated)
    return amounts


def _status_of(container: Container, pod: Pod) -> ContainerStatus | None:
    for statuses in (pod.status.container_statuses, pod.status.init_container_statuses):
        for status in statuses:
            if status.name == container.name:
                return status
    return None


def is_resize_infeasible(pod: Pod) -> bool:
    return any(
        each.type == "PodResizePending" and each.reason == "Infeasible"
        for each in pod.status.conditions
    )


def _replace_by_pod_level(pod: Pod, nano: NanoAmounts) -> None:
    if pod.spec.resources is None:
        return
    pod_level = _parse(pod.spec.resources.requests, "spec.resources.requests")
    if pod.status.resources is not None or pod.status.allocated_resources:
        running = pod.status.resources.requests if pod.status.resources else {}
        if is_resize_infeasible(pod):
            pod_level = {}
        _raise_to(pod_level, _parse(running, "status.resources.requests"))
        _raise_to(pod_level, _parse(pod.status.allocated_resources, "status.allocatedResources"))
    for name, amount in pod_level.items():
        if name in (CPU, MEMORY) or name.startswith("hugepages-"):
            nano[name] = amount


def _is_requested(resource: str, pod_level: Quantities, containers: Iterable[Container]) -> bool:
    return resource in pod_level or any(resource in c.resources.requests for c in containers)


def _with_defaults(amounts: NanoAmounts, fill_cpu: bool, fill_memory: bool) -> NanoAmounts:
    if fill_cpu:
        amounts.setdefault(CPU, DEFAULT_CPU_NANO)
    if fill_memory:
        amounts.setdefault(MEMORY, DEFAULT_MEMORY_NANO)
    return amounts


def _spec_requests(container: Container) -> NanoAmounts:
    return _parse(container.resources.requests, f"container {container.name!r} resources.requests")


def _spec_limits(container: Container) -> NanoAmounts:
    return _parse(container.resources.limits, f"container {container.name!r} resources.limits")


def _parse(amounts: Quantities, where: str) -> NanoAmounts:
    if not amounts:
        return {}
    try:
        parsed = {name: parse_nano(quantity) for name, quantity in amounts.items()}
    except QuantityError as error:
        raise QuantityError(f"{where}: {error}") from None
    for name, nano in parsed.items():
        if nano < 0:
            raise QuantityError(f"{where}: {name} is {amounts[name]}; it must not be below zero")
    return parsed


def _add(into: NanoAmounts, amounts: NanoAmounts) -> None:
    for name, amount in amounts.items():
        into[name] = into.get(name, 0) + amount


def _raise_to(into: NanoAmounts, amounts: NanoAmounts) -> None:
    for name, amount in amounts.items():
        into[name] = max(into.get(name, amount), amount)
