"""VolumeBinding: where a pod's volumes are, or can be found or made; and what is reserved."""

from typing import Any

import msgspec
import numpy as np
import pytest

from lowtide.app.no_binder import NoBinder
from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import Pod, PodRejection, Reserved
from lowtide.objects.quantity import QuantityError
from lowtide.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from lowtide.plugins.volume_binding import VolumeBinding, VolumeBindingArgs
from lowtide.testing import make_node, make_pod, make_state

PLUGIN = VolumeBinding(VolumeBindingArgs(), NoBinder())
ZONE = "topology.kubernetes.io/zone"
COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}
SELECTED = "volume.kubernetes.io/selected-node"
DRIVER = "csi.example.com"

MISMATCHED = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_FOUND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


def claim(
    name: str = "data",
    *,
    class_name: str = "static",
    size: str = "1Gi",
    annotations: dict[str, str] | None = None,
    phase: str = "Pending",
    owner: str = "",
    meta: dict[str, Any] | None = None,
    **spec: Any,
) -> PersistentVolumeClaim:
    owners = [{"kind": "Pod", "uid": owner, "controller": True}] if owner else []
    given = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "annotations": annotations or {},
            "ownerReferences": owners,
            **(meta or {}),
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "resources": {"requests": {"storage": size}},
            **spec,
        },
        "status": {"phase": phase},
    }
    return msgspec.convert(given, PersistentVolumeClaim)


def volume(
    name: str,
    *,
    zone: str | None = None,
    size: str = "5Gi",
    phase: str = "Available",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> PersistentVolume:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    given = {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "static",
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}} if zone else None,
            **spec,
        },
        "status": {"phase": phase},
    }
    return msgspec.convert(given, PersistentVolume)


def storage_class(name: str, provisioner: str, **more: Any) -> StorageClass:
    given = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer", **more}
    return msgspec.convert({"metadata": {"name": name}, **given}, StorageClass)


STATIC = storage_class("static", "kubernetes.io/no-provisioner")
MADE = storage_class("made", DRIVER)
AT_ONCE = storage_class("at-once", DRIVER, volumeBindingMode="Immediate")


def using(*names: str) -> Pod:
    volumes = [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names or ("data",)]
    return make_pod("web", uid="u-1", spec={"volumes": volumes})


EPHEMERAL = make_pod("web", uid="u-1", spec={"volumes": [{"name": "tmp", "ephemeral": {}}]})


def cluster(*things: Any) -> ClusterState:
    """Node a in zone x, node b in zone y."""
    state = make_state([make_node("a", labels={ZONE: "x"}), make_node("b", labels={ZONE: "y"})])
    for thing in (STATIC, MADE, AT_ONCE, *things):
        state.put_object(thing)
    return state


def rejected(pod: Pod, state: ClusterState) -> dict[str, list[str]]:
    nodes = state.nodes()
    found: dict[str, list[str]] = {name: [] for name in nodes.names}
    for rejection in PLUGIN.filter(pod, nodes):
        assert not rejection.eviction_helps
        for at in np.flatnonzero(rejection.mask):
            found[nodes.names[at]].append(rejection.reason)
    return found


@pytest.mark.parametrize(
    ("pod", "things", "want"),
    [
        pytest.param(
            using(),
            [],
            'persistentvolumeclaim "data" not found',
            id="rejects a pod without its claim",
        ),
        pytest.param(
            using(),
            [claim(phase="Lost", volumeName="gone")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"',
            id="rejects a pod whose claim has lost its volume",
        ),
        pytest.param(
            using(),
            [claim(meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'persistentvolumeclaim "data" is being deleted',
            id="rejects a pod whose claim is being deleted",
        ),
        pytest.param(
            using(),
            [claim(class_name="at-once")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="rejects a pod whose claim binds immediately and has no volume",
        ),
        pytest.param(
            using(),
            [claim(class_name="unknown")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="rejects a pod whose claim has an unknown class",
        ),
        pytest.param(
            using(),
            [claim(volumeName="v")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="rejects a pod whose claim names a volume it is not bound to yet",
        ),
        pytest.param(
            EPHEMERAL,
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-tmp"',
            id="rejects a pod whose ephemeral volume has no claim yet",
        ),
        pytest.param(
            EPHEMERAL,
            [claim("web-tmp", owner="u-2")],
            "PVC default/web-tmp was not created for pod default/web (pod is not owner)",
            id="rejects a pod whose ephemeral volume's claim belongs to another pod",
        ),
        pytest.param(
            using(),
            [claim(selector={"matchExpressions": [{"key": "a", "operator": "Is"}]})],
            'persistentvolumeclaim "data" spec.selector.matchExpressions[0].operator: '
            '"Is" is not a valid label selector operator',
            id="rejects a pod whose claim has an invalid selector",
        ),
    ],
)
def test_rejects_a_pod(pod: Pod, things: list[Any], want: str) -> None:
    state = cluster(*things)
    assert PLUGIN.pre_filter(pod, state.nodes()) == PodRejection(want)
    assert rejected(pod, state) == {"a": [], "b": []}


BOUND = {"annotations": COMPLETED, "volumeName": "v"}


@pytest.mark.parametrize(
    ("things", "a", "b"),
    [
        pytest.param(
            [claim(**BOUND), volume("v")],
            [],
            [],
            id="accepts a bound volume without affinity everywhere",
        ),
        pytest.param(
            [claim(**BOUND), volume("v", zone="x")],
            [],
            [MISMATCHED],
            id="rejects nodes that a bound volume's affinity excludes",
        ),
        pytest.param(
            [claim(**BOUND)],
            [LOST],
            [LOST],
            id="rejects all nodes if a bound volume does not exist",
        ),
        pytest.param(
            [claim()],
            [NOTHING_FOUND],
            [NOTHING_FOUND],
            id="rejects all nodes without an available volume",
        ),
        pytest.param(
            [claim(), volume("v", zone="y")],
            [NOTHING_FOUND],
            [],
            id="rejects nodes where no volume is available",
        ),
        pytest.param(
            [claim(size="6Gi"), volume("v")],
            [NOTHING_FOUND],
            [NOTHING_FOUND],
            id="ignores volumes that are too small",
        ),
        pytest.param(
            [claim(), volume("v", phase="Released")],
            [NOTHING_FOUND],
            [NOTHING_FOUND],
            id="ignores volumes that are not available",
        ),
        pytest.param(
            [claim(), volume("v", volumeMode="Block")],
            [NOTHING_FOUND],
            [NOTHING_FOUND],
            id="ignores volumes of another volume mode",
        ),
        pytest.param(
            [claim(), volume("v", accessModes=["ReadOnlyMany"])],
            [NOTHING_FOUND],
            [NOTHING_FOUND],
            id="ignores volumes with other access modes",
        ),
        pytest.param(
            [claim(selector={"matchLabels": {"grade": "a"}}), volume("v", labels={"grade": "b"})],
            [NOTHING_FOUND],
            [NOTHING_FOUND],
            id="ignores volumes that the claim does not select",
        ),
        pytest.param(
            [claim(), volume("v", claimRef={"namespace": "default", "name": "other"})],
            [NOTHING_FOUND],
            [NOTHING_FOUND],
            id="ignores volumes reserved for other claims",
        ),
        pytest.param(
            [
                claim(),
                volume("v", zone="x", claimRef={"namespace": "default", "name": "data"}, phase=""),
                volume("w"),
            ],
            [],
            [NOTHING_FOUND],
            id="accepts only the volume reserved for the claim",
        ),
        pytest.param(
            [claim(), volume("v", capacity={"storage": "much"})],
            [NOTHING_FOUND],
            [NOTHING_FOUND],
            id="ignores volumes with an invalid size",
        ),
        pytest.param(
            [claim(class_name="made")],
            [],
            [],
            id="accepts all nodes if a volume can be provisioned anywhere",
        ),
        pytest.param(
            [claim(class_name="made", annotations={SELECTED: "b"})],
            [NOTHING_FOUND],
            [],
            id="rejects all but the node that a volume is being provisioned for",
        ),
        pytest.param(
            [
                claim(class_name="made"),
                storage_class(
                    "made",
                    DRIVER,
                    allowedTopologies=[
                        {"matchLabelExpressions": [{"key": ZONE, "values": ["x"]}]},
                        {"matchLabelExpressions": []},
                    ],
                ),
            ],
            [],
            [NOTHING_FOUND],
            id="rejects nodes where the class cannot provision a volume",
        ),
    ],
)
def test_rejects_nodes(things: list[Any], a: list[str], b: list[str]) -> None:
    state = cluster(*things)
    assert PLUGIN.pre_filter(using(), state.nodes()) is None
    assert rejected(using(), state) == {"a": a, "b": b}


def capacity(size: str | None, largest: str | None = None, topology: Any = None) -> Any:
    given = {
        "metadata": {"name": "c", "namespace": "default"},
        "storageClassName": "made",
        "nodeTopology": {"matchLabels": {ZONE: "x"}} if topology is None else topology,
        "capacity": size,
        "maximumVolumeSize": largest,
    }
    return msgspec.convert(given, CSIStorageCapacity)


@pytest.mark.parametrize(
    ("told", "a", "b"),
    [
        pytest.param(
            [], [NO_SPACE], [NO_SPACE], id="provisions nowhere if no capacity is reported"
        ),
        pytest.param(
            [capacity("1Gi")], [], [NO_SPACE], id="provisions where there is just enough space"
        ),
        pytest.param(
            [capacity("1023Mi")],
            [NO_SPACE],
            [NO_SPACE],
            id="does not provision where there is too little space",
        ),
        pytest.param(
            [capacity("9Gi", "1Mi")],
            [NO_SPACE],
            [NO_SPACE],
            id="uses maximumVolumeSize if it is reported",
        ),
        pytest.param(
            [capacity("9Gi", topology={})], [], [], id="provisions everywhere by an empty topology"
        ),
        pytest.param(
            [capacity(None)], [NO_SPACE], [NO_SPACE], id="ignores a capacity without a size"
        ),
    ],
)
def test_makes_volumes(told: list[Any], a: list[str], b: list[str]) -> None:
    spec = {"storageCapacity": True}
    driver = msgspec.convert({"metadata": {"name": DRIVER}, "spec": spec}, CSIDriver)
    state = cluster(claim(class_name="made"), driver, *told)
    assert rejected(using(), state) == {"a": a, "b": b}


def test_a_claim_whose_size_cannot_be_read_is_named() -> None:
    state = cluster(claim(size="much"))
    with pytest.raises(QuantityError, match=r"default/data spec\.resources\.requests\[storage\]"):
        list(PLUGIN.filter(using(), state.nodes()))


def csi_node(name: str, *plugins: str) -> CSINode:
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": ",".join(plugins)}
    return msgspec.convert({"metadata": {"name": name, "annotations": annotations}}, CSINode)


AWS, AZURE = "kubernetes.io/aws-ebs", "kubernetes.io/azure-disk"
AWS_DISK = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def test_a_disk_of_an_old_driver_is_where_its_new_driver_says() -> None:
    """Node b has the CSI driver, and no label of its zones."""
    state = cluster(claim(**BOUND), volume("v", zone="y", **AWS_DISK), csi_node("b", AZURE, AWS))
    assert rejected(using(), state) == {"a": [MISMATCHED], "b": [MISMATCHED]}
    state.update_node(make_node("b", labels={ZONE: "-", "topology.ebs.csi.aws.com/zone": "y"}))
    assert rejected(using(), state) == {"a": [MISMATCHED], "b": []}


def test_the_new_driver_is_where_its_csi_node_says_so_now() -> None:
    """Nodes a, b and later c are all in the volume's zone, by its old label alone."""
    zone = {ZONE: "y"}
    state = cluster(claim(**BOUND), volume("v", zone="y", **AWS_DISK))
    state.update_node(make_node("a", labels=zone))
    fits: dict[str, list[str]] = {"a": [], "b": []}
    assert rejected(using(), state) == fits
    state.put_object(csi_node("b", AZURE, AWS))
    assert rejected(using(), state) == {**fits, "b": [MISMATCHED]}
    state.put_object(csi_node("c", AWS))
    state.add_node(make_node("c", labels=zone))
    assert rejected(using(), state) == {**fits, "b": [MISMATCHED], "c": [MISMATCHED]}
    state.put_object(csi_node("b", AZURE))
    assert rejected(using(), state) == {**fits, "c": [MISMATCHED]}
    state.remove_node("a")
    assert state.nodes().names == ("c", "b")
    assert rejected(using(), state) == {"c": [MISMATCHED], "b": []}
    state.remove_object(csi_node("c"))
    assert rejected(using(), state) == {"c": [], "b": []}
    state.put_object(csi_node("c", AWS))
    state.remove_node("c")
    state.add_node(make_node("a", labels=zone))
    assert rejected(using(), state) == {"b": [], "a": []}


# Reserving.


def reserved(pod: Pod, node_name: str, state: ClusterState) -> dict[str, str]:
    """Each volume with its claim, and each claim with its node."""
    answer = PLUGIN.reserve(pod, node_name, state.nodes())
    assert not isinstance(answer, PodRejection)
    objects: list[Any] = [] if answer is None else list(answer.objects)
    return {
        each.name: each.spec.claim_ref.name
        if isinstance(each, PersistentVolume)
        else each.selected_node
        for each in objects
    }


def test_reserves_the_smallest_volumes_for_the_smallest_claims_first() -> None:
    state = cluster(
        claim("large", size="2Gi"),
        claim("small", size="1Gi"),
        volume("v3", size="3Gi"),
        volume("v2", size="2Gi"),
        volume("v9", size="1Gi", zone="y"),
    )
    assert reserved(using("large", "small"), "a", state) == {"v2": "small", "v3": "large"}
    assert reserved(using("large", "small"), "b", state) == {"v9": "small", "v2": "large"}


def test_reserves_what_is_to_be_made_with_its_node() -> None:
    state = cluster(claim("data", class_name="made"), claim("old", **BOUND), volume("v"))
    assert reserved(using("data", "old"), "b", state) == {"data": "b"}
    assert reserved(using("old"), "b", state) == {}


def test_a_volume_that_a_user_promised_is_not_marked_as_given_by_a_controller() -> None:
    promise = {"namespace": "default", "name": "data"}
    state = cluster(claim(), volume("v", claimRef=promise))
    answer = PLUGIN.reserve(using(), "a", state.nodes())
    assert isinstance(answer, Reserved)
    (given,) = answer.objects
    assert given.spec.claim_ref.uid == "data"
    assert given.metadata.annotations == {}


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param({}, [], id="waits ten minutes by default"),
        pytest.param(
            {"bindTimeoutSeconds": -1},
            [
                (
                    "bindTimeoutSeconds",
                    "Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value",
                )
            ],
            id="rejects a negative timeout",
        ),
        pytest.param(
            {"shape": []},
            [
                (
                    "shape",
                    "Invalid value: unexpected field `shape`, remove it or turn on the feature "
                    "gate StorageCapacityScoring",
                )
            ],
            id="rejects the field shape",
        ),
    ],
)
def test_args(given: dict[str, Any], want: list[tuple[str, str]]) -> None:
    args = msgspec.convert(given, VolumeBindingArgs)
    assert list(args.problems()) == want
