"""What is kept step by step equals what is built from nothing, after any series of events.

ClusterState's columns are compared after each event, kept verdicts and decisions whenever somebody
looks: any signature, with or without its scores, after any number of events. Plugins that lie about
what they read, and states that forget to say what changed, are planted to see them caught.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.properties.volume_objects import DRIVER, MIGRATED, THINGS, using

from lowtide.app.no_binder import NoBinder
from lowtide.cluster.change_log import ChangeLog
from lowtide.cluster.changes import (
    ANY_ROW,
    FEASIBLE,
    NODE,
    NODES,
    OTHERS,
    PODS,
    READING,
    TAKEN,
    TERMS,
)
from lowtide.cluster.columns import ValueColumn
from lowtide.cluster.indexes.index import Index, handlers
from lowtide.cluster.indexes.volumes import claim_key
from lowtide.cluster.placed import HostPort
from lowtide.cluster.pod_selection import PodSelection, labels_required
from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import (
    IntArray,
    Nodes,
    PluginError,
    PodRejection,
    Rejection,
)
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.storage import CsiSource
from lowtide.objects.workloads import Service
from lowtide.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from lowtide.plugins.dynamic_resources import DynamicResources
from lowtide.plugins.image_locality import ImageLocality
from lowtide.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.network_traffic_args import HotNodesArgs, NetworkTrafficArgs, NotFreshArgs
from lowtide.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from lowtide.plugins.node_declared_features import NodeDeclaredFeatures
from lowtide.plugins.node_name import NodeName
from lowtide.plugins.node_ports import NodePorts
from lowtide.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.plugins.node_unschedulable import NodeUnschedulable
from lowtide.plugins.node_volume_limits import NodeVolumeLimits
from lowtide.plugins.pod_topology_spread import PodTopologySpread
from lowtide.plugins.pod_topology_spread_constraints import PodTopologySpreadArgs
from lowtide.plugins.taint_toleration import TaintToleration
from lowtide.plugins.volume_binding import VolumeBinding, VolumeBindingArgs
from lowtide.plugins.volume_restrictions import VolumeRestrictions
from lowtide.plugins.volume_zone import VolumeZone
from lowtide.readings.columns import published
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile

NAMES = [f"node-{number}" for number in range(7)]
NEW_YEAR = 1_767_225_600.0  # 2026-01-01T00:00:00Z
WINDOW_SECONDS = 20.0
LINK_BYTES_PER_SECOND = 16.0
PATIENCE_SECONDS = 60.0
ZONES = ["a", "b", "c"]
IMAGES = ["app:1", "side:1"]


SERVICES = [
    msgspec.convert(
        {"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": selector}},
        Service,
    )
    for name, selector in (("one", {"app": "a"}), ("two", {"app": "b"}), ("two", {"app": "a"}))
]


class FewPodsElsewhere:
    """Reads the pods of other nodes: rejects where a zone holds most of a label's pods."""

    name = "FewPodsElsewhere"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        per_zone = self._per_zone(nodes)
        zones = [nodes.node(at).labels.get("zone", "") for at in range(len(nodes))]
        mask = np.array([per_zone.get(zone, 0) > 4 for zone in zones], np.bool_)
        yield Rejection(mask, "too many pods in the zone", eviction_helps=True)

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        per_zone = self._per_zone(nodes)
        zones = [nodes.node(at).labels.get("zone", "") for at in range(len(nodes))]
        return np.array([per_zone.get(zone, 0) for zone in zones], np.int64)

    def normalize(self, pod: Pod, nodes: Nodes, raw: IntArray) -> IntArray:
        highest = int(raw[nodes.feasible].max(initial=0))
        return np.clip(highest - raw, 0, 100)

    def _per_zone(self, nodes: Nodes) -> dict[str, int]:
        nodes, found = nodes.everything, {}
        for at in range(len(nodes)):
            zone = nodes.node(at).labels.get("zone", "")
            found[zone] = found.get(zone, 0) + len(nodes.pods(at))
        return found


class FewPodsHere(FewPodsElsewhere):
    """The same, but it takes the nodes that it is asked about for all there are."""

    def _per_zone(self, nodes: Nodes) -> dict[str, int]:
        found: dict[str, int] = {}
        for at in range(len(nodes)):
            zone = nodes.node(at).labels.get("zone", "")
            found[zone] = found.get(zone, 0) + len(nodes.pods(at))
        return found


class CommonZone:
    """Reads any node's object: prefers zones with many nodes; narrows pods that say so."""

    name = "CommonZone"
    scale = "highest_best"

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | frozenset[str] | None:
        if pod.labels.get("app") == "narrow":
            # Narrower or wider with the size of the cluster, and not at all when it is small.
            return frozenset(NAMES[: len(nodes) // 2 + 1]) if len(nodes) > 2 else None
        if pod.labels.get("app") == "alone" and len(nodes) > 5:
            return PodRejection("too many nodes")
        return None

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        whole = nodes.everything
        zones = [whole.node(at).labels.get("zone", "") for at in range(len(whole))]
        own = [nodes.node(at).labels.get("zone", "") for at in range(len(nodes))]
        return np.array([zones.count(zone) for zone in own], np.int64)


class Moody:
    """Has an opinion only while some node is cordoned, and fails while a node is called moody."""

    name = "Moody"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        whole = nodes.everything
        objects = [whole.node(at) for at in range(len(whole))]
        if any("moody" in node.labels for node in objects):
            raise KeyError("moody")
        if not any(node.spec.unschedulable for node in objects):
            return None
        return np.array([len(name) % 7 for name in nodes.names], np.int64)


class CountsFeasible:
    """Scores by how many nodes are feasible."""

    name = "CountsFeasible"
    scale = "highest_best"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        cordoned = nodes.unschedulable.astype(np.int64)
        return int(nodes.everything.feasible.sum()) * (1 + cordoned)


class PrefersFeasible:
    """Scores each node by whether it is feasible itself."""

    name = "PrefersFeasible"
    scale = "highest_best"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        return nodes.feasible.astype(np.int64) * 3


def all_plugins(scoring: Literal["relative", "utilization"] = "relative") -> list[Any]:
    return [
        Moody(),
        CountsFeasible(),
        PrefersFeasible(),
        NodeUnschedulable(),
        NodeName(),
        TaintToleration(),
        NodeAffinity(NodeAffinityArgs()),
        NodePorts(),
        NodeResourcesFit(NodeResourcesFitArgs()),
        VolumeRestrictions(),
        NodeVolumeLimits(),
        VolumeBinding(VolumeBindingArgs(), NoBinder()),
        VolumeZone(),
        PodTopologySpread(PodTopologySpreadArgs()),
        InterPodAffinity(InterPodAffinityArgs()),
        FewPodsElsewhere(),
        CommonZone(),
        NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs()),
        DynamicResources(),
        DefaultPreemption(DefaultPreemptionArgs()),
        ImageLocality(),
        NodeDeclaredFeatures(),
        NetworkTraffic(
            NetworkTrafficArgs(
                scoring=scoring,
                hot_nodes=HotNodesArgs(patience_seconds=PATIENCE_SECONDS),
                not_fresh=NotFreshArgs(brake_percent=90, missing="avoid"),
            )
        ),
    ]


def wanting(kind: str, app: str, key: str) -> dict[str, Any]:
    """Required: affinity or anti-affinity to the pods of an app; preferred: the other one."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    other = "podAffinity" if kind == "podAntiAffinity" else "podAntiAffinity"
    return {
        "affinity": {
            kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            other: {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 7, "podAffinityTerm": {**term, "topologyKey": "disk"}}
                ]
            },
        }
    }


HOSTNAME = "kubernetes.io/hostname"
APART = wanting("podAntiAffinity", "a", HOSTNAME)
# What some pods want of others, by name: that does not change while a pod runs.
WANTS = {
    "pod-0": APART,
    "pod-1": wanting("podAffinity", "b", "zone"),
    "pod-2": wanting("podAntiAffinity", "b", "zone"),
    "pod-6": using("data"),
    "pod-7": using("alone", "data"),
    "pod-8": using("data", disk="d"),
}

PRIORITIES = {"pod-3": 5, "pod-4": -1, "pod-5": -1}

SIGNATURES = [
    make_pod("stores", spec=using("data")),
    make_pod("stores-alone", spec=using("alone")),
    make_pod("stores-both", spec=using("alone", "data", disk="d")),
    make_pod("apart", cpu="100m", labels={"app": "a"}, spec=APART),
    make_pod("together", labels={"app": "b"}, spec=wanting("podAffinity", "b", "zone")),
    make_pod("follower", spec=wanting("podAffinity", "a", "zone")),
    make_pod(
        "even",
        cpu="100m",
        labels={"app": "a"},
        spec={
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": key,
                    "whenUnsatisfiable": action,
                    "labelSelector": {"matchLabels": {"app": "a"}},
                    "nodeTaintsPolicy": "Honor",
                }
                for key, action in (
                    ("zone", "DoNotSchedule"),
                    ("disk", "ScheduleAnyway"),
                    ("kubernetes.io/hostname", "ScheduleAnyway"),
                )
            ]
        },
    ),
    make_pod("plain", cpu="500m", memory="1Gi"),
    make_pod("large", cpu="3", memory="2Gi", tolerations=[{"operator": "Exists"}], priority=5),
    make_pod("port", cpu="100m", host_ports=[80]),
    make_pod("image", spec={"containers": [{"image": image} for image in IMAGES]}),
    make_pod(
        "restarts",
        spec={"containers": [{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
    ),
    make_pod("zone-a", node_selector={"zone": "a"}, requests={"example.com/gpu": 1}),
    # It asks for nothing, and what other pods want of theirs is about it.
    make_pod("wanted", labels={"app": "b"}),
    make_pod("narrow", labels={"app": "narrow"}),
    make_pod("alone", labels={"app": "alone"}, memory="3Gi"),
    make_pod(
        "prefers",
        cpu="1",
        spec={
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 10,
                            "preference": {
                                "matchExpressions": [
                                    {"key": "zone", "operator": "NotIn", "values": ["b"]}
                                ]
                            },
                        }
                    ]
                }
            }
        },
    ),
]

nodes = st.builds(
    make_node,
    st.sampled_from(NAMES),
    cpu=st.sampled_from(["1", "4", "8"]),
    memory=st.sampled_from(["2Gi", "8Gi", "8Gi", "8Ei"]),
    pods=st.sampled_from([2, 110]),
    labels=st.fixed_dictionaries(
        {"zone": st.sampled_from(ZONES)}, optional={"disk": st.sampled_from(["ssd", "hdd"])}
    ),
    taints=st.sampled_from(
        [
            (),
            ({"key": "gpu", "effect": "NoSchedule"},),
            ({"key": "spot", "effect": "PreferNoSchedule"},),
        ]
    ),
    unschedulable=st.sampled_from([False, False, True]),
    images=st.dictionaries(st.sampled_from(IMAGES), st.sampled_from([3 * 10**8, 10**9])),
    declared_features=st.sampled_from([[], ["RestartAllContainersOnContainerExits"]]),
)
signatures = st.sampled_from(SIGNATURES)
running = st.builds(
    lambda name, second, **more: started(
        make_pod(name, spec=WANTS.get(name, {}), priority=PRIORITIES.get(name, 0), **more), second
    ),
    st.sampled_from([f"pod-{number}" for number in range(9)]),
    on=st.sampled_from([*NAMES, "unknown"]),
    cpu=st.sampled_from(["100m", "2"]),
    memory=st.sampled_from([None, "1Gi", "1Gi", "1e100"]),
    host_ports=st.sampled_from([(), (80,), (80, 443)]),
    labels=st.sampled_from([{}, {"app": "a"}, {"app": "b"}]),
    deleted=st.sampled_from([False, False, True]),
    second=st.none() | st.integers(0, 59),
)
SELECTIONS = [
    PodSelection.from_requirements(
        labels_required(labels), namespaces=namespaces, counts_terminating=counts_terminating
    )
    for labels, namespaces, counts_terminating in (
        ({"app": "a"}, ["default"], False),
        ({}, None, True),
    )
]


class Incremental(RuleBasedStateMachine):
    make_plugins: ClassVar[Callable[[], list[Any]]] = staticmethod(all_plugins)
    make_state: ClassVar[Callable[[], ClusterState]] = ClusterState

    @initialize()
    def start(self) -> None:
        self.plugins = self.make_plugins()
        self.profile = make_profile(self.plugins, {"NodeResourcesFit": 3})
        self.state = self.make_state()
        self.verdicts = VerdictCache(self.profile, self.state)
        self.placed: dict[str, tuple[Pod, str]] = {}
        self.promised: dict[str, tuple[Pod, str]] = {}
        self.things: dict[tuple[type, str], Any] = {}
        self.reading: Reading | None = None
        self.seconds = 0.0
        # Pods as they were when their traffic was last counted: at the newest reading, or later
        # when they came, changed, or their node came.
        self.counted: dict[str, Pod] = {}
        self.objects_come_and_change(list(THINGS))

    # Events.

    @rule(node=nodes)
    def node_comes_or_changes(self, node: Node) -> None:
        if self.state.row_of(node.name) is None:
            on_node = self.state.placed_on(node.name).values()
            self.counted |= {placed.pod.uid: placed.pod for placed in on_node}
        self.state.update_node(node)

    @rule(is_moody=st.booleans())
    def plugin_is_in_a_mood(self, is_moody: bool) -> None:
        labels = {"zone": "a", **({"moody": "yes"} if is_moody else {})}
        self.node_comes_or_changes(make_node(NAMES[0], labels=labels))

    @rule(count=st.integers(1, 70))
    def many_nodes_come(self, count: int) -> None:
        for number in range(count):
            self.node_comes_or_changes(
                make_node(f"many-{number}", labels={"zone": ZONES[number % 3]})
            )

    @rule(count=st.integers(1, 70))
    def many_nodes_go(self, count: int) -> None:
        for number in range(count):
            self.state.remove_node(f"many-{number}")

    @rule(name=st.sampled_from(NAMES))
    def node_goes(self, name: str) -> None:
        self.state.remove_node(name)

    @rule(pod=running)
    def pod_is_bound_or_changes(self, pod: Pod) -> None:
        before = self.state.placed(pod.uid)
        if before is not None and before.pod.started_at is not None:
            pod = msgspec.structs.replace(pod, status=before.pod.status)  # it starts but once
        self.state.place(pod)
        self.placed[pod.uid] = (pod, pod.spec.node_name)
        after = self.state.placed(pod.uid)
        assert after is not None
        if before is None or not before.is_same_to_plugins(after):
            self.counted[pod.uid] = pod

    @rule(pod=running, data=st.data())
    def pod_is_assumed(self, pod: Pod, data: st.DataObject) -> None:
        if pod.uid not in self.placed:
            node_name = data.draw(st.sampled_from(NAMES))
            pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
            self.state.assume(pod, node_name)
            self.placed[pod.uid] = (pod, node_name)
            self.counted[pod.uid] = pod

    @precondition(lambda self: self.placed)
    @rule(data=st.data(), second=st.none() | st.integers(0, 59))
    def assumption_is_confirmed(self, data: st.DataObject, second: int | None) -> None:
        """And perhaps runs already."""
        pod, node_name = self.placed[data.draw(st.sampled_from(sorted(self.placed)))]
        bound = msgspec.structs.replace(
            pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name)
        )
        self.pod_is_bound_or_changes(started(bound, second))

    @precondition(lambda self: self.placed)
    @rule(data=st.data())
    def assumption_is_taken_back(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.placed)))
        self.state.forget(uid)
        if self.state.placed(uid) is None:
            del self.placed[uid]

    @precondition(lambda self: self.placed)
    @rule(data=st.data())
    def pod_goes(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.placed)))
        self.state.remove_pod(uid)
        del self.placed[uid]

    @rule(
        values=st.dictionaries(
            st.sampled_from(NAMES), st.sampled_from([0.0, 1.0, 15.0, 10.0, math.nan]), max_size=7
        ),
        seconds=st.sampled_from([0.0, 1.0, 7.0, 15.0]),
    )
    def reading_is_published(self, values: dict[str, float], seconds: float) -> None:
        """What pods carry that started before it is measured, of the newest in part."""
        self.seconds = min(self.seconds + seconds, 59.0)
        request, table = self.plugins[-1].request, self.state.nodes()
        given = {
            name: {"value": value, "capacity": LINK_BYTES_PER_SECOND}
            for name, value in values.items()
        }
        reading = traffic_reading(request, given, [table.node(at) for at in range(len(table))])
        self.reading = published(
            replace(reading, sampled_at=NEW_YEAR + self.seconds, window_seconds=WINDOW_SECONDS)
        )
        self.state.publish(request, self.reading)
        self.counted = {uid: pod for uid, (pod, _) in self.placed.items()}

    @rule(things=st.lists(st.sampled_from(THINGS), min_size=1, max_size=8))
    def objects_come_and_change(self, things: list[Any]) -> None:
        for thing in things:
            self.things[type(thing), thing.metadata.name] = thing
            self.state.put_object(thing)

    @precondition(lambda self: self.things)
    @rule(data=st.data())
    def object_goes(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.things, key=str)))
        thing = self.things.pop(key)
        self.state.remove_object(thing)

    @rule(signature=signatures, node_name=st.sampled_from(NAMES), priority=st.sampled_from([0, 5]))
    def node_is_promised(self, signature: Pod, node_name: str, priority: int) -> None:
        promised = renamed(signature, f"promised-{priority}", priority)
        self.state.nominate(promised, node_name)
        self.promised[promised.uid] = (promised, node_name)

    @precondition(lambda self: self.promised)
    @rule(data=st.data())
    def promise_is_dropped(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.promised)))
        self.state.drop_nomination(uid)
        del self.promised[uid]

    @rule(signature=signatures, turn=st.integers(0, 20))
    def pod_is_placed_by_decision(self, signature: Pod, turn: int) -> None:
        pod = renamed(signature, f"decided-{turn}-{signature.name}")
        try:
            decision = decide(pod, self.verdicts, turn=turn)
        except PluginError:
            return
        if decision.node_name is not None and pod.uid not in self.placed:
            self.state.assume(pod, decision.node_name, decision.signature)
            self.placed[pod.uid] = (pod, decision.node_name)
            self.counted[pod.uid] = pod

    # What must hold.

    @rule(signature=signatures)
    def somebody_only_filters(self, signature: Pod) -> None:
        """A look without scores, as when a single node is left."""
        self.verdicts.verdict_on(signature)

    @rule(
        signature=signatures,
        turn=st.integers(0, 3),
        waited_seconds=st.sampled_from([0.0, PATIENCE_SECONDS]),
    )
    def verdict_and_decision_equal_those_from_nothing(
        self, signature: Pod, turn: int, waited_seconds: float
    ) -> None:
        fresh = VerdictCache(self.profile, self.from_nothing())
        assert verdict_on(self.verdicts, signature) == verdict_on(fresh, signature)
        kept = decision_on(self.verdicts, signature, turn, waited_seconds)
        assert kept == decision_on(fresh, signature, turn, waited_seconds)

    @precondition(lambda self: self.placed)
    @rule(data=st.data(), signature=signatures)
    def without_a_pod_all_is_as_if_it_had_gone(self, data: st.DataObject, signature: Pod) -> None:
        uid = data.draw(st.sampled_from(sorted(self.placed)))
        gone, real, request = self.state.without(uid), self.from_nothing(), self.plugins[-1].request
        real.remove_pod(uid)
        position = self.state.log.position
        assert read_by_plugins(gone, request) == read_by_plugins(real, request)
        pod = renamed(self.placed[uid][0], "again")
        for asked in (signature, pod):
            without, fresh = self.verdicts.without(uid), VerdictCache(self.profile, real)
            assert verdict_on(without, asked) == verdict_on(fresh, asked)
            found = decision_on(without, asked, 1, 0.0)
            assert found == decision_on(fresh, asked, 1, 0.0)
        assert self.state.log.position == position

    def teardown(self) -> None:
        if hasattr(self, "state"):
            for signature in SIGNATURES:
                self.verdict_and_decision_equal_those_from_nothing(signature, 0, 0.0)

    @invariant()
    def state_equals_one_from_nothing(self) -> None:
        if hasattr(self, "state"):
            request = self.plugins[-1].request
            assert columns_of(self.state, request) == columns_of(self.from_nothing(), request)

    def from_nothing(self) -> ClusterState:
        rebuilt = ClusterState()
        for thing in self.things.values():
            rebuilt.put_object(thing)
        for row in range(self.state.count):
            rebuilt.add_node(self.state.node_at(row))
        for uid, (_, node_name) in self.placed.items():
            counted = self.counted[uid]
            if counted.spec.node_name:
                rebuilt.place(counted)
            else:
                rebuilt.assume(counted, node_name)
        if self.reading is not None:
            rebuilt.publish(self.plugins[-1].request, self.reading)
        for pod, _ in self.placed.values():
            if pod.spec.node_name:
                rebuilt.place(pod)
        for pod, node_name in self.promised.values():
            # A node that went took its promises along.
            if pod.uid in self.state.nominated().get(node_name, {}):
                rebuilt.nominate(pod, node_name)
        return rebuilt


def values_of(column: ValueColumn[Any], count: int) -> list[Any]:
    """That of each row, and all that are kept: none that no row has."""
    values = column.interned.values
    kept = {value for value in values if value is not None}
    return [*(values[number] for number in column.column.array[:count]), kept]


def columns_of(state: ClusterState, request: Any) -> dict[str, Any]:
    """Everything that plugins can read, as plain values."""
    table = state.nodes()
    resources = ["cpu", "memory", "pods", "example.com/gpu"]
    columns: dict[str, Any] = {
        "names": list(table.names),
        "unschedulable": table.unschedulable.tolist(),
        "taints": values_of(state.node_columns.taints, state.count),
        "features": values_of(state.node_columns.features, state.count),
        "pods": [sorted(pod.uid for pod in table.pods(at)) for at in range(len(table))],
        "pod_count": table.pod_count.tolist(),
        "lowest priority": table.lowest_priority.tolist(),
        "nonzero": [table.nonzero_requested(name).tolist() for name in ("cpu", "memory")],
    }
    for name in resources:
        columns[f"allocatable {name}"] = table.allocatable(name).tolist()
        columns[f"requested {name}"] = table.requested(name).tolist()
    for image in IMAGES:
        columns[f"image {image}"] = table.image_sizes(image).tolist()
        columns[f"nodes with {image}"] = table.image_node_count(image)
    zone = state.labels["zone"]
    numbers = zone.column.array[: state.count]
    columns["zone"] = [zone.interned.values[number] if number >= 0 else None for number in numbers]
    columns["all have a disk"] = table.all_labelled("disk")
    for number, selection in enumerate(SELECTIONS):
        columns[f"pods matching {number}"] = table.pods_matching(selection).tolist()
    for field, column in table.reading(request).items():
        columns[f"measured {field}"] = [None if math.isnan(each) else each for each in column]
    for app in ("a", "b"):
        columns[f"terms about {app}"] = sorted(
            (
                (each.purpose.name, each.weight, each.term.topology_key),
                table.pods_carrying(each).tolist(),
            )
            for each in table.terms_about(make_pod(labels={"app": app}))
        )
    columns["attached"] = table.volumes.attached_count(DRIVER).tolist()
    for name in ("v1", "v2"):
        columns[f"{name} is attached"] = table.volumes.is_attached(CsiSource(DRIVER, name)).tolist()
    columns["migrated"] = table.volumes.is_migrated(MIGRATED).tolist()
    columns["attached at most"] = table.volumes.attach_limit(DRIVER).tolist()
    for port in (80, 443):
        wanted = HostPort("TCP", port, "0.0.0.0")
        columns[f"port {port}"] = table.uses_port(wanted).tolist()
        columns[f"holders of {port}"] = dict(state.host_ports.holders[wanted])
    return columns


def read_by_plugins(state: ClusterState, request: Any) -> dict[str, Any]:
    """Without indexes that only other columns are made of."""
    columns = columns_of(state, request)
    return {name: each for name, each in columns.items() if not name.startswith("holders of")}


def verdict_on(verdicts: VerdictCache, pod: Pod) -> dict[str, Any]:
    try:
        verdict = verdicts.verdict_on(pod)
        ranked = verdict.rank()
    except PluginError as error:
        return {"error": str(error)}
    rows = range(verdicts.state.count)
    feasible = [row for row in rows if verdict.feasible[row]]
    return {
        "pod": verdict.pod_rejection,
        "feasible": verdict.feasible.tolist(),
        "rejections": [verdict.rejection_at(row) for row in rows],
        "counts": verdict.reason_counts(),
        "rejected by": verdict.rejected_by(),
        "narrowed to": verdict.narrowed_to,
        "rank": ranked.tolist(),
        "scores": verdict.scores_of(np.array(feasible, np.intp), ranked).unpacked(),
    }


def decision_on(verdicts: VerdictCache, pod: Pod, turn: int, waited_seconds: float) -> Any:
    """What is decided, nominated pods and all, in a form that can be compared."""
    try:
        decision = decide(pod, verdicts, turn=turn, waited_seconds=waited_seconds, full=True)
    except PluginError as error:
        return str(error)
    return (
        decision.node_name,
        decision.best,
        decision.rejections,
        decision.reason_counts,
        decision.rejected_by,
        decision.pod_rejection,
        decision.gives_way_after,
        decision.post_filtered,
    )


def started(pod: Pod, second: int | None) -> Pod:
    """The pod, running since that second of the year."""
    if second is None:
        return pod
    status = {"phase": "Running", "startTime": f"2026-01-01T00:00:{second:02}Z"}
    return msgspec.structs.replace(pod, status=msgspec.convert(status, type(pod.status)))


def renamed(pod: Pod, name: str, priority: int = 0) -> Pod:
    meta = msgspec.structs.replace(pod.metadata, name=name, uid=name)
    spec = msgspec.structs.replace(pod.spec, priority=priority)
    return msgspec.structs.replace(pod, metadata=meta, spec=spec)


QUICK = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
LONG = settings(QUICK, max_examples=1000, stateful_step_count=40, derandomize=False)


class AsGiven(Incremental):
    """With raw scores of NetworkTraffic that count as given: so do those of all local plugins then,
    and what was said ahead of a row is taken without a look at the others."""

    make_plugins = staticmethod(partial(all_plugins, "utilization"))


SCORINGS = (Incremental, AsGiven)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_incremental(scoring: type[Incremental]) -> None:
    run_state_machine_as_test(scoring, settings=QUICK)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("scoring", SCORINGS)
def test_incremental_at_length(scoring: type[Incremental]) -> None:
    run_state_machine_as_test(scoring, settings=LONG)


# Planted bugs: each must be caught.


def only(*plugin_classes: type) -> Callable[[], list[Any]]:
    """Few plugins show a bug sooner; the last is always the one that is measured for."""

    def plugins() -> list[Any]:
        kept = (*plugin_classes, NetworkTraffic)
        own = [plugin_class() for plugin_class in plugin_classes if plugin_class is FewPodsHere]
        return [*own, *(each for each in all_plugins() if isinstance(each, kept))]

    return plugins


def forgetting(bits: int) -> type[ClusterState]:
    """Accessors of nodes that do not note what they read."""

    class Forgetting(ClusterState):
        _touched = 0

        @property
        def touched(self) -> int:
            return self._touched

        @touched.setter
        def touched(self, touched: int) -> None:
            self._touched = touched & ~bits

    return Forgetting


class ForgetsObjects(ClusterState):
    """Does not note which other objects were read."""

    def kind_bit(self, kind: type) -> int:
        return 0


class ForgetsMoves(ClusterState):
    """Says nothing of the row that moved into the gap of a removed node."""

    def remove_node(self, node_name: str) -> None:
        changes = len(self.log._changes)
        super().remove_node(node_name)
        del self.log._changes[changes:]


class ForgetsReadings(ClusterState):
    def publish(self, *published: Any) -> None:
        changes = len(self.log._changes)
        super().publish(*published)
        del self.log._changes[changes:]


class ForgetsAssumed(ClusterState):
    """Takes back what was assumed without counting it out of the columns."""

    def forget(self, uid: str) -> None:
        placed = self.placed(uid)
        if placed is not None and placed.is_assumed:
            del self._placed[uid]
            del self._placed_on[placed.node_name][uid]


class ForgetsTraffic(ClusterState):
    """Lets what pods were to carry stay on their rows when they go."""

    def remove_pod(self, uid: str) -> Any:
        columns = list(self.ledgers.columns)
        before = [column.array.copy() for column in columns]
        removed = super().remove_pod(uid)
        for column, array in zip(columns, before, strict=True):
            column.array[:] = array
        return removed


class SilentAboutTraffic(ChangeLog):
    def pod_arrived(self, row: int, what: int, signature: object) -> None:
        super().pod_arrived(row, what & ~READING, signature)


class HidesTraffic(ClusterState):
    """Says nothing of what a row is to carry more or less."""

    def __init__(self) -> None:
        super().__init__()
        self.log = SilentAboutTraffic(len(self.pod_count.array))

    def _changed(self, row: int, what: int) -> None:
        super()._changed(row, what & ~READING if what & PODS else what)


def deaf(index: str, event: str) -> type[ClusterState]:
    """An index that misses an event."""

    class Deaf(ClusterState):
        def __init__(self) -> None:
            super().__init__()
            setattr(getattr(self, index), event, lambda *_: 0)

    return Deaf


class EveryEvent(Incremental):
    """With all events that indexes hear, and with what they say to few plugins."""

    make_plugins = staticmethod(only(NodeResourcesFit))

    @precondition(lambda self: self.placed)
    @rule(data=st.data(), labels=st.sampled_from([{}, {"app": "a"}, {"app": "b"}]))
    def pod_gets_other_labels(self, data: st.DataObject, labels: dict[str, str]) -> None:
        """As the API server may give it when it binds it."""
        pod, node_name = self.placed[data.draw(st.sampled_from(sorted(self.placed)))]
        self.pod_is_bound_or_changes(
            msgspec.structs.replace(
                pod,
                metadata=msgspec.structs.replace(pod.metadata, labels=labels),
                spec=msgspec.structs.replace(pod.spec, node_name=node_name),
            )
        )

    @rule(service=st.sampled_from(SERVICES))
    def service_comes_or_changes(self, service: Service) -> None:
        self.objects_come_and_change([service])

    @invariant()
    def indexes_equal_those_from_nothing(self) -> None:
        if hasattr(self, "state"):
            assert said_by_indexes(self.state) == said_by_indexes(self.from_nothing())


def said_by_indexes(state: ClusterState) -> dict[str, Any]:
    table = state.nodes()
    said: dict[str, Any] = {}
    for app in ("a", "b"):
        pod = make_pod(labels={"app": app})
        said[f"asked by services of {app}"] = table.selected_by_services(pod)
    for name in ("data", "alone"):
        users = table.volumes.pods_using(claim_key("default", name))
        said[f"users of {name}"] = sorted((at, pod.uid) for at, pod in users)
    for name in ("static", "made"):
        said[f"volumes of {name}"] = sorted(table.volumes.of_class(name))
    nominated = state.nominated_pods.preceding(make_pod("any", priority=-9))
    said["nominated"] = nominated and {
        row: sorted(placed.pod.uid for placed in pods) for row, pods in nominated.by_row.items()
    }
    return said


def test_every_event() -> None:
    run_state_machine_as_test(EveryEvent, settings=QUICK)


EVENTS = (
    Index.node_added,
    Index.node_changed,
    Index.node_removed,
    Index.pod_added,
    Index.pod_removed,
    Index.pod_relabelled,
    Index.object_changed,
)
# Those that tests/cluster/indexes see miss it: a term has a column only if pods on many nodes carry
# it, what a gone node has attached only takes room, and labels here do not change a pod's traffic.
SEEN_ELSEWHERE = [
    ("existing_terms", "node_added"),
    ("attached_volumes", "node_removed"),
    ("ledgers", "pod_relabelled"),
]
MISSED = [
    missed
    for name, index in vars(ClusterState()).items()
    for event in EVENTS
    if isinstance(index, Index) and handlers([index], event)
    if (missed := (name, event.__name__)) not in SEEN_ELSEWHERE
]


@pytest.mark.long
@pytest.mark.parametrize(("index", "event"), MISSED)
def test_catches_an_index_that_misses_an_event(index: str, event: str) -> None:
    assert_caught(EveryEvent, EveryEvent.make_plugins, deaf(index, event))


@pytest.mark.long
@pytest.mark.parametrize(
    ("make_plugins", "make_state"),
    [
        pytest.param(
            only(NodeResourcesFit),
            forgetting(TAKEN),
            id="a read of pod totals that is not recorded",
        ),
        pytest.param(
            only(TaintToleration), forgetting(NODE), id="a read of taints that is not recorded"
        ),
        pytest.param(
            only(CommonZone), forgetting(NODES), id="a read of all nodes that is recorded for some"
        ),
        pytest.param(
            only(FewPodsElsewhere),
            forgetting(OTHERS),
            id="a read of other nodes' pods that is not recorded",
        ),
        pytest.param(
            only(FewPodsHere), ClusterState, id="a plugin that takes the given nodes for all nodes"
        ),
        pytest.param(
            only(CountsFeasible),
            forgetting(FEASIBLE << ANY_ROW),
            id="a read of feasible nodes that is not recorded",
        ),
        pytest.param(
            only(PodTopologySpread),
            forgetting(OTHERS),
            id="a read of matching pods that is not recorded",
        ),
        pytest.param(
            only(InterPodAffinity),
            forgetting(TERMS << ANY_ROW),
            id="a read of terms that is not recorded",
        ),
        pytest.param(
            only(VolumeBinding), ForgetsObjects, id="a read of claims that is not recorded"
        ),
        pytest.param(
            only(VolumeRestrictions),
            deaf("volume_users", "pod_removed"),
            id="volumes that outlive their pod",
        ),
        pytest.param(only(), forgetting(READING), id="a read of readings that is not recorded"),
        pytest.param(
            only(InterPodAffinity),
            deaf("existing_terms", "pod_removed"),
            id="terms that outlive their pod",
        ),
        pytest.param(
            only(DefaultPreemption),
            deaf("pod_totals", "pod_removed"),
            id="a priority that outlives its pod",
        ),
        pytest.param(
            only(PodTopologySpread),
            deaf("pods_matching", "pod_removed"),
            id="pods that stay in a column of matching pods",
        ),
        pytest.param(
            only(TaintToleration, NodeResourcesFit),
            ForgetsMoves,
            id="a row that moves without a log entry",
        ),
        pytest.param(
            only(NodePorts),
            deaf("host_ports", "pod_removed"),
            id="host ports that are never released",
        ),
        pytest.param(only(NodePorts), ForgetsAssumed, id="an assumption that stays in the columns"),
        pytest.param(only(), ForgetsReadings, id="a reading that changes without a log entry"),
        pytest.param(only(), ForgetsTraffic, id="traffic that outlives its pod"),
        pytest.param(only(), HidesTraffic, id="traffic that is added without a log entry"),
    ],
)
def test_catches(
    make_plugins: Callable[[], list[Any]], make_state: Callable[[], ClusterState]
) -> None:
    assert_caught(Incremental, make_plugins, make_state)


def assert_caught(
    machine: type[Incremental],
    make_plugins: Callable[[], list[Any]],
    make_state: Callable[[], ClusterState],
) -> None:
    planted = type(
        "Planted",
        (machine,),
        {"make_plugins": staticmethod(make_plugins), "make_state": staticmethod(make_state)},
    )
    with pytest.raises((AssertionError, IndexError, KeyError)):
        run_state_machine_as_test(
            planted,
            settings=settings(
                QUICK, max_examples=1000, stateful_step_count=60, phases=[Phase.generate]
            ),
        )
