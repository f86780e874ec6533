"""`lowtide doctor` against real Prometheus servers, each with a fault planted in it.

The exporters are models of a page; the nodes are those of an embedded API server."""

import asyncio
import datetime
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from aiohttp import web
from click.testing import CliRunner

from lowtide.cli import lowtide
from lowtide.localcluster import LocalCluster, Part
from realparts.certificates import Authority
from realparts.control_plane import ControlPlane
from realparts.parts import obtain
from realparts.process import Process, free_port, wait_until
from realparts.prometheus import Prometheus, Target

pytestmark = pytest.mark.real("prometheus_process")

T = TypeVar("T")
Json = dict[str, Any]

LOWTIDE = Path(sys.executable).parent / "lowtide"
NODES = {"north": "127.0.21.1", "east": "127.0.21.2", "south": "127.0.21.3"}
BUSY_BYTES_PER_SECOND = 2_000_000.0
SPEED_BYTES_PER_SECOND = 1.25e9
USER, PASSWORD = "lowtide", "ebb"
PASSWORD_HASH = "$2b$04$hpYJ/J8cJEmQQqkEVx/f9O9wL6wn0fgH4O8M1tiPrukMP31jrJMXi"
SAMPLES = 4
GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Exporter:
    """What a node_exporter says, as far as anybody here reads it."""

    address: str
    nodename: str
    devices: Sequence[str] = ("lo", "ens5", "veth1a2b")
    bytes_per_second: float = BUSY_BYTES_PER_SECOND
    speed: float = SPEED_BYTES_PER_SECOND
    has_network: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)
    is_up: bool = True

    def page(self, now: float) -> str:
        lines = [f'node_uname_info{{nodename="{self.nodename}"}} 1', "node_exporter_build_info 1"]
        lines.append(f'container_network_receive_bytes_total{{pod="web",namespace="a"}} {now}')
        lines.append(f'container_network_transmit_bytes_total{{pod="web",namespace="a"}} {now}')
        for device in self.devices if self.has_network else ():
            told = f'{{device="{device}"}}'
            carried = int(self.bytes_per_second * (now % 1_000_000))
            lines.append(f"node_network_receive_bytes_total{told} {carried}")
            lines.append(f"node_network_transmit_bytes_total{told} {carried // 2}")
            lines.append(f"node_network_speed_bytes{told} {self.speed}")
        return "\n".join((*lines, ""))


class Background:
    """An event loop on a thread: the exporters and the API servers run there."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "Background":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)


@dataclass
class Scene:
    """What the tests of this file share: started once, never changed."""

    kubeconfig: Path
    twins_kubeconfig: Path
    secured_url: str
    ca_file: Path
    prometheus: dict[str, Prometheus] = field(default_factory=dict)


SCENES: dict[str, list[Exporter]] = {
    "well": [Exporter(address, name) for name, address in NODES.items()],
    "unknown names": [
        Exporter(f"127.0.22.{number}", f"ip-10-0-0-{number}") for number in (1, 2, 3)
    ],
    "other label": [
        Exporter(f"127.0.23.{number}", f"vm-{number}", labels={"machine": f"{name}.sea.example:1"})
        for number, name in enumerate(NODES, start=1)
    ],
    "pods": [
        Exporter(
            f"127.0.24.{number}",
            f"exporter-{number}",
            devices=("lo", "eth0"),
            bytes_per_second=900.0,
            labels={"node": name},
        )
        for number, name in enumerate(NODES, start=1)
    ],
    "no collector": [
        Exporter(f"127.0.25.{number}", name, has_network=False)
        for number, name in enumerate(NODES, start=1)
    ],
    "gaps": [
        Exporter("127.0.21.1", "north"),
        Exporter("127.0.21.2", "east", is_up=False),
    ],
    "virtual": [
        Exporter(f"127.0.26.{number}", name, speed=-125_000.0, bytes_per_second=0.0)
        for number, name in enumerate(NODES, start=1)
    ],
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("doctor")
    with ExitStack() as running:
        background = running.enter_context(Background())

        def start(work: Coroutine[Any, Any, T], end: Callable[[T], Coroutine[Any, Any, Any]]) -> T:
            started = background.run(work)
            running.callback(lambda: background.run(end(started)))
            return started

        cluster = start(started_cluster(NODES), lambda each: each.__aexit__(None, None, None))
        add_exporter_pods(cluster)
        twins = {"twin-a": "127.0.21.1", "twin-b": "127.0.21.1", "south": "127.0.21.3"}
        other = start(started_cluster(twins), lambda each: each.__aexit__(None, None, None))
        servers = {}
        for name, exporters in SCENES.items():
            targets = []
            for exporter in exporters:
                port = free_port()
                targets.append(Target(f"{exporter.address}:{port}", exporter.labels))
                if exporter.is_up:
                    start(serving(exporter, port), lambda runner: runner.cleanup())
            servers[name] = running.enter_context(Prometheus(targets))
        authority = Authority(folder, datetime.datetime.now(datetime.UTC))
        authority.write_own_certificate()
        secured = secured_prometheus(folder, authority)
        running.callback(secured.stop)
        for server in servers.values():
            wait_for_samples(server)
        yield Scene(
            kubeconfig=cluster.kubeconfig(folder / "kubeconfig"),
            twins_kubeconfig=other.kubeconfig(folder / "kubeconfig-twins"),
            secured_url=secured.url,
            ca_file=authority.ca_file,
            prometheus=servers,
        )


async def started_cluster(addresses: Mapping[str, str]) -> LocalCluster:
    cluster = await LocalCluster(clock=time.time, runs_controllers=False).__aenter__()
    for name, address in addresses.items():
        cluster.store.create(
            "nodes",
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "status": {"addresses": [{"type": "InternalIP", "address": address}]},
            },
        )
    return cluster


def add_exporter_pods(cluster: LocalCluster) -> None:
    """What a DaemonSet without hostNetwork leaves: pods with addresses of their own."""
    for exporter in SCENES["pods"]:
        pod = {
            "metadata": {"name": exporter.nodename},
            "spec": {"nodeName": exporter.labels["node"], "containers": [{"name": "exporter"}]},
        }
        created = cluster.store.create("pods", pod, namespace="default")
        status = {"phase": "Running", "podIP": exporter.address}
        cluster.store.update("pods", {**created, "status": status}, part=Part.STATUS)


async def serving(exporter: Exporter, port: int) -> web.AppRunner:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text=exporter.page(time.time()))

    application = web.Application()
    application.router.add_get("/metrics", page)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, exporter.address, port).start()
    return runner


def secured_prometheus(folder: Path, authority: Authority) -> Process:
    """One that wants HTTPS and a password, for 127.0.0.1 only; it scrapes nothing."""
    pair = authority.sign_server("prometheus", [], ["127.0.0.1"])
    web_config = {
        "tls_server_config": {
            "cert_file": str(pair.certificate_file),
            "key_file": str(pair.key_file),
        },
        "basic_auth_users": {USER: PASSWORD_HASH},
    }
    (folder / "web.json").write_text(json.dumps(web_config))
    (folder / "prometheus.json").write_text("{}")
    port = free_port()
    process = Process(
        "prometheus-secured",
        [
            obtain("prometheus")["prometheus"],
            f"--config.file={folder / 'prometheus.json'}",
            f"--storage.tsdb.path={folder / 'secured-data'}",
            f"--web.config.file={folder / 'web.json'}",
            f"--web.listen-address=0.0.0.0:{port}",
        ],
        folder=folder,
        url=f"https://127.0.0.1:{port}",
    )
    process.start()
    process.wait_until_ready(lambda: "Server is ready" in process.log())
    return process


def wait_for_samples(server: Prometheus) -> None:
    wait_until(
        lambda: len(server.query(f"count_over_time(up[1m]) >= {SAMPLES}")) == len(server.targets),
        timeout_seconds=30,
        what=f"{server.url} has scraped each target {SAMPLES} times",
    )


@dataclass(frozen=True)
class Told:
    status: int
    document: Json

    @property
    def findings(self) -> list[tuple[str, str, list[str]]]:
        return [
            (each["severity"], each["code"], each["nodes"]) for each in self.document["findings"]
        ]

    @property
    def fixes(self) -> list[str]:
        return [each["fix"] for each in self.document["findings"]]

    @property
    def verdicts(self) -> dict[str, str]:
        rows = [row for one in self.document["requests"] for row in one["nodes"]]
        return {row["node"]: row["state"] for row in rows}


def doctor(folder: Path, kubeconfig: Path, **args: Any) -> Told:
    """What it says of a profile with these args."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "lowtide",
                "plugins": {"score": {"enabled": [{"name": "NetworkTraffic", "weight": 3}]}},
                "pluginConfig": [{"name": "NetworkTraffic", "args": {"window": "5s", **args}}],
            }
        ],
    }
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    words = ["doctor", f"--config={file}", f"--kubeconfig={kubeconfig}", "--output=json"]
    ended = CliRunner().invoke(lowtide, words, obj={})
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return Told(ended.exit_code, json.loads(ended.stdout))


ALL = sorted(NODES)


def test_all_is_well(scene: Scene, tmp_path: Path) -> None:
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=scene.prometheus["well"].url)
    assert (told.status, told.findings) == (0, [])
    rows = told.document["requests"][0]["nodes"]
    assert [
        (row["node"], row["matchedBy"], row["devices"], row["capacitySource"], row["state"])
        for row in rows
    ] == [
        (name, "nodename (uname), instance (IP:port)", ["ens5"], "link speed", "fresh")
        for name in ALL
    ]
    assert {row["ageSeconds"] < 5 for row in rows} == {True}


def test_without_a_configuration_the_table_is_of_that_prometheus(scene: Scene) -> None:
    url = scene.prometheus["well"].url
    ended = subprocess.run(
        [LOWTIDE, "doctor", f"--kubeconfig={scene.kubeconfig}", f"--prometheus={url}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0
    assert "All is well" in ended.stdout.splitlines()[-1]
    assert f"NetworkTraffic of lowtide, from {url}" in ended.stdout


def test_labels_that_name_no_node(scene: Scene, tmp_path: Path) -> None:
    url = scene.prometheus["unknown names"].url
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=url)
    assert (told.status, told.findings) == (1, [("fault", "label-mismatch", ALL)])
    assert yaml.safe_load(told.fixes[0])["relabel_configs"][0]["target_label"] == "node"
    text = told.document["findings"][0]["text"]
    assert 'nodename="ip-10-0-0-1"' in text
    assert "north (127.0.21.1)" in text


def test_a_label_that_lowtide_does_not_go_by(scene: Scene, tmp_path: Path) -> None:
    url = scene.prometheus["other label"].url
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=url)
    assert (told.status, told.findings) == (1, [("fault", "label-mismatch", ALL)])
    assert yaml.safe_load(told.fixes[0]) == {
        "metric_relabel_configs": [
            {"source_labels": ["machine"], "regex": "([^.:]+).*", "target_label": "node"}
        ]
    }


def test_the_wrong_node_label_in_the_args(scene: Scene, tmp_path: Path) -> None:
    url = scene.prometheus["well"].url
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=url, nodeLabel="kubernetes_node")
    assert (told.status, told.findings) == (1, [("fault", "label-mismatch", ALL)])
    fixed = doctor(
        tmp_path, scene.kubeconfig, prometheusAddress=url, **yaml.safe_load(told.fixes[0])
    )
    assert (fixed.status, fixed.findings) == (0, [])


def test_exporters_in_the_pod_network(scene: Scene, tmp_path: Path) -> None:
    url = scene.prometheus["pods"].url
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=url)
    assert (told.status, told.findings) == (1, [("fault", "pod-network", ALL)])
    assert yaml.safe_load(told.fixes[0])["spec"]["hostNetwork"] is True
    assert "runs in a pod's network" in told.document["findings"][0]["text"]
    assert told.verdicts == dict.fromkeys(ALL, "implausible")


def test_a_collector_that_is_off(scene: Scene, tmp_path: Path) -> None:
    url = scene.prometheus["no collector"].url
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=url)
    assert (told.status, told.findings) == (1, [("fault", "metric-missing", ALL)])
    assert yaml.safe_load(told.fixes[0])["args"][0] == "--collector.netdev"


def test_an_exporter_that_is_down_and_one_that_is_not_there(scene: Scene, tmp_path: Path) -> None:
    url = scene.prometheus["gaps"].url
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=url)
    assert (told.status, told.findings) == (
        1,
        [("fault", "target-down", ["east"]), ("fault", "exporter-missing", ["south"])],
    )
    assert "spec.nodeName=east" in told.fixes[0]
    assert told.verdicts == {"east": "missing", "south": "missing", "north": "fresh"}


def test_a_scrape_interval_longer_than_the_window(scene: Scene, tmp_path: Path) -> None:
    url = scene.prometheus["well"].url
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=url, window="1s")
    assert (told.status, [each[:2] for each in told.findings][:1]) == (
        1,
        [("fault", "scrape-interval")],
    )
    assert yaml.safe_load(told.fixes[0]) == {"window": "4s"}


def test_devices_that_no_node_has(scene: Scene, tmp_path: Path) -> None:
    url = scene.prometheus["well"].url
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=url, devices=["ens192"])
    assert (told.status, told.findings) == (1, [("fault", "device-mismatch", ALL)])
    assert yaml.safe_load(told.fixes[0]) == {"devices": ["ens5"]}


def test_virtual_links_on_an_idle_cluster(scene: Scene, tmp_path: Path) -> None:
    url = scene.prometheus["virtual"].url
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=url)
    assert (told.status, told.findings) == (1, [("fault", "link-capacity", ALL)])
    assert told.fixes == [
        "kubectl annotate node east north south lowtide.dev/link-capacity=10G  # bits per second"
    ]
    assert "-125000" in told.document["findings"][0]["text"]


def test_two_nodes_at_one_address(scene: Scene, tmp_path: Path) -> None:
    url = scene.prometheus["well"].url
    told = doctor(tmp_path, scene.twins_kubeconfig, prometheusAddress=url)
    assert (told.status, told.findings) == (
        1,
        [("fault", "ambiguous-match", ["twin-a", "twin-b"])],
    )
    assert told.verdicts == {"twin-a": "implausible", "twin-b": "implausible", "south": "fresh"}


def test_a_certificate_of_an_unknown_authority(scene: Scene, tmp_path: Path) -> None:
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=scene.secured_url)
    assert (told.status, told.findings) == (1, [("fault", "tls", [])])
    assert list(yaml.safe_load(told.fixes[0])["prometheus"]) == ["caFile"]


def test_a_certificate_for_another_name(scene: Scene, tmp_path: Path) -> None:
    told = doctor(
        tmp_path,
        scene.kubeconfig,
        prometheusAddress=scene.secured_url.replace("127.0.0.1", "127.0.0.2"),
        prometheus={"caFile": str(scene.ca_file)},
    )
    assert (told.status, told.findings) == (1, [("fault", "tls", [])])
    assert "https://NAME:" in told.fixes[0]


def test_plain_http_where_https_is_spoken(scene: Scene, tmp_path: Path) -> None:
    address = scene.secured_url.replace("https", "http")
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=address)
    assert (told.status, told.findings) == (1, [("fault", "tls", [])])
    assert yaml.safe_load(told.fixes[0]) == {"prometheusAddress": scene.secured_url}


def test_https_where_plain_http_is_spoken(scene: Scene, tmp_path: Path) -> None:
    plain = scene.prometheus["well"].url
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=plain.replace("http", "https"))
    assert (told.status, told.findings) == (1, [("fault", "tls", [])])
    assert yaml.safe_load(told.fixes[0]) == {"prometheusAddress": plain}


def test_credentials_that_are_missing(scene: Scene, tmp_path: Path) -> None:
    told = doctor(
        tmp_path,
        scene.kubeconfig,
        prometheusAddress=scene.secured_url,
        prometheus={"caFile": str(scene.ca_file)},
    )
    assert (told.status, told.findings) == (1, [("fault", "auth", [])])
    assert "bearerTokenFile" in yaml.safe_load(told.fixes[0])["prometheus"]


def test_a_prometheus_that_scrapes_nothing(scene: Scene, tmp_path: Path) -> None:
    password_file = tmp_path / "password"
    password_file.write_text(PASSWORD)
    told = doctor(
        tmp_path,
        scene.kubeconfig,
        prometheusAddress=scene.secured_url,
        prometheus={
            "caFile": str(scene.ca_file),
            "basicAuth": {"username": USER, "passwordFile": str(password_file)},
        },
    )
    assert (told.status, told.findings) == (
        1,
        [("fault", "metric-missing", ALL), ("note", "no-pod-traffic", [])],
    )
    assert yaml.safe_load(told.fixes[0])[0]["job_name"] == "node-exporter"


def test_a_prometheus_that_is_not_there(scene: Scene, tmp_path: Path) -> None:
    told = doctor(tmp_path, scene.kubeconfig, prometheusAddress=f"http://127.0.0.1:{free_port()}")
    assert (told.status, told.findings) == (1, [("fault", "unreachable", [])])


@pytest.fixture
def may_list_nodes(control_plane: ControlPlane) -> Iterator[Callable[[], None]]:
    """Lets the user `lowtide` list nodes, and do nothing else."""
    granted: list[str] = []

    def grant() -> None:
        role = {
            "metadata": {"name": "lowtide-doctor"},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}],
        }
        binding = {
            "metadata": {"name": "lowtide-doctor"},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "lowtide-doctor"},
            "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "lowtide"}],
        }
        for plural, manifest in (("clusterroles", role), ("clusterrolebindings", binding)):
            control_plane.request("POST", f"/apis/{GROUP}/v1/{plural}", manifest)
            granted.append(f"/apis/{GROUP}/v1/{plural}/lowtide-doctor")

    yield grant
    for path in granted:
        control_plane.request("DELETE", path)


@pytest.mark.versions
def test_the_right_to_list_nodes_is_enough(
    scene: Scene,
    tmp_path: Path,
    control_plane: ControlPlane,
    may_list_nodes: Callable[[], None],
) -> None:
    kubeconfig, url = control_plane.kubeconfig("lowtide"), scene.prometheus["well"].url
    rejected = doctor(tmp_path, kubeconfig, prometheusAddress=url)
    assert (rejected.status, rejected.findings) == (1, [("fault", "nodes-not-listed", [])])
    assert "kubectl create clusterrole" in rejected.fixes[0]
    may_list_nodes()
    for name in NODES:
        control_plane.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    try:
        wait_until(
            lambda: not doctor(tmp_path, kubeconfig, prometheusAddress=url).findings,
            timeout_seconds=20,
            what="the right has come about and all is well",
        )
    finally:
        for name in NODES:
            control_plane.request("DELETE", f"/api/v1/nodes/{name}")
