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
        pytest.param({"zone": "x"}, {"zone": "x"}, False, id="accepts the zone of the volume"),
        pytest.param({"zone": "x"}, {"zone": "y"}, True, id="rejects another"),
        pytest.param({"zone": "x__y"}, {"zone": "y"}, False, id="accepts one of several"),
        pytest.param({"zone": "x"}, {}, False, id="accepts a node without such labels"),
        pytest.param({"zone": "x"}, {"region": "r"}, True, id="rejects one with others only"),
        pytest.param({"old": "x"}, {"zone": "x"}, False, id="takes the new label for the old"),
        pytest.param({"old": "x"}, {"old": "y", "zone": "x"}, True, id="but not where both are"),
        pytest.param({"zone": "x"}, {"old": "x"}, True, id="nor the old one for the new"),
        pytest.param({"zone": "x", "region": "r"}, {"zone": "x"}, True, id="wants all labels"),
        pytest.param({"zone": "x__"}, {"zone": "y"}, False, id="passes over an unreadable label"),
        pytest.param({}, {"zone": "y"}, False, id="accepts any for a volume without labels"),
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
        pytest.param([], 'persistentvolumeclaim "data" not found', id="a claim that is missing"),
        pytest.param([claim("v")], 'persistentvolume "v" not found', id="a volume that is"),
        pytest.param(
            [claim()],
            "PersistentVolumeClaim had no pv name and storageClass name",
            id="a claim without volume and class",
        ),
        pytest.param(
            [claim(class_name="fast")],
            'storageclass.storage.k8s.io "fast" not found',
            id="a class that is missing",
        ),
        pytest.param(
            [claim(class_name="fast"), storage_class("Immediate")],
            "PersistentVolume had no name",
            id="a claim that should have its volume",
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
