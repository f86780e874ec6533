"""Claims, volumes and what else the volume plugins read, few enough that they meet often.

`test_incremental` lets them come, change and go."""

from typing import Any

import msgspec

from lowtide.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

DRIVER = "csi.example.com"
MIGRATED = "kubernetes.io/aws-ebs"
COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}


def _claim(name: str, class_name: str, size: str = "1Gi", volume_name: str = "") -> Any:
    spec = {
        "accessModes": ["ReadWriteOncePod" if name == "alone" else "ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": class_name,
        "volumeName": volume_name,
    }
    meta = {"name": name, "namespace": "default", "uid": name}
    annotations = COMPLETED if volume_name else {}
    return msgspec.convert(
        {"metadata": {**meta, "annotations": annotations}, "spec": spec}, PersistentVolumeClaim
    )


def _volume(name: str, zone: str, **spec: Any) -> Any:
    requirement = {"key": "zone", "operator": "In", "values": [zone]}
    terms = [{"matchExpressions": [requirement]}]
    given = {
        "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
        "storageClassName": "static",
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        "csi": {"driver": DRIVER, "volumeHandle": name},
        **spec,
    }
    meta = {"name": name, "labels": {"topology.kubernetes.io/zone": zone}}
    return msgspec.convert(
        {"metadata": meta, "spec": given, "status": {"phase": "Available"}}, PersistentVolume
    )


def _class(name: str, provisioner: str, mode: str = "WaitForFirstConsumer") -> Any:
    given = {"provisioner": provisioner, "volumeBindingMode": mode}
    return msgspec.convert({"metadata": {"name": name}, **given}, StorageClass)


def _csi_node(name: str, count: int) -> Any:
    """Where only one volume is attached, an in-tree driver was migrated."""
    drivers = [{"name": DRIVER, "allocatable": {"count": count}}]
    plugins = MIGRATED if count == 1 else ""
    meta = {
        "name": name,
        "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": plugins},
    }
    return msgspec.convert({"metadata": meta, "spec": {"drivers": drivers}}, CSINode)


def _attachment(node_name: str, volume_name: str) -> Any:
    source = {"persistentVolumeName": volume_name}
    spec = {"attacher": DRIVER, "nodeName": node_name, "source": source}
    meta = {"name": f"on-{node_name}"}
    return msgspec.convert({"metadata": meta, "spec": spec}, VolumeAttachment)


def _capacity(zone: str, size: str) -> Any:
    return msgspec.convert(
        {
            "metadata": {"name": "space", "namespace": "default"},
            "storageClassName": "made",
            "nodeTopology": {"matchLabels": {"zone": zone}},
            "capacity": size,
        },
        CSIStorageCapacity,
    )


THINGS = (
    _claim("data", "static"),
    _claim("data", "static", "3Gi"),
    _claim("data", "static", volume_name="v1"),
    _claim("alone", "static"),
    _claim("alone", "made", "5Gi"),
    _claim("alone", "made", volume_name="v2"),
    _volume("v1", "a"),
    _volume("v1", "b"),
    _volume("v2", "a"),
    _volume("v2", "a", csi=None, awsElasticBlockStore={"volumeID": "vol-1"}),
    _volume("v3", "c", claimRef={"namespace": "default", "name": "data"}),
    _class("static", "kubernetes.io/no-provisioner"),
    _class("made", DRIVER),
    _class("made", DRIVER, "Immediate"),
    *(_csi_node(name, count) for name in ("node-0", "node-1") for count in (0, 1, 2)),
    _attachment("node-0", "v1"),
    _attachment("node-0", "v2"),
    _attachment("node-1", "v1"),
    _capacity("a", "1Gi"),
    _capacity("a", "9Gi"),
    *(
        msgspec.convert(
            {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": told}}, CSIDriver
        )
        for told in (True, False)
    ),
)


def using(*claims: str, disk: str = "") -> dict[str, Any]:
    """A pod's spec."""
    volumes: list[dict[str, Any]] = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims
    ]
    if disk:
        volumes.append({"name": disk, "gcePersistentDisk": {"pdName": disk}})
    return {"volumes": volumes}
