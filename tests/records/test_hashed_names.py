import re
from typing import Any

import pytest
from msgspec.structs import replace
from tests.records.full_objects import Filler, texts_in

from lowtide.objects.devices import DeviceClass
from lowtide.objects.kinds import KIND_OF, NODE, POD
from lowtide.objects.matching import matches_all
from lowtide.objects.meta import LabelRequirement, OwnerReference
from lowtide.plugins.image_locality import full_image_name
from lowtide.readings.demand import owner_of
from lowtide.records.event_form import encode
from lowtide.records.hashed_names import HashedNames
from lowtide.testing import make_node, make_pod

HASHED = HashedNames(b"salt")

# Texts that are no names: what plugins know by heart, times, keys, resources, drivers.
STAYS = {
    "AzureDisk.kind",
    "Container.restart_policy",
    "ContainerPort.protocol",
    "ContainerRestartRule.action",
    "ContainerStateRunning.started_at",
    "CsiNodeDriver.name",
    "CsiSource.driver",
    "DeviceClassSpec.extended_resource_name",
    "LabelRequirement.key",
    "LabelRequirement.operator",
    "NodeAddress.type",
    "NodeStatus.declared_features",
    "ObjectMeta.creation_timestamp",
    "ObjectMeta.deletion_timestamp",
    "ObjectMeta.resource_version",
    "OwnerReference.api_version",
    "OwnerReference.kind",
    "PersistentVolumeClaimSpec.access_modes",
    "PersistentVolumeClaimSpec.volume_mode",
    "PersistentVolumeClaimStatus.phase",
    "PersistentVolumeSpec.access_modes",
    "PersistentVolumeSpec.volume_mode",
    "PersistentVolumeStatus.phase",
    "PodAffinityTerm.match_label_keys",
    "PodAffinityTerm.mismatch_label_keys",
    "PodAffinityTerm.topology_key",
    "PodCondition.last_transition_time",
    "PodCondition.message",  # left out before, by KeptParts
    "PodCondition.reason",
    "PodCondition.status",
    "PodCondition.type",
    "PodSpec.preemption_policy",
    "PodSpec.scheduler_name",
    "PodStatus.phase",
    "PodStatus.start_time",
    "SchedulingGate.name",
    "StorageClass.provisioner",
    "StorageClass.volume_binding_mode",
    "Taint.effect",
    "Taint.key",
    "Toleration.effect",
    "Toleration.key",
    "Toleration.operator",
    "TopologyLabelRequirement.key",
    "TopologySpreadConstraint.match_label_keys",
    "TopologySpreadConstraint.node_affinity_policy",
    "TopologySpreadConstraint.node_taints_policy",
    "TopologySpreadConstraint.topology_key",
    "TopologySpreadConstraint.when_unsatisfiable",
    "VolumeAttachmentSpec.attacher",
}
# Of these the names are those of resources and drivers.
NAME_STAYS = {"DeviceClass", "CSIDriver"}


@pytest.mark.parametrize("kind", [POD, NODE, *KIND_OF.values()], ids=lambda kind: kind.name)
def test_every_name_in_an_object_is_hashed_and_nothing_else(kind: Any) -> None:
    full = Filler().full(kind.type)
    before, after = texts_in(full), texts_in(HASHED.with_hashed_names(full))
    stays = STAYS | {"ObjectMeta.name"} if kind.name in NAME_STAYS else STAYS
    assert after == {where: text for where, text in before.items() if where in stays}


def test_uids_made_by_chance_stay_and_others_are_hashed() -> None:
    uid = "0d9b9f24-53c4-4a39-a7a9-fbb8b3e0a1c2"
    assert HASHED.uid(uid) == uid
    assert HASHED.uid("default/web") == HASHED.name("default/web") != "default/web"


@pytest.mark.parametrize(
    ("name", "words_left"),
    [
        pytest.param("web", "x", id="hides a word"),
        pytest.param("node-12.example", "x-12.x", id="leaves numbers and what stands between"),
        pytest.param(
            "repo.example:5000/app:latest", "x.x:5000/x:latest", id="leaves the tag meant"
        ),
        pytest.param("zone-a__zone-b", "x-x__x-x", id="leaves several zones several"),
        pytest.param("aws://zone/vol-1ab", "aws://x/vol-x", id="leaves what a disk is known by"),
        pytest.param("true", "true", id="leaves yes"),
        pytest.param("", "", id="leaves nothing nothing"),
    ],
)
def test_name(name: str, words_left: str) -> None:
    assert re.sub(r"x[0-9a-f]{14}", "x", HASHED.name(name)) == words_left


def test_same_name_is_the_same_everywhere_and_other_under_another_salt() -> None:
    assert HashedNames(b"salt").name("web") == HASHED.name("web")
    assert HashedNames(b"other").name("web") != HASHED.name("web")
    node = HASHED.with_hashed_names(
        make_node("node-a", labels={"kubernetes.io/hostname": "node-a"})
    )
    pod = HASHED.with_hashed_names(make_pod(on="node-a"))
    assert node.labels == {"kubernetes.io/hostname": node.name}
    assert pod.spec.node_name == node.name


def test_names_made_of_names_still_are() -> None:
    assert HASHED.name("db-0-data") == f"{HASHED.name('db-0')}-{HASHED.name('data')}"
    name = HASHED.name("shop.example/app")
    assert full_image_name(name) == HASHED.name("shop.example/app:latest")


def test_owner_is_found_behind_the_replica_set_and_the_job() -> None:
    owners = {
        OwnerReference("ReplicaSet", "web-7d9f", controller=True): ("Deployment", "web"),
        OwnerReference("Job", "nightly-28471234", controller=True): ("CronJob", "nightly"),
    }
    for owner, (kind, name) in owners.items():
        pod = make_pod(labels={"pod-template-hash": "7d9f"})
        owned = replace(pod, metadata=replace(pod.metadata, owner_references=[owner]))
        assert owner_of(HASHED.with_hashed_names(owned)) == (
            HASHED.name("default"),
            kind,
            HASHED.name(name),
        )


def test_numbers_are_compared_as_before() -> None:
    labels = HASHED.with_hashed_names(make_node(labels={"generation": "12"})).labels
    assert matches_all([LabelRequirement("generation", "Gt", ["11"])], labels)
    assert not matches_all([LabelRequirement("generation", "Gt", ["12"])], labels)


def test_class_of_devices_serves_its_resource_as_before() -> None:
    kind = HASHED.with_hashed_names(Filler().full(DeviceClass))
    assert kind.serves(kind.spec.extended_resource_name)
    assert kind.spec == Filler().full(DeviceClass).spec


def test_what_a_configuration_looks_for_is_hashed_too() -> None:
    config = {
        "linkCapacities": [{"matchLabels": {"pool": "fast"}, "capacity": "10G"}],
        "addedAffinity": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]},
        "args": {"label": "disk", "value": "ssd"},
        "weight": 3,
        "urlPrefix": "https://extender.example:8443/path",
        "prometheus": {"addresses": ["inner.example:9090"], "caFile": "/etc/ca.crt"},
        "query": 'rate(x{url="http://inner"}[$window])',
    }
    assert HASHED.config(config) == {
        "linkCapacities": [{"matchLabels": {"pool": HASHED.name("fast")}, "capacity": "10G"}],
        "addedAffinity": {
            "matchExpressions": [{"key": "k", "operator": "In", "values": [HASHED.name("v")]}]
        },
        "args": {"label": "disk", "value": HASHED.name("ssd")},
        "weight": 3,
        "urlPrefix": f"https://{HASHED.name('extender.example')}:8443/{HASHED.name('path')}",
        "prometheus": {
            "addresses": [f"{HASHED.name('inner.example')}:9090"],
            "caFile": "/etc/ca.crt",
        },
        "query": 'rate(x{url="http://inner"}[$window])',
    }


def test_addresses_of_hosts_are_hidden_with_their_numbers() -> None:
    node = HASHED.with_hashed_names(make_node(addresses=["10.1.2.3"]))
    assert b"10.1" not in encode(node)
