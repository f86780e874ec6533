"""An extender that dies while kube-scheduler needs it: what becomes of the pods, and of its own."""

import re
import ssl
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from tests.extender_process import BY_LABEL, LABEL, Extender, Json, StartExtender
from tests.integration.conftest import Cluster
from tests.real.extender_rejections import rejections_of
from tests.real.extender_service import Kubelet, Service

from realparts.control_plane import ControlPlane
from realparts.process import Process, wait_until
from realparts.pytest_plugin import grant_scheduler_rights
from realparts.users import User

pytestmark = [pytest.mark.long, pytest.mark.real("kube_scheduler")]

NODE_COUNT = 100  # every second has the label
POD_COUNT = 1000
KILLED_AFTER = 200
LATE_COUNT = 50
PODS = "/api/v1/namespaces/default/pods"
PATIENCE_SECONDS = 90.0


class Asking:
    """A kube-scheduler that asks an extender, and what it says of itself."""

    def __init__(self, plane: ControlPlane, process: Process) -> None:
        self._plane = plane
        self._process = process

    def attempts(self, result: str) -> float:
        return self._metric("scheduler_schedule_attempts_total", result)

    def bindings_under_way(self) -> float:
        return self._metric("scheduler_goroutines", "binding")

    def _metric(self, name: str, label: str) -> float:
        context = ssl.create_default_context(cafile=str(self._plane.ca_file))
        url = f"{self._process.url}/metrics"
        with urllib.request.urlopen(url, timeout=5, context=context) as response:
            text = response.read().decode()
        found = re.findall(rf'^{name}\{{.*"{label}".*\}} (\S+)', text, re.MULTILINE)
        return sum(float(value) for value in found)


@pytest.fixture
def plane(new_control_plane: Callable[..., ControlPlane]) -> ControlPlane:
    lowtide = User("lowtide", "lowtide-token")
    plane = new_control_plane(has_controllers=False, has_kwok=False, users=[lowtide])
    grant_scheduler_rights(plane)
    plane.create_all("/api/v1/nodes", [node(number) for number in range(NODE_COUNT)])
    plane.create_all(PODS, [pod(f"pod-{number}") for number in range(POD_COUNT)])
    return plane


@pytest.fixture
def extender(plane: ControlPlane, lowtide_extender: StartExtender) -> Extender:
    return lowtide_extender(BY_LABEL, plane.kubeconfig("lowtide"))


def node(number: int) -> Json:
    resources = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{number}", "labels": {} if number % 2 else {LABEL: "true"}},
        "status": {"allocatable": resources, "capacity": resources},
    }


def pod(name: str) -> Json:
    container = {"name": "main", "image": "example/none"}
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": "with-extender", "containers": [container]},
    }


def started(plane: ControlPlane, extender: Extender, *, is_ignorable: bool) -> Asking:
    config = extender.kube_scheduler_config("with-extender", ignorable=is_ignorable)
    config["clientConnection"] = {"qps": 1000, "burst": 1000}
    return Asking(plane, plane.kube_scheduler(yaml.safe_dump(config)))


def node_of_pod(plane: ControlPlane) -> dict[str, str]:
    """Of those that have one."""
    pods = plane.request("GET", PODS)["items"]
    return {
        each["metadata"]["name"]: each["spec"]["nodeName"]
        for each in pods
        if each["spec"].get("nodeName")
    }


def has_label(node_name: str) -> bool:
    return int(node_name.removeprefix("node-")) % 2 == 0


def is_so(check: Callable[[], bool], what: str) -> None:
    wait_until(check, timeout_seconds=PATIENCE_SECONDS, what=what, every_seconds=0.05)


def wait_until_placed(plane: ControlPlane, count: int) -> None:
    wait_until(
        lambda: len(node_of_pod(plane)) == count,
        timeout_seconds=PATIENCE_SECONDS,
        what=f"{count} pods are placed",
        every_seconds=0.5,
    )


def test_all_pods_are_placed_while_an_ignorable_extender_is_down(
    plane: ControlPlane, extender: Extender
) -> None:
    asking = started(plane, extender, is_ignorable=True)
    is_so(lambda: asking.attempts("scheduled") >= KILLED_AFTER, "the drain is under way")
    extender.process.kill()
    at_the_kill = node_of_pod(plane)
    assert KILLED_AFTER <= len(at_the_kill) < POD_COUNT
    is_so(
        lambda: asking.attempts("scheduled") >= len(at_the_kill) + KILLED_AFTER,
        "pods are placed without the extender",
    )
    extender.start()
    wait_until_placed(plane, POD_COUNT)
    plane.create_all(PODS, [pod(f"late-{number}") for number in range(LATE_COUNT)])
    wait_until_placed(plane, POD_COUNT + LATE_COUNT)
    late = {
        name: node_name
        for name, node_name in node_of_pod(plane).items()
        if name.startswith("late-")
    }
    assert len(late) == LATE_COUNT
    assert [name for name, node_name in late.items() if not has_label(node_name)] == []
    assert extender.answers("filter") >= LATE_COUNT


def test_pods_wait_for_an_extender_that_must_not_be_ignored(
    plane: ControlPlane, extender: Extender
) -> None:
    asking = started(plane, extender, is_ignorable=False)
    is_so(lambda: asking.attempts("scheduled") >= KILLED_AFTER, "the drain is under way")
    extender.process.kill()
    failed = asking.attempts("error")
    is_so(
        lambda: asking.attempts("error") >= failed + 10 and not asking.bindings_under_way(),
        "what was decided before is bound",
    )
    placed = node_of_pod(plane)
    assert KILLED_AFTER <= len(placed) < POD_COUNT
    failed = asking.attempts("error")
    is_so(lambda: asking.attempts("error") >= failed + POD_COUNT, "the others are tried in vain")
    assert node_of_pod(plane) == placed
    extender.start()
    wait_until_placed(plane, POD_COUNT)
    rejected = [name for name, node_name in node_of_pod(plane).items() if not has_label(node_name)]
    assert rejected == []
    assert extender.answers("filter") >= POD_COUNT - len(placed)


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    service.start()
    yield service
    service.stop()


def test_killed_replicas_come_back_though_pods_wait_for_them(
    new_control_plane: Callable[..., ControlPlane],
    lowtide_extender: StartExtender,
    service: Service,
    examples: Path,
) -> None:
    """The pods of the example's extender belong to the default scheduler, which does not ask it."""
    plane = new_control_plane()
    cluster = Cluster(plane.request, plane.kubeconfig(), "default")
    cluster.create_node("one", labels={LABEL: "true"})
    cluster.create_node("two", labels={LABEL: "true"})
    example = examples / "06-traffic-extender"
    files = (f"-f={example / name}" for name in ("rbac.yaml", "manifest.yaml"))
    plane.kubectl("apply", *files)
    deployment = of_manifest(example, "Deployment", "lowtide-extender")
    replicas = deployment["spec"]["replicas"]
    assert replicas == 2
    permissions = plane.service_account_kubeconfig("kube-system", "lowtide-extender")
    kubelet = Kubelet(
        plane, path_of_pods(deployment), lambda: lowtide_extender(BY_LABEL, permissions), service
    )
    plane.kube_scheduler(yaml.safe_dump(DEFAULT_SCHEDULER))
    is_so(lambda: len(kubelet.sync()) == replicas, "the extender runs")
    config_map = of_manifest(example, "ConfigMap", "traffic-scheduler")
    config = yaml.safe_load(config_map["data"]["kube-scheduler-config.yaml"])
    config["extenders"][0] |= {"urlPrefix": f"{service.url}/scheduler", "ignorable": False}
    asking_rights = plane.service_account_kubeconfig("kube-system", "traffic-scheduler")
    plane.kube_scheduler(yaml.safe_dump(config), asking_rights)
    cluster.create_pod("before", schedulerName="traffic-scheduler")
    cluster.wait_for_placement("before")

    killed = set(kubelet.running_pods())
    kubelet.kill_all()
    cluster.create_pod("waits", schedulerName="traffic-scheduler")
    asked = f'Post "{service.url}/scheduler/filter": '
    assert {note[: len(asked)] for note in rejections_of(cluster, "waits")} == {asked}
    is_so(
        lambda: len(kubelet.running_pods().keys() - killed) == replicas,
        "the default scheduler placed new pods of the extender",
    )
    assert cluster.node_of("waits") is None
    kubelet.sync()
    assert cluster.wait_for_placement("waits", PATIENCE_SECONDS) in {"one", "two"}


DEFAULT_SCHEDULER: Json = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
}


def of_manifest(example: Path, kind: str, name: str) -> Json:
    documents = yaml.safe_load_all((example / "manifest.yaml").read_text())
    found = {(each["kind"], each["metadata"]["name"]): each for each in documents}
    document: Json = found[kind, name]
    return document


def path_of_pods(deployment: Json) -> str:
    labels = deployment["spec"]["selector"]["matchLabels"]
    selector = "%2C".join(f"{name}%3D{value}" for name, value in labels.items())
    namespace = deployment["metadata"]["namespace"]
    return f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}"
