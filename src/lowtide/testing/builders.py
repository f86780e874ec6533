"""Builders of pods, nodes, readings and clusters. Every argument has a default."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import Quantity
from lowtide.readings.prometheus_query import query_reading


def make_node(
    name: str = "node",
    *,
    cpu: Quantity = "4",
    memory: Quantity = "8Gi",
    pods: Quantity = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    addresses: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
    images: Mapping[str, int] | None = None,
    declared_features: Sequence[str] = (),
    **more_allocatable: Quantity,
) -> Node:
    """Other keywords add allocatable resources: `gpu="1"`, `nvidia_com__gpu=1` for nvidia.com/gpu.
    `images` maps names to sizes in bytes."""
    extra = {
        name.replace("__", "/").replace("_", "."): amount
        for name, amount in more_allocatable.items()
    }
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, **(labels or {})},
                "annotations": dict(annotations or {}),
            },
            "spec": {"taints": [dict(taint) for taint in taints], "unschedulable": unschedulable},
            "status": {
                "allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **extra},
                "addresses": [{"type": "InternalIP", "address": each} for each in addresses],
                "images": [
                    {"names": [image], "sizeBytes": size_bytes}
                    for image, size_bytes in (images or {}).items()
                ],
                "declaredFeatures": list(declared_features),
            },
        },
        Node,
    )


def make_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str | None = None,
    on: str = "",
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    requests: Mapping[str, Quantity] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, str]] = (),
    host_ports: Sequence[int] = (),
    priority: int = 0,
    scheduler_name: str = "lowtide",
    gates: Iterable[str] = (),
    nominated: str = "",
    phase: str = "Pending",
    deleted: bool = False,
    spec: Mapping[str, Any] | None = None,
) -> Pod:
    """`on` is the pod's node. `spec` overrides fields of the spec, spelled as in YAML. The uid is
    namespace/name by default."""
    requested = dict(requests or {})
    given = (("cpu", cpu), ("memory", memory))
    requested.update({key: value for key, value in given if value is not None})
    container: dict[str, Any] = {
        "name": "main",
        "resources": {"requests": requested},
        "ports": [{"hostPort": port, "containerPort": port} for port in host_ports],
    }
    meta: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"{namespace}/{name}",
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
    }
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return msgspec.convert(
        {
            "metadata": meta,
            "spec": {
                "containers": [container],
                "nodeName": on,
                "nodeSelector": dict(node_selector or {}),
                "tolerations": [dict(each) for each in tolerations],
                "priority": priority,
                "schedulerName": scheduler_name,
                "schedulingGates": [{"name": gate} for gate in gates],
                **(spec or {}),
            },
            "status": {"phase": phase, "nominatedNodeName": nominated},
        },
        Pod,
    )


def make_state(
    nodes: Iterable[Node],
    pods: Iterable[Pod] = (),
    readings: Mapping[Any, Reading] | None = None,
) -> ClusterState:
    """A cluster with these nodes, and the pods on them. `readings` maps a plugin's request, such as
    a PrometheusQuery, to its reading."""
    state = ClusterState()
    for node in nodes:
        state.add_node(node)
    for pod in pods:
        state.place(pod)
    for request, reading in (readings or {}).items():
        state.publish(request, reading)
    return state


def make_reading(
    by_node: Mapping[str, Mapping[str, float]], of_others: Mapping[str, float] | None = None
) -> Reading:
    """A reading from the fields of each node; a field that a node lacks is NaN."""
    fields = dict.fromkeys(name for values in by_node.values() for name in values)
    columns = {
        name: np.array([values.get(name, math.nan) for values in by_node.values()], np.float64)
        for name in fields
    }
    return Reading(tuple(by_node), columns, of_others or {})


def make_values(by_node: Mapping[str, float]) -> Reading:
    """The reading of a PrometheusQuery from one value per node; other nodes are unknown."""
    return query_reading(by_node, sampled_at=math.inf)
