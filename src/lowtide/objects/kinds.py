"""The kinds of objects that Lowtide reads, with their API paths and Python types."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lowtide.objects.devices import DeviceClass
from lowtide.objects.meta import ObjectMeta, Wire
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

T = TypeVar("T")


class Namespace(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    name: str
    plural: str
    api: str
    type: type[T]


POD = Kind("Pod", "pods", "/api/v1", Pod)
NODE = Kind("Node", "nodes", "/api/v1", Node)
NAMESPACE = Kind("Namespace", "namespaces", "/api/v1", Namespace)

# Lowtide cannot schedule without these. Without another kind, some plugins lack their data.
NEEDED_KINDS = frozenset({POD.name, NODE.name})

_STORAGE = "/apis/storage.k8s.io/v1"
_POLICY = "/apis/policy/v1"

# The kinds that plugins may list in `kinds`, by their type.
KIND_OF: Mapping[type, Kind[Any]] = {
    kind.type: kind
    for kind in (
        NAMESPACE,
        Kind("Service", "services", "/api/v1", Service),
        Kind("ReplicationController", "replicationcontrollers", "/api/v1", ReplicationController),
        Kind("ReplicaSet", "replicasets", "/apis/apps/v1", ReplicaSet),
        Kind("StatefulSet", "statefulsets", "/apis/apps/v1", StatefulSet),
        Kind("PodDisruptionBudget", "poddisruptionbudgets", _POLICY, PodDisruptionBudget),
        Kind("DeviceClass", "deviceclasses", "/apis/resource.k8s.io/v1", DeviceClass),
        Kind("PersistentVolume", "persistentvolumes", "/api/v1", PersistentVolume),
        Kind("PersistentVolumeClaim", "persistentvolumeclaims", "/api/v1", PersistentVolumeClaim),
        Kind("StorageClass", "storageclasses", _STORAGE, StorageClass),
        Kind("CSINode", "csinodes", _STORAGE, CSINode),
        Kind("CSIDriver", "csidrivers", _STORAGE, CSIDriver),
        Kind("CSIStorageCapacity", "csistoragecapacities", _STORAGE, CSIStorageCapacity),
        Kind("VolumeAttachment", "volumeattachments", _STORAGE, VolumeAttachment),
    )
}
