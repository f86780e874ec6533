"""Volumes attached to nodes: counted again after whatever changes the count, and only then."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec
import pytest

from lowtide.cluster.indexes.attached_volumes import NO_LIMIT
from lowtide.cluster.state import ClusterState
from lowtide.objects.pod import Pod
from lowtide.objects.storage import (
    CSINode,
    CsiSource,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from lowtide.testing import make_node, make_pod, make_state

DRIVER, OTHER = "csi.example.com", "other.example.com"


def csi_node(name: str = "a", count: int | None = 3, driver: str = DRIVER) -> CSINode:
    drivers = [{"name": driver, "allocatable": {"count": count}}]
    return msgspec.convert({"metadata": {"name": name}, "spec": {"drivers": drivers}}, CSINode)


def volume(name: str, driver: str = DRIVER) -> PersistentVolume:
    csi = {"driver": driver, "volumeHandle": f"handle-{name}"}
    return msgspec.convert({"metadata": {"name": name}, "spec": {"csi": csi}}, PersistentVolume)


def claim(name: str, volume_name: str = "", owner: str = "") -> PersistentVolumeClaim:
    meta = {"name": name, "namespace": "default"}
    owners = [{"kind": "Pod", "uid": owner, "controller": True}] if owner else []
    spec = {"volumeName": volume_name, "storageClassName": "fast"}
    given = {"metadata": {**meta, "ownerReferences": owners}, "spec": spec}
    return msgspec.convert(given, PersistentVolumeClaim)


def storage_class(provisioner: str) -> StorageClass:
    return msgspec.convert({"metadata": {"name": "fast"}, "provisioner": provisioner}, StorageClass)


def attachment(name: str, volume_name: str, node_name: str = "a") -> VolumeAttachment:
    source = {"persistentVolumeName": volume_name}
    spec = {"attacher": DRIVER, "nodeName": node_name, "source": source}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, VolumeAttachment)


def using(name: str, *sources: dict[str, Any], on: str = "a") -> Pod:
    volumes = [{"name": f"v{at}", **source} for at, source in enumerate(sources)]
    return make_pod(name, on=on, spec={"volumes": volumes})


def the_claim(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


def counts(state: ClusterState, driver: str = DRIVER) -> dict[str, int]:
    nodes = state.nodes()
    return dict(zip(nodes.names, nodes.volumes.attached_count(driver).tolist(), strict=True))


def contents(state: ClusterState) -> dict[str, Any]:
    """What it holds by name; columns are by driver, and go with their rows."""
    held = vars(state.attached_volumes)
    names = [name for name, value in held.items() if isinstance(value, dict | set)]
    return {name: held[name] for name in names if name not in ("_counts", "_limits")}


@pytest.fixture
def state() -> ClusterState:
    """One volume is used on node a, and one is attached besides; nobody said a word of node b."""
    state = make_state([make_node("a"), make_node("b")], [using("web", the_claim("data"))])
    things = (csi_node(), volume("v1"), volume("v2"), claim("data", "v1"), attachment("x", "v2"))
    for thing in things:
        state.put_object(thing)
    assert counts(state) == {"a": 2, "b": 0}
    return state


Change = Callable[[ClusterState], Any]


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(lambda s: s.remove_pod("default/web"), 1, id="drops when a pod is removed"),
        pytest.param(
            lambda s: s.place(using("db", the_claim("data"))),
            2,
            id="counts a volume of two pods once",
        ),
        pytest.param(
            lambda s: s.remove_object(claim("data")), 1, id="drops when a claim is deleted"
        ),
        pytest.param(
            lambda s: s.put_object(claim("data", "v2")), 1, id="follows a claim to another volume"
        ),
        pytest.param(
            lambda s: s.put_object(volume("v1", OTHER)),
            1,
            id="drops when a volume changes its driver",
        ),
        pytest.param(
            lambda s: s.remove_object(volume("v1")), 1, id="drops when a used volume is deleted"
        ),
        pytest.param(
            lambda s: s.remove_object(volume("v2")),
            1,
            id="drops when an attached volume is deleted",
        ),
        pytest.param(
            lambda s: s.remove_object(attachment("x", "v2")),
            1,
            id="drops when a VolumeAttachment is deleted",
        ),
        pytest.param(
            lambda s: s.put_object(attachment("x", "v2", "b")),
            1,
            id="drops when a VolumeAttachment moves to another node",
        ),
        pytest.param(
            lambda s: s.put_object(attachment("y", "v1")),
            2,
            id="counts a volume once that is used and attached",
        ),
        pytest.param(lambda s: s.remove_object(csi_node()), 0, id="is 0 without a CSINode"),
        pytest.param(
            lambda s: s.place(using("db", the_claim("new"))), 2, id="ignores an unknown claim"
        ),
    ],
)
def test_attached_count(state: ClusterState, change: Change, want: int) -> None:
    change(state)
    assert counts(state)["a"] == want


def test_a_claim_without_a_volume_counts_for_what_its_class_makes(state: ClusterState) -> None:
    state.put_object(claim("new"))
    state.place(using("db", the_claim("new")))
    assert counts(state)["a"] == 2
    state.put_object(storage_class(DRIVER))
    assert counts(state)["a"] == 3
    state.put_object(storage_class("kubernetes.io/vsphere-volume"))
    assert counts(state)["a"] == 2


def test_an_ephemeral_volume_counts_by_the_claim_made_for_its_pod(state: ClusterState) -> None:
    state.put_object(claim("db-v0", "v3"))
    state.put_object(volume("v3"))
    state.place(using("db", {"ephemeral": {}}))
    assert counts(state)["a"] == 2
    state.put_object(claim("db-v0", "v3", owner="default/db"))
    assert counts(state)["a"] == 3


def test_disks_named_in_a_pod_count_for_the_driver_that_serves_them(state: ClusterState) -> None:
    disk = {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-7"}}
    state.place(using("db", disk))
    state.place(using("other", {"awsElasticBlockStore": {"volumeID": "vol-7"}}))
    assert counts(state, "ebs.csi.aws.com") == {"a": 1, "b": 0}


def test_limits_are_those_of_the_csi_node(state: ClusterState) -> None:
    state.put_object(csi_node("b", 7))
    assert state.nodes().volumes.attach_limit(DRIVER).tolist() == [3, 7]
    state.put_object(csi_node("b", None))
    assert state.nodes().volumes.attach_limit(DRIVER).tolist() == [3, NO_LIMIT]
    state.put_object(csi_node("a", 5, OTHER))
    assert state.nodes().volumes.attach_limit(DRIVER).tolist() == [NO_LIMIT, NO_LIMIT]


def test_a_row_that_moves_takes_its_counts_along(state: ClusterState) -> None:
    state.put_object(csi_node("b", 7))
    state.place(using("db", the_claim("data"), on="b"))
    assert counts(state) == {"a": 2, "b": 1}
    state.remove_node("a")
    assert counts(state) == {"b": 1}
    state.add_node(make_node("a"))
    assert counts(state) == {"b": 1, "a": 2}
    assert state.nodes().volumes.attach_limit(DRIVER).tolist() == [7, 3]
    in_use = state.nodes().volumes.is_attached(CsiSource(DRIVER, "handle-v1"))
    assert in_use.tolist() == [True, True]


def test_a_node_that_is_gone_uses_nothing(state: ClusterState) -> None:
    users, source = state.attached_volumes._users, CsiSource(DRIVER, "handle-v1")
    assert users[source] == {"a": 1}
    state.remove_node("a")
    assert users[source] == {}


def test_nothing_is_kept_of_nodes_and_attachments_that_are_gone(state: ClusterState) -> None:
    """Although no plugin asks, which would count anew what has changed."""
    kept = deepcopy(contents(state))
    for name in ("c", "d"):
        disk, pod = f"v-{name}", using(name, the_claim(name), on=name)
        things = (csi_node(name), volume(disk), claim(name, disk), attachment(name, disk, name))
        state.add_node(make_node(name))
        state.place(pod)
        for thing in things:
            state.put_object(thing)
        state.remove_node(name)
        for thing in things:
            state.remove_object(thing)
        state.remove_pod(pod.uid)
    assert contents(state) == kept


def test_a_node_that_is_told_of_last_counts_all_the_same(state: ClusterState) -> None:
    state.place(using("db", the_claim("data"), on="c"))
    for thing in (csi_node("c", 9), attachment("y", "v2", "c")):
        state.put_object(thing)
    counts(state)
    state.add_node(make_node("c"))
    assert counts(state) == {"a": 2, "b": 0, "c": 2}
    assert state.nodes().volumes.attach_limit(DRIVER).tolist() == [3, NO_LIMIT, 9]


def test_what_is_imagined_counts_where_it_is_imagined(state: ClusterState) -> None:
    state.put_object(csi_node("b", 7))
    nodes = state.nodes().with_pods({1: [using("db", the_claim("data"))]})
    assert nodes.volumes.attached_count(DRIVER).tolist() == [2, 1]
    without = nodes.without({0: ["default/web"]})
    assert without.volumes.attached_count(DRIVER).tolist() == [1, 1]
    assert without.volumes.is_attached(CsiSource(DRIVER, "handle-v1")).tolist() == [False, True]
    assert counts(state) == {"a": 2, "b": 0}


@pytest.mark.parametrize("count", [2**31, 10**30])
def test_a_limit_is_no_larger_than_the_api_allows(state: ClusterState, count: int) -> None:
    state.put_object(csi_node(count=count))
    assert state.nodes().volumes.attach_limit(DRIVER).tolist()[0] == 2**31 - 1


def test_objects_that_are_told_of_again_stay_known(state: ClusterState) -> None:
    for thing in (claim("data", "v1"), attachment("x", "v2")):
        state.put_object(thing)
        state.put_object(thing)
    assert counts(state) == {"a": 2, "b": 0}
    state.put_object(volume("v1", driver="other"))
    state.remove_object(volume("v2"))
    assert counts(state) == {"a": 0, "b": 0}
