"""The hints of the plugins: which changes may help a pod that the plugin rejected."""

from typing import Any

import msgspec
import pytest

from lowtide.framework.change import Change, node_change, object_change, pod_change
from lowtide.objects.kinds import Namespace
from lowtide.objects.pod import Pod
from lowtide.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from lowtide.plugins import BUILT_IN
from lowtide.plugins.node_label import NodeLabel, NodeLabelArgs
from lowtide.testing import make_node, make_pod


class NoBinder:
    pass


def plugin_called(name: str) -> Any:
    if name == "NodeLabel":
        return NodeLabel(NodeLabelArgs(label="disk", value="ssd"))
    (row,) = (each for each in BUILT_IN if each.name == name)
    assert row.plugin is not None
    given: dict[str, Any] = {"args": row.plugin.args()} if hasattr(row.plugin, "args") else {}
    return row.plugin(**given, **({"binder": NoBinder()} if hasattr(row.plugin, "needs") else {}))


def thing(kind: type[Any], name: str = "data", **more: Any) -> Any:
    """In the default namespace where the kind has one."""
    has_namespace = kind in (PersistentVolumeClaim, CSIStorageCapacity)
    meta = {"name": name, "namespace": "default" if has_namespace else ""}
    return msgspec.convert({"metadata": {**meta, **more.pop("meta", {})}, **more}, kind)


def term(kind: str, **more: Any) -> dict[str, Any]:
    given = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}, **more}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [given]}}}


def using(claim: str) -> dict[str, Any]:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}


SPREAD = {
    "topologySpreadConstraints": [
        {
            "topologyKey": "zone",
            "labelSelector": {"matchLabels": {"app": "a"}},
            "matchLabelKeys": ["version"],
        }
    ]
}
TAINTS = [{"key": "k", "effect": "NoSchedule"}]
PLAIN, TAINTED, CORDONED = make_node(), make_node(taints=TAINTS), make_node(unschedulable=True)
ZONED, SSD = make_node(labels={"zone": "a"}), make_node(labels={"disk": "ssd"})
POD, APP_A, APP_B = (
    make_pod(),
    make_pod("a", labels={"app": "a"}),
    make_pod("b", labels={"app": "b"}),
)
ELSEWHERE = make_pod("a", namespace="other", labels={"app": "a"})
WANTS_SSD = make_pod(node_selector={"disk": "ssd"})
LARGE = make_pod(cpu="2")
PORT = make_pod(host_ports=[80])
NEAR, AWAY = make_pod(spec=term("podAffinity")), make_pod(spec=term("podAntiAffinity"))
LIKE = make_pod(labels={"app": "a"}, spec=term("podAffinity"))
NEAR_REDS = make_pod(spec=term("podAffinity", namespaceSelector={"matchLabels": {"team": "red"}}))
EVEN = make_pod(labels={"app": "a", "version": "1"}, spec=SPREAD)
COUNTED = make_pod("c", labels={"app": "a", "version": "1"})
STORES, STORES_TOO = make_pod("s", spec=using("data")), make_pod("t", spec=using("data"))
RESTARTS = make_pod(
    spec={"containers": [{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]}
)
DECLARES = make_node(declared_features=["RestartAllContainersOnContainerExits"])
CLAIM, OTHER_CLAIM = thing(PersistentVolumeClaim), thing(PersistentVolumeClaim, "other")
VOLUME = thing(PersistentVolume)
IN_ZONE = thing(PersistentVolume, meta={"labels": {"topology.kubernetes.io/zone": "a"}})
WAITS = thing(StorageClass, volumeBindingMode="WaitForFirstConsumer")


def limits(count: int) -> CSINode:
    drivers = [{"name": "d", "allocatable": {"count": count}}]
    made: CSINode = thing(CSINode, spec={"drivers": drivers})
    return made


def space(size: str) -> CSIStorageCapacity:
    made: CSIStorageCapacity = thing(CSIStorageCapacity, capacity=size)
    return made


def case(name: str, pod: Pod, change: Change, want: bool, sentence: str) -> Any:
    return pytest.param(name, pod, change, want, id=f"{name} {sentence}")


@pytest.mark.parametrize(
    ("name", "pod", "change", "want"),
    [
        case("NodeUnschedulable", POD, node_change(None, PLAIN), True, "wakes for a new node"),
        case(
            "NodeUnschedulable",
            POD,
            node_change(None, CORDONED),
            False,
            "ignores a new cordoned node",
        ),
        case(
            "NodeUnschedulable",
            POD,
            node_change(CORDONED, PLAIN),
            True,
            "wakes for an uncordoned node",
        ),
        case("NodeUnschedulable", POD, node_change(PLAIN, ZONED), False, "ignores labels"),
        case("TaintToleration", POD, node_change(None, PLAIN), True, "wakes for a new node"),
        case(
            "TaintToleration", POD, node_change(None, TAINTED), False, "ignores a new tainted node"
        ),
        case(
            "TaintToleration", POD, node_change(TAINTED, PLAIN), True, "wakes for a removed taint"
        ),
        case("TaintToleration", POD, node_change(PLAIN, TAINTED), False, "ignores an added taint"),
        case(
            "NodeAffinity",
            WANTS_SSD,
            node_change(None, SSD),
            True,
            "wakes for a new node that matches",
        ),
        case(
            "NodeAffinity",
            WANTS_SSD,
            node_change(None, PLAIN),
            False,
            "ignores a new node that does not match",
        ),
        case("NodeAffinity", WANTS_SSD, node_change(PLAIN, SSD), True, "wakes for an added label"),
        case("NodeAffinity", WANTS_SSD, node_change(SSD, PLAIN), False, "ignores a removed label"),
        case("NodeAffinity", WANTS_SSD, node_change(TAINTED, PLAIN), True, "wakes for taints"),
        case("NodeLabel", POD, node_change(PLAIN, SSD), True, "wakes for an added label"),
        case(
            "NodeLabel",
            POD,
            node_change(None, PLAIN),
            False,
            "ignores a new node without the label",
        ),
        case("NodePorts", PORT, node_change(None, PLAIN), True, "wakes for a new node"),
        case("NodePorts", PORT, pod_change(PORT, None), True, "wakes for a freed port"),
        case(
            "NodePorts",
            PORT,
            pod_change(make_pod(host_ports=[81]), None),
            False,
            "ignores another freed port",
        ),
        case("NodeResourcesFit", LARGE, node_change(None, PLAIN), True, "wakes for a large node"),
        case(
            "NodeResourcesFit",
            LARGE,
            node_change(None, make_node(cpu=1)),
            False,
            "ignores a small node",
        ),
        case(
            "NodeResourcesFit",
            LARGE,
            node_change(make_node(cpu=1), PLAIN),
            True,
            "wakes for a node that grows",
        ),
        case("NodeResourcesFit", LARGE, node_change(PLAIN, ZONED), False, "ignores labels"),
        case(
            "NodeResourcesFit",
            LARGE,
            node_change(PLAIN, make_node(memory="16Gi")),
            False,
            "ignores a resource that the pod does not request",
        ),
        case("NodeResourcesFit", LARGE, pod_change(POD, None), True, "wakes for any removed pod"),
        case(
            "NodeResourcesFit", LARGE, pod_change(LARGE, POD), True, "wakes for a pod that shrinks"
        ),
        case(
            "NodeResourcesFit",
            POD,
            pod_change(LARGE, POD),
            False,
            "ignores a pod that shrinks without requests of its own",
        ),
        case(
            "NodeDeclaredFeatures",
            RESTARTS,
            node_change(None, DECLARES),
            True,
            "wakes for a new node with the feature",
        ),
        case(
            "NodeDeclaredFeatures",
            RESTARTS,
            node_change(PLAIN, DECLARES),
            True,
            "wakes for an added feature",
        ),
        case(
            "NodeDeclaredFeatures",
            RESTARTS,
            node_change(None, PLAIN),
            False,
            "ignores a new node without the feature",
        ),
        case(
            "PodTopologySpread",
            EVEN,
            node_change(None, ZONED),
            True,
            "wakes for a new node with the key",
        ),
        case(
            "PodTopologySpread",
            EVEN,
            node_change(None, PLAIN),
            False,
            "ignores a new node without the key",
        ),
        case(
            "PodTopologySpread", EVEN, node_change(ZONED, None), True, "wakes for a removed domain"
        ),
        case(
            "PodTopologySpread",
            EVEN,
            pod_change(None, COUNTED),
            True,
            "wakes for a new counted pod",
        ),
        case(
            "PodTopologySpread",
            EVEN,
            pod_change(COUNTED, None),
            True,
            "wakes for a removed counted pod",
        ),
        case(
            "PodTopologySpread",
            EVEN,
            pod_change(None, APP_A),
            False,
            "ignores a pod of another version",
        ),
        case(
            "PodTopologySpread",
            EVEN,
            pod_change(COUNTED, APP_B),
            True,
            "wakes for changed labels of a pod",
        ),
        case(
            "PodTopologySpread",
            EVEN,
            pod_change(None, ELSEWHERE),
            False,
            "ignores a pod of another namespace",
        ),
        case(
            "InterPodAffinity",
            NEAR,
            pod_change(None, APP_A),
            True,
            "wakes for a new pod that the affinity matches",
        ),
        case(
            "InterPodAffinity",
            NEAR,
            pod_change(None, APP_B),
            False,
            "ignores a new pod that does not match",
        ),
        case(
            "InterPodAffinity",
            NEAR,
            pod_change(None, ELSEWHERE),
            False,
            "ignores a new pod of another namespace",
        ),
        case(
            "InterPodAffinity",
            NEAR_REDS,
            pod_change(None, ELSEWHERE),
            True,
            "wakes for a new pod of a selected namespace",
        ),
        case(
            "InterPodAffinity",
            NEAR,
            pod_change(APP_B, APP_A),
            True,
            "wakes for changed labels of a pod",
        ),
        case(
            "InterPodAffinity",
            NEAR,
            pod_change(APP_A, None),
            False,
            "ignores a removed pod that the affinity matches",
        ),
        case(
            "InterPodAffinity",
            LIKE,
            pod_change(APP_A, None),
            True,
            "wakes for a removed pod of its own group",
        ),
        case(
            "InterPodAffinity",
            AWAY,
            pod_change(APP_A, None),
            True,
            "wakes for a removed pod that the anti-affinity matches",
        ),
        case(
            "InterPodAffinity",
            AWAY,
            pod_change(None, APP_A),
            False,
            "ignores a new pod that the anti-affinity matches",
        ),
        case(
            "InterPodAffinity",
            AWAY,
            pod_change(APP_B, None),
            False,
            "ignores a removed pod that the anti-affinity does not match",
        ),
        case(
            "InterPodAffinity",
            APP_A,
            pod_change(AWAY, None),
            True,
            "wakes for a removed pod whose anti-affinity matched",
        ),
        case(
            "InterPodAffinity",
            APP_B,
            pod_change(AWAY, None),
            False,
            "ignores a removed pod whose anti-affinity did not match",
        ),
        case(
            "InterPodAffinity",
            NEAR,
            node_change(None, PLAIN),
            False,
            "ignores a new node without the key",
        ),
        case(
            "InterPodAffinity",
            NEAR,
            node_change(None, ZONED),
            True,
            "wakes for a new node with the key",
        ),
        case(
            "InterPodAffinity",
            AWAY,
            node_change(None, PLAIN),
            True,
            "wakes for any new node without affinity",
        ),
        case(
            "InterPodAffinity",
            NEAR,
            node_change(PLAIN, make_node(cpu=8)),
            False,
            "ignores the size of nodes",
        ),
        case(
            "InterPodAffinity",
            NEAR,
            object_change(None, thing(Namespace)),
            False,
            "ignores namespaces",
        ),
        case(
            "InterPodAffinity",
            NEAR_REDS,
            object_change(None, thing(Namespace)),
            True,
            "wakes for namespaces with a namespace selector",
        ),
        case(
            "VolumeRestrictions",
            STORES,
            pod_change(STORES_TOO, None),
            True,
            "wakes for a removed pod that used the claim",
        ),
        case(
            "VolumeRestrictions",
            STORES,
            pod_change(POD, None),
            False,
            "ignores another removed pod",
        ),
        case(
            "VolumeRestrictions",
            STORES,
            object_change(None, CLAIM),
            True,
            "wakes for its new claim",
        ),
        case(
            "VolumeRestrictions",
            STORES,
            object_change(None, OTHER_CLAIM),
            False,
            "ignores another new claim",
        ),
        case(
            "NodeVolumeLimits",
            STORES,
            pod_change(STORES_TOO, None),
            True,
            "wakes for a removed pod with volumes",
        ),
        case(
            "NodeVolumeLimits",
            STORES,
            pod_change(POD, None),
            False,
            "ignores a removed pod without volumes",
        ),
        case(
            "NodeVolumeLimits",
            STORES,
            object_change(limits(1), limits(2)),
            True,
            "wakes for a raised limit",
        ),
        case(
            "NodeVolumeLimits",
            STORES,
            object_change(limits(2), limits(1)),
            False,
            "ignores a lowered limit",
        ),
        case(
            "NodeVolumeLimits",
            STORES,
            object_change(thing(VolumeAttachment), None),
            True,
            "wakes for a detached volume",
        ),
        case(
            "NodeVolumeLimits",
            STORES,
            object_change(None, thing(VolumeAttachment)),
            False,
            "ignores an attached volume",
        ),
        case("VolumeBinding", STORES, object_change(None, CLAIM), True, "wakes for its new claim"),
        case(
            "VolumeBinding",
            STORES,
            object_change(None, OTHER_CLAIM),
            False,
            "ignores another new claim",
        ),
        case(
            "VolumeBinding", STORES, object_change(None, VOLUME), True, "wakes for any new volume"
        ),
        case(
            "VolumeBinding",
            STORES,
            object_change(None, WAITS),
            True,
            "wakes for a new storage class",
        ),
        case(
            "VolumeBinding",
            STORES,
            object_change(WAITS, WAITS),
            False,
            "ignores an unchanged storage class",
        ),
        case(
            "VolumeBinding",
            STORES,
            object_change(space("1Gi"), space("2Gi")),
            True,
            "wakes for more free space",
        ),
        case(
            "VolumeBinding",
            STORES,
            object_change(space("2Gi"), space("1Gi")),
            False,
            "ignores less free space",
        ),
        case(
            "VolumeBinding",
            STORES,
            object_change(thing(CSIDriver, spec={"storageCapacity": True}), thing(CSIDriver)),
            True,
            "wakes for space that is no longer reported",
        ),
        case(
            "VolumeBinding",
            STORES,
            node_change(PLAIN, ZONED),
            True,
            "wakes for changed labels of a node",
        ),
        case(
            "VolumeBinding",
            STORES,
            node_change(PLAIN, make_node(cpu=8)),
            False,
            "ignores the size of nodes",
        ),
        case("VolumeZone", STORES, object_change(None, CLAIM), True, "wakes for its new claim"),
        case(
            "VolumeZone",
            STORES,
            object_change(VOLUME, IN_ZONE),
            True,
            "wakes for a new label of a volume",
        ),
        case(
            "VolumeZone",
            STORES,
            object_change(VOLUME, VOLUME),
            False,
            "ignores an unchanged volume",
        ),
        case(
            "VolumeZone",
            STORES,
            object_change(None, WAITS),
            True,
            "wakes for a new class that waits for the first consumer",
        ),
        case(
            "VolumeZone",
            STORES,
            object_change(None, thing(StorageClass)),
            False,
            "ignores another new class",
        ),
    ],
)
def test_what_may_help_a_pod_that_was_rejected_by(
    name: str, pod: Pod, change: Change, want: bool
) -> None:
    assert plugin_called(name).may_help(pod, change) is want
