"""Plain twins of the volume plugins: each judges one node at a time, with the claims and volumes
looked up anew. `test_volume_twins` says that they agree with the plugins on any cluster."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lowtide.framework.plugin import Nodes, Pod, Rejection
from lowtide.objects.csi_migration import (
    csi_source_of,
    csi_source_of_volume,
    migrated_affinity,
    migration_of,
)
from lowtide.objects.matching import is_valid_requirement, matches_requirement, matches_selector
from lowtide.objects.node import Node
from lowtide.objects.quantity import parse_nano
from lowtide.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from lowtide.objects.volumes import Volume

ZONES = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
REGIONS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


class _Plain:
    """Lifts `reasons`, which tells why one node is rejected, and `eviction_helps`."""

    eviction_helps = False

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        for position in range(len(nodes)):
            for reason in self.reasons(pod, nodes, position):
                mask = np.zeros(len(nodes), np.bool_)
                mask[position] = True
                yield Rejection(mask, reason, self.eviction_helps)

    def reasons(self, pod: Pod, nodes: Nodes, position: int) -> list[str]:
        raise NotImplementedError


class PlainVolumeRestrictions(_Plain):
    name = "VolumeRestrictions"
    eviction_helps = True

    def reasons(self, pod: Pod, nodes: Nodes, position: int) -> list[str]:
        others = nodes.pods(position)
        disks = [each for each in pod.spec.volumes if _is_disk(each)]
        pairs = [(mine, its) for mine in disks for other in others for its in other.spec.volumes]
        if any(_conflict(mine, its) for mine, its in pairs):
            return ["node(s) had no available disk"]
        alone = {
            name
            for name in _claim_names(pod)
            if (claim := _claim(pod, name, nodes)) and "ReadWriteOncePod" in claim.spec.access_modes
        }
        whole = nodes.everything
        everybody = [each for at in range(len(whole)) for each in whole.pods(at)]
        uses = sum(
            any(o.namespace == pod.namespace and name in _claim_names(o) for o in everybody)
            for name in alone
        )
        if uses or disks:
            before = whole.pods(whole.names.index(nodes.names[position]))
            uses += sum(_claim_names(o).count(name) for o in others for name in alone)
            uses -= sum(_claim_names(o).count(name) for o in before for name in alone)
        if uses <= 0:
            return []
        return [
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
            "already in-use by another pod"
        ]


class PlainNodeVolumeLimits(_Plain):
    name = "NodeVolumeLimits"
    eviction_helps = True

    def reasons(self, pod: Pod, nodes: Nodes, position: int) -> list[str]:
        csi_node = nodes.objects(CSINode).get(("", nodes.names[position]))
        if csi_node is None:
            return []
        limits = {
            each.name: each.allocatable.count
            for each in csi_node.spec.drivers
            if each.allocatable is not None and each.allocatable.count is not None
        }
        new = _attachable([pod], nodes)
        used = _attachable(nodes.pods(position), nodes)
        attached = set(used)
        for each in nodes.objects(VolumeAttachment).values():
            volume = nodes.objects(PersistentVolume).get(
                ("", each.spec.source.persistent_volume_name)
            )
            if each.spec.node_name == nodes.names[position] and volume and volume.spec.csi:
                attached.add((each.spec.attacher, volume.spec.csi.volume_handle))
        for driver, limit in limits.items():
            count = sum(each[0] == driver for each in new - used)
            if count and count + sum(each[0] == driver for each in attached) > limit:
                return ["node(s) exceed max volume count"]
        return []


class PlainVolumeZone(_Plain):
    name = "VolumeZone"

    def reasons(self, pod: Pod, nodes: Nodes, position: int) -> list[str]:
        labels = nodes.node(position).labels
        if not any(key in labels for key in (*ZONES, *REGIONS)):
            return []
        for name in _claim_names(pod):
            claim = _claim(pod, name, nodes)
            volume = nodes.objects(PersistentVolume).get(
                ("", claim.spec.volume_name if claim else "")
            )
            for old, new in (ZONES, REGIONS):
                for key in (old, new):
                    wanted = volume.metadata.labels.get(key) if volume else None
                    if wanted is None or not all(part.strip() for part in wanted.split("__")):
                        continue
                    has = labels.get(key, labels.get(new))
                    if has not in [part.strip() for part in wanted.split("__")]:
                        return ["node(s) had no available volume zone"]
        return []


class PlainVolumeBinding(_Plain):
    """For pods whose claims are bound, or wait for their first pod."""

    name = "VolumeBinding"

    def reasons(self, pod: Pod, nodes: Nodes, position: int) -> list[str]:
        node = nodes.node(position)
        names = [n for each in pod.spec.volumes if (n := each.claim_name(pod.name)) is not None]
        claims = [nodes.objects(PersistentVolumeClaim)[pod.namespace, name] for name in names]
        bound = [each for each in claims if each.is_bound]
        return [
            *self._of_bound(bound, node, nodes),
            *self._of_unbound([each for each in claims if not each.is_bound], node, nodes),
        ]

    def _of_bound(self, claims: list[PersistentVolumeClaim], node: Node, nodes: Nodes) -> list[str]:
        for claim in claims:
            volume = nodes.objects(PersistentVolume).get(("", claim.spec.volume_name))
            if volume is None:
                return ["node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"]
            if not _usable(volume, node, self._migrated_to(node, nodes)):
                return ["node(s) didn't match PersistentVolume's node affinity"]
        return []

    def _migrated_to(self, node: Node, nodes: Nodes) -> list[str]:
        csi_node = nodes.objects(CSINode).get(("", node.name))
        key = "storage.alpha.kubernetes.io/migrated-plugins"
        return [] if csi_node is None else csi_node.metadata.annotations.get(key, "").split(",")

    def _of_unbound(
        self, claims: list[PersistentVolumeClaim], node: Node, nodes: Nodes
    ) -> list[str]:
        nothing = ["node(s) didn't find available persistent volumes to bind"]
        if any(each.selected_node not in (None, node.name) for each in claims):
            return nothing
        taken: set[str] = set()
        to_make = [each for each in claims if each.selected_node is not None]
        for claim in sorted((c for c in claims if c.selected_node is None), key=_asked):
            found = _smallest(claim, node, nodes, taken)
            if found is None:
                to_make.append(claim)
            else:
                taken.add(found)
        for claim in to_make:
            made_by = nodes.objects(StorageClass)["", claim.class_name]
            if made_by.provisioner in ("", "kubernetes.io/no-provisioner"):
                return nothing
            if made_by.allowed_topologies and not any(
                term.match_label_expressions
                and all(
                    node.labels.get(e.key) in e.values and e.values
                    for e in term.match_label_expressions
                )
                for term in made_by.allowed_topologies
            ):
                return nothing
            if not _has_room(claim, made_by, node, nodes):
                return ["node(s) did not have enough free storage"]
        return []


def _smallest(
    claim: PersistentVolumeClaim, node: Node, nodes: Nodes, taken: set[str]
) -> str | None:
    found: list[tuple[int, str]] = []
    for volume in sorted(nodes.objects(PersistentVolume).values(), key=_size_and_name):
        reference = volume.spec.claim_ref
        is_mine = (
            reference is not None
            and (reference.namespace, reference.name) == (claim.metadata.namespace, claim.name)
            and reference.uid in ("", claim.metadata.uid)
        )
        size, _ = _size_and_name(volume)
        if (
            volume.name in taken
            or volume.class_name != claim.class_name
            or (reference is not None and not is_mine)
            or size < _asked(claim)
            or volume.spec.volume_mode != claim.spec.volume_mode
            or volume.metadata.deletion_timestamp is not None
        ):
            continue
        if is_mine:
            return volume.name if _usable(volume, node) else None
        if (
            volume.status.phase == "Available"
            and (
                claim.spec.selector is None
                or matches_selector(claim.spec.selector, volume.metadata.labels)
            )
            and all(mode in volume.spec.access_modes for mode in claim.spec.access_modes)
            and _usable(volume, node)
        ):
            found.append((size, volume.name))
    return min(found)[1] if found else None


def _size_and_name(volume: PersistentVolume) -> tuple[int, str]:
    return parse_nano(volume.spec.capacity.get("storage", 0)), volume.name


def _has_room(
    claim: PersistentVolumeClaim, made_by: StorageClass, node: Node, nodes: Nodes
) -> bool:
    driver = nodes.objects(CSIDriver).get(("", made_by.provisioner))
    if driver is None or not driver.spec.storage_capacity:
        return True
    for each in nodes.objects(CSIStorageCapacity).values():
        told = each.capacity if each.maximum_volume_size is None else each.maximum_volume_size
        if (
            each.storage_class_name == made_by.metadata.name
            and told is not None
            and parse_nano(told) >= _asked(claim)
            and matches_selector(each.node_topology, node.labels)
        ):
            return True
    return False


def _usable(volume: PersistentVolume, node: Node, migrated: Sequence[str] = ()) -> bool:
    affinity, migration = volume.spec.node_affinity, migration_of(volume.spec)
    if migration is not None and migration.plugin in migrated:
        affinity = migrated_affinity(volume, migration.zone_key)
    if affinity is None or affinity.required is None:
        return True
    return any(
        term.match_expressions
        and all(
            is_valid_requirement(each) and matches_requirement(each, node.labels.get(each.key))
            for each in term.match_expressions
        )
        for term in affinity.required.node_selector_terms
    )


def _attachable(pods: list[Pod], nodes: Nodes) -> set[tuple[str, str]]:
    found = set()
    for pod in pods:
        for volume in pod.spec.volumes:
            name = volume.claim_name(pod.name)
            claim = None if name is None else _claim(pod, name, nodes)
            source: Any = csi_source_of(volume) if name is None else None
            if claim is not None:
                stored = nodes.objects(PersistentVolume).get(("", claim.spec.volume_name))
                made_by = nodes.objects(StorageClass).get(("", claim.class_name))
                if stored is not None:
                    source = csi_source_of_volume(stored)
                elif made_by is not None:
                    found.add((made_by.provisioner, f"to be made for {claim.key}"))
            if source is not None:
                found.add((source.driver, source.volume_handle))
    return found


def _asked(claim: PersistentVolumeClaim) -> int:
    return parse_nano(claim.spec.resources.requests.get("storage", 0))


def _claim_names(pod: Pod) -> list[str]:
    sources = [each.persistent_volume_claim for each in pod.spec.volumes]
    return [each.claim_name for each in sources if each is not None]


def _claim(pod: Pod, name: str, nodes: Nodes) -> PersistentVolumeClaim | None:
    return nodes.objects(PersistentVolumeClaim).get((pod.namespace, name))


def _is_disk(volume: Volume) -> bool:
    return bool(
        volume.gce_persistent_disk or volume.aws_elastic_block_store or volume.iscsi or volume.rbd
    )


def _conflict(mine: Volume, its: Volume) -> bool:
    if mine.gce_persistent_disk and its.gce_persistent_disk:
        one, other = mine.gce_persistent_disk, its.gce_persistent_disk
        return one.pd_name == other.pd_name and not (one.read_only and other.read_only)
    if mine.aws_elastic_block_store and its.aws_elastic_block_store:
        return mine.aws_elastic_block_store == its.aws_elastic_block_store
    if mine.iscsi and its.iscsi:
        same = mine.iscsi.iqn == its.iscsi.iqn
        return same and not (mine.iscsi.read_only and its.iscsi.read_only)
    if mine.rbd and its.rbd:
        same = (mine.rbd.pool, mine.rbd.image) == (its.rbd.pool, its.rbd.image)
        overlap = any(monitor in its.rbd.monitors for monitor in mine.rbd.monitors)
        return same and overlap and not (mine.rbd.read_only and its.rbd.read_only)
    return False
