"""Disks of old drivers, as the CSI drivers name them that serve them today."""

from typing import Any

import msgspec
import pytest

from lowtide.objects.csi_migration import (
    csi_source_of,
    csi_source_of_volume,
    driver_of_provisioner,
    migrated_affinity,
)
from lowtide.objects.storage import CsiSource, PersistentVolume
from lowtide.objects.volumes import Volume

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
KEY = "topology.example.com/zone"


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "vol-1"}}, ("ebs.csi.aws.com", "vol-1"), id="EBS"
        ),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://x/vol-1"}},
            ("ebs.csi.aws.com", "vol-1"),
            id="EBS with its zone",
        ),
        pytest.param({"awsElasticBlockStore": {"volumeID": "aws://x/d"}}, None, id="no EBS volume"),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}},
            ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
            id="a GCE disk",
        ),
        pytest.param(
            {"azureDisk": {"diskURI": "/d", "kind": "Managed"}},
            ("disk.csi.azure.com", "/d"),
            id="an Azure disk",
        ),
        pytest.param({"azureDisk": {"diskURI": "/d"}}, None, id="an Azure disk of another kind"),
        pytest.param({"cinder": {"volumeID": "c"}}, ("cinder.csi.openstack.org", "c"), id="Cinder"),
        pytest.param(
            {"portworxVolume": {"volumeID": "p"}}, ("pxd.portworx.com", "p"), id="Portworx"
        ),
        pytest.param({"rbd": {"image": "i"}}, None, id="a disk that has no other driver"),
    ],
)
def test_a_disk_in_a_pod(given: dict[str, Any], want: tuple[str, str] | None) -> None:
    source = csi_source_of(msgspec.convert(given, Volume))
    assert source == (None if want is None else CsiSource(*want))


def volume(labels: dict[str, str] | None = None, **spec: Any) -> PersistentVolume:
    given = {"metadata": {"name": "v", "labels": labels or {}}, "spec": spec}
    return msgspec.convert(given, PersistentVolume)


@pytest.mark.parametrize(
    ("zones", "want"),
    [
        pytest.param({ZONE: "us-east1-a"}, "zones/us-east1-a", id="a zone"),
        pytest.param({OLD_ZONE: "us-east1-a__us-east1-b"}, "regions/us-east1", id="a region"),
        pytest.param({ZONE: "us-east1-a__eu-west1-b"}, None, id="zones that are apart"),
    ],
)
def test_a_gce_volume_is_named_by(zones: dict[str, str], want: str | None) -> None:
    source = csi_source_of_volume(volume(zones, gcePersistentDisk={"pdName": "d"}))
    handle = f"projects/UNSPECIFIED/{want}/disks/d"
    assert source == (want and CsiSource("pd.csi.storage.gke.io", handle))


def test_a_csi_volume_is_named_by_itself() -> None:
    csi = {"driver": "d", "volumeHandle": "h"}
    assert csi_source_of_volume(volume(csi=csi)) == CsiSource("d", "h")


@pytest.mark.parametrize(
    ("provisioner", "want"),
    [
        ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
        ("kubernetes.io/azure-file", None),
        ("csi.example.com", "csi.example.com"),
    ],
)
def test_who_makes_the_volumes_of_a_provisioner(provisioner: str, want: str | None) -> None:
    assert driver_of_provisioner(provisioner) == want


def affinity(*terms: list[tuple[str, list[str]]]) -> dict[str, Any]:
    return {
        "required": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": k, "operator": "In", "values": v} for k, v in term]}
                for term in terms
            ]
        }
    }


@pytest.mark.parametrize(
    ("labels", "before", "after"),
    [
        pytest.param(
            {},
            affinity([(ZONE, ["x"]), ("disk", ["ssd"])]),
            affinity([(KEY, ["x"]), ("disk", ["ssd"])]),
            id="by its affinity",
        ),
        pytest.param(
            {},
            affinity([(OLD_ZONE, ["x"]), ("failure-domain.beta.kubernetes.io/region", ["r"])]),
            affinity([(KEY, ["x"]), ("topology.kubernetes.io/region", ["r"])]),
            id="by labels of old",
        ),
        pytest.param({ZONE: "y__x"}, None, affinity([(KEY, ["x", "y"])]), id="by its labels"),
        pytest.param(
            {ZONE: "x"},
            affinity([("disk", ["ssd"])]),
            affinity([("disk", ["ssd"]), (KEY, ["x"])]),
            id="by both",
        ),
        pytest.param({}, None, None, id="by nothing"),
    ],
)
def test_where_a_volume_is_told(labels: dict[str, str], before: Any, after: Any) -> None:
    found = migrated_affinity(volume(labels, nodeAffinity=before), KEY)
    assert found == volume(nodeAffinity=after).spec.node_affinity
