"""Numbers that others write, however large or small: nothing fails, scores stay within 0 to 100, a
healthy node stays usable, and answers equal those of twins that count with Python's integers."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.properties.test_twins import rejections
from tests.properties.twins import PlainFitScore, plain_fit

from lowtide.app.registry import make_registry
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder
from lowtide.framework.profile import Profile
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.node import Node
from lowtide.objects.node_metrics import NodeMetrics
from lowtide.objects.pod import Pod
from lowtide.plugins.network_traffic import NetworkTraffic
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.plugins.node_usage import NodeUsage
from lowtide.readings.columns import published
from lowtide.readings.usage import Allocatable, sample_of, usage_reading
from lowtide.scenario.readings import traffic_reading
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_state

STEADY = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
NOW, NOW_TEXT = 1_767_225_600.0, "2026-01-01T00:00:00Z"
HOSTNAME = "kubernetes.io/hostname"
LABEL = "example.com/wanted"
GPU = "example.com/gpu"
HEALTHY = "healthy"

EXTREMES = (0, 1, 2**31, 2**53, 2**62, (2**63 - 1) // 100, (2**63 - 1) // 100 + 1, 2**63 - 1)
amounts = st.sampled_from([*map(str, EXTREMES), "1n", "0.5", "8Ei", "10E", "1e100", "9" * 500])
amounts_of_nodes = st.one_of(amounts, st.sampled_from(["-1", "-8Ei", "-1e100", "many"]))
numbers = st.sampled_from([*EXTREMES, -1, -(2**31), -(2**63), 10**30, -(10**30)])
rates = st.sampled_from([0.0, 1e-300, 1.0, 2.0**53, 1e30, 1e300])


def requesting(amounts: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, str]]:
    optional = dict.fromkeys(("cpu", "memory", "ephemeral-storage", GPU), amounts)
    return st.fixed_dictionaries({}, optional=optional)


def node_named(name: str) -> st.SearchStrategy[Node]:
    return st.builds(
        lambda images, capacity, **more: make_node(
            name,
            labels={"zone": name[-1], LABEL: ""},
            annotations={"lowtide.dev/link-capacity": capacity},
            images=images,
            **more,
        ),
        st.dictionaries(st.sampled_from(["app:1", "side:1"]), numbers),
        amounts_of_nodes,
        cpu=amounts_of_nodes,
        memory=amounts_of_nodes,
        pods=amounts_of_nodes,
        example__com__gpu=amounts_of_nodes,
    )


def affinity(weight: int, max_skew: int, priority: int) -> dict[str, Any]:
    """Of a spec, all preferred: it rejects no node."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    expressions = [{"key": "zone", "operator": "Exists"}]
    return {
        "affinity": {
            "nodeAffinity": {
                preferred: [{"weight": weight, "preference": {"matchExpressions": expressions}}]
            },
            "podAffinity": {preferred: [{"weight": weight, "podAffinityTerm": term}] * 3},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": max_skew,
                "minDomains": abs(max_skew),
                "topologyKey": HOSTNAME,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ],
        "priority": priority,
    }


wishes = st.builds(affinity, numbers, numbers, numbers)
traffic = st.one_of(st.just({}), amounts.map(lambda amount: {"lowtide.dev/traffic": amount}))


def pods_on(name: str, node_names: Sequence[str]) -> st.SearchStrategy[list[Pod]]:
    """Alike, as many as there may be."""

    def made(
        count: int,
        node_name: str,
        asked: dict[str, str],
        annotations: dict[str, str],
        wishes: dict[str, Any],
    ) -> list[Pod]:
        containers = [{"image": "app:1", "resources": {"requests": asked}}]
        return [
            make_pod(
                f"{name}-{number}",
                on=node_name,
                labels={"app": "web"},
                annotations=annotations,
                spec={**wishes, "containers": containers},
            )
            for number in range(count)
        ]

    return st.builds(
        made,
        st.sampled_from([1, 2, 3, 9]),
        st.sampled_from(node_names),
        requesting(amounts),
        traffic,
        wishes,
    )


NAMES = ["n0", "n1", "n2"]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    """What is on the nodes but the healthy one."""
    nodes = [draw(node_named(name)) for name in NAMES]
    pods = [pod for number in range(3) for pod in draw(pods_on(f"p{number}", NAMES))]
    return nodes, pods


def profile(weight: int = 2**31 - 1) -> Profile:
    """kube-scheduler's default plugins and Lowtide's own."""
    own = ("NetworkTraffic", "NodeUsage", "NodeLabel")
    enabled = [{"name": name, "weight": weight} for name in own]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "lowtide",
                "plugins": {"multiPoint": {"enabled": enabled}},
                "pluginConfig": [
                    {"name": "NodeLabel", "args": {"label": LABEL}},
                    {"name": "NodeUsage", "args": {"memory": weight}},
                    {
                        "name": "NetworkTraffic",
                        "args": {"prometheusAddress": "http://prometheus.example"},
                    },
                ],
            }
        ],
    }
    loaded = load_config(json.dumps(config), file="test")
    return make_registry({}).build(loaded, {Binder: None}).profiles["lowtide"]


PROFILE = profile()


def publish(state: ClusterState, rate: float, used: str) -> None:
    """The same on every node."""
    nodes = [state.node_at(row) for row in range(state.count)]
    for plugin in PROFILE.plugins:
        if isinstance(plugin, NetworkTraffic):
            reading = traffic_reading(plugin.request, dict.fromkeys(state.names, rate), nodes)
            state.publish(plugin.request, published(reading))
        if isinstance(plugin, NodeUsage):
            metrics = NodeMetrics(timestamp=NOW_TEXT, usage={"cpu": used, "memory": used})
            samples = dict.fromkeys(state.names, sample_of(metrics))
            table = state.nodes()
            has = map(Allocatable, table.allocatable("cpu"), table.allocatable("memory"))
            allocatable = dict(zip(state.names, has, strict=True))
            state.publish(plugin.request, usage_reading(plugin.request, samples, allocatable, NOW))


def with_healthy(nodes: Sequence[Node], pods: Sequence[Pod]) -> ClusterState:
    healthy = make_node(HEALTHY, cpu="64", memory="256Gi", labels={LABEL: ""})
    return make_state([*nodes, healthy], pods)


@STEADY
@given(cluster=clusters(), wish=wishes, annotations=traffic, rate=rates, used=amounts_of_nodes)
def test_a_usual_pod_is_placed(
    cluster: tuple[list[Node], list[Pod]],
    wish: dict[str, Any],
    annotations: dict[str, str],
    rate: float,
    used: str,
) -> None:
    state = with_healthy(*cluster)
    publish(state, rate, used)
    verdicts = VerdictCache(PROFILE, state)
    for number in range(4):
        pod = make_pod(f"new-{number}", cpu="1", memory="1Gi", annotations=annotations, spec=wish)
        decision = decide(pod, verdicts, turn=number, full=True)
        assert decision.node_name is not None
        rejected = decision.rejections.get(HEALTHY)
        assert rejected is None or rejected.plugin == "NetworkTraffic", rejected  # for its load
        for node in decision.best:
            for name, score in node.by_plugin.items():
                assert 0 <= score.normalized <= 100, name
        state.assume(pod, decision.node_name, verdicts.verdict_on(pod).signature)


@STEADY
@given(cluster=clusters(), asked=requesting(amounts), wish=wishes, rate=rates)
def test_a_pod_that_asks_for_anything_is_answered_as_alone_as_among_others(
    cluster: tuple[list[Node], list[Pod]], asked: dict[str, str], wish: dict[str, Any], rate: float
) -> None:
    """Also one that has others evicted, or waits for a node that it is promised."""
    state = with_healthy(*cluster)
    publish(state, rate, "1")
    verdicts = VerdictCache(PROFILE, state)
    rival = make_pod("rival", requests=asked, priority=2**31 - 1)
    state.nominate(rival, HEALTHY)
    decide(make_pod(requests=asked, spec=wish), verdicts, turn=0, full=True)
    state.drop_nomination(rival.uid)
    decision = decide(make_pod("usual", cpu="1", memory="1Gi"), verdicts, turn=0)
    assert decision.node_name is not None


def faces(draw: st.DrawFn, nodes: Sequence[Node], pods: Sequence[Pod]) -> Nodes:
    """As it is, or with pods added and taken away hypothetically."""
    face = make_state(nodes, pods).nodes()
    uids = [pod.uid for pod in pods]
    for position in draw(st.lists(st.sampled_from(range(len(nodes))), max_size=2)):
        if draw(st.booleans()):
            face = face.with_pods({position: draw(pods_on(f"added-{position}", [""]))})
        else:
            face = face.without({position: draw(st.lists(st.sampled_from(uids)))})
    return face


@pytest.mark.parametrize("kind", ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
@STEADY
@given(cluster=clusters(), asked=requesting(amounts), data=st.data())
def test_resources_agree_with_twins_of_unbounded_integers(
    kind: str, cluster: tuple[list[Node], list[Pod]], asked: dict[str, str], data: st.DataObject
) -> None:
    pod, signature = make_pod(requests=asked), [(0, 0), (70, 10), (100, 4)]
    weights = {"cpu": 1, "memory": 3, GPU: 100}
    strategy = {
        "type": kind,
        "resources": [{"name": name, "weight": weight} for name, weight in weights.items()],
        "requestedToCapacityRatio": {
            "shape": [{"utilization": used, "score": score} for used, score in signature]
        },
    }
    nodes = faces(data.draw, *cluster)
    plugin = NodeResourcesFit(msgspec.convert({"scoringStrategy": strategy}, NodeResourcesFitArgs))
    assert rejections([plugin], pod, nodes) == rejections(plain_fit(pod, []), pod, nodes)
    found = plugin.score(pod, nodes).tolist()
    assert found == PlainFitScore(kind, weights, signature).score(pod, nodes).tolist()
