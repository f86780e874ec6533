"""A Scenario: a cluster, what is measured on it, and one pod to place.

`files` reads scenarios; `app.offline` answers them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from lowtide.config.errors import did_you_mean
from lowtide.objects.decoding import without_nulls
from lowtide.objects.devices import DeviceClass
from lowtide.objects.kinds import Namespace
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.policy import PodDisruptionBudget
from lowtide.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from lowtide.objects.workloads import ReplicaSet, ReplicationController, Service, StatefulSet

READINGS = ("traffic", "usage", "queries")

# What a scenario may hold besides, and what each of them is.
_OBJECTS: Mapping[str, type[Any]] = {
    "namespaces": Namespace,
    "services": Service,
    "replicationControllers": ReplicationController,
    "replicaSets": ReplicaSet,
    "statefulSets": StatefulSet,
    "podDisruptionBudgets": PodDisruptionBudget,
    "deviceClasses": DeviceClass,
    "persistentVolumes": PersistentVolume,
    "persistentVolumeClaims": PersistentVolumeClaim,
    "storageClasses": StorageClass,
    "csiNodes": CSINode,
    "csiDrivers": CSIDriver,
    "csiStorageCapacities": CSIStorageCapacity,
    "volumeAttachments": VolumeAttachment,
}
_CLUSTER_WIDE = (
    *(Node, Namespace, DeviceClass, PersistentVolume),
    *(StorageClass, CSINode, CSIDriver, VolumeAttachment),
)
# The rules that read these are not built yet.
_OBJECTS_NOT_READ_YET = (
    "resourceSlices",
    "resourceClaims",
)
_KEYS = (
    *("id", "pod", "nodes", "pods", "pendingPods", "config", "readings"),
    *_OBJECTS,
    *_OBJECTS_NOT_READ_YET,
)


class ScenarioError(ValueError):
    """A scenario that cannot be read; the sentence says what and where."""


@dataclass(frozen=True, slots=True)
class Scenario:
    id: str
    pod: Pod
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()  # bound ones
    pending_pods: tuple[Pod, ...] = ()  # nominated to a node
    objects: tuple[Any, ...] = ()  # of other types
    config: Mapping[str, Any] | None = None
    readings: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""  # file and line, where it was read


def scenario_from(data: Any, *, name: str) -> Scenario:
    """From the form's JSON: either the scenario itself or {"id", "scenario"}."""
    where = name
    if not isinstance(data, dict):
        raise ScenarioError(f"{name}: a scenario is an object, not {type(data).__name__}")
    if "scenario" in data and not isinstance(data["scenario"], dict):
        kind = type(data["scenario"]).__name__
        raise ScenarioError(f"{name}: 'scenario' is an object, not {kind}")
    if "scenario" in data:
        name = str(data.get("id", name))
        data = data["scenario"]
    for key in data:
        if key not in _KEYS:
            near = did_you_mean(str(key), _KEYS)
            raise ScenarioError(f"{name}: {key!r} is no part of a scenario{near.rstrip(';')}")
    if "pod" not in data:
        raise ScenarioError(f"{name}: the scenario has no 'pod', the pod to place")
    return Scenario(
        id=str(data.get("id", name)),
        pod=_decoded(data["pod"], Pod, f"{name}: pod"),
        nodes=_all_decoded(data, "nodes", Node, name),
        pods=_all_decoded(data, "pods", Pod, name),
        pending_pods=_all_decoded(data, "pendingPods", Pod, name),
        objects=tuple(
            thing for key, kind in _OBJECTS.items() for thing in _all_decoded(data, key, kind, name)
        ),
        config=_object(data, "config", name),
        readings=_readings(data, name),
        where=where,
    )


def _readings(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    readings = _object(data, "readings", name) or {}
    for key, by_node in readings.items():
        if key not in READINGS:
            raise ScenarioError(f"{name}: readings has {key!r}; it may have {', '.join(READINGS)}")
        if not isinstance(by_node, Mapping):
            kind = type(by_node).__name__
            by = "query" if key == "queries" else "node"
            raise ScenarioError(
                f"{name}: readings.{key} is an object of values by {by}, not {kind}"
            )
    return readings


def _object(data: Mapping[str, Any], key: str, name: str) -> Mapping[str, Any] | None:
    value = data.get(key)
    if value is None or isinstance(value, Mapping):
        return value
    raise ScenarioError(f"{name}: {key} is an object, not {type(value).__name__}")


def _all_decoded(data: Mapping[str, Any], key: str, kind: type[Any], name: str) -> tuple[Any, ...]:
    items = data.get(key) or []
    if not isinstance(items, Iterable) or isinstance(items, str | dict):
        raise ScenarioError(f"{name}: {key} is a list, not {type(items).__name__}")
    return tuple(_decoded(each, kind, f"{name}: {key}[{n}]") for n, each in enumerate(items))


def _decoded(data: Any, kind: type[Any], where: str) -> Any:
    try:
        decoded = msgspec.convert(without_nulls(data), kind, strict=False)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{where}: {error}") from None
    if not decoded.metadata.name and not getattr(decoded.metadata, "uid", ""):
        raise ScenarioError(f"{where}.metadata.name is missing")
    return _completed(decoded)


def _completed(decoded: Any) -> Any:
    """What the API server would have filled in: a namespace and a uid."""
    if isinstance(decoded, _CLUSTER_WIDE):
        return decoded
    meta = decoded.metadata
    namespace = meta.namespace or "default"
    uid = meta.uid or f"{namespace}/{meta.name}"
    return msgspec.structs.replace(
        decoded, metadata=msgspec.structs.replace(meta, namespace=namespace, uid=uid)
    )
