"""NetworkTraffic in the extender: behind a real kube-scheduler, with a real Prometheus, pods go
where the network is quiet, and many at once go to many nodes."""

import datetime
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.extender_process import Extender, Json, StartExtender, Tls
from tests.real.extender_traffic import CAPACITY_BYTES_PER_SECOND, DEVICE, Links

from realparts.certificates import Authority
from realparts.control_plane import ControlPlane
from realparts.process import wait_until
from realparts.prometheus import Prometheus
from realparts.pytest_plugin import missing_parts_skip

pytestmark = pytest.mark.real("kube_scheduler", "prometheus_process")

THREE = ["tide-north", "tide-east", "tide-south"]
HUNDRED = [f"equal-{number:02}" for number in range(100)]
WINDOW_SECONDS = 5
QUIET, BUSY = 0.05 * CAPACITY_BYTES_PER_SECOND, 0.7 * CAPACITY_BYTES_PER_SECOND
RATE = f'rate(node_network_receive_bytes_total{{device="{DEVICE}"}}[{WINDOW_SECONDS}s])'
PODS_OF_A_WAY = 3
PODS_AT_ONCE = 200
FEWEST_NODES_USED = 25


@pytest.fixture(scope="module")
def links() -> Iterator[Links]:
    links = Links({**dict.fromkeys(THREE + HUNDRED, QUIET), "tide-east": BUSY})
    links.start()
    yield links
    links.stop()


@pytest.fixture(scope="module")
def prometheus(links: Links) -> Iterator[Prometheus]:
    with ExitStack() as running:
        with missing_parts_skip():
            prometheus = running.enter_context(Prometheus([links.target]))
        yield prometheus


@pytest.fixture
def nodes(control_plane: ControlPlane) -> Iterator[Callable[[list[str]], None]]:
    """Creates nodes that KWOK keeps ready."""
    created: list[str] = []

    def create(names: list[str]) -> None:
        created.extend(names)
        resources = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        status = {"allocatable": resources, "capacity": resources}
        manifests = [{"metadata": {"name": name}, "status": status} for name in names]
        control_plane.create_all("/api/v1/nodes", manifests)
        wait_until(
            lambda: all(map(is_ready, control_plane.request("GET", "/api/v1/nodes")["items"])),
            timeout_seconds=30,
            what="the nodes are ready",
            every_seconds=0.2,
        )

    yield create
    for name in created:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


def is_ready(node: dict[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


@pytest.fixture
def config(examples: Path, prometheus: Prometheus) -> Json:
    """The example's, with this Prometheus, which scrapes often."""
    file = examples / "06-traffic-extender" / "extender-config.yaml"
    config: Json = yaml.safe_load(file.read_text())
    (traffic,) = [
        each for each in config["profiles"][0]["pluginConfig"] if each["name"] == "NetworkTraffic"
    ]
    traffic["args"] |= {
        "prometheusAddress": prometheus.url,
        "window": f"{WINDOW_SECONDS}s",
        "pollInterval": "1s",
    }
    return config


def wait_for_readings(extender: Extender, count: int) -> None:
    wait_until(
        lambda: extender.count("lowtide_reading_nodes", state="fresh") == count,
        timeout_seconds=30,
        what=f"the extender knows the traffic of {count} nodes",
    )


def wait_until_only_busy(prometheus: Prometheus, extender: Extender, name: str) -> None:
    """Prometheus has it, and the extender read it after that."""

    def is_so() -> bool:
        rates = prometheus.values(RATE, "node")
        busy = {node for node in THREE if rates.get(node, 0) > 2 * QUIET}
        return busy == {name} and rates[name] > 0.9 * BUSY

    wait_until(is_so, timeout_seconds=30, what=f"only {name} is busy")
    polls = extender.count("lowtide_prometheus_polls_total", result="success")
    wait_until(
        lambda: extender.count("lowtide_prometheus_polls_total", result="success") >= polls + 2,
        timeout_seconds=30,
        what="the extender read the traffic again",
    )


@pytest.fixture
def place(control_plane: ControlPlane, namespace: str) -> Callable[..., Counter[str]]:
    """Creates so many pods for that kube-scheduler at once, and tells the nodes they went to."""
    path = f"/api/v1/namespaces/{namespace}/pods"

    def placed(name: str, scheduler_name: str, count: int) -> Counter[str]:
        container = {"name": "main", "image": "example/none"}
        pods = [
            {
                "metadata": {"name": f"{name}-{number}", "labels": {"app": name}},
                "spec": {"schedulerName": scheduler_name, "containers": [container]},
            }
            for number in range(count)
        ]
        control_plane.create_all(path, pods)

        def node_names() -> list[str]:
            pods = control_plane.request("GET", f"{path}?labelSelector=app%3D{name}")["items"]
            return [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]

        wait_until(
            lambda: len(node_names()) == count,
            timeout_seconds=60,
            what=f"{count} pods of {name} are bound",
            every_seconds=0.1,
        )
        return Counter(node_names())

    return placed


def serving_certificate(folder: Path) -> Tls:
    authority = Authority(folder, now=datetime.datetime.now(datetime.UTC))
    authority.write_own_certificate()
    return Tls(authority.ca_file, authority.sign_server("extender", [], ["127.0.0.1"]))


def test_extender_sends_pods_where_the_network_is_quiet(
    control_plane: ControlPlane,
    namespace: str,
    nodes: Callable[[list[str]], None],
    scheduler_rights: None,
    kube_scheduler: Callable[..., object],
    lowtide_extender: StartExtender,
    config: Json,
    links: Links,
    prometheus: Prometheus,
    place: Callable[..., Counter[str]],
    tmp_path: Path,
) -> None:
    nodes(THREE)
    kubeconfig = control_plane.kubeconfig("lowtide")
    extenders = {
        "http": lowtide_extender(config, kubeconfig),
        "https": lowtide_extender(config, kubeconfig, tls=serving_certificate(tmp_path)),
    }
    ways = {
        f"{scheme}-{'names' if knows_nodes else 'nodes'}": (extender, knows_nodes)
        for scheme, extender in extenders.items()
        for knows_nodes in (True, False)
    }
    for way, (extender, knows_nodes) in ways.items():
        said = extender.kube_scheduler_config(way, nodeCacheCapable=knows_nodes)
        kube_scheduler(yaml.safe_dump(said))

    def where_pods_go(busy: str) -> dict[str, Counter[str]]:
        for extender in extenders.values():
            wait_for_readings(extender, len(THREE))
            wait_until_only_busy(prometheus, extender, busy)
        used = {way: place(f"{way}-{busy}", way, PODS_OF_A_WAY) for way in ways}
        control_plane.empty_namespace(namespace)  # or they would count when the traffic moved
        return used

    while_east_is_busy = where_pods_go("tide-east")
    links.carry({"tide-east": QUIET, "tide-south": BUSY})
    while_south_is_busy = where_pods_go("tide-south")
    assert all(used.keys() <= {"tide-north", "tide-south"} for used in while_east_is_busy.values())
    assert all(used.keys() <= {"tide-north", "tide-east"} for used in while_south_is_busy.values())
    for extender in extenders.values():
        assert extender.count("lowtide_extender_neutral_answers_total") == 0


def test_pods_at_once_are_spread_by_the_extender(
    control_plane: ControlPlane,
    namespace: str,
    nodes: Callable[[list[str]], None],
    scheduler_rights: None,
    kube_scheduler: Callable[..., object],
    lowtide_extender: StartExtender,
    config: Json,
    place: Callable[..., Counter[str]],
) -> None:
    """With kube-scheduler's own scores beside the extender's, and with the extender's alone."""
    nodes(HUNDRED)
    extender = lowtide_extender(config, control_plane.kubeconfig("lowtide"))
    for name, plugins in (
        ("both-score", {}),
        ("extender-alone", {"score": {"disabled": [{"name": "*"}]}}),
    ):
        said = extender.kube_scheduler_config(name)
        said["clientConnection"] = {"qps": 1000, "burst": 1000}
        said["profiles"][0]["plugins"] = plugins
        kube_scheduler(yaml.safe_dump(said))
    wait_for_readings(extender, len(HUNDRED))
    used: dict[str, Counter[str]] = {}
    for name in ("both-score", "extender-alone"):
        used[name] = place(name, name, PODS_AT_ONCE)
        control_plane.empty_namespace(namespace)
    assert {name: each.total() for name, each in used.items()} == dict.fromkeys(used, PODS_AT_ONCE)
    assert all(each.keys() <= set(HUNDRED) for each in used.values())
    assert min(len(each) for each in used.values()) >= FEWEST_NODES_USED
    assert extender.answers("prioritize") >= 2 * PODS_AT_ONCE
    assert extender.count("lowtide_extender_neutral_answers_total") == 0
