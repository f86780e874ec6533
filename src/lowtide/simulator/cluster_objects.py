"""The API objects of a drawn world: nodes, the owners of pods, and pods pending or running.

The run hands them to the machine as a watch would."""

import datetime
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from lowtide.objects.kinds import KIND_OF
from lowtide.objects.meta import ObjectMeta, OwnerReference
from lowtide.objects.node import Node, NodeAddress, NodeStatus
from lowtide.objects.pod import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
    Quantities,
    ResourceRequirements,
)
from lowtide.readings.amounts import BITS_PER_BYTE
from lowtide.readings.demand import TRAFFIC_ANNOTATION
from lowtide.scenario.simulation import OwnerGroup, Simulation
from lowtide.simulator.draw import Draw, DrawnPods

NAMESPACE = "default"

_STARTED = "Running"
_API_VERSION = {
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicationController": "v1",
    "Job": "batch/v1",
}


def nodes_of(simulation: Simulation) -> list[Node]:
    made: list[Node] = []
    for group in simulation.nodes:
        for number in range(group.count):
            name = f"node-{len(made) + 1:04d}"
            labels = {"kubernetes.io/hostname": name, **group.labels_of(number)}
            allocatable: Quantities = {
                "cpu": str(group.cpu),
                "memory": str(group.memory),
                "pods": group.pods,
            }
            status = NodeStatus(
                allocatable=allocatable,
                addresses=[NodeAddress("InternalIP", _address(len(made)))],
            )
            made.append(Node(metadata=ObjectMeta(name=name, labels=labels), status=status))
    return made


def _address(number: int) -> str:
    return f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"


def owner_name(number: int) -> str:
    return f"owner-{number + 1:03d}"


def owner_objects(
    simulation: Simulation, draw: Draw, watched: Iterable[type[Any]]
) -> Iterator[Any]:
    """Of each owner the object that selects its pods, where its kind is watched."""
    types = {KIND_OF[kind].name: kind for kind in watched}
    for number, group in enumerate(draw.owner_group.tolist()):
        kind, name = simulation.owners[group].kind, owner_name(number)
        if kind in types:
            metadata = {"name": name, "namespace": NAMESPACE, "uid": name}
            selector = {"matchLabels": {"app": name}}
            yield msgspec.convert(
                {"metadata": metadata, "spec": {"selector": selector}}, types[kind]
            )


class PodMaker:
    """Pods as the API server has them before they are bound, and when they run."""

    def __init__(self, simulation: Simulation, draw: Draw, scheduler_name: str) -> None:
        self._simulation = simulation
        self._draw = draw
        self._specs = [_spec(group, scheduler_name) for group in simulation.owners]

    def pending(self, pods: DrawnPods, number: int, prefix: str) -> Pod:
        owner = int(pods.owner[number])
        group = int(self._draw.owner_group[owner])
        owner_reference = OwnerReference(
            kind=self._simulation.owners[group].kind,
            api_version=_API_VERSION.get(self._simulation.owners[group].kind, ""),
            name=owner_name(owner),
            uid=owner_name(owner),
            controller=True,
        )
        name = f"{owner_name(owner)}-{prefix}{number:05d}"
        annotations = {}
        if self._simulation.knowledge == "annotated":
            annotations[TRAFFIC_ANNOTATION] = _stated(pods, number)
        return Pod(
            metadata=ObjectMeta(
                name=name,
                namespace=NAMESPACE,
                uid=name,
                labels={"app": owner_name(owner)},
                annotations=annotations,
                owner_references=[owner_reference],
            ),
            spec=self._specs[group],
        )


def running(pod: Pod, node_name: str, started_at: float) -> Pod:
    """The pod bound, with a container that runs since then."""
    moment = datetime.datetime.fromtimestamp(started_at, datetime.UTC)
    state = ContainerState(ContainerStateRunning(moment.isoformat(timespec="microseconds")))
    return Pod(
        metadata=pod.metadata,
        spec=msgspec.structs.replace(pod.spec, node_name=node_name),
        status=PodStatus(
            phase=_STARTED, container_statuses=[ContainerStatus(name="main", state=state)]
        ),
    )


def _spec(group: OwnerGroup, scheduler_name: str) -> PodSpec:
    requests: Quantities = {resource: str(amount) for resource, amount in group.requests.items()}
    container = Container(name="main", resources=ResourceRequirements(requests=requests))
    return PodSpec(containers=[container], scheduler_name=scheduler_name)


def _stated(pods: DrawnPods, number: int) -> str:
    amounts = {"receive": pods.receive[number], "transmit": pods.transmit[number]}
    bits = {name: round(amount * BITS_PER_BYTE) for name, amount in amounts.items()}
    if bits["receive"] == bits["transmit"]:
        return str(bits["receive"])
    return ",".join(f"{name}={amount}" for name, amount in bits.items() if amount > 0)
