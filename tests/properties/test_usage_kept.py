"""NodeUsage and NodeLabel agree with plain twins, and what is kept of them step by step equals what
is built from nothing, after any series of nodes, pods and readings that come and go."""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.properties.test_incremental import forgetting

from lowtide.app.known_cluster import BelievedCluster
from lowtide.cluster.changes import ANY_ROW, FEASIBLE, NODE, READING
from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import OneNode, Pod, filter_each
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.node import Node
from lowtide.objects.requests import nonzero_requests
from lowtide.plugins.node_label import NodeLabel, NodeLabelArgs
from lowtide.plugins.node_unschedulable import NodeUnschedulable
from lowtide.plugins.node_usage import NodeUsage, NodeUsageArgs
from lowtide.readings.usage import UsageSample, usage_reading
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile, make_state, rejections, scores

NOW = 1_767_225_600.0
NAMES = [f"node-{number}" for number in range(7)]
LABEL = "filter.xy.com"

QUICK = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)

nodes = st.builds(
    make_node,
    st.sampled_from(NAMES),
    cpu=st.sampled_from(["0", "1", "4"]),
    memory=st.sampled_from(["2Gi", "8Gi"]),
    labels=st.sampled_from([{LABEL: "true"}, {LABEL: "true"}, {LABEL: ""}, {}]),
    unschedulable=st.sampled_from([False, False, False, True]),
)
pods = st.builds(
    make_pod,
    st.sampled_from([f"pod-{number}" for number in range(6)]),
    on=st.sampled_from([*NAMES, "unknown"]),
    cpu=st.sampled_from([None, "100m", "2"]),
)
samples = st.dictionaries(
    st.sampled_from(NAMES),
    st.builds(
        UsageSample,
        st.sampled_from([math.nan, 0.0, 67.0, 264.0, 5000.0]),
        st.sampled_from([math.nan, 0.0, 2.0**30, 2.0**33]),
        at=st.sampled_from([NOW, NOW - 60, NOW - 301]),
    ),
)
usage_args = st.sampled_from(
    [
        NodeUsageArgs(),
        NodeUsageArgs(memory=1),
        NodeUsageArgs(cpu=0, memory=1),
        NodeUsageArgs(unit="millicores"),
    ]
)


# Twins.


class PlainNodeLabel:
    name = "NodeLabel"

    def __init__(self, value: str | None) -> None:
        self._value = value

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        if LABEL in node.labels and self._value in (None, node.labels[LABEL]):
            return None
        shown = LABEL if self._value is None else f"{LABEL}={self._value}"
        return f"node(s) did not have label {shown}"


@settings(QUICK)
@given(cluster=st.lists(nodes, unique_by=lambda node: node.name), value=st.sampled_from([None, ""]))
def test_labels_agree_with_the_twin(cluster: list[Node], value: str | None) -> None:
    state = make_state(cluster)
    vectorised = NodeLabel(NodeLabelArgs(label=LABEL, value=value))
    plain = rejections(PlainNodeLabel(value), make_pod(), state)
    assert rejections(vectorised, make_pod(), state) == plain
    rejects_pod = vectorised.pre_filter(make_pod(), state.nodes()) is not None
    assert rejects_pod == (bool(cluster) and len(plain) == len(cluster))


def plain_scores(
    args: NodeUsageArgs, state: ClusterState, taken: dict[str, UsageSample]
) -> dict[str, int] | None:
    """One node at a time, from the samples and the pods, none of which was measured yet."""
    fresh = {name: each for name, each in taken.items() if NOW - each.at <= 300}
    weights = {"cpu": args.cpu, "memory": args.memory}
    total: dict[str, float] = dict.fromkeys(state.names, 0.0)
    counted = 0
    for number, (resource, field) in enumerate([("cpu", "cpu_milli"), ("memory", "memory_bytes")]):
        has = dict(zip(state.names, state.nodes().allocatable(resource).tolist(), strict=True))
        if args.unit == "millicores":
            has = dict.fromkeys(has, 1)
        used = {
            name: getattr(each, field) / has[name]
            for name, each in fresh.items()
            if has.get(name) and not math.isnan(getattr(each, field))
        }
        if not used or not weights[resource]:
            continue
        counted += weights[resource]
        for name in state.names:
            on_it = state.placed_on(name).values()
            placed = sum(nonzero_requests(each.pod)[number] for each in on_it)
            known = used.get(name, sum(used.values()) / len(used))
            share = known + placed / has[name] if has[name] else 1.0
            total[name] += weights[resource] * share
    if not counted or not state.names:
        return None
    if args.unit == "millicores":
        rounded = {name: round(each) for name, each in total.items()}
        return {name: min(rounded.values()) - each + 1 for name, each in rounded.items()}
    return {name: round(each / counted * 10**6) for name, each in total.items()}


@settings(QUICK, max_examples=150)
@given(
    cluster=st.lists(nodes, unique_by=lambda node: node.name),
    placed=st.lists(pods, unique_by=lambda pod: pod.uid),
    taken=samples,
    args=usage_args,
)
def test_usage_agrees_with_the_twin(
    cluster: list[Node], placed: list[Pod], taken: dict[str, UsageSample], args: NodeUsageArgs
) -> None:
    state, usage = make_state(cluster, placed), NodeUsage(args)
    state.publish(
        usage.request,
        usage_reading(usage.request, taken, BelievedCluster(state).allocatable(), NOW),
    )
    found, want = scores(usage, make_pod(), state), plain_scores(args, state, taken)
    if found is None or want is None:
        assert found is want
    else:
        apart = {name: abs(found[name] - want[name]) for name in want}
        assert found.keys() == want.keys()
        assert max(apart.values()) <= 1  # sums in another order round differently


# Step by step, and from nothing.


class Kept(RuleBasedStateMachine):
    unit: ClassVar[str | None] = None  # of the args that are drawn; None: any
    make_state: ClassVar[Callable[[], ClusterState]] = ClusterState

    @initialize(args=usage_args, taken=samples)
    def start(self, args: NodeUsageArgs, taken: dict[str, UsageSample]) -> None:
        self.usage = NodeUsage(args if self.unit is None else NodeUsageArgs(unit=self.unit))  # type: ignore[arg-type]
        self.profile = make_profile(
            [NodeUnschedulable(), NodeLabel(NodeLabelArgs(label=LABEL)), self.usage]
        )
        self.state = self.make_state()
        for name in NAMES:
            self.state.add_node(make_node(name, labels={LABEL: "true"}))
        self.verdicts = VerdictCache(self.profile, self.state)
        self.placed: dict[str, Pod] = {}
        self.reading: Reading | None = None
        if taken:
            self.usage_is_published(taken)

    @rule(node=nodes)
    def node_comes_or_changes(self, node: Node) -> None:
        self.state.update_node(node)

    @rule(name=st.sampled_from(NAMES))
    def node_goes(self, name: str) -> None:
        self.state.remove_node(name)

    @rule(pod=pods)
    def pod_is_bound_or_moves(self, pod: Pod) -> None:
        self.state.place(pod)
        self.placed[pod.uid] = pod

    @precondition(lambda self: self.placed)
    @rule(data=st.data())
    def pod_goes(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.placed)))
        self.state.remove_pod(uid)
        del self.placed[uid]

    @rule(taken=samples)
    def usage_is_published(self, taken: dict[str, UsageSample]) -> None:
        request = self.usage.request
        self.reading = usage_reading(request, taken, BelievedCluster(self.state).allocatable(), NOW)
        self.state.publish(request, self.reading)

    @rule()
    def somebody_looks(self) -> None:
        assert decision_by(self.verdicts) == decision_by(VerdictCache(self.profile, self.rebuilt()))

    def rebuilt(self) -> ClusterState:
        rebuilt = make_state(
            [self.state.node_at(row) for row in range(self.state.count)], self.placed.values()
        )
        if self.reading is not None:
            rebuilt.publish(self.usage.request, self.reading)
        return rebuilt


def decision_by(verdicts: VerdictCache) -> tuple[Any, ...]:
    decision = decide(make_pod(), verdicts, turn=0, full=True)
    return decision.best, decision.rejections, decision.pod_rejection, decision.reason_counts


def test_what_is_kept() -> None:
    run_state_machine_as_test(Kept, settings=QUICK)


@pytest.mark.parametrize(
    ("unit", "bits"),
    [
        pytest.param("share", READING, id="shares that do not record reads of readings"),
        pytest.param("share", NODE, id="shares that do not record reads of allocatable"),
        pytest.param(
            "millicores",
            (NODE | READING | FEASIBLE) << ANY_ROW,
            id="millicores that do not record reads of other nodes",
        ),
        # Which nodes are feasible is noted with what nodes there are.
        pytest.param(
            "millicores",
            (NODE | FEASIBLE) << ANY_ROW,
            id="millicores that do not record reads of feasible nodes",
        ),
    ],
)
def test_catches(unit: str, bits: int) -> None:
    planted = type("Planted", (Kept,), {"unit": unit, "make_state": staticmethod(forgetting(bits))})
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            planted, settings=settings(QUICK, max_examples=300, phases=[Phase.generate])
        )
