"""Which pods use a claim or disk, which volumes a StorageClass has, and on which nodes in-tree
drivers were migrated to CSI.

Plugins read them through `nodes.volumes`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lowtide.cluster.groups import Groups
from lowtide.cluster.indexes.by_node import ByNode
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.placed import Footprint, PlacedPod
from lowtide.cluster.table import Table
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.storage import CSINode, PersistentVolume
from lowtide.objects.volumes import Volume

# What pods can share: a claim, or a disk named in their specs.
VolumeKey = tuple[str, ...]


def claim_key(namespace: str, name: str) -> VolumeKey:
    return ("claim", namespace, name)


def disk_key(volume: Volume) -> VolumeKey | None:
    """None if the volume is not a disk that another pod can use too."""
    if volume.gce_persistent_disk is not None:
        return ("gce", volume.gce_persistent_disk.pd_name)
    if volume.aws_elastic_block_store is not None:
        return ("aws", volume.aws_elastic_block_store.volume_id)
    if volume.iscsi is not None:
        return ("iscsi", volume.iscsi.iqn)
    if volume.rbd is not None:
        return ("rbd", volume.rbd.pool, volume.rbd.image)
    return None


def keys_of(pod: Pod) -> Iterator[VolumeKey]:
    """The claims and disks of the pod, claims of ephemeral volumes included. A key that two volumes
    share comes twice."""
    for volume in pod.spec.volumes:
        name = volume.claim_name(pod.name)
        key = disk_key(volume) if name is None else claim_key(pod.namespace, name)
        if key is not None:
            yield key


class VolumeUsers(Index):
    """Which pods use which claims and disks, on which nodes."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._users: Groups[VolumeKey, str, PlacedPod] = Groups()  # by uid

    def concerns(self, footprint: Footprint) -> bool:
        return footprint.has_volumes

    def users(self, key: VolumeKey) -> Mapping[str, PlacedPod]:
        """By uid; their nodes may be unknown."""
        return self._users.group(key)

    def nodes(self, key: VolumeKey) -> set[str]:
        return {placed.node_name for placed in self.users(key).values()}

    def pod_added(self, row: int | None, placed: PlacedPod) -> int:
        for key in keys_of(placed.pod):
            self._users.put(key, placed.pod.uid, placed)
        return 0

    def pod_removed(self, row: int | None, placed: PlacedPod) -> int:
        for key in keys_of(placed.pod):
            self._users.drop(key, placed.pod.uid)
        return 0


class VolumesOfClass(Index):
    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._volumes: Groups[str, str, PersistentVolume] = Groups()

    def volumes(self, class_name: str) -> Mapping[str, PersistentVolume]:
        """By name."""
        return self._volumes.group(class_name)

    def object_changed(self, before: Any, after: Any) -> None:
        if isinstance(before, PersistentVolume):
            self._volumes.drop(before.class_name, before.name)
        if isinstance(after, PersistentVolume):
            self._volumes.put(after.class_name, after.name, after)


class MigratedDrivers(Index):
    """The nodes where a CSI driver has replaced an in-tree driver, by the name of the latter."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.nodes: ByNode[str] = ByNode(table)  # 1 each
        self._on_demand.append(self.nodes.columns)

    def node_added(self, row: int, node: Node) -> None:
        self.nodes.node_added(row, node.name)

    def object_changed(self, before: Any, after: Any) -> None:
        either = before if after is None else after
        if isinstance(either, CSINode):
            was, migrated = (each.migrated_plugins if each else () for each in (before, after))
            self.nodes.replace(either.metadata.name, was, dict.fromkeys(migrated, 1))
