"""The API objects of a world: what plugins and the meter read of them."""

from typing import Any

import pytest

from lowtide.objects.kinds import Namespace
from lowtide.objects.meta import LabelSelector, ObjectMeta, OwnerReference
from lowtide.objects.pod import Pod
from lowtide.objects.requests import pod_requests
from lowtide.objects.workloads import ReplicaSet, ReplicaSetSpec, StatefulSet
from lowtide.readings.demand import Traffic, owner_of, stated_traffic
from lowtide.scenario.simulation import Simulation, simulation_from
from lowtide.simulator.cluster_objects import PodMaker, nodes_of, owner_objects, running
from lowtide.simulator.draw import draw

TEXT = """
nodes:
- {count: 2, links: [10G], labels: {zone: [a, b]}}
- {count: 1, links: [1G], cpu: 4, memory: 8Gi, pods: 20}
owners:
- {count: 1, pods: 2, traffic: {median: 8M, sigma: 0, podSigma: 0}}
- count: 1
  pods: 1
  kind: Job
  requests: {cpu: 1}
  traffic: {median: 8M, sigma: 0, podSigma: 0, transmit: 0.5}
"""


def simulation(knowledge: str = "unknown") -> Simulation:
    return simulation_from(f"{TEXT}\nknowledge: {knowledge}", file="t.yaml")


def pods(knowledge: str = "unknown") -> list[Pod]:
    it = simulation(knowledge)
    drawn = draw(it, 1)
    maker = PodMaker(it, drawn, "mine")
    return [maker.pending(drawn.pods, number, "") for number in range(3)]


def test_nodes_are_as_their_groups_say() -> None:
    nodes = nodes_of(simulation())
    assert [(node.name, node.labels) for node in nodes] == [
        ("node-0001", {"kubernetes.io/hostname": "node-0001", "zone": "a"}),
        ("node-0002", {"kubernetes.io/hostname": "node-0002", "zone": "b"}),
        ("node-0003", {"kubernetes.io/hostname": "node-0003"}),
    ]
    assert [node.status.allocatable for node in nodes] == [
        {"cpu": "32", "memory": "64Gi", "pods": 110},
        {"cpu": "32", "memory": "64Gi", "pods": 110},
        {"cpu": "4", "memory": "8Gi", "pods": 20},
    ]
    assert len({node.status.addresses[0].address for node in nodes}) == 3


@pytest.mark.parametrize(
    ("watched", "names"),
    [
        pytest.param([], [], id="none where nobody watches"),
        pytest.param([Namespace, StatefulSet], [], id="none of kinds that own no pod here"),
        pytest.param([ReplicaSet], ["owner-001"], id="those whose kind is watched"),
    ],
)
def test_owners_are_objects(watched: list[type[Any]], names: list[str]) -> None:
    it = simulation()
    assert list(owner_objects(it, draw(it, 1), watched)) == [
        ReplicaSet(
            metadata=ObjectMeta(name=name, namespace="default", uid=name),
            spec=ReplicaSetSpec(selector=LabelSelector(match_labels={"app": name})),
        )
        for name in names
    ]


def test_pods_belong_to_their_owner() -> None:
    first = next(pod for pod in pods() if pod.labels == {"app": "owner-001"})
    assert first.controller == OwnerReference(
        kind="ReplicaSet",
        name="owner-001",
        uid="owner-001",
        api_version="apps/v1",
        controller=True,
    )
    assert sorted(owner_of(pod) or ("",) for pod in pods()) == [
        ("default", "Job", "owner-002"),
        ("default", "ReplicaSet", "owner-001"),
        ("default", "ReplicaSet", "owner-001"),
    ]
    assert {pod.spec.scheduler_name for pod in pods()} == {"mine"}
    assert len({pod.uid for pod in pods()}) == 3


def test_pods_request_what_the_file_says() -> None:
    assert {pod.labels["app"]: pod_requests(pod) for pod in pods()} == {
        "owner-001": {"cpu": 500, "memory": 512 * 2**20},
        "owner-002": {"cpu": 1000},
    }


@pytest.mark.parametrize(
    ("knowledge", "stated"),
    [
        pytest.param("unknown", {"owner-001": None, "owner-002": None}, id="nothing"),
        pytest.param("seen", {"owner-001": None, "owner-002": None}, id="nothing of their own"),
        pytest.param(
            "annotated",
            {"owner-001": Traffic(1e6, 1e6), "owner-002": Traffic(1e6, 0.5e6)},
            id="what they will carry",
        ),
    ],
)
def test_pods_state(knowledge: str, stated: dict[str, Traffic | None]) -> None:
    found = {pod.labels["app"]: stated_traffic(pod) for pod in pods(knowledge)}
    assert found == stated


def test_a_pod_that_only_receives_says_so() -> None:
    text = TEXT.replace("transmit: 0.5", "transmit: 0") + "\nknowledge: annotated"
    it = simulation_from(text, file="t.yaml")
    drawn = draw(it, 1)
    made = [PodMaker(it, drawn, "mine").pending(drawn.pods, number, "") for number in range(3)]
    assert {stated_traffic(pod) for pod in made} == {Traffic(1e6, 1e6), Traffic(1e6, 0.0)}


def test_a_running_pod_tells_when_it_started() -> None:
    pending = pods()[0]
    it = running(pending, "node-0002", 1_767_225_600.25)
    assert (it.metadata, it.spec.node_name, it.status.phase, it.started_at) == (
        pending.metadata,
        "node-0002",
        "Running",
        1_767_225_600.25,
    )
