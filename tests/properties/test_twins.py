"""Every vectorised plugin agrees with its plain twin, on any cluster and on any face of it.

The alphabets are small, so that taints are tolerated, labels match and ports collide.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.properties.twins import (
    PlainBalancedAllocation,
    PlainFitScore,
    PlainImageLocality,
    PlainNodeAffinity,
    PlainNodeDeclaredFeatures,
    PlainNodeName,
    PlainNodePorts,
    PlainNodeUnschedulable,
    PlainPodTopologySpread,
    PlainTaintToleration,
    plain_fit,
)

from lowtide.cluster.nodes import Nodes
from lowtide.objects.node import Node
from lowtide.objects.pod import NodeAffinity as Affinity
from lowtide.objects.pod import Pod
from lowtide.objects.requests import pod_requests
from lowtide.objects.workloads import Service
from lowtide.plugins.image_locality import ImageLocality
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
from lowtide.plugins.pod_topology_spread import PodTopologySpread
from lowtide.plugins.pod_topology_spread_constraints import PodTopologySpreadArgs
from lowtide.plugins.taint_toleration import TaintToleration
from lowtide.testing import make_node, make_pod, make_state
from lowtide.testing.placing import is_concerned

STEADY = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)

GPU = "example.com/gpu"
TPU = "example.com/tpu"
NAMES = [f"n{number}" for number in range(6)]
CORDON = "node.kubernetes.io/unschedulable"
ZONE = "topology.kubernetes.io/zone"
WEB = msgspec.convert(
    {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}},
    Service,
)
FEATURES = ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "Other"]
RESOURCES = ["cpu", "memory", "ephemeral-storage", GPU, "pods"]

# Clusters.

taints = st.builds(
    lambda key, value, effect: {"key": key, "value": value, "effect": effect},
    st.sampled_from(["a", "b"]),
    st.sampled_from(["", "x"]),
    st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
)
tolerations = st.builds(
    lambda key, operator, value, effect: {
        "key": key,
        "operator": operator,
        "value": value,
        "effect": effect,
    },
    st.sampled_from(["", "a", "b", CORDON]),
    st.sampled_from(["", "Equal", "Exists"]),
    st.sampled_from(["", "x"]),
    st.sampled_from(["", "NoSchedule", "NoExecute", "PreferNoSchedule"]),
)
labels = st.fixed_dictionaries(
    {},
    optional={
        "zone": st.sampled_from(["x", "y"]),
        "gen": st.sampled_from(["1", "5", "-3", "new"]),
        ZONE: st.sampled_from(["x", "y", ""]),
    },
)
apps = st.fixed_dictionaries({}, optional={"app": st.sampled_from(["web", "db"])})
requests = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["0", "100m", "750m", "2"]),
        "memory": st.sampled_from(["0", "64Mi", "1Gi"]),
        "ephemeral-storage": st.sampled_from(["1Gi", "3Gi"]),
        GPU: st.integers(0, 2),
        TPU: st.just(1),
    },
)
ports = st.lists(
    st.builds(
        lambda port, protocol, ip: {"hostPort": port, "protocol": protocol, "hostIP": ip},
        st.sampled_from([80, 81]),
        st.sampled_from(["TCP", "UDP"]),
        st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2"]),
    ),
    max_size=2,
)


images = st.dictionaries(
    st.sampled_from(["app:latest", "registry:5000/app:latest", "app:2", "app@sha256:0a"]),
    st.sampled_from([0, 23 * 2**20, 70_000_001, 10**9, 2**33]),
)


def node_named(name: str) -> st.SearchStrategy[Node]:
    allocatable = st.fixed_dictionaries(
        {},
        optional={"ephemeral-storage": st.just("4Gi"), GPU: st.integers(0, 3), TPU: st.just(1)},
    )
    return st.builds(
        lambda more, **known: make_node(name, **known, **more),
        allocatable,
        cpu=st.sampled_from(["0", "1", "3"]),
        memory=st.sampled_from(["512Mi", "3Gi"]),
        pods=st.sampled_from([1, 3, 110]),
        labels=labels,
        taints=st.lists(taints, max_size=2),
        unschedulable=st.booleans(),
        images=images,
        declared_features=st.lists(st.sampled_from(FEATURES), unique=True),
    )


image_names = st.sampled_from(["app", "registry:5000/app", "app:2", "app@sha256:0a", "none"])
pulled = st.builds(
    lambda image, action: {"image": image, "restartPolicyRules": [{"action": action}]},
    image_names,
    st.sampled_from(["Restart", "RestartAllContainers"]),
)


def containers(asked: dict[str, Any], held: list[dict[str, Any]]) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"requests": asked}, "ports": held}]}


expressions = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values},
    st.sampled_from(["zone", "gen"]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    st.lists(st.sampled_from(["x", "y", "1", "5"]), max_size=2),
)
fields = st.builds(
    lambda operator, values: {"key": "metadata.name", "operator": operator, "values": values},
    st.sampled_from(["In", "NotIn"]),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=2),
)
terms = st.builds(
    lambda by_label, by_field: {"matchExpressions": by_label, "matchFields": by_field},
    st.lists(expressions, max_size=2),
    st.lists(fields, max_size=1),
)
affinities = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.builds(
            lambda several: {"nodeSelectorTerms": several}, st.lists(terms, max_size=2)
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": st.lists(
            st.builds(
                lambda weight, term: {"weight": weight, "preference": term},
                st.integers(0, 9),
                terms,
            ),
            max_size=2,
        ),
    },
)
selectors = st.sampled_from(
    [
        None,
        {},
        {"matchLabels": {"app": "web"}},
        {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
    ]
)
constraints = st.fixed_dictionaries(
    {
        "maxSkew": st.integers(1, 3),
        "topologyKey": st.sampled_from(["zone", "gen", "kubernetes.io/hostname"]),
        "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": selectors,
    },
    optional={
        "minDomains": st.integers(1, 4),
        "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
        "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
        "matchLabelKeys": st.just(["app"]),
    },
)
added_affinities = affinities.map(lambda given: msgspec.convert(given, Affinity))
pending = st.builds(
    lambda asked, held, affinity, **known: make_pod(
        "pending", spec={**containers(asked, held), "affinity": affinity}, **known
    ),
    requests,
    ports,
    st.one_of(st.none(), affinities.map(lambda given: {"nodeAffinity": given})),
    on=st.sampled_from(["", "", *NAMES[:2]]),
    node_selector=st.one_of(st.just({}), labels),
    tolerations=st.lists(tolerations, max_size=3),
)

spreading = st.builds(
    lambda affinity, spread, **known: make_pod(
        "pending",
        spec={"affinity": {"nodeAffinity": affinity}, "topologySpreadConstraints": spread},
        **known,
    ),
    affinities,
    st.lists(constraints, max_size=2),
    labels=apps,
    node_selector=st.one_of(st.just({}), labels),
    tolerations=st.lists(tolerations, max_size=2),
)


@st.composite
def faces(draw: st.DrawFn) -> Nodes:
    """A table: of all nodes, or with pods added to and taken from some rows hypothetically."""
    nodes = [draw(node_named(name)) for name in NAMES[: draw(st.integers(0, len(NAMES)))]]
    pods = [running(draw, f"p{number}") for number in range(draw(st.integers(0, 6)))]
    state = make_state(nodes, pods)
    state.put_object(WEB)
    face = state.nodes()
    for at in draw(st.lists(st.sampled_from(range(len(nodes))), unique=True)) if nodes else ():
        if draw(st.booleans()):
            face = face.with_pods({at: [running(draw, f"new-{at}")]})
        else:
            face = face.without({at: [pod.uid for pod in pods[:3]]})
    return face


def running(draw: st.DrawFn, name: str) -> Pod:
    return make_pod(
        name,
        namespace=draw(st.sampled_from(["default", "default", "other"])),
        on=draw(st.sampled_from(NAMES)),
        labels=draw(apps),
        deleted=draw(st.sampled_from([False, False, True])),
        spec=containers(draw(requests), draw(ports)),
    )


# What is compared.


class TwinRejection(NamedTuple):
    node_name: str
    reason: str
    eviction_helps: bool


def rejections(plugins: Iterable[Any], pod: Pod, nodes: Nodes) -> list[TwinRejection]:
    return sorted(
        TwinRejection(nodes.names[at], rejection.reason, rejection.eviction_helps)
        for plugin in plugins
        if is_concerned(plugin, pod)
        for rejection in plugin.filter(pod, nodes)
        for at in np.flatnonzero(rejection.mask)
    )


def raw_scores(plugin: Any, pod: Pod, nodes: Nodes) -> list[int] | None:
    if not is_concerned(plugin, pod):
        return None
    raw = plugin.score(pod, nodes.with_feasible(np.ones(len(nodes.everything), np.bool_)))
    return None if raw is None else raw.tolist()


@pytest.mark.parametrize(
    ("plugin", "twin"),
    [
        pytest.param(NodeName(), PlainNodeName(), id="NodeName"),
        pytest.param(NodeUnschedulable(), PlainNodeUnschedulable(), id="NodeUnschedulable"),
        pytest.param(TaintToleration(), PlainTaintToleration(), id="TaintToleration"),
        pytest.param(NodePorts(), PlainNodePorts(), id="NodePorts"),
    ],
)
@STEADY
@given(pod=pending, nodes=faces())
def test_filters_agree(plugin: Any, twin: Any, pod: Pod, nodes: Nodes) -> None:
    assert rejections([plugin], pod, nodes) == rejections([twin], pod, nodes)


@STEADY
@given(pod=pending, nodes=faces())
def test_scores_by_taints_agree(pod: Pod, nodes: Nodes) -> None:
    assert raw_scores(TaintToleration(), pod, nodes) == raw_scores(
        PlainTaintToleration(), pod, nodes
    )


@STEADY
@given(pod=pending, nodes=faces(), added=added_affinities)
def test_node_affinity_agrees(pod: Pod, nodes: Nodes, added: Affinity) -> None:
    plugin, twin = NodeAffinity(NodeAffinityArgs(added_affinity=added)), PlainNodeAffinity(added)
    assert rejections([plugin], pod, nodes) == rejections([twin], pod, nodes)
    raw = raw_scores(plugin, pod, nodes)
    if raw is None:  # no opinion: every node would get 0
        raw = [0] * len(nodes)
    assert raw == raw_scores(twin, pod, nodes)


@STEADY
@given(pod=pending, nodes=faces(), ignored=st.sampled_from([[], [TPU], ["cpu", TPU, GPU]]))
def test_filters_by_resources_agree(pod: Pod, nodes: Nodes, ignored: list[str]) -> None:
    plugin = NodeResourcesFit(NodeResourcesFitArgs(ignored_resources=ignored))
    assert rejections([plugin], pod, nodes) == rejections(plain_fit(pod, ignored), pod, nodes)


SIGNATURES = [[(0, 0), (100, 10)], [(10, 10), (40, 3), (90, 7)], [(50, 5)], [(50, 0), (100, 10)]]


@pytest.mark.parametrize("kind", ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
@STEADY
@given(
    pod=pending,
    nodes=faces(),
    weights=st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 5), min_size=1),
    signature=st.sampled_from(SIGNATURES),
)
def test_scores_by_resources_agree(
    kind: str, pod: Pod, nodes: Nodes, weights: dict[str, int], signature: list[tuple[int, int]]
) -> None:
    strategy = {
        "type": kind,
        "resources": [{"name": name, "weight": weight} for name, weight in weights.items()],
        "requestedToCapacityRatio": {
            "shape": [{"utilization": used, "score": score} for used, score in signature]
        },
    }
    plugin = NodeResourcesFit(msgspec.convert({"scoringStrategy": strategy}, NodeResourcesFitArgs))
    twin = PlainFitScore(kind, weights, signature)
    assert raw_scores(plugin, pod, nodes) == raw_scores(twin, pod, nodes)


@STEADY
@given(
    pod=pending,
    nodes=faces(),
    resources=st.lists(st.sampled_from(RESOURCES), min_size=1, unique=True),
)
def test_scores_by_balance_agree(pod: Pod, nodes: Nodes, resources: list[str]) -> None:
    listed = [{"name": name} for name in resources]
    plugin = NodeResourcesBalancedAllocation(
        msgspec.convert({"resources": listed}, NodeResourcesBalancedAllocationArgs)
    )
    wanted = pod_requests(pod)
    has_opinion = any(wanted.get(name, 0) for name in resources)
    twin = raw_scores(PlainBalancedAllocation(resources), pod, nodes)
    assert raw_scores(plugin, pod, nodes) == (twin if has_opinion else None)


@settings(STEADY, max_examples=200)
@given(pod=spreading, nodes=faces())
def test_filters_by_spread_agree(pod: Pod, nodes: Nodes) -> None:
    plugin = PodTopologySpread(PodTopologySpreadArgs())
    assert rejections([plugin], pod, nodes) == rejections([PlainPodTopologySpread()], pod, nodes)


@settings(STEADY, max_examples=200)
@given(pod=spreading, nodes=faces(), data=st.data())
def test_scores_by_spread_agree(pod: Pod, nodes: Nodes, data: st.DataObject) -> None:
    plugin, twin = PodTopologySpread(PodTopologySpreadArgs()), PlainPodTopologySpread()
    nodes = nodes.everything
    count = st.lists(st.booleans(), min_size=len(nodes), max_size=len(nodes))
    feasible = np.array(data.draw(count), np.bool_)
    nodes = nodes.with_feasible(feasible)
    raw, plain = plugin.score(pod, nodes), twin.score(pod, nodes)
    if raw is None or plain is None:
        assert raw is plain
        return
    keys = {
        each.topology_key
        for each in pod.spec.topology_spread_constraints
        if each.when_unsatisfiable == "ScheduleAnyway"
    }
    scored = [bool(feasible[at]) and keys <= set(nodes.node(at).labels) for at in range(len(nodes))]
    assert raw[feasible].tolist() == plain[feasible].tolist()
    normalized = np.where(feasible, plugin.normalize(pod, nodes, raw), 0)
    assert normalized.tolist() == twin.normalize(plain.tolist(), scored)


# What nodes hold and can do.

pulling = st.builds(
    lambda started, running, mounted, **more: make_pod(
        spec={
            "initContainers": started,
            "containers": running,
            "volumes": [{"name": "v", "image": {"reference": each}} for each in mounted],
            **more,
        }
    ),
    st.lists(pulled, max_size=1),
    st.lists(pulled, min_size=1, max_size=2),
    st.lists(image_names, max_size=1),
    hostNetwork=st.booleans(),
    hostUsers=st.sampled_from([None, False, True]),
)


@STEADY
@given(pod=pulling, nodes=faces())
def test_scores_by_images_agree(pod: Pod, nodes: Nodes) -> None:
    assert raw_scores(ImageLocality(), pod, nodes) == raw_scores(PlainImageLocality(), pod, nodes)


@STEADY
@given(pod=pulling, nodes=faces())
def test_filters_by_declared_features_agree(pod: Pod, nodes: Nodes) -> None:
    assert rejections([NodeDeclaredFeatures()], pod, nodes) == rejections(
        [PlainNodeDeclaredFeatures()], pod, nodes
    )


# Some rows instead of all.


def every_plugin(added: Affinity) -> Sequence[Any]:
    return (
        NodeName(),
        NodeUnschedulable(),
        TaintToleration(),
        NodeAffinity(NodeAffinityArgs(added_affinity=added)),
        NodePorts(),
        NodeResourcesFit(NodeResourcesFitArgs()),
        NodeResourcesBalancedAllocation(
            msgspec.convert(
                {"resources": [{"name": name} for name in ("cpu", "memory", GPU)]},
                NodeResourcesBalancedAllocationArgs,
            )
        ),
        PodTopologySpread(PodTopologySpreadArgs()),
        ImageLocality(),
        NodeDeclaredFeatures(),
    )


@STEADY
@given(
    pod=st.one_of(pending, spreading, pulling),
    nodes=faces(),
    added=added_affinities,
    data=st.data(),
)
def test_judging_some_rows_is_taking_rows_of_judging_all(
    pod: Pod, nodes: Nodes, added: Affinity, data: st.DataObject
) -> None:
    every_position = st.sampled_from(range(len(nodes))) if len(nodes) else st.nothing()
    positions = np.array(data.draw(st.lists(every_position, unique=True)), np.intp)
    some = nodes.take(positions)
    kept = {nodes.names[at] for at in positions}
    for plugin in every_plugin(added):
        if hasattr(plugin, "filter"):
            of_all = [each for each in rejections([plugin], pod, nodes) if each.node_name in kept]
            assert rejections([plugin], pod, some) == of_all, plugin.name
        if hasattr(plugin, "score"):
            raw = raw_scores(plugin, pod, nodes)
            taken = None if raw is None else [raw[at] for at in positions]
            assert raw_scores(plugin, pod, some) == taken, plugin.name
