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
        case("NodeUnschedulable", POD, node_change(None, PLAIN), True, "takes a new node"),
        case("NodeUnschedulable", POD, node_change(None, CORDONED), False, "not a cordoned one"),
        case("NodeUnschedulable", POD, node_change(CORDONED, PLAIN), True, "sees it uncordoned"),
        case("NodeUnschedulable", POD, node_change(PLAIN, ZONED), False, "ignores labels"),
        case("TaintToleration", POD, node_change(None, PLAIN), True, "takes a new node"),
        case("TaintToleration", POD, node_change(None, TAINTED), False, "not a tainted one"),
        case("TaintToleration", POD, node_change(TAINTED, PLAIN), True, "sees a taint go"),
        case("TaintToleration", POD, node_change(PLAIN, TAINTED), False, "and not one come"),
        case("NodeAffinity", WANTS_SSD, node_change(None, SSD), True, "takes a node that matches"),
        case("NodeAffinity", WANTS_SSD, node_change(None, PLAIN), False, "not one that does not"),
        case("NodeAffinity", WANTS_SSD, node_change(PLAIN, SSD), True, "sees the label come"),
        case("NodeAffinity", WANTS_SSD, node_change(SSD, PLAIN), False, "and not go"),
        case("NodeAffinity", WANTS_SSD, node_change(TAINTED, PLAIN), True, "asks about taints"),
        case("NodeLabel", POD, node_change(PLAIN, SSD), True, "sees the label come"),
        case("NodeLabel", POD, node_change(None, PLAIN), False, "takes no node without it"),
        case("NodePorts", PORT, node_change(None, PLAIN), True, "takes a new node"),
        case("NodePorts", PORT, pod_change(PORT, None), True, "sees the port free"),
        case("NodePorts", PORT, pod_change(make_pod(host_ports=[81]), None), False, "not another"),
        case("NodeResourcesFit", LARGE, node_change(None, PLAIN), True, "takes a large node"),
        case("NodeResourcesFit", LARGE, node_change(None, make_node(cpu=1)), False, "no small one"),
        case("NodeResourcesFit", LARGE, node_change(make_node(cpu=1), PLAIN), True, "sees it grow"),
        case("NodeResourcesFit", LARGE, node_change(PLAIN, ZONED), False, "ignores labels"),
        case(
            "NodeResourcesFit",
            LARGE,
            node_change(PLAIN, make_node(memory="16Gi")),
            False,
            "ignores what it does not ask for",
        ),
        case("NodeResourcesFit", LARGE, pod_change(POD, None), True, "sees any pod go"),
        case("NodeResourcesFit", LARGE, pod_change(LARGE, POD), True, "sees one shrink"),
        case("NodeResourcesFit", POD, pod_change(LARGE, POD), False, "unless it asks for nothing"),
        case("NodeDeclaredFeatures", RESTARTS, node_change(None, DECLARES), True, "takes it"),
        case("NodeDeclaredFeatures", RESTARTS, node_change(PLAIN, DECLARES), True, "sees it come"),
        case("NodeDeclaredFeatures", RESTARTS, node_change(None, PLAIN), False, "not without"),
        case(
            "PodTopologySpread", EVEN, node_change(None, ZONED), True, "takes a node with the key"
        ),
        case("PodTopologySpread", EVEN, node_change(None, PLAIN), False, "not one without"),
        case("PodTopologySpread", EVEN, node_change(ZONED, None), True, "sees a domain go"),
        case("PodTopologySpread", EVEN, pod_change(None, COUNTED), True, "counts a pod that comes"),
        case("PodTopologySpread", EVEN, pod_change(COUNTED, None), True, "and one that goes"),
        case("PodTopologySpread", EVEN, pod_change(None, APP_A), False, "not of another version"),
        case("PodTopologySpread", EVEN, pod_change(COUNTED, APP_B), True, "sees labels change"),
        case("PodTopologySpread", EVEN, pod_change(None, ELSEWHERE), False, "not elsewhere"),
        case("InterPodAffinity", NEAR, pod_change(None, APP_A), True, "sees a wanted pod come"),
        case("InterPodAffinity", NEAR, pod_change(None, APP_B), False, "and no other"),
        case("InterPodAffinity", NEAR, pod_change(None, ELSEWHERE), False, "nor elsewhere"),
        case("InterPodAffinity", NEAR_REDS, pod_change(None, ELSEWHERE), True, "unless selected"),
        case("InterPodAffinity", NEAR, pod_change(APP_B, APP_A), True, "sees labels change"),
        case("InterPodAffinity", NEAR, pod_change(APP_A, None), False, "wants none to go"),
        case("InterPodAffinity", LIKE, pod_change(APP_A, None), True, "may be the first again"),
        case("InterPodAffinity", AWAY, pod_change(APP_A, None), True, "sees a pod go"),
        case("InterPodAffinity", AWAY, pod_change(None, APP_A), False, "and not come"),
        case("InterPodAffinity", AWAY, pod_change(APP_B, None), False, "nor any other go"),
        case(
            "InterPodAffinity", APP_A, pod_change(AWAY, None), True, "sees one go that rejected it"
        ),
        case("InterPodAffinity", APP_B, pod_change(AWAY, None), False, "not if it did not"),
        case("InterPodAffinity", NEAR, node_change(None, PLAIN), False, "needs the key"),
        case("InterPodAffinity", NEAR, node_change(None, ZONED), True, "takes a node with it"),
        case("InterPodAffinity", AWAY, node_change(None, PLAIN), True, "or any"),
        case("InterPodAffinity", NEAR, node_change(PLAIN, make_node(cpu=8)), False, "ignores size"),
        case(
            "InterPodAffinity", NEAR, object_change(None, thing(Namespace)), False, "ignores them"
        ),
        case("InterPodAffinity", NEAR_REDS, object_change(None, thing(Namespace)), True, "or not"),
        case("VolumeRestrictions", STORES, pod_change(STORES_TOO, None), True, "sees a user go"),
        case("VolumeRestrictions", STORES, pod_change(POD, None), False, "and no other pod"),
        case("VolumeRestrictions", STORES, object_change(None, CLAIM), True, "sees its claim come"),
        case("VolumeRestrictions", STORES, object_change(None, OTHER_CLAIM), False, "no other"),
        case("NodeVolumeLimits", STORES, pod_change(STORES_TOO, None), True, "sees a user go"),
        case("NodeVolumeLimits", STORES, pod_change(POD, None), False, "not one without volumes"),
        case("NodeVolumeLimits", STORES, object_change(limits(1), limits(2)), True, "allows more"),
        case("NodeVolumeLimits", STORES, object_change(limits(2), limits(1)), False, "not less"),
        case(
            "NodeVolumeLimits",
            STORES,
            object_change(thing(VolumeAttachment), None),
            True,
            "sees a volume detached",
        ),
        case(
            "NodeVolumeLimits",
            STORES,
            object_change(None, thing(VolumeAttachment)),
            False,
            "and not attached",
        ),
        case("VolumeBinding", STORES, object_change(None, CLAIM), True, "sees its claim come"),
        case("VolumeBinding", STORES, object_change(None, OTHER_CLAIM), False, "no other"),
        case("VolumeBinding", STORES, object_change(None, VOLUME), True, "sees any volume"),
        case("VolumeBinding", STORES, object_change(None, WAITS), True, "sees a class come"),
        case("VolumeBinding", STORES, object_change(WAITS, WAITS), False, "not stay as it is"),
        case("VolumeBinding", STORES, object_change(space("1Gi"), space("2Gi")), True, "has space"),
        case("VolumeBinding", STORES, object_change(space("2Gi"), space("1Gi")), False, "not less"),
        case(
            "VolumeBinding",
            STORES,
            object_change(thing(CSIDriver, spec={"storageCapacity": True}), thing(CSIDriver)),
            True,
            "sees space no longer told",
        ),
        case("VolumeBinding", STORES, node_change(PLAIN, ZONED), True, "sees labels change"),
        case("VolumeBinding", STORES, node_change(PLAIN, make_node(cpu=8)), False, "ignores size"),
        case("VolumeZone", STORES, object_change(None, CLAIM), True, "sees its claim come"),
        case("VolumeZone", STORES, object_change(VOLUME, IN_ZONE), True, "sees a volume labelled"),
        case("VolumeZone", STORES, object_change(VOLUME, VOLUME), False, "not stay as it is"),
        case("VolumeZone", STORES, object_change(None, WAITS), True, "sees a class that waits"),
        case("VolumeZone", STORES, object_change(None, thing(StorageClass)), False, "no other"),
    ],
)
def test_what_may_help_a_pod_that_was_rejected_by(
    name: str, pod: Pod, change: Change, want: bool
) -> None:
    assert plugin_called(name).may_help(pod, change) is want
