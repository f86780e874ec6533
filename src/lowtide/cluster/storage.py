"""What ClusterState keeps of volumes besides the objects: who uses which, how many are attached
where, which volumes each storage class has, and where in-tree drivers were migrated."""

from collections.abc import Callable, Mapping
from typing import Any

from lowtide.cluster.attached_volumes import AttachedVolumes, Objects
from lowtide.cluster.nodes_with import NodesWith
from lowtide.cluster.placed import PlacedPod
from lowtide.cluster.volume_holders import VolumeHolders
from lowtide.objects.storage import CSINode, PersistentVolume


class Storage:
    def __init__(
        self,
        objects: Objects,
        *,
        row_of: Mapping[str, int],
        pods_on: Callable[[str], Mapping[str, PlacedPod]],
    ) -> None:
        self.holders = VolumeHolders()
        self.attached = AttachedVolumes(objects, self.holders, row_of=row_of, pods_on=pods_on)
        self.migrated: NodesWith[str] = NodesWith(row_of)  # by the name of the in-tree driver
        self._of_class: dict[str, dict[str, PersistentVolume]] = {}

    def volumes_of_class(self, class_name: str) -> Mapping[str, PersistentVolume]:
        """By name."""
        return self._of_class.get(class_name, {})

    def count_in(self, placed: PlacedPod) -> None:
        if placed.pod.spec.volumes:
            self.holders.count_in(placed)
            self.attached.pod_changed(placed)

    def count_out(self, placed: PlacedPod) -> None:
        if placed.pod.spec.volumes:
            self.holders.count_out(placed)
            self.attached.pod_changed(placed)

    def node_came(self, row: int, node_name: str) -> None:
        self.migrated.fill(row, node_name)
        self.attached.node_changed(node_name)

    def node_went(self, node_name: str) -> None:
        self.attached.node_changed(node_name)

    def object_changed(self, before: Any, after: Any) -> None:
        """One of the two is None where the object comes or goes."""
        if isinstance(before, PersistentVolume):
            self._of_class.get(before.class_name, {}).pop(before.name, None)
        if isinstance(after, PersistentVolume):
            self._of_class.setdefault(after.class_name, {})[after.name] = after
        either = before if after is None else after
        if isinstance(either, CSINode):
            was, migrated = (each.migrated_plugins if each else set() for each in (before, after))
            self.migrated.replace(either.metadata.name, was, migrated)
        self.attached.object_changed(before, after)
