"""What drains are made of: the API server takes every object, and Lowtide places every pod."""

from collections import Counter
from collections.abc import Iterator

import pytest

from drain import LOWTIDE, Drain
from workloads import DRAINED, KINDS, MEASURED, ZONE, Workload, make_zoned_node

NODES = 20
MOST_PODS = 20


def test_the_drained_are_those_of_the_issue() -> None:
    assert DRAINED == (
        "basic",
        "mixed-sizes",
        "node-affinity",
        "spread-preferred",
        "spread-required",
        "anti-affinity",
        "affinity",
        "preemption",
        "churn",
        "backlog",
        "gated",
    )


@pytest.mark.parametrize(
    ("name", "nodes", "want"),
    [
        pytest.param("basic", 5000, 3000, id="is 3000 pods where they fit"),
        pytest.param("basic", 20, 600, id="is thirty pods for each of a few nodes"),
        pytest.param("anti-affinity", 5000, 3000, id="keeps apart 3000 pods on 5000 nodes"),
        # 20 of the 100 are taken by pods that are there before
        pytest.param("anti-affinity", 100, 60, id="keeps apart what there are hosts for"),
        pytest.param("preemption", 100, 50, id="evicts on half of the nodes"),
    ],
)
def test_pods_of_a_workload(name: str, nodes: int, want: int) -> None:
    assert Workload.named(name, nodes).pods == want


@pytest.mark.parametrize("name", ["spread-preferred", "anti-affinity", "affinity"])
def test_pods_before_are_on_nodes_of_their_own_in_every_zone(name: str) -> None:
    zones = {
        node["metadata"]["name"]: node["metadata"]["labels"][ZONE]
        for node in map(make_zoned_node, range(100))
    }
    taken = [pod["spec"]["nodeName"] for pod in Workload.named(name, 100).make_pods_before()]
    assert len(set(taken)) == len(taken) == 20
    assert Counter(zones[node] for node in taken) == dict.fromkeys(zones.values(), 2)


@pytest.mark.parametrize("name", KINDS)
def test_measured_pods_are_in_one_namespace_and_have_names_of_their_own(name: str) -> None:
    workload = Workload.named(name, NODES)
    pods = [pod["metadata"] for pod in workload.make_pods()]
    assert {pod["namespace"] for pod in pods} == {MEASURED}
    assert len({pod["name"] for pod in pods}) == workload.pods


@pytest.fixture(scope="module")
def drain() -> Iterator[Drain]:
    with Drain(Workload("basic", NODES, MOST_PODS)) as drain:
        yield drain


@pytest.mark.long
@pytest.mark.real("etcd", "kube-apiserver")
@pytest.mark.parametrize("name", DRAINED)
def test_lowtide_drains_it_on_the_real_api_server(drain: Drain, name: str) -> None:
    pods = min(MOST_PODS, Workload.named(name, NODES).pods)
    drain.change_to(Workload(name, NODES, pods))
    result = drain.run(LOWTIDE, number=1)
    assert (result.pods, result.events, result.unbound) == (pods, pods, 0)
