"""Each volume plugin agrees with its plain twin on any cluster, with pods added and removed in
thought, on some rows or all."""

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.volume_twins import (
    PlainNodeVolumeLimits,
    PlainVolumeBinding,
    PlainVolumeRestrictions,
    PlainVolumeZone,
)

from lowtide.app.no_binder import NoBinder
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.overlay import hypothetical_pod
from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import Pod, PodRejection
from lowtide.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from lowtide.plugins.node_volume_limits import NodeVolumeLimits
from lowtide.plugins.volume_binding import VolumeBinding, VolumeBindingArgs
from lowtide.plugins.volume_restrictions import VolumeRestrictions
from lowtide.plugins.volume_zone import VolumeZone
from lowtide.testing import make_node, make_pod, make_state
from lowtide.testing.placing import is_concerned

STEADY = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    print_blob=True,
)
NAMES = [f"n{number}" for number in range(4)]
CLAIMS = [f"c{number}" for number in range(3)]
VOLUMES = [f"v{number}" for number in range(5)]
DRIVER, EBS = "csi.example.com", "ebs.csi.aws.com"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
SIZES = ["1Gi", "2Gi", "5Gi"]
STATIC, LATE = "static", "late"


class Draw:
    """A cluster by a seed: hypothesis gives up on as many choices as one takes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def mostly(self, usual: Any, *others: Any) -> Any:
        return self.pick(*[usual] * (3 * len(others)), *others)

    def some(self, choices: Sequence[Any], most: int) -> list[Any]:
        return [self.pick(*choices) for _ in range(self._random.randint(0, most))]

    def shuffled(self, things: Sequence[Any]) -> list[Any]:
        return self._random.sample(things, len(things))

    # Pods.

    def pod(self, name: str, **more: Any) -> Pod:
        sources = [self.source() for _ in range(self.pick(1, 2, 2, 3))]
        volumes = [{"name": f"v{at}", **source} for at, source in enumerate(sources)]
        return make_pod(name, spec={"volumes": volumes}, **more)

    def running(self, name: str) -> Pod:
        return self.pod(name, namespace=self.mostly("default", "other"), on=self.pick(*NAMES))

    def source(self) -> dict[str, Any]:
        is_read_only = self.pick(True, False)
        disk = self.pick(
            {"gcePersistentDisk": {"pdName": self.pick("d1", "d2"), "readOnly": is_read_only}},
            {"awsElasticBlockStore": {"volumeID": self.pick("vol-1", "vol-2")}},
            {"iscsi": {"iqn": "i", "readOnly": is_read_only}},
            {
                "rbd": {
                    "monitors": self.pick(["m1"], ["m2"], ["m1", "m2"]),
                    "image": "i",
                    "readOnly": is_read_only,
                }
            },
        )
        return self.mostly({"persistentVolumeClaim": {"claimName": self.pick(*CLAIMS)}}, disk)

    # Claims and volumes.

    def claim(self, name: str, namespace: str) -> PersistentVolumeClaim:
        """Bound, or waiting for its first pod."""
        annotations, volume_name = {}, ""
        if self.pick(True, False, False):
            annotations["pv.kubernetes.io/bind-completed"] = "yes"
            volume_name = self.pick(*VOLUMES, "gone")
        elif self.mostly(False, True):
            annotations["volume.kubernetes.io/selected-node"] = self.pick(*NAMES)
        spec = {
            "accessModes": [self.pick("ReadWriteOnce", "ReadWriteOncePod")],
            "resources": {"requests": {"storage": self.pick(*SIZES)}},
            "storageClassName": self.pick(STATIC, LATE),
            "volumeName": volume_name,
            "selector": self.mostly(None, {"matchLabels": {"grade": "a"}}),
        }
        meta = {"name": name, "namespace": namespace, "uid": name, "annotations": annotations}
        return msgspec.convert({"metadata": meta, "spec": spec}, PersistentVolumeClaim)

    def volume(self, name: str) -> PersistentVolume:
        promised = self.mostly(None, *CLAIMS)
        disk = self.pick(
            {"csi": {"driver": DRIVER, "volumeHandle": name}},
            {"csi": {"driver": EBS, "volumeHandle": "vol-1"}},
            {"awsElasticBlockStore": {"volumeID": "aws://x/vol-2"}},
            {},
        )
        spec = {
            "capacity": {"storage": self.pick(*SIZES)},
            "accessModes": self.mostly(["ReadWriteOnce", "ReadWriteOncePod"], []),
            "storageClassName": self.pick(STATIC, LATE),
            "nodeAffinity": self.pick(None, self.affinity()),
            "claimRef": promised and {"namespace": "default", "name": promised},
            **disk,
        }
        zone = self.pick({}, {ZONE: "x"}, {OLD_ZONE: "x__z"}, {OLD_ZONE: "y"}, {ZONE: "x__"})
        meta = {"name": name, "labels": {**zone, "grade": self.pick("a", "b")}}
        status = {"phase": self.mostly("Available", "Released")}
        return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, PersistentVolume)

    def affinity(self) -> dict[str, Any]:
        terms = [
            {"matchExpressions": [self.expression() for _ in range(self.pick(0, 1, 1, 2))]}
            for _ in range(self.pick(0, 1, 1, 1, 2))
        ]
        return {"required": {"nodeSelectorTerms": terms}}

    def expression(self) -> dict[str, Any]:
        return {
            "key": self.pick(ZONE, ZONE, EBS_ZONE, "kubernetes.io/hostname"),
            "operator": self.pick("In", "In", "In", "NotIn", "Exists", "Gt"),
            "values": self.some(["x", "y", *NAMES], 3),
        }

    def storage_class(self, name: str) -> StorageClass:
        topologies = self.pick(
            [], [[{"key": ZONE, "values": ["x"]}]], [[], [{"key": ZONE, "values": ["y", "x"]}]]
        )
        return msgspec.convert(
            {
                "metadata": {"name": name},
                "provisioner": "kubernetes.io/no-provisioner" if name == STATIC else DRIVER,
                "volumeBindingMode": "WaitForFirstConsumer",
                "allowedTopologies": [{"matchLabelExpressions": each} for each in topologies],
            },
            StorageClass,
        )

    # What is known of the CSI drivers on nodes.

    def csi_node(self, name: str) -> CSINode:
        drivers = [
            {"name": driver, "allocatable": {"count": self.pick(0, 1, 2, 3, 4)}}
            for driver in (DRIVER, EBS)
        ]
        plugins = self.pick(
            "", "kubernetes.io/gce-pd", "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"
        )
        annotations = {"storage.alpha.kubernetes.io/migrated-plugins": plugins}
        meta = {"name": name, "annotations": annotations}
        return msgspec.convert({"metadata": meta, "spec": {"drivers": drivers}}, CSINode)

    def attachment(self, node_name: str) -> VolumeAttachment:
        source = {"persistentVolumeName": self.pick(*VOLUMES)}
        spec = {"attacher": DRIVER, "nodeName": node_name, "source": source}
        meta = {"name": f"on-{node_name}"}
        return msgspec.convert({"metadata": meta, "spec": spec}, VolumeAttachment)

    def capacity(self, number: int) -> CSIStorageCapacity:
        return msgspec.convert(
            {
                "metadata": {"name": f"s{number}", "namespace": "default"},
                "storageClassName": LATE,
                "nodeTopology": self.pick(None, {}, {"matchLabels": {ZONE: "x"}}),
                "capacity": self.pick(None, *SIZES),
                "maximumVolumeSize": self.pick(None, None, *SIZES),
            },
            CSIStorageCapacity,
        )

    def driver(self) -> CSIDriver:
        spec = {"storageCapacity": self.pick(True, False)}
        return msgspec.convert({"metadata": {"name": DRIVER}, "spec": spec}, CSIDriver)

    # Clusters.

    def things(self) -> list[Any]:
        return [
            *(self.claim(name, space) for name in CLAIMS for space in ("default", "other")),
            *(self.volume(name) for name in VOLUMES if self.mostly(True, False)),
            *(self.csi_node(name) for name in NAMES if self.mostly(True, False)),
            *(self.attachment(name) for name in NAMES if self.pick(True, False)),
            *(self.capacity(number) for number in range(self.pick(0, 1, 2))),
            self.driver(),
        ]

    def state(self) -> ClusterState:
        labels = [
            {
                key: self.pick("x", "y")
                for key in (ZONE, REGION, OLD_ZONE, EBS_ZONE)
                if self.pick(True, False) or (key == ZONE and self.pick(True, False))
            }
            for _ in NAMES
        ]
        state = make_state(
            [make_node(name, labels=each) for name, each in zip(NAMES, labels, strict=True)]
        )
        for name in (STATIC, LATE):
            state.put_object(self.storage_class(name))
        pods = [self.running(f"p{number}") for number in range(self.pick(0, 2, 4, 6))]
        # Some come twice, as objects that change.
        for thing in self.shuffled([*self.things(), *self.things(), *pods]):
            if isinstance(thing, Pod):
                state.place(thing)
            else:
                state.put_object(thing)
            if self.mostly(False, True):
                state.nodes().volumes.attached_count(DRIVER)  # a look in between
        if self.pick(True, False):
            state.remove_node(NAMES[1])
        return state

    def face(self) -> Nodes:
        """A table: of all nodes or some, perhaps repeated, or with pods added and taken away in
        thought."""
        face = self.state().nodes()
        if self.pick(True, False):
            rows = self.pick(self.shuffled(range(len(face)))[:2], self.some(range(len(face)), 5))
            face = face.take(np.array(rows, np.intp))
        if self.pick(True, False, False):
            copied = hypothetical_pod(self.running("copied"))
            return face.with_copies(copied, np.array([self.pick(0, 1, 1, 2, 3) for _ in face.rows]))
        for at in range(len(face)):
            if self.pick(True, False, False):
                face = face.with_pods({at: [self.running(f"new-{at}")]})
            if self.pick(True, False, False):
                face = face.without({at: [pod.uid for pod in face.pods(at)[:2]]})
        return face


seeds = st.integers(0, 2**32)


class TwinRejection(NamedTuple):
    node_name: str
    reason: str
    eviction_helps: bool


def rejections(plugin: Any, pod: Pod, nodes: Nodes) -> list[TwinRejection]:
    return sorted(
        TwinRejection(nodes.names[at], rejection.reason, rejection.eviction_helps)
        for rejection in (plugin.filter(pod, nodes) if is_concerned(plugin, pod) else ())
        for at in np.flatnonzero(rejection.mask)
    )


@pytest.mark.parametrize(
    ("plugin", "twin"),
    [
        pytest.param(VolumeRestrictions(), PlainVolumeRestrictions(), id="VolumeRestrictions"),
        pytest.param(NodeVolumeLimits(), PlainNodeVolumeLimits(), id="NodeVolumeLimits"),
        pytest.param(
            VolumeBinding(VolumeBindingArgs(), NoBinder()), PlainVolumeBinding(), id="VolumeBinding"
        ),
    ],
)
@STEADY
@given(seed=seeds)
def test_filters_by_volumes_agree(plugin: Any, twin: Any, seed: int) -> None:
    draw = Draw(seed)
    pod, nodes = draw.pod("pending"), draw.face()
    assert rejections(plugin, pod, nodes) == rejections(twin, pod, nodes)


@STEADY
@given(seed=seeds)
def test_filters_by_the_zones_of_volumes_agree(seed: int) -> None:
    draw, plugin = Draw(seed), VolumeZone()
    pod, nodes = draw.pod("pending"), draw.face()
    if plugin.pre_filter(pod, nodes) is not None:
        assert rejections(plugin, pod, nodes) == []
    else:
        assert rejections(plugin, pod, nodes) == rejections(PlainVolumeZone(), pod, nodes)


# What is reserved is what the filter found.


@STEADY
@given(seed=seeds)
def test_what_fits_can_be_reserved(seed: int) -> None:
    draw, plugin = Draw(seed), VolumeBinding(VolumeBindingArgs(), NoBinder())
    pod, nodes = draw.pod("pending"), draw.state().nodes()
    rejected = {each.node_name for each in rejections(plugin, pod, nodes)}
    for node_name in set(nodes.names) - rejected:
        answer = plugin.reserve(pod, node_name, nodes)
        assert not isinstance(answer, PodRejection)
        reserved = [] if answer is None else list(answer.objects)
        given = [each for each in reserved if isinstance(each, PersistentVolume)]
        made = [each.key for each in reserved if isinstance(each, PersistentVolumeClaim)]
        promised = [
            f"{each.spec.claim_ref.namespace}/{each.spec.claim_ref.name}"
            for each in given
            if each.spec.claim_ref is not None
        ]
        names = [each.persistent_volume_claim for each in pod.spec.volumes]
        known = nodes.objects(PersistentVolumeClaim)
        waiting = [
            known["default", each.claim_name].key
            for each in names
            if each is not None and not known["default", each.claim_name].is_bound
        ]
        assert sorted([*promised, *made]) == sorted(waiting)
        assert len({each.name for each in given}) == len(given)
