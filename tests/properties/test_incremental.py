"""What is kept step by step equals what is built from nothing, after any series of events.

ClusterState's columns are compared after each event, kept verdicts and decisions whenever somebody
looks: any shape, with or without its scores, after any number of events. Rules that lie about what
they read, and states that forget to say what changed, are planted to see them caught.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

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

from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import (
    FEASIBLE,
    NODE,
    NODES,
    OTHERS,
    BoolArray,
    IntArray,
    Nodes,
    PluginError,
    PodRejection,
    Rejection,
)
from lowtide.framework.verdicts import Verdicts
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.plugins.network_traffic import NetworkTraffic, NetworkTrafficArgs
from lowtide.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from lowtide.plugins.node_name import NodeName
from lowtide.plugins.node_ports import NodePorts
from lowtide.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.plugins.node_unschedulable import NodeUnschedulable
from lowtide.plugins.taint_toleration import TaintToleration
from lowtide.readings.columns import traffic_columns
from lowtide.readings.reading import NodeReading, State, TrafficReading
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile

NAMES = [f"node-{number}" for number in range(7)]
ZONES = ["a", "b", "c"]


class FewPodsElsewhere:
    """Reads the pods of other nodes: refuses where a zone holds most of a label's pods."""

    name = "FewPodsElsewhere"
    reads = NODE | OTHERS

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        per_zone = self._per_zone(nodes)
        zones = [nodes.node(at).labels.get("zone", "") for at in range(len(nodes))]
        mask = np.array([per_zone.get(zone, 0) > 4 for zone in zones], np.bool_)
        yield Rejection(mask, "too many pods in the zone", eviction_helps=True)

    def score(self, pod: Pod, nodes: Nodes, feasible: BoolArray) -> IntArray:
        per_zone = self._per_zone(nodes)
        zones = [nodes.node(at).labels.get("zone", "") for at in range(len(nodes))]
        return np.array([per_zone.get(zone, 0) for zone in zones], np.int64)

    def normalize(self, raw: IntArray, feasible: BoolArray) -> IntArray:
        highest = int(raw[feasible].max(initial=0))
        return np.clip(highest - raw, 0, 100)

    def _per_zone(self, nodes: Nodes) -> dict[str, int]:
        found: dict[str, int] = {}
        for at in range(len(nodes)):
            zone = nodes.node(at).labels.get("zone", "")
            found[zone] = found.get(zone, 0) + len(nodes.pods(at))
        return found


class CommonZone:
    """Reads any node's object: prefers zones with many nodes; narrows pods that say so."""

    name = "CommonZone"
    reads = NODES
    scale = "highest_best"

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | frozenset[str] | None:
        if pod.labels.get("app") == "narrow":
            # Narrower or wider with the size of the cluster, and not at all when it is small.
            return frozenset(NAMES[: len(nodes) // 2 + 1]) if len(nodes) > 2 else None
        if pod.labels.get("app") == "alone" and len(nodes) > 5:
            return PodRejection("too many nodes")
        return None

    def score(self, pod: Pod, nodes: Nodes, feasible: BoolArray) -> IntArray:
        zones = [nodes.node(at).labels.get("zone", "") for at in range(len(nodes))]
        return np.array([zones.count(zone) for zone in zones], np.int64)


class Moody:
    """Has an opinion only while some node is cordoned, and fails while a node is called moody."""

    name = "Moody"
    reads = NODES

    def score(self, pod: Pod, nodes: Nodes, feasible: BoolArray) -> IntArray | None:
        objects = [nodes.node(at) for at in range(len(nodes))]
        if any("moody" in node.labels for node in objects):
            raise KeyError("moody")
        if not any(node.spec.unschedulable for node in objects):
            return None
        return np.array([len(node.name) % 7 for node in objects], np.int64)


class CountsFeasible:
    """Scores by how many nodes are feasible."""

    name = "CountsFeasible"
    reads = NODE | FEASIBLE
    scale = "highest_best"

    def score(self, pod: Pod, nodes: Nodes, feasible: BoolArray) -> IntArray:
        cordoned = nodes.unschedulable.astype(np.int64)
        return int(feasible.sum()) * (1 + cordoned)


def all_rules() -> list[Any]:
    return [
        Moody(),
        CountsFeasible(),
        NodeUnschedulable(),
        NodeName(),
        TaintToleration(),
        NodeAffinity(NodeAffinityArgs()),
        NodePorts(),
        NodeResourcesFit(NodeResourcesFitArgs()),
        FewPodsElsewhere(),
        CommonZone(),
        NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs()),
        NetworkTraffic(NetworkTrafficArgs(scoring="relative")),
    ]


SHAPES = [
    make_pod("plain", cpu="500m", memory="1Gi"),
    make_pod("large", cpu="3", memory="2Gi", tolerations=[{"operator": "Exists"}]),
    make_pod("port", cpu="100m", host_ports=[80]),
    make_pod("zone-a", node_selector={"zone": "a"}, requests={"example.com/gpu": 1}),
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
    memory=st.sampled_from(["2Gi", "8Gi"]),
    pods=st.sampled_from([2, 110]),
    labels=st.fixed_dictionaries({"zone": st.sampled_from(ZONES)}),
    taints=st.sampled_from(
        [
            (),
            ({"key": "gpu", "effect": "NoSchedule"},),
            ({"key": "spot", "effect": "PreferNoSchedule"},),
        ]
    ),
    unschedulable=st.sampled_from([False, False, True]),
)
shapes = st.sampled_from(SHAPES)
running = st.builds(
    make_pod,
    st.sampled_from([f"pod-{number}" for number in range(9)]),
    on=st.sampled_from([*NAMES, "unknown"]),
    cpu=st.sampled_from(["100m", "2"]),
    memory=st.sampled_from([None, "1Gi"]),
    host_ports=st.sampled_from([(), (80,), (80, 443)]),
    labels=st.sampled_from([{}, {"app": "a"}]),
)


class Incremental(RuleBasedStateMachine):
    make_rules: ClassVar[Callable[[], list[Any]]] = staticmethod(all_rules)
    make_state: ClassVar[Callable[[], ClusterState]] = ClusterState

    @initialize()
    def start(self) -> None:
        self.rules = self.make_rules()
        self.profile = make_profile(self.rules, {"NodeResourcesFit": 3})
        self.state = self.make_state()
        self.verdicts = Verdicts(self.profile, self.state)
        self.placed: dict[str, tuple[Pod, str]] = {}
        self.promised: dict[str, tuple[Pod, str]] = {}
        self.readings: list[TrafficReading] = []

    # Events.

    @rule(node=nodes)
    def node_comes_or_changes(self, node: Node) -> None:
        self.state.update_node(node)

    @rule(is_moody=st.booleans())
    def rule_is_in_a_mood(self, is_moody: bool) -> None:
        labels = {"zone": "a", **({"moody": "yes"} if is_moody else {})}
        self.state.update_node(make_node(NAMES[0], labels=labels))

    @rule(count=st.integers(1, 70))
    def many_nodes_come(self, count: int) -> None:
        for number in range(count):
            self.state.update_node(make_node(f"many-{number}", labels={"zone": ZONES[number % 3]}))

    @rule(count=st.integers(1, 70))
    def many_nodes_go(self, count: int) -> None:
        for number in range(count):
            self.state.remove_node(f"many-{number}")

    @rule(name=st.sampled_from(NAMES))
    def node_goes(self, name: str) -> None:
        self.state.remove_node(name)

    @rule(pod=running)
    def pod_is_bound_or_changes(self, pod: Pod) -> None:
        self.state.place(pod)
        self.placed[pod.uid] = (pod, pod.spec.node_name)

    @rule(pod=running, data=st.data())
    def pod_is_assumed(self, pod: Pod, data: st.DataObject) -> None:
        if pod.uid not in self.placed:
            node_name = data.draw(st.sampled_from(NAMES))
            pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
            self.state.assume(pod, node_name)
            self.placed[pod.uid] = (pod, node_name)

    @precondition(lambda self: self.placed)
    @rule(data=st.data())
    def assumption_is_confirmed(self, data: st.DataObject) -> None:
        pod, node_name = self.placed[data.draw(st.sampled_from(sorted(self.placed)))]
        bound = msgspec.structs.replace(
            pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name)
        )
        self.state.place(bound)
        self.placed[pod.uid] = (bound, node_name)

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
            st.sampled_from(NAMES), st.sampled_from([0.0, 1.0, 15.0, 10.0, math.nan]), max_size=6
        )
    )
    def reading_is_published(self, values: dict[str, float]) -> None:
        request = self.rules[-1].request
        reading = TrafficReading(
            request=request,
            published_at=0.0,
            version=len(self.readings) + 1,
            by_node={
                name: NodeReading(
                    value=value,
                    at=0.0,
                    state=State.MISSING if math.isnan(value) else State.FRESH,
                )
                for name, value in values.items()
            },
        )
        self.readings = [reading]
        self.state.publish(request, *traffic_columns(reading))

    @rule(shape=shapes, node_name=st.sampled_from(NAMES), priority=st.sampled_from([0, 5]))
    def node_is_promised(self, shape: Pod, node_name: str, priority: int) -> None:
        promised = renamed(shape, f"promised-{priority}", priority)
        self.state.nominate(promised, node_name)
        self.promised[promised.uid] = (promised, node_name)

    @precondition(lambda self: self.promised)
    @rule(data=st.data())
    def promise_is_dropped(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.promised)))
        self.state.drop_nomination(uid)
        del self.promised[uid]

    @rule(shape=shapes, turn=st.integers(0, 20))
    def pod_is_placed_by_decision(self, shape: Pod, turn: int) -> None:
        pod = renamed(shape, f"decided-{turn}-{shape.name}")
        try:
            decision = decide(pod, self.verdicts, turn=turn)
        except PluginError:
            return
        if decision.node_name is not None and pod.uid not in self.placed:
            self.state.assume(pod, decision.node_name)
            self.placed[pod.uid] = (pod, decision.node_name)

    # What must hold.

    @rule(shape=shapes)
    def somebody_only_filters(self, shape: Pod) -> None:
        """A look without scores, as when a single node is left."""
        self.verdicts.of(shape)

    @rule(shape=shapes, turn=st.integers(0, 3))
    def verdict_and_decision_equal_those_from_nothing(self, shape: Pod, turn: int) -> None:
        fresh = Verdicts(self.profile, self.from_nothing())
        assert verdict_on(self.verdicts, shape) == verdict_on(fresh, shape)
        kept, rebuilt = decision_on(self.verdicts, shape, turn), decision_on(fresh, shape, turn)
        assert kept == rebuilt

    def teardown(self) -> None:
        if hasattr(self, "state"):
            for shape in SHAPES:
                self.verdict_and_decision_equal_those_from_nothing(shape, 0)

    @invariant()
    def state_equals_one_from_nothing(self) -> None:
        if hasattr(self, "state"):
            assert columns_of(self.state) == columns_of(self.from_nothing())

    def from_nothing(self) -> ClusterState:
        rebuilt = ClusterState()
        for row in range(self.state.count):
            rebuilt.add_node(self.state.node_at(row))
        for pod, node_name in self.placed.values():
            if pod.spec.node_name:
                rebuilt.place(pod)
            else:
                rebuilt.assume(pod, node_name)
        for reading in self.readings:
            rebuilt.publish(reading.request, *traffic_columns(reading))
        for pod, node_name in self.promised.values():
            # A node that went took its promises along.
            if pod.uid in self.state.nominated().get(node_name, {}):
                rebuilt.nominate(pod, node_name)
        return rebuilt


def columns_of(state: ClusterState) -> dict[str, Any]:
    """Everything that rules can read, as plain values."""
    table = state.nodes()
    resources = ["cpu", "memory", "pods", "example.com/gpu"]
    columns: dict[str, Any] = {
        "names": list(table.names),
        "unschedulable": table.unschedulable.tolist(),
        "taints": [
            state.taint_sets.values[number] for number in state.taint_set.array[: state.count]
        ],
        "pods": [sorted(pod.uid for pod in table.pods(at)) for at in range(len(table))],
        "pod_count": table.pod_count.tolist(),
        "nonzero": [table.nonzero_requested(name).tolist() for name in ("cpu", "memory")],
    }
    for name in resources:
        columns[f"allocatable {name}"] = table.allocatable(name).tolist()
        columns[f"requested {name}"] = table.requested(name).tolist()
    zone = state.label_column("zone")
    numbers = zone.column.array[: state.count]
    columns["zone"] = [zone.interned.values[number] if number >= 0 else None for number in numbers]
    for port in (80, 443):
        holders = state.port_holders("TCP", port)
        columns[f"port {port}"] = {name: dict(ips) for name, ips in holders.items()}
    return columns


def verdict_on(verdicts: Verdicts, pod: Pod) -> dict[str, Any]:
    try:
        verdict = verdicts.of(pod)
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
        "scores": verdict.scores_of(feasible, ranked).unpacked(),
    }


def decision_on(verdicts: Verdicts, pod: Pod, turn: int) -> Any:
    """What is decided, nominated pods and all, in a form that can be compared."""
    try:
        decision = decide(pod, verdicts, turn=turn, full=True)
    except PluginError as error:
        return str(error)
    return (
        decision.node_name,
        decision.best,
        decision.rejections,
        decision.reason_counts,
        decision.rejected_by,
        decision.pod_rejection,
    )


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


def test_incremental() -> None:
    run_state_machine_as_test(Incremental, settings=QUICK)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_incremental_at_length() -> None:
    run_state_machine_as_test(Incremental, settings=LONG)


# Planted bugs: each must be caught.


def lying(rule_class: type, **attributes: Any) -> Callable[[], list[Any]]:
    """The rules, one of which says something untrue of itself."""

    def rules() -> list[Any]:
        made = all_rules()
        for each in made:
            if isinstance(each, rule_class):
                for name, value in attributes.items():
                    setattr(each, name, value)
        return made

    return rules


class ForgetsMoves(ClusterState):
    """Says nothing of the row that moved into the gap of a removed node."""

    def remove_node(self, node_name: str) -> None:
        changes = len(self._log)
        super().remove_node(node_name)
        del self._log[changes:]


class ForgetsPorts(ClusterState):
    def _count_ports(self, placed: Any, times: int) -> None:
        if times > 0:
            super()._count_ports(placed, times)


class ForgetsReadings(ClusterState):
    def publish(self, *published: Any) -> None:
        changes = len(self._log)
        super().publish(*published)
        del self._log[changes:]


class ForgetsAssumed(ClusterState):
    """Takes back what was assumed without counting it out of the columns."""

    def forget(self, uid: str) -> None:
        placed = self.placed(uid)
        if placed is not None and placed.is_assumed:
            del self._placed[uid]
            del self._placed_on[placed.node_name][uid]


@pytest.mark.parametrize(
    ("make_rules", "make_state"),
    [
        pytest.param(lying(NodeResourcesFit, reads=NODE), ClusterState, id="Fit that ignores pods"),
        pytest.param(lying(TaintToleration, reads=0), ClusterState, id="taints that ignore nodes"),
        pytest.param(lying(CommonZone, reads=NODE), ClusterState, id="a rule that hides NODES"),
        pytest.param(lying(FewPodsElsewhere, reads=NODE), ClusterState, id="one that hides OTHERS"),
        pytest.param(all_rules, ForgetsMoves, id="a row that moves unnoticed"),
        pytest.param(all_rules, ForgetsPorts, id="ports that are never given back"),
        pytest.param(all_rules, ForgetsReadings, id="a reading that changes unnoticed"),
        pytest.param(all_rules, ForgetsAssumed, id="an assumption that stays in the columns"),
    ],
)
def test_catches(
    make_rules: Callable[[], list[Any]], make_state: Callable[[], ClusterState]
) -> None:
    planted = type(
        "Planted",
        (Incremental,),
        {"make_rules": staticmethod(make_rules), "make_state": staticmethod(make_state)},
    )
    with pytest.raises((AssertionError, IndexError, KeyError)):
        run_state_machine_as_test(
            planted, settings=settings(QUICK, max_examples=300, phases=[Phase.generate])
        )
