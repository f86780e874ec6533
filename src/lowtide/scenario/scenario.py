"""A Scenario: a cluster, its measurements and one pod to place.

`files` reads scenarios from files; `app.offline` answers them.
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

# Other objects that a scenario may contain, with their types.
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
# Accepted, but no plugin reads them yet.
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
    """A scenario cannot be read. The message tells what is wrong, and where."""


@dataclass(frozen=True, slots=True)
class Scenario:
    id: str
    pod: Pod
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()  # bound to nodes
    pending_pods: tuple[Pod, ...] = ()  # nominated to a node
    objects: tuple[Any, ...] = ()  # of all other types
    config: Mapping[str, Any] | None = None
    readings: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""  # the file and line that it was read from


def scenario_from(data: Any, *, name: str) -> Scenario:
    """Read a scenario from decoded JSON: either the scenario itself or {"id", "scenario"}."""
    where = name
    if not isinstance(data, dict):
        raise ScenarioError(f"{name}: a scenario must be an object, not {type(data).__name__}")
    if "scenario" in data and not isinstance(data["scenario"], dict):
        kind = type(data["scenario"]).__name__
        raise ScenarioError(f"{name}: 'scenario' must be an object, not {kind}")
    if "scenario" in data:
        name = str(data.get("id", name))
        data = data["scenario"]
    for key in data:
        if key not in _KEYS:
            near = did_you_mean(str(key), _KEYS)
            raise ScenarioError(f"{name}: {key!r} is not a field of a scenario{near.rstrip(';')}")
    if "pod" not in data:
        raise ScenarioError(f"{name}: the scenario has no 'pod' to place")
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
            raise ScenarioError(
                f"{name}: readings has the unknown field {key!r}; valid are {', '.join(READINGS)}"
            )
        if not isinstance(by_node, Mapping):
            kind = type(by_node).__name__
            by = "query" if key == "queries" else "node"
            raise ScenarioError(
                f"{name}: readings.{key} must be an object of values by {by}, not {kind}"
            )
    return readings


def _object(data: Mapping[str, Any], key: str, name: str) -> Mapping[str, Any] | None:
    value = data.get(key)
    if value is None or isinstance(value, Mapping):
        return value
    raise ScenarioError(f"{name}: {key} must be an object, not {type(value).__name__}")


def _all_decoded(data: Mapping[str, Any], key: str, kind: type[Any], name: str) -> tuple[Any, ...]:
    items = data.get(key) or []
    if not isinstance(items, Iterable) or isinstance(items, str | dict):
        raise ScenarioError(f"{name}: {key} must be a list, not {type(items).__name__}")
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
    """The object with the namespace and uid that the API server would have set."""
    if isinstance(decoded, _CLUSTER_WIDE):
        return decoded
    meta = decoded.metadata
    namespace = meta.namespace or "default"
    uid = meta.uid or f"{namespace}/{meta.name}"
    return msgspec.structs.replace(
        decoded, metadata=msgspec.structs.replace(meta, namespace=namespace, uid=uid)
    )
