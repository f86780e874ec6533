"""Usage joined to the plugins: through `decide`'s scenarios, and live on the embedded cluster."""

import json
from typing import Any

import pytest
from tests.app.conftest import NOW, app_on, running, until

from lowtide.app.known_cluster import BelievedCluster
from lowtide.app.offline import Decider
from lowtide.app.registry import make_registry, requests_of
from lowtide.config.load import load_config
from lowtide.localcluster import LocalCluster
from lowtide.plugins.node_usage import NodeUsage, NodeUsageArgs
from lowtide.readings.usage import Allocatable, UsageRequest
from lowtide.scenario.scenario import Scenario, ScenarioError
from lowtide.testing import ManualClock, make_node, make_pod, make_profile, make_state

pytestmark = pytest.mark.timeout(60)
SEED = {"k8s-master": 264, "k8s-node1": 87, "k8s-node2": 67}
IN_VAIN = (
    "no new claims to deallocate, preemption: "
    "0/3 nodes are available: 3 Preemption is not helpful for scheduling."
)


def config(*, label: str | None = None, **usage_args: Any) -> dict[str, Any]:
    """Only NodeUsage scores; NodeLabel filters where a label is given."""
    plugins: dict[str, Any] = {
        "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeUsage"}]}
    }
    plugin_config: list[dict[str, Any]] = [{"name": "NodeUsage", "args": usage_args}]
    if label is not None:
        plugins["multiPoint"] = {"enabled": [{"name": "NodeLabel"}]}
        plugin_config.append({"name": "NodeLabel", "args": {"label": label}})
    profile = {"schedulerName": "lowtide", "plugins": plugins, "pluginConfig": plugin_config}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }


# From a scenario.


def decider(config: dict[str, Any]) -> Decider:
    return Decider(make_registry({}), load_config(json.dumps(config), file="f"))


def scenario(usage: Any, **fields: Any) -> Scenario:
    nodes = tuple(make_node(name, labels={"filter.xy.com": "true"}) for name in SEED)
    given = {"id": "case", "pod": make_pod(), "nodes": nodes, "readings": {"usage": usage}}
    return Scenario(**{**given, **fields})


def test_the_seeds_numbers() -> None:
    answer = decider(config(unit="millicores", label="filter.xy.com")).answer(scenario(SEED))
    assert answer["scores"] == {
        "NodeUsage": {
            "k8s-master": {"raw": -196, "normalized": 0, "weighted": 0},
            "k8s-node1": {"raw": -19, "normalized": 89, "weighted": 89},
            "k8s-node2": {"raw": 1, "normalized": 100, "weighted": 100},
        }
    }
    assert answer["best"] == ["k8s-node2"]


def test_no_node_has_the_label() -> None:
    answer = decider(config(label="cpu")).answer(scenario(SEED))
    assert answer == {
        "id": "case",
        "prefilter": {
            "code": "UnschedulableAndUnresolvable",
            "plugin": "NodeLabel",
            "reasons": ["all node do not have label cpu"],
        },
        "fit_error": "0/3 nodes are available: all node do not have label cpu.",
        "fit_error_final": f"0/3 nodes are available: all node do not have label cpu. {IN_VAIN}",
        "postfilter": {
            "status": "Unschedulable",
            "plugin": "DynamicResources",
            "message": IN_VAIN,
            "nominated_node": "",
            "victims": [],
        },
    }


def test_pods_of_a_scenario_are_measured_already() -> None:
    pods = (make_pod("running", on="k8s-node2", cpu="3"),)
    answer = decider(config(unit="millicores")).answer(scenario(SEED, pods=pods))
    assert answer["scores"]["NodeUsage"]["k8s-node2"]["raw"] == 1


def test_an_old_sample_counts_as_average() -> None:
    usage = {**SEED, "k8s-node2": {"cpu": "67m", "age_seconds": 301}}
    answer = decider(config(unit="millicores")).answer(scenario(usage))
    raw = {name: each["raw"] for name, each in answer["scores"]["NodeUsage"].items()}
    # the average of 264 and 87 is 175.5, which counts as 176
    assert raw == {"k8s-master": -176, "k8s-node1": 1, "k8s-node2": -88}


def test_usage_that_no_plugin_reads_is_told() -> None:
    plain = config()
    plain["profiles"] = [{"schedulerName": "lowtide"}]
    asked = decider(plain)
    asked.answer(scenario(SEED))
    assert asked.warnings == [
        "readings.usage is given, and no plugin of the profile lowtide reads it; "
        "enable NodeUsage in a configuration"
    ]


def test_usage_that_a_plugin_reads_and_that_is_not_given_is_told_once() -> None:
    asked = decider(config())
    for number in range(2):
        asked.answer(scenario(SEED, id=f"case-{number}", readings={}))
    assert asked.warnings == [
        "readings.usage is not given, and a plugin of the profile lowtide reads it: "
        "all nodes are equal to NodeUsage"
    ]


def test_usage_that_cannot_be_read_is_told() -> None:
    with pytest.raises(ScenarioError) as rejected:
        decider(config()).answer(scenario({"k8s-node1": -5}))
    assert str(rejected.value) == (
        "case: readings.usage.k8s-node1 is -5; it must be a number, 0 or more"
    )


# Live.


def test_equal_requests_are_polled_once() -> None:
    profiles = [
        make_profile([NodeUsage(NodeUsageArgs())]),
        make_profile([NodeUsage(NodeUsageArgs(unit="millicores"))]),
        make_profile([NodeUsage(NodeUsageArgs(poll_interval_seconds=30.0))]),
        make_profile([]),
    ]
    assert requests_of(profiles, UsageRequest) == [UsageRequest(), UsageRequest(every_seconds=30.0)]


def test_what_is_allocatable() -> None:
    state = make_state([make_node("a", cpu="2", memory="1Gi"), make_node("b", cpu="500m")])
    assert BelievedCluster(state).allocatable() == {
        "a": Allocatable(2000, 2**30),
        "b": Allocatable(500, 8 * 2**30),
    }


def create(cluster: LocalCluster, *names: str) -> None:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1m"}}}
    spec = {"schedulerName": "lowtide", "containers": [container]}
    for name in names:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        cluster.store.create("pods", pod, namespace="default")


def placements(cluster: LocalCluster, *names: str) -> list[str | None]:
    pods = [cluster.store.get("pods", "default", name) for name in names]
    return [pod["spec"].get("nodeName") for pod in pods]


@pytest.mark.parametrize("unit", ["share", "millicores"])
async def test_the_node_with_the_lowest_usage_is_chosen(unit: str) -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        for name, cpu_milli in SEED.items():
            cluster.add_node(name, cpu="4")
            cluster.usage.set(name, cpu=f"{cpu_milli}m")
        names = [f"pod-{number}" for number in range(4)]
        create(cluster, *names)
        async with running(app_on(cluster, config(unit=unit))):
            await until(cluster, lambda: None not in placements(cluster, *names))
        assert placements(cluster, *names) == ["k8s-node2"] * 4


async def test_without_metrics_server_pods_are_placed_all_the_same() -> None:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        cluster.faults.answer("GET", "/apis/metrics.k8s.io/v1beta1/nodes", status=404, times=99)
        for name in SEED:
            cluster.add_node(name, cpu="4")
        names = [f"pod-{number}" for number in range(6)]
        create(cluster, *names)
        async with running(app_on(cluster, config())):
            await until(cluster, lambda: None not in placements(cluster, *names))
        # Nothing is known: the nodes are equal and take turns.
        assert sorted(set(placements(cluster, *names)), key=str) == sorted(SEED)
