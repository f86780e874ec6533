"""Which claims and disks are used on the nodes of a table, and how many volumes are attached.

What the volume rules read of a `Nodes`, as `nodes.volumes`, with what is imagined counted in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from lowtide.cluster.attached_volumes import csi_sources_of
from lowtide.cluster.columns import BoolArray, IntArray
from lowtide.cluster.storage import Storage
from lowtide.cluster.volume_holders import Held, held_by
from lowtide.objects.pod import Pod
from lowtide.objects.storage import CsiSource, PersistentVolume

if TYPE_CHECKING:
    from lowtide.cluster.nodes import Nodes


class VolumesOnNodes:
    def __init__(self, nodes: Nodes, storage: Storage, capacity: int) -> None:
        self._nodes = nodes
        self._storage = storage
        self._capacity = capacity

    def of_class(self, class_name: str) -> Mapping[str, PersistentVolume]:
        """By name: all volumes of a storage class, wherever they may be used."""
        return self._storage.volumes_of_class(class_name)

    def is_migrated(self, plugin: str) -> BoolArray:
        """Where a CSI driver has taken the place of this in-tree driver."""
        is_migrated: BoolArray = self._storage.migrated.column(plugin, self._capacity)
        return is_migrated[self._nodes.rows]

    def pods_holding(self, held: Held) -> Iterator[tuple[int, Pod]]:
        """With its position, each pod that uses this claim or disk."""
        holders = self._storage.holders.of(held)
        imagined = self._imagined
        if not holders and not imagined:
            return
        for position, name in enumerate(self._nodes.names):
            if position in imagined:
                for pod in self._nodes.pods(position):
                    if held in held_by(pod):
                        yield position, pod
            elif name in holders:
                yield from ((position, pod) for pod in holders[name].values())

    def attached_count(self, driver: str) -> IntArray:
        """How many volumes of this CSI driver are attached; known only where `attach_limit` is."""
        attached = self._storage.attached
        count: IntArray = attached.count(driver, self._capacity)[self._nodes.rows]
        for position in self._imagined:
            used = csi_sources_of(self._nodes.pods(position), self._nodes.objects)
            count[position] = attached.counts_with(self._nodes.names[position], used)[driver]
        return count

    def attach_limit(self, driver: str) -> IntArray:
        """How many may be; beyond any count where nothing is said."""
        limit: IntArray = self._storage.attached.limit(driver, self._capacity)[self._nodes.rows]
        return limit

    def is_attached(self, source: CsiSource) -> BoolArray:
        """Where a pod uses this volume already; known only where `attach_limit` is."""
        names = self._storage.attached.nodes_with(source, self._capacity)
        found = np.zeros(len(self._nodes), np.bool_)
        if names:
            found[:] = [name in names for name in self._nodes.names]
        for position in self._imagined:
            used = csi_sources_of(self._nodes.pods(position), self._nodes.objects)
            found[position] = source in used
        return found

    @property
    def _imagined(self) -> set[int]:
        return {position for position, _, _ in self._nodes.imagined()}
