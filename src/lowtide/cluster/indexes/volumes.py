"""Volumes besides how many are attached: which pods use a claim or disk, which volumes a class has,
and which nodes have something, such as a migrated driver.

Plugins read them by `nodes.volumes`.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, Generic

import numpy as np

from lowtide.cluster.columns import Column, K, KeptColumns
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.placed import Footprint, PlacedPod
from lowtide.cluster.table import Table
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.storage import CSINode, PersistentVolume
from lowtide.objects.volumes import Volume

# What pods can share: a claim, or a disk that they name themselves.
VolumeKey = tuple[str, ...]


def claim_key(namespace: str, name: str) -> VolumeKey:
    return ("claim", namespace, name)


def disk_key(volume: Volume) -> VolumeKey | None:
    """None where the volume is no disk that another pod can use too."""
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
    """What the pod uses, claims of ephemeral volumes too; a key twice if two volumes have it."""
    for volume in pod.spec.volumes:
        name = volume.claim_name(pod.name)
        key = disk_key(volume) if name is None else claim_key(pod.namespace, name)
        if key is not None:
            yield key


class VolumeUsers(Index):
    """Which pods use which claims and disks, on which nodes."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._pods: dict[VolumeKey, dict[str, dict[str, Pod]]] = {}  # by node name and uid

    def concerns(self, footprint: Footprint) -> bool:
        return footprint.has_volumes

    def users(self, key: VolumeKey) -> Mapping[str, Mapping[str, Pod]]:
        """By node name, known or not, and uid."""
        return self._pods.get(key, {})

    def pod_added(self, row: int | None, placed: PlacedPod) -> int:
        for key in keys_of(placed.pod):
            by_node = self._pods.setdefault(key, {})
            by_node.setdefault(placed.node_name, {})[placed.pod.uid] = placed.pod
        return 0

    def pod_removed(self, row: int | None, placed: PlacedPod) -> int:
        for key in set(keys_of(placed.pod)):
            by_node = self._pods[key]
            del by_node[placed.node_name][placed.pod.uid]
            if not by_node[placed.node_name]:
                del by_node[placed.node_name]
            if not by_node:
                del self._pods[key]
        return 0


class VolumesOfClass(Index):
    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._volumes: dict[str, dict[str, PersistentVolume]] = {}

    def volumes(self, class_name: str) -> Mapping[str, PersistentVolume]:
        """By name."""
        return self._volumes.get(class_name, {})

    def object_changed(self, before: Any, after: Any) -> None:
        if isinstance(before, PersistentVolume):
            self._volumes.get(before.class_name, {}).pop(before.name, None)
        if isinstance(after, PersistentVolume):
            self._volumes.setdefault(after.class_name, {})[after.name] = after


class NodesWith(Index, Generic[K]):
    """Which nodes have something, as columns: made at first use and kept true after it."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._names: dict[K, set[str]] = {}  # of nodes that are known or not
        self.where: KeptColumns[K, Column] = KeptColumns(self._make_column)

    @property
    def columns(self) -> Iterable[Column]:
        return self.where

    def let_columns_go(self) -> None:
        self.where.clear()

    def names(self, key: K) -> Set[str]:
        return self._names.get(key, set())

    def node_added(self, row: int, node: Node) -> None:
        for key, column in self.where.items():
            column.array[row] = node.name in self.names(key)

    def replace(self, node_name: str, before: Set[K], after: Set[K]) -> None:
        """What the node has."""
        for key in after - before:
            self._names.setdefault(key, set()).add(node_name)
            self._write(node_name, key, has_it=True)
        for key in before - after:
            self._names[key].discard(node_name)
            if not self._names[key]:
                del self._names[key]
            self._write(node_name, key, has_it=False)

    def _make_column(self, key: K) -> Column:
        column = Column(np.bool_, False, self._table.capacity)
        column.array[self._table.rows_of(self.names(key))] = True
        return column

    def _write(self, node_name: str, key: K, *, has_it: bool) -> None:
        row, column = self._table.row_of(node_name), self.where.get(key)
        if row is not None and column is not None:
            column.array[row] = has_it


class MigratedDrivers(NodesWith[str]):
    """Where a CSI driver has taken the place of an in-tree driver, by the latter's name."""

    def object_changed(self, before: Any, after: Any) -> None:
        either = before if after is None else after
        if isinstance(either, CSINode):
            was, migrated = (each.migrated_plugins if each else set() for each in (before, after))
            self.replace(either.metadata.name, was, migrated)
