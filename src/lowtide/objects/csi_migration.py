"""Translates disks of in-tree drivers into those of the CSI drivers that replaced them.

The volume plugins count them for the CSI driver; VolumeBinding also reads their node affinity."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from lowtide.objects.meta import LabelRequirement
from lowtide.objects.pod import NodeSelector, NodeSelectorTerm
from lowtide.objects.storage import CsiSource, PersistentVolume, VolumeNodeAffinity
from lowtide.objects.volumes import MigratedDisks

_ZONE = "topology.kubernetes.io/zone"
_REGION = "topology.kubernetes.io/region"
_OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
_OLD_REGION = "failure-domain.beta.kubernetes.io/region"
_BETWEEN_ZONES = "__"
_UNKNOWN = "UNSPECIFIED"


@dataclass(frozen=True, slots=True)
class Migration:
    """An in-tree driver, the CSI driver that replaced it, and that driver's zone label."""

    plugin: str
    driver: str
    zone_key: str = ""


_GCE = Migration("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone")
_AWS = Migration("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone")
_AZURE = Migration("kubernetes.io/azure-disk", "disk.csi.azure.com")
_CINDER = Migration(
    "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
)
_PORTWORX = Migration("kubernetes.io/portworx-volume", "pxd.portworx.com")

_DRIVER_OF_PLUGIN = {each.plugin: each.driver for each in (_GCE, _AWS, _AZURE, _CINDER, _PORTWORX)}
# Provisioners whose disks are not counted, although CSI drivers replaced them, too.
_NOT_COUNTED = ("kubernetes.io/azure-file", "kubernetes.io/vsphere-volume")


def migration_of(disks: MigratedDisks) -> Migration | None:
    """The migration that applies to the disk; None if it has none of these sources."""
    if disks.gce_persistent_disk is not None:
        return _GCE
    if disks.aws_elastic_block_store is not None:
        return _AWS
    if disks.azure_disk is not None:
        return _AZURE
    if disks.cinder is not None:
        return _CINDER
    return _PORTWORX if disks.portworx_volume is not None else None


def driver_of_provisioner(provisioner: str) -> str | None:
    """The CSI driver that provisions a class's volumes; None if they are not counted."""
    if provisioner in _NOT_COUNTED:
        return None
    return _DRIVER_OF_PLUGIN.get(provisioner, provisioner)


def csi_source_of(disks: MigratedDisks, zones: str = "") -> CsiSource | None:
    """The disk as a CSI source; None if its CSI driver has no handle for it. `zones` is the zone
    label of the disk's volume."""
    migration = migration_of(disks)
    if migration is None:
        return None
    if disks.gce_persistent_disk is not None:
        handle = _gce_handle(disks.gce_persistent_disk.pd_name, zones)
    elif disks.aws_elastic_block_store is not None:
        handle = _aws_handle(disks.aws_elastic_block_store.volume_id)
    elif disks.azure_disk is not None:
        is_managed = disks.azure_disk.kind.lower() == "managed"
        handle = disks.azure_disk.disk_uri if is_managed else ""
    else:
        other = disks.cinder or disks.portworx_volume
        handle = other.volume_id if other is not None else ""
    return CsiSource(migration.driver, handle) if handle else None


def csi_source_of_volume(volume: PersistentVolume) -> CsiSource | None:
    """The volume's CSI source, also for in-tree disks; None if no CSI driver serves it."""
    if volume.spec.csi is not None:
        return volume.spec.csi
    labels = volume.metadata.labels
    return csi_source_of(volume.spec, labels.get(_OLD_ZONE) or labels.get(_ZONE, ""))


def migrated_affinity(volume: PersistentVolume, zone_key: str) -> VolumeNodeAffinity | None:
    """The volume's node affinity with its zones under `zone_key`, the CSI driver's label. The zones
    come from the affinity or from the volume's labels."""
    affinity = volume.spec.node_affinity
    terms = affinity.required.node_selector_terms if affinity and affinity.required else []
    keys = {each.key for term in terms for each in term.match_expressions}
    is_old = _uses_old_labels(keys, volume.metadata.labels)
    zone, new_keys = (_OLD_ZONE, {_OLD_REGION: _REGION}) if is_old else (_ZONE, {})
    if any(e.values for term in terms for e in term.match_expressions if e.key == zone):
        new_keys[zone] = zone_key
    renamed = [_with_keys(term, new_keys) for term in terms]
    labelled = volume.metadata.labels.get(zone, "")
    zones = sorted({each.strip() for each in labelled.split(_BETWEEN_ZONES)} - {""})
    if zone not in new_keys and zones:
        by_labels = LabelRequirement(zone_key, "In", zones)
        renamed = [
            msgspec.structs.replace(term, match_expressions=[*term.match_expressions, by_labels])
            for term in renamed or [NodeSelectorTerm()]
        ]
    return VolumeNodeAffinity(NodeSelector(renamed)) if renamed else affinity


def _uses_old_labels(keys: set[str], labels: dict[str, str]) -> bool:
    if _ZONE in keys or _OLD_ZONE in keys:
        return _ZONE not in keys
    return _OLD_ZONE in labels and _ZONE not in labels


def _with_keys(term: NodeSelectorTerm, new_keys: dict[str, str]) -> NodeSelectorTerm:
    return msgspec.structs.replace(
        term,
        match_expressions=[
            msgspec.structs.replace(each, key=new_keys.get(each.key, each.key))
            for each in term.match_expressions
        ],
    )


def _gce_handle(name: str, label: str) -> str:
    zones = label.split(_BETWEEN_ZONES)
    if len(zones) == 1:
        return f"projects/{_UNKNOWN}/zones/{label or _UNKNOWN}/disks/{name}"
    regions = {zone.rpartition("-")[0] for zone in zones}
    if len(regions) > 1 or any(zone.count("-") != 2 for zone in zones):
        return ""
    return f"projects/{_UNKNOWN}/regions/{regions.pop()}/disks/{name}"


def _aws_handle(volume_id: str) -> str:
    """The volume's name without `aws://zone/`; "" if the URL is malformed."""
    if not volume_id.startswith("aws://"):
        return volume_id
    name = urlsplit(volume_id).path.strip("/")
    return name if name.startswith("vol-") and "/" not in name else ""
