"""How many volumes of each CSI driver are attached to each node, and its limits.

Plugins read them through `nodes.volumes`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from lowtide.cluster.columns import Column
from lowtide.cluster.groups import Groups
from lowtide.cluster.indexes.by_node import ByNode
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.indexes.volumes import VolumeUsers, claim_key
from lowtide.cluster.placed import Footprint, PlacedPod
from lowtide.cluster.table import Table
from lowtide.objects.csi_migration import (
    csi_source_of,
    csi_source_of_volume,
    driver_of_provisioner,
    migration_of,
)
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.storage import (
    CSINode,
    CsiSource,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from lowtide.objects.volumes import Volume

NO_LIMIT = 2**62

Objects = Callable[[type[Any]], Mapping[tuple[str, str], Any]]


def csi_sources_of(pod: Pod, objects: Objects) -> set[CsiSource]:
    """The distinct volumes of the pod that CSI drivers attach. A volume is left out if its source
    is unknown: its claim is missing, or an ephemeral volume's claim belongs to another pod."""
    return {
        source
        for volume in pod.spec.volumes
        if (source := _csi_source_in(pod, volume, objects)) is not None
    }


def _csi_source_in(pod: Pod, volume: Volume, objects: Objects) -> CsiSource | None:
    name = volume.claim_name(pod.name)
    if name is None:
        return csi_source_of(volume)
    claim = objects(PersistentVolumeClaim).get((pod.namespace, name))
    if claim is None or (volume.ephemeral and not claim.is_made_for(pod.namespace, pod.uid)):
        return None
    return csi_source_of_claim(claim, objects)


def csi_source_of_claim(claim: PersistentVolumeClaim, objects: Objects) -> CsiSource | None:
    """The claim's volume. For a claim without a volume, the one that its StorageClass will
    provision: it counts already."""
    volume = objects(PersistentVolume).get(("", claim.spec.volume_name))
    if volume is not None:
        source = csi_source_of_volume(volume)
        return source if source and source.driver and source.volume_handle else None
    storage_class = objects(StorageClass).get(("", claim.class_name))
    driver = driver_of_provisioner(storage_class.provisioner) if storage_class else None
    return CsiSource(driver, f"to be made for {claim.key}") if driver else None


# The kinds of objects, besides pods, that the counts depend on.
KINDS_THAT_ATTACH = (
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
    CSINode,
    VolumeAttachment,
)


class VolumesOfNode(NamedTuple):
    """The volumes that are counted on one node."""

    of_pods: Mapping[str, tuple[CsiSource, ...]]  # by pod uid: its distinct volumes
    attachments: Set[CsiSource] = frozenset()  # attached according to VolumeAttachments
    users: Mapping[CsiSource, int] = {}  # how many pods use each volume


NOT_COUNTED = VolumesOfNode({})


class AttachedVolumes(Index):
    """An event makes its node stale. Stale nodes are counted again at the next read."""

    def __init__(self, table: Table, objects: Objects, volume_users: VolumeUsers) -> None:
        super().__init__(table)
        self._objects = objects
        self._volume_users = volume_users
        self._counts: dict[str, Column] = {}  # by driver
        self._limits: dict[str, Column] = {}
        self._on_node: dict[str, VolumesOfNode] = {}  # by name, of nodes with a CSINode
        self._users: ByNode[CsiSource] = ByNode(table)  # how many pods, on these nodes
        self._on_demand.append(self._users.columns)
        # The keys of claims, by the volume that they name.
        self._claims_of: Groups[str, tuple[str, str], None] = Groups()
        self._attachments_on: Groups[str, str, VolumeAttachment] = Groups()  # by node and name
        self._attached_to: Groups[str, str, str] = Groups()  # by volume: node by attachment
        self._stale: set[str] = set()  # names of nodes, all with a row
        self._is_all_stale = False

    @property
    def columns(self) -> Iterator[Column]:
        yield from self._counts.values()
        yield from self._limits.values()
        yield from super().columns

    def concerns(self, footprint: Footprint) -> bool:
        return footprint.has_volumes

    # Events.

    def pod_added(self, row: int | None, placed: PlacedPod) -> int:
        volumes = placed.pod.spec.volumes
        if any(each.claim_name("") is not None or migration_of(each) for each in volumes):
            self._make_stale([placed.node_name])
        return 0

    def pod_removed(self, row: int | None, placed: PlacedPod) -> int:
        return self.pod_added(row, placed)

    def node_added(self, row: int, node: Node) -> None:
        self._stale.add(node.name)

    def node_removed(self, row: int, node: Node) -> None:
        self._stale.discard(node.name)
        self._note(node.name, NOT_COUNTED)

    def object_changed(self, before: Any, after: Any) -> None:
        match before if after is None else after:
            case CSINode(metadata=meta):
                self._make_stale([meta.name])
            case VolumeAttachment():
                self._attachment_changed(before, after)
            case PersistentVolumeClaim():
                self._claim_changed(before, after)
            case PersistentVolume(metadata=meta):
                for key in self._claims_of.group(meta.name):
                    self._make_stale(self._volume_users.nodes(claim_key(*key)))
                self._make_stale(self._attached_to.group(meta.name).values())
            case StorageClass():
                self._is_all_stale = True

    def _claim_changed(
        self, before: PersistentVolumeClaim | None, after: PersistentVolumeClaim | None
    ) -> None:
        for claim in (before, after):
            if claim is None:
                continue
            key = (claim.metadata.namespace, claim.name)
            self._make_stale(self._volume_users.nodes(claim_key(*key)))
            if claim is not after:
                self._claims_of.drop(claim.spec.volume_name, key)
            elif claim.spec.volume_name:
                self._claims_of.put(claim.spec.volume_name, key, None)

    def _attachment_changed(
        self, before: VolumeAttachment | None, after: VolumeAttachment | None
    ) -> None:
        for attachment in (before, after):
            if attachment is None:
                continue
            node_name, name = attachment.spec.node_name, attachment.metadata.name
            volume_name = attachment.spec.source.persistent_volume_name
            self._make_stale([node_name])
            if attachment is not after:
                self._attachments_on.drop(node_name, name)
                self._attached_to.drop(volume_name, name)
            else:
                self._attachments_on.put(node_name, name, attachment)
                self._attached_to.put(volume_name, name, node_name)

    # Queries.

    def count(self, driver: str) -> Column:
        self._count_stale()
        return self._column(self._counts, driver, 0)

    def limit(self, driver: str) -> Column:
        self._count_stale()
        return self._column(self._limits, driver, NO_LIMIT)

    def user_count(self, source: CsiSource) -> Column:
        """How many pods use this volume, on nodes with a CSINode."""
        self._count_stale()
        return self._users.columns[source]

    def on_nodes(self) -> Mapping[str, VolumesOfNode]:
        """By node name: the volumes of each node with a CSINode that has any."""
        self._count_stale()
        return self._on_node

    # Internals.

    def _make_stale(self, node_names: Iterable[str]) -> None:
        """Mark nodes to be counted again. A node without a row is counted when it gets one."""
        self._stale.update(name for name in node_names if name in self._table.row_by_name)

    def _count_stale(self) -> None:
        stale = self._table.row_by_name if self._is_all_stale else self._stale
        for node_name in stale:
            self._count_node(node_name)
        self._stale, self._is_all_stale = set(), False

    def _count_node(self, node_name: str) -> None:
        row = self._table.row_by_name[node_name]
        csi_node = self._objects(CSINode).get(("", node_name))
        volumes = NOT_COUNTED if csi_node is None else self._volumes_of(node_name)
        self._note(node_name, volumes)
        counts = Counter(source.driver for source in volumes.users.keys() | volumes.attachments)
        limits = csi_node.attach_limits if csi_node is not None else {}
        for driver in counts:
            self._column(self._counts, driver, 0)
        for driver in limits:
            self._column(self._limits, driver, NO_LIMIT)
        for driver, column in self._counts.items():
            column.array[row] = counts[driver]
        for driver, column in self._limits.items():
            column.array[row] = limits.get(driver, NO_LIMIT)

    def _volumes_of(self, node_name: str) -> VolumesOfNode:
        of_pods = {
            uid: tuple(sources)
            for uid, placed in self._table.placed_on(node_name).items()
            if placed.pod.spec.volumes and (sources := csi_sources_of(placed.pod, self._objects))
        }
        attachments = frozenset(self._attached_sources(node_name))
        return VolumesOfNode(of_pods, attachments, Counter(chain.from_iterable(of_pods.values())))

    def _attached_sources(self, node_name: str) -> Iterator[CsiSource]:
        volumes = self._objects(PersistentVolume)
        for each in self._attachments_on.group(node_name).values():
            volume = volumes.get(("", each.spec.source.persistent_volume_name))
            if each.spec.attacher and volume is not None and volume.spec.csi is not None:
                yield CsiSource(each.spec.attacher, volume.spec.csi.volume_handle)

    def _note(self, node_name: str, volumes: VolumesOfNode) -> None:
        before = self._on_node.pop(node_name, NOT_COUNTED)
        if volumes.users or volumes.attachments:
            self._on_node[node_name] = volumes
        self._users.replace(node_name, before.users, volumes.users)

    def _column(self, columns: dict[str, Column], driver: str, empty: int) -> Column:
        column = columns.get(driver)
        if column is None:
            column = columns[driver] = Column(np.int64, empty, self._table.capacity)
        return column
