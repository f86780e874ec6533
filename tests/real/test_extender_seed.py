"""The story of the article that examples/05-metrics-extender is made after, line by line: a real
kube-scheduler as second scheduler asks the extender in every way it can be set up to."""

import copy
import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.extender_process import LABEL, Extender, Tls, extenders_in

from realparts.certificates import Authority
from realparts.control_plane import ControlPlane
from realparts.metrics_server import (
    CPU_ANNOTATION,
    MetricsServer,
    aggregation_flags,
    node_annotations,
)
from realparts.process import wait_until
from realparts.pytest_plugin import missing_parts_skip

pytestmark = [pytest.mark.real("metrics_server", "kube_scheduler"), pytest.mark.versions]

USES = {"k8s-master": "264m", "k8s-node1": "87m", "k8s-node2": "67m"}
HEAD = r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \S+\.py:\d+\] "
PATIENCE_SECONDS = 40.0
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@dataclass(frozen=True, slots=True)
class Way:
    """How a kube-scheduler asks: what it sends of nodes, and over which kind of connection."""

    name: str
    knows_nodes: bool  # nodeCacheCapable
    serving: str


WAYS = (
    Way("http-names", True, "http"),
    Way("http-nodes", False, "http"),
    Way("https-names", True, "https"),
    Way("https-nodes", False, "https"),
    Way("mutual-names", True, "https and client certificates"),
)
in_every_way = pytest.mark.parametrize(
    "way",
    [
        pytest.param(
            way, id=f"{way.serving}, nodeCacheCapable {'true' if way.knows_nodes else 'false'}"
        )
        for way in WAYS
    ],
)


@dataclass(frozen=True, slots=True)
class Told:
    """What became of the pods of one way, step by step; "" where none was placed in time."""

    rejection: str
    with_one_label: str
    with_two_labels: str
    with_usage: str
    with_three_labels: str


@dataclass(frozen=True, slots=True)
class Story:
    told: Mapping[str, Told]
    logs: Mapping[str, str]  # by how they serve
    neutral_answers: float


class Teller:
    """Goes through the story with all ways side by side."""

    def __init__(self, plane: ControlPlane, deployment: Mapping[str, Any]) -> None:
        self._plane = plane
        self._deployment = deployment

    def create_nodes(self) -> None:
        for name, cpu in USES.items():
            resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
            node = {
                "metadata": {"name": name, "annotations": node_annotations(name)},
                "status": {"allocatable": resources, "capacity": resources},
            }
            self._plane.request("POST", "/api/v1/nodes", node)
            pod = {
                "metadata": {"name": f"uses-{name}", "annotations": {CPU_ANNOTATION: cpu}},
                "spec": {
                    "nodeName": name,
                    "containers": [{"name": "main", "image": "example/none"}],
                },
            }
            self._plane.request("POST", PODS, pod)
        self._is_so(lambda: not any(self._taints()), "the nodes are ready")

    def label(self, node_name: str) -> None:
        self._plane.kubectl("label", "node", node_name, f"{LABEL}=true")

    def deploy(self, way: Way) -> None:
        """The example's Deployment, for the kube-scheduler of that way."""
        labels = {"app": way.name}
        deployment: dict[str, Any] = copy.deepcopy(dict(self._deployment))
        deployment["metadata"]["name"] = way.name
        deployment["spec"]["selector"]["matchLabels"] = labels
        template = deployment["spec"]["template"]
        template["metadata"]["labels"] = labels
        template["spec"]["schedulerName"] = way.name
        self._plane.request("POST", DEPLOYMENTS, deployment)

    def delete_pods(self, way: Way) -> set[str]:
        """The Deployment makes new ones; the names of the old are told."""
        names = {pod["metadata"]["name"] for pod in self._pods(way)}
        for name in names:
            self._plane.request("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        return names

    def delete_deployment(self, way: Way) -> None:
        self._plane.request("DELETE", f"{DEPLOYMENTS}/{way.name}?propagationPolicy=Background")
        self._is_so(lambda: not self._pods(way), f"the pods of {way.name} are gone")

    def placement(self, way: Way, *, other_than: set[str]) -> str:
        def placed() -> list[str]:
            return [
                pod["spec"]["nodeName"]
                for pod in self._pods(way)
                if pod["metadata"]["name"] not in other_than and pod["spec"].get("nodeName")
            ]

        try:
            self._is_so(lambda: bool(placed()), f"a pod of {way.name} is placed")
        except TimeoutError:
            return ""
        return placed()[0]

    def rejection(self, way: Way) -> str:
        """What the Event says of the pod that waits."""

        def said() -> list[str]:
            return [
                event["note"]
                for event in self._plane.request("GET", EVENTS)["items"]
                if event["reason"] == "FailedScheduling"
                and event["regarding"]["name"].startswith(way.name)
            ]

        try:
            self._is_so(lambda: bool(said()), f"a pod of {way.name} is rejected")
        except TimeoutError:
            return ""
        return said()[0]

    def is_pending(self, way: Way) -> bool:
        return [pod["status"]["phase"] for pod in self._pods(way)] == ["Pending"]

    def _pods(self, way: Way) -> list[dict[str, Any]]:
        path = f"{PODS}?labelSelector=app%3D{way.name}"
        pods: list[dict[str, Any]] = self._plane.request("GET", path)["items"]
        return pods

    def _taints(self) -> Iterator[Any]:
        for node in self._plane.request("GET", "/api/v1/nodes")["items"]:
            yield from node["spec"].get("taints") or ()

    def _is_so(self, check: Callable[[], bool], what: str) -> None:
        wait_until(check, timeout_seconds=PATIENCE_SECONDS, what=what)


@pytest.fixture(scope="module")
def story(
    kubernetes: str | None, tmp_path_factory: pytest.TempPathFactory, examples: Path
) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("seed")
    example = examples / "05-metrics-extender"
    config = yaml.safe_load((example / "extender-config.yaml").read_text())
    deployment = yaml.safe_load((example / "test-deployment.yaml").read_text())
    with ExitStack() as running:
        with missing_parts_skip():
            flags = aggregation_flags(tmp_path_factory.mktemp("aggregation"))
            plane = ControlPlane(kubernetes=kubernetes, api_server_flags=flags)
            running.enter_context(plane)
        teller = Teller(plane, deployment)
        teller.create_nodes()
        metrics_server = MetricsServer(plane)
        running.callback(metrics_server.stop)
        metrics_server.run_unknown()
        account = account_of_the_manifest(plane, example)
        start = running.enter_context(extenders_in(folder))
        extenders = {
            serving: start(config, account, tls=tls)
            for serving, tls in ways_to_serve(folder).items()
        }
        for way in WAYS:
            said = extenders[way.serving].kube_scheduler_config(
                way.name, nodeCacheCapable=way.knows_nodes
            )
            plane.kube_scheduler(yaml.safe_dump(said), account)
        yield told_by(teller, metrics_server, extenders)


def told_by(
    teller: Teller, metrics_server: MetricsServer, extenders: Mapping[str, Extender]
) -> Story:
    told: dict[str, dict[str, str]] = {way.name: {} for way in WAYS}
    for way in WAYS:
        teller.deploy(way)
    for way in WAYS:
        told[way.name]["rejection"] = teller.rejection(way)
        assert teller.is_pending(way)
    teller.label("k8s-node1")
    for way in WAYS:
        told[way.name]["with_one_label"] = teller.placement(way, other_than=set())
    teller.label("k8s-node2")
    for way in WAYS:
        before = teller.delete_pods(way)
        told[way.name]["with_two_labels"] = teller.placement(way, other_than=before)
    for way in WAYS:
        teller.delete_deployment(way)
    metrics_server.install()
    metrics_server.wait_for_usage(len(USES))
    for extender in extenders.values():
        wait_until_usage_is_read(extender)
    tell_one_after_the_other(teller, told, "with_usage")
    teller.label("k8s-master")
    tell_one_after_the_other(teller, told, "with_three_labels")
    logs = {serving: extender.process.log() for serving, extender in extenders.items()}
    neutral = sum(
        each.count("lowtide_extender_neutral_answers_total") for each in extenders.values()
    )
    return Story({name: Told(**each) for name, each in told.items()}, logs, neutral)


def tell_one_after_the_other(teller: Teller, told: Mapping[str, dict[str, str]], step: str) -> None:
    """What was just placed counts, so each way finds the nodes as the first one did."""
    for way in WAYS:
        teller.deploy(way)
        told[way.name][step] = teller.placement(way, other_than=set())
        teller.delete_deployment(way)


def wait_until_usage_is_read(extender: Extender) -> None:
    wait_until(
        lambda: extender.count("lowtide_usage_nodes", state="known") == len(USES),
        timeout_seconds=PATIENCE_SECONDS,
        what="the extender read the usage",
    )


def account_of_the_manifest(plane: ControlPlane, example: Path) -> Path:
    """A kubeconfig with the permissions that the example's manifest gives to its pods, no
    others."""
    plane.kubectl("apply", f"-f={example / 'manifest.yaml'}")
    documents = yaml.safe_load_all((example / "manifest.yaml").read_text())
    (account,) = [each["metadata"] for each in documents if each["kind"] == "ServiceAccount"]
    return plane.service_account_kubeconfig(account["namespace"], account["name"])


def ways_to_serve(folder: Path) -> dict[str, Tls | None]:
    authority = Authority(folder, now=datetime.datetime.now(datetime.UTC))
    authority.write_own_certificate()
    serving = authority.sign_server("extender", ["localhost"], ["127.0.0.1"])
    client = authority.sign_client("kube-scheduler", [])
    return {
        "http": None,
        "https": Tls(authority.ca_file, serving),
        "https and client certificates": Tls(authority.ca_file, serving, client),
    }


@in_every_way
def test_pods_are_placed_as_the_article_tells(story: Story, way: Way) -> None:
    told = story.told[way.name]
    assert told.with_two_labels in {"k8s-node1", "k8s-node2"}  # nothing is measured yet
    assert told == Told(
        rejection=f"all node do not have label {LABEL}",
        with_one_label="k8s-node1",
        with_two_labels=told.with_two_labels,
        with_usage="k8s-node2",
        with_three_labels="k8s-node2",
    )


def test_no_answer_of_the_extenders_was_neutral(story: Story) -> None:
    assert story.neutral_answers == 0


serving_in_every_way = pytest.mark.parametrize(
    "serving", ["http", "https", "https and client certificates"]
)


@serving_in_every_way
def test_one_line_tells_that_metrics_server_is_missing(story: Story, serving: str) -> None:
    lines = [line for line in story.logs[serving].splitlines() if "nodes.metrics.k8s.io" in line]
    assert len(lines) == 1
    assert lines[0].startswith("W")


@serving_in_every_way
@pytest.mark.parametrize(
    "line",
    [
        pytest.param("Node[ k8s-master ] Special Label Value: false", id="a node without label"),
        pytest.param("Node[ k8s-node1 ] Special Label Value: true", id="a node with the label"),
    ],
)
def test_the_log_tells_of_labels_as_the_article_does(story: Story, serving: str, line: str) -> None:
    assert re.search(f"^{HEAD}{re.escape(line)}$", story.logs[serving], re.MULTILINE)


@serving_in_every_way
def test_the_log_tells_of_usage_as_the_article_does(story: Story, serving: str) -> None:
    """`Node [ k8s-node2 ] Cpu Usage Value: 67, Score: 1`, give or take what measuring makes of it:
    the scrapes are not exactly ten seconds apart."""
    lines = re.findall(
        rf"^{HEAD}Node \[ (\S+) \] Cpu Usage Value: (\d+), Score: (-?\d+)$",
        story.logs[serving],
        re.MULTILINE,
    )
    last = {name: (int(millicores), int(score)) for name, millicores, score in lines}
    used = {name: millicores for name, (millicores, _) in last.items()}
    stated = {name: int(cpu.removesuffix("m")) for name, cpu in USES.items()}
    assert used == {name: pytest.approx(cpu, rel=0.1) for name, cpu in stated.items()}
    scores = {name: score for name, (_, score) in last.items()}
    assert scores == {name: used["k8s-node2"] - cpu + 1 for name, cpu in used.items()}
