"""Preemption on all nodes at once agrees with a plain one that takes one node after the other and
builds the cluster anew for every question."""

import math
from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import PostFiltered
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.policy import PodDisruptionBudget
from lowtide.objects.times import epoch_seconds
from lowtide.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from lowtide.plugins.inter_pod_affinity import InterPodAffinity
from lowtide.plugins.node_ports import NodePorts
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.plugins.pod_topology_spread import PodTopologySpread
from lowtide.plugins.pod_topology_spread_constraints import PodTopologySpreadArgs
from lowtide.plugins.taint_toleration import TaintToleration
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile

STEADY = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
HOST = "kubernetes.io/hostname"
FILTERS = [
    TaintToleration(),
    NodePorts(),
    NodeResourcesFit(NodeResourcesFitArgs()),
    PodTopologySpread(PodTopologySpreadArgs()),
    InterPodAffinity(InterPodAffinity.args()),
]
PREEMPTION = DefaultPreemption(DefaultPreemptionArgs())

# Clusters: small and full.

NAMES = ["n0", "n1", "n2", "n3"]
apps = st.sampled_from(["web", "db"])
amounts = {
    "cpu": st.sampled_from(["100m", "500m", "1", "1e100"]),
    "host_ports": st.sampled_from([(), (), (80,), (80, 81)]),
    "labels": st.one_of(st.just({}), apps.map(lambda app: {"app": app})),
}


def apart(app: str, key: str) -> dict[str, Any]:
    """In the spec of a pod that keeps away from pods of this app."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": terms}}


def spread(app: str, key: str) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return {"topologySpreadConstraints": [constraint]}


keys = st.sampled_from([HOST, "zone"])
specs = st.one_of(st.just({}), st.just({}), st.builds(apart, apps, keys))
incoming_specs = st.one_of(specs, st.builds(spread, apps, keys))


def node_named(name: str) -> st.SearchStrategy[Node]:
    return st.builds(
        make_node,
        st.just(name),
        cpu=st.sampled_from(["500m", "1", "2", "1e100"]),
        pods=st.sampled_from([2, 4, 110]),
        labels=st.one_of(st.just({}), st.sampled_from(["x", "y"]).map(lambda zone: {"zone": zone})),
        taints=st.sampled_from([[], [], [{"key": "a", "effect": "NoSchedule"}]]),
    )


def placed_pod(name: str, node_name: str, second: int) -> st.SearchStrategy[Pod]:
    made = st.builds(
        make_pod,
        st.just(name),
        on=st.just(node_name),
        priority=st.sampled_from([-1, 0, 5, 10]),
        spec=specs,
        **amounts,
    )
    return made.map(lambda pod: started(pod, second))


def started(pod: Pod, second: int) -> Pod:
    status = msgspec.structs.replace(pod.status, start_time=f"2026-01-01T00:00:{second:02d}Z")
    return msgspec.structs.replace(pod, status=status)


budgets = st.builds(
    lambda number, app, allowed, disrupted: msgspec.convert(
        {
            "metadata": {"name": f"budget-{number}", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}} if app else {}},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
        PodDisruptionBudget,
    ),
    st.integers(0, 1),
    st.sampled_from(["web", "db", ""]),
    st.integers(0, 2),
    st.lists(st.sampled_from(["p0", "p3"]), max_size=1),
)


class Cluster(msgspec.Struct):
    nodes: list[Node]
    pods: list[Pod]
    nominated: list[tuple[Pod, str]]
    budgets: list[PodDisruptionBudget]

    def state(self, *, without: Collection[str] = (), more: Sequence[Pod] = ()) -> ClusterState:
        state = ClusterState()
        for node in self.nodes:
            state.add_node(node)
        for budget in self.budgets:
            state.put_object(budget)
        for pod in (*self.pods, *more):
            if pod.uid not in without:
                state.place(pod)
        return state


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    names = NAMES[: draw(st.integers(1, 4))]
    places = draw(st.lists(st.sampled_from(names), max_size=9))
    seconds = draw(st.permutations(range(len(places))))
    rivals = draw(st.lists(st.sampled_from(names), max_size=2))
    return Cluster(
        nodes=[draw(node_named(name)) for name in names],
        pods=[
            draw(placed_pod(f"p{number}", name, second))
            for number, (name, second) in enumerate(zip(places, seconds, strict=True))
        ],
        nominated=[
            (make_pod(f"r{number}", cpu=draw(amounts["cpu"]), priority=draw(priorities)), name)
            for number, name in enumerate(rivals)
        ],
        budgets=draw(st.lists(budgets, max_size=2)),
    )


priorities = st.sampled_from([0, 5, 10])
incoming = st.builds(
    make_pod,
    st.just("incoming"),
    priority=st.sampled_from([5, 10]),
    spec=incoming_specs,
    **amounts,
)

# The plain one.


def fits(pod: Pod, cluster: Cluster, node_name: str, without: Collection[str]) -> bool:
    """With the pods that are nominated to the node and matter as much, and without them."""
    rivals = [
        msgspec.structs.replace(
            rival, spec=msgspec.structs.replace(rival.spec, node_name=node_name)
        )
        for rival, name in cluster.nominated
        if name == node_name and rival.spec.priority >= pod.spec.priority
    ]
    for more in (rivals, []):
        state = cluster.state(without=without, more=more)
        verdict = VerdictCache(make_profile(FILTERS), state).verdict_on(pod)
        row = state.row_of(node_name)
        assert row is not None
        if not verdict.feasible[row]:
            return False
    return True


def importance(pod: Pod) -> tuple[int, float]:
    return -pod.spec.priority, epoch_seconds(pod.status.start_time or "") or math.inf


def plain_victims(pod: Pod, cluster: Cluster, node_name: str) -> tuple[list[str], int] | None:
    """The victims' names and how many of them break a budget; None where evicting is no help."""
    potential = sorted(
        (
            each
            for each in cluster.pods
            if each.spec.node_name == node_name and each.spec.priority < pod.spec.priority
        ),
        key=importance,
    )
    removed = {each.uid for each in potential}
    if not potential or not fits(pod, cluster, node_name, removed):
        return None
    breaking = plain_breaking(potential, cluster)
    victims = []
    for each in [
        *(each for each in potential if each.uid in breaking),
        *(each for each in potential if each.uid not in breaking),
    ]:
        if fits(pod, cluster, node_name, removed - {each.uid}):
            removed.remove(each.uid)
        else:
            victims.append(each)
    names = [each.name for each in sorted(victims, key=importance)]
    return names, sum(each.uid in breaking for each in victims)


def plain_breaking(potential: Sequence[Pod], cluster: Cluster) -> set[str]:
    """The uids of pods whose eviction, after those before them, a budget does not allow."""
    breaking = set()
    for budget in {each.metadata.name: each for each in cluster.budgets}.values():
        assert budget.spec.selector is not None
        app = budget.spec.selector.match_labels.get("app")
        counted = [
            pod
            for pod in potential
            if app and pod.labels.get("app") == app and pod.name not in budget.status.disrupted_pods
        ]
        breaking |= {pod.uid for pod in counted[budget.status.disruptions_allowed :]}
    return breaking


def decided(pod: Pod, cluster: Cluster, turn: int = 0) -> PostFiltered | None:
    state = cluster.state()
    for rival, name in cluster.nominated:
        state.nominate(rival, name)
    profile = make_profile([*FILTERS, PREEMPTION])
    return decide(pod, VerdictCache(profile, state), turn=turn, full=True).post_filtered


@STEADY
@given(incoming, clusters(), st.integers(0, 5))
def test_victims_agree(pod: Pod, cluster: Cluster, turn: int) -> None:
    found = decided(pod, cluster, turn)
    if found is None:
        return  # it fits somewhere
    names = [node.name for node in cluster.nodes]
    want = {name: plain_victims(pod, cluster, name) for name in names}
    # Where the node is rejected for what no eviction changes, kube-scheduler does not try.
    helped = {name: victims for name, victims in want.items() if victims is not None}
    event(f"{len(helped)} candidates")
    assert {
        each.node_name: ([pod.name for pod in each.victims], each.budget_violations)
        for each in found.candidates
    } == helped
    assert (found.eviction is not None) == bool(helped)
    if found.eviction is not None:
        assert found.eviction.node_name in found.tied_nodes
        assert found.eviction in found.candidates
