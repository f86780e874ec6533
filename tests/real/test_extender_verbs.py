"""What kube-scheduler leaves to an extender beyond filtering and scoring: binding a pod, and a say
in whom to evict."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import yaml
from tests.extender_process import (
    BY_LABEL,
    LABEL,
    Extender,
    Json,
    StartExtender,
    extenders_in,
    that_binds,
)
from tests.integration.conftest import Cluster
from tests.real.extender_rejections import rejections_of

from realparts.control_plane import ControlPlane
from realparts.process import wait_until
from realparts.pytest_plugin import grant_scheduler_rights, missing_parts_skip
from realparts.users import User

pytestmark = [pytest.mark.real("kube_scheduler"), pytest.mark.versions]

PRIORITIES = {"lowest": -20, "low": -10, "high": 1000}
in_both_forms = pytest.mark.parametrize(
    "knows_nodes",
    [
        pytest.param(True, id="nodeCacheCapable true"),
        pytest.param(False, id="nodeCacheCapable false"),
    ],
)


@pytest.fixture(scope="module")
def plane(
    kubernetes: str | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """With an audit log, which tells who bound a pod."""
    audit_log = tmp_path_factory.mktemp("audit") / "audit.log"
    with missing_parts_skip():
        plane = ControlPlane(
            kubernetes=kubernetes,
            has_controllers=False,
            users=[User("lowtide", "lowtide-token")],
            audit_log=audit_log,
        )
        plane.start()
    grant_scheduler_rights(plane)
    for name, value in PRIORITIES.items():
        priority = {"metadata": {"name": name}, "value": value}
        plane.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", priority)
    yield plane
    plane.stop()


@pytest.fixture(scope="module")
def extender(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extender]:
    """One for all tests: each has pods and a kube-scheduler of its own."""
    with extenders_in(tmp_path_factory.mktemp("extender")) as start:
        yield start(that_binds(BY_LABEL), plane.kubeconfig("lowtide"))


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[Cluster]:
    name = f"test-{uuid.uuid4().hex[:8]}"
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def send(method: str, path: str, body: Any) -> Json:
        return plane.request(method, path, body)

    cluster = Cluster(send, plane.kubeconfig("lowtide"), name)
    yield cluster
    plane.empty_namespace(name)
    for node_name in cluster.node_names:
        plane.request("DELETE", f"/api/v1/nodes/{node_name}")


@pytest.fixture
def kube_scheduler_asks(
    plane: ControlPlane, cluster: Cluster, extender: Extender
) -> Iterator[Callable[..., None]]:
    """Starts a kube-scheduler for the pods that name the test's namespace as their scheduler; the
    arguments are fields of its extender."""
    with ExitStack() as running:

        def start(**of_extender: object) -> None:
            config = extender.kube_scheduler_config(
                cluster.namespace, **{"bindVerb": "", **of_extender}
            )
            process = plane.kube_scheduler(yaml.safe_dump(config))
            running.callback(process.stop)

        yield start


@in_both_forms
def test_extender_binds(
    plane: ControlPlane,
    cluster: Cluster,
    extender: Extender,
    kube_scheduler_asks: Callable[..., None],
    knows_nodes: bool,
) -> None:
    cluster.create_node("with-label", labels={LABEL: "true"})
    cluster.create_node("without")
    before = extender.answers("bind")
    kube_scheduler_asks(nodeCacheCapable=knows_nodes, bindVerb="bind")
    cluster.create_pod("web", schedulerName=cluster.namespace)
    assert cluster.wait_for_placement("web") == "with-label"
    event = cluster.wait_for_event("web", "Scheduled")
    assert event["note"] == f"Successfully assigned {cluster.namespace}/web to with-label"
    assert binders(plane, cluster.namespace) == [("web", "lowtide", 201)]
    assert extender.answers("bind") == before + 1


def binders(plane: ControlPlane, namespace: str) -> list[tuple[str, str, int]]:
    """Pod, user and the answer's status for each request to bind; the log is written at once."""
    assert plane.audit_log is not None
    entries = [json.loads(line) for line in plane.audit_log.read_text().splitlines()]
    return [
        (about["name"], entry["user"]["username"], entry["responseStatus"]["code"])
        for entry in entries
        if (about := entry.get("objectRef", {})).get("subresource") == "binding"
        and about["namespace"] == namespace
    ]


@in_both_forms
def test_extender_has_a_say_in_preemption(
    cluster: Cluster,
    extender: Extender,
    kube_scheduler_asks: Callable[..., None],
    knows_nodes: bool,
) -> None:
    """Left alone, kube-scheduler would evict the pod of the lowest priority."""
    cluster.create_node("with-label", cpu="4", labels={LABEL: "true"})
    cluster.create_node("without", cpu="4")
    cluster.create_pod("victim", cpu="3", nodeName="with-label", priorityClassName="low")
    cluster.create_pod("spared", cpu="3", nodeName="without", priorityClassName="lowest")
    before = extender.answers("preempt")
    kube_scheduler_asks(nodeCacheCapable=knows_nodes)
    cluster.create_pod("urgent", cpu="3", schedulerName=cluster.namespace, priorityClassName="high")
    assert cluster.wait_for_placement("urgent") == "with-label"
    assert cluster.placements() == {"urgent": "with-label", "spared": "without"}
    assert extender.answers("preempt") == before + 1


@in_both_forms
def test_extender_rejects_every_victim(
    cluster: Cluster,
    extender: Extender,
    kube_scheduler_asks: Callable[..., None],
    knows_nodes: bool,
) -> None:
    cluster.create_node("without", cpu="4")
    cluster.create_node("with-label", cpu="1", labels={LABEL: "true"})
    cluster.create_pod("spared", cpu="3", nodeName="without", priorityClassName="lowest")
    before = extender.answers("preempt")
    kube_scheduler_asks(nodeCacheCapable=knows_nodes)
    cluster.create_pod("urgent", cpu="3", schedulerName=cluster.namespace, priorityClassName="high")
    wait_until(
        lambda: extender.answers("preempt") > before,
        timeout_seconds=20,
        what="the extender was asked",
    )
    assert rejections_of(cluster, "urgent")
    assert cluster.placements() == {"urgent": None, "spared": "without"}


@in_both_forms
def test_verdicts_of_the_extender_stand_in_the_event(
    cluster: Cluster, kube_scheduler_asks: Callable[..., None], knows_nodes: bool
) -> None:
    cluster.create_node("without")
    cluster.create_node("also-without")
    kube_scheduler_asks(nodeCacheCapable=knows_nodes)
    cluster.create_pod("web", schedulerName=cluster.namespace)
    said = f"0/2 nodes are available: 2 node(s) did not have label {LABEL}."
    # What follows is kube-scheduler's, about preemption.
    assert {note[: len(said)] for note in rejections_of(cluster, "web")} == {said}


@pytest.mark.long
def test_extender_is_asked_about_every_node_of_a_large_cluster(
    new_control_plane: Callable[..., ControlPlane], lowtide_extender: StartExtender
) -> None:
    """As printed; by default kube-scheduler would have shown it fewer than half of them."""
    plane = new_control_plane(
        has_controllers=False, has_kwok=False, users=[User("lowtide", "lowtide-token")]
    )
    grant_scheduler_rights(plane)
    resources = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    status = {"allocatable": resources, "capacity": resources}
    names = [f"node-{number:03}" for number in range(400)]
    plane.create_all(
        "/api/v1/nodes", [{"metadata": {"name": name}, "status": status} for name in names]
    )
    plane.kubectl("label", "node", "node-399", f"{LABEL}=true")
    extender = lowtide_extender(BY_LABEL, plane.kubeconfig("lowtide"))
    plane.kube_scheduler(yaml.safe_dump(extender.kube_scheduler_config("with-extender")))
    cluster = Cluster(plane.request, plane.kubeconfig(), "default")
    for number in range(5):
        cluster.create_pod(f"web-{number}", schedulerName="with-extender")
    placed = [cluster.wait_for_placement(f"web-{number}") for number in range(5)]
    assert placed == ["node-399"] * 5
    assert extender.answers("filter") == 5
