"""VolumeZone: volumes whose labels name a zone, and nodes that are in it or not."""

from typing import Any

import msgspec
import numpy as np
import pytest

from lowtide.cluster.nodes import Nodes
from lowtide.framework.plugin import PodRejection
from lowtide.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from lowtide.plugins.volume_zone import VolumeZone
from lowtide.testing import make_node, make_pod, make_state

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
ELSEWHERE = "node(s) had no available volume zone"
POD = make_pod(spec={"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]})


def nodes_with(*things: tuple[Any, type], **labels: str) -> Nodes:
    names = {"zone": ZONE, "region": REGION, "old": OLD_ZONE}
    given = {names[key]: value for key, value in labels.items()}
    state = make_state([make_node("a", labels=given)])
    for thing, kind in things:
        state.put_object(msgspec.convert(thing, kind))
    return state.nodes()


def claim(volume_name: str = "", class_name: str = "") -> tuple[Any, type]:
    spec = {"volumeName": volume_name, "storageClassName": class_name}
    meta = {"name": "data", "namespace": "default"}
    return {"metadata": meta, "spec": spec}, PersistentVolumeClaim


def volume(**labels: str) -> tuple[Any, type]:
    names = {"zone": ZONE, "region": REGION, "old": OLD_ZONE}
    given = {names[key]: value for key, value in labels.items()}
    return {"metadata": {"name": "v", "labels": given}}, PersistentVolume


@pytest.mark.parametrize(
    ("of_volume", "of_node", "is_rejected"),
    [
        pytest.param({"zone": "x"}, {"zone": "x"}, False, id="accepts a node in the volume's zone"),
        pytest.param({"zone": "x"}, {"zone": "y"}, True, id="rejects a node in another zone"),
        pytest.param(
            {"zone": "x__y"}, {"zone": "y"}, False, id="accepts a node in one of the volume's zones"
        ),
        pytest.param({"zone": "x"}, {}, False, id="accepts a node without zone labels"),
        pytest.param(
            {"zone": "x"}, {"region": "r"}, True, id="rejects a node with other zone labels only"
        ),
        pytest.param(
            {"old": "x"},
            {"zone": "x"},
            False,
            id="accepts the newer label of a node for the older one of a volume",
        ),
        pytest.param(
            {"old": "x"},
            {"old": "y", "zone": "x"},
            True,
            id="compares the same label if the node has both",
        ),
        pytest.param(
            {"zone": "x"},
            {"old": "x"},
            True,
            id="does not accept the older label for the newer one",
        ),
        pytest.param(
            {"zone": "x", "region": "r"},
            {"zone": "x"},
            True,
            id="requires all labels of the volume to match",
        ),
        pytest.param({"zone": "x__"}, {"zone": "y"}, False, id="ignores an invalid label"),
        pytest.param({}, {"zone": "y"}, False, id="accepts any node for a volume without labels"),
    ],
)
def test_a_node(of_volume: dict[str, str], of_node: dict[str, str], is_rejected: bool) -> None:
    nodes = nodes_with(claim("v"), volume(**of_volume), **of_node)
    assert VolumeZone().pre_filter(POD, nodes) is None
    reasons = [
        rejection.reason for rejection in VolumeZone().filter(POD, nodes) if np.any(rejection.mask)
    ]
    assert reasons == ([ELSEWHERE] if is_rejected else [])


def storage_class(mode: str) -> tuple[Any, type]:
    return {"metadata": {"name": "fast"}, "volumeBindingMode": mode}, StorageClass


@pytest.mark.parametrize(
    ("things", "want"),
    [
        pytest.param(
            [], 'persistentvolumeclaim "data" not found', id="rejects a pod if its claim is missing"
        ),
        pytest.param(
            [claim("v")],
            'persistentvolume "v" not found',
            id="rejects a pod if its volume is missing",
        ),
        pytest.param(
            [claim()],
            "PersistentVolumeClaim had no pv name and storageClass name",
            id="rejects a pod if its claim has neither volume nor class",
        ),
        pytest.param(
            [claim(class_name="fast")],
            'storageclass.storage.k8s.io "fast" not found',
            id="rejects a pod if the storage class is missing",
        ),
        pytest.param(
            [claim(class_name="fast"), storage_class("Immediate")],
            "PersistentVolume had no name",
            id="rejects a pod if its claim should have a volume",
        ),
    ],
)
def test_a_pod_is_rejected_for(things: list[tuple[Any, type]], want: str) -> None:
    nodes = nodes_with(*things)
    assert VolumeZone().pre_filter(POD, nodes) == PodRejection(want)
    assert list(VolumeZone().filter(POD, nodes)) == []


def test_a_claim_that_waits_for_its_first_pod_has_no_zone_yet() -> None:
    nodes = nodes_with(claim(class_name="fast"), storage_class("WaitForFirstConsumer"), zone="x")
    assert VolumeZone().pre_filter(POD, nodes) is None
    assert list(VolumeZone().filter(POD, nodes)) == []
