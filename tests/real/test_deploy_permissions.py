"""Each mode on the real API server with the permissions that `lowtide rbac` prints for it, by the
audit log: nothing is forbidden that it asks for, and nothing granted that it does not use."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.real.deployed import Json, trusting

from realparts.api_client import ApiError
from realparts.control_plane import ControlPlane
from realparts.process import Process, free_port, wait_until
from realparts.pytest_plugin import missing_parts_skip
from realparts.users import User

pytestmark = pytest.mark.real("control_plane")

LOWTIDE = str(Path(sys.executable).parent / "lowtide")
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
PATIENCE_SECONDS = 40.0
STRANGER = User("stranger", "stranger-token")
# What these runs have no occasion for.
NOT_TRIED = {"doctor": {("list", "", "pods")}}  # only where exporters may run in pods' networks

# Everything that makes a permission necessary.
CONFIG: Json = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "lowtide",
            "plugins": {"score": {"enabled": [{"name": "NetworkTraffic"}, {"name": "NodeUsage"}]}},
            "pluginConfig": [
                {
                    "name": "NetworkTraffic",
                    "args": {"prometheusAddress": "kube-service://monitoring/prometheus:9090"},
                },
                {"name": "Extender", "args": {"bind": True}},
            ],
        }
    ],
}

Used = tuple[str, str, str]  # verb, group, resource with its subresource


class Audited:
    """A control plane that writes down who asked for what."""

    def __init__(self, plane: ControlPlane, log: Path, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self._log = log

    def granted(self, mode: str, *flags: str, user: str = "") -> tuple[Path, set[Used]]:
        """A kubeconfig with the permissions that are printed for the mode, and these permissions.
        They are the user's, who is called as the mode where nothing is said."""
        name = f"lowtide-{user or mode}"
        account = {"metadata": {"name": name}}
        self.plane.request("POST", "/api/v1/namespaces/kube-system/serviceaccounts", account)
        command = [LOWTIDE, "rbac", f"--mode={mode}", f"--config={self.config_file}", *flags]
        command += [f"--account=kube-system/{name}"] if user else []
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.plane.kubectl("apply", "--filename=-", input=printed)
        rules = [
            rule
            for each in yaml.safe_load_all(printed)
            if "rules" in each
            for rule in each["rules"]
        ]
        given = {
            (verb, group, resource)
            for rule in rules
            for verb in rule["verbs"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
        return self.plane.service_account_kubeconfig("kube-system", name), given

    @property
    def config_file(self) -> Path:
        file = self.folder / "config.yaml"
        file.write_text(yaml.safe_dump(CONFIG))
        return file

    def asked(self, user: str, *, is_forbidden: bool = False) -> set[Used]:
        """What was asked for in that name."""
        found = set()
        for entry in self._entries(user):
            was_forbidden = entry["annotations"]["authorization.k8s.io/decision"] == "forbid"
            if was_forbidden is is_forbidden:
                thing = entry["objectRef"]
                parts = (thing["resource"], thing.get("subresource"))
                resource = "/".join(part for part in parts if part)
                found.add((entry["verb"], thing.get("apiGroup", ""), resource))
        return found

    def _entries(self, user: str) -> Iterator[Json]:
        name = f"system:serviceaccount:kube-system:lowtide-{user}"
        for line in self._log.read_text().splitlines():
            with suppress(json.JSONDecodeError):  # the last line may be half written
                entry = json.loads(line)
                if entry["user"]["username"] == name:
                    yield entry


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    folder = tmp_path_factory.mktemp("audit")
    with ExitStack() as running:
        with missing_parts_skip():
            plane = running.enter_context(
                ControlPlane(audit_log=folder / "audit.log", users=[STRANGER])
            )
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": "monitoring"}})
        for name in ("left", "right"):
            resources = {"cpu": "2", "memory": "8Gi", "pods": "110"}
            status = {"allocatable": resources, "capacity": resources}
            metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
            plane.request("POST", "/api/v1/nodes", {"metadata": metadata, "status": status})
        wait_until(lambda: not any(taints_of(plane)), timeout_seconds=30, what="nodes are ready")
        yield Audited(plane, folder / "audit.log", folder)


def taints_of(plane: ControlPlane) -> Iterator[Json]:
    for node in plane.request("GET", "/api/v1/nodes")["items"]:
        yield from node["spec"].get("taints") or ()


def running_process(
    audited: Audited, mode: str, kubeconfig: Path, *flags: str
) -> tuple[Process, str]:
    """Served beyond loopback, so that it asks who may see its metrics; ready."""
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    words = [mode, f"--config={audited.config_file}", f"--kubeconfig={kubeconfig}", *flags]
    process = Process(
        f"lowtide-{mode}", [LOWTIDE, *words, "--bind-address=0.0.0.0"], folder=audited.folder
    )
    process.command.append(f"--{'secure-' if mode == 'scheduler' else ''}port={port}")
    process.start()
    process.wait_until_ready(lambda: ask(url, "/readyz") == 200)
    return process, url


def ask(url: str, path: str, token: str = "", body: Json | None = None) -> int:
    """The status of the answer."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url + path, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=5, context=trusting()) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def pod(name: str, cpu: str = "10m", **spec: Any) -> Json:
    container = {"name": "main", "image": "example/none", "resources": {"requests": {"cpu": cpu}}}
    whole = {"schedulerName": "lowtide", "containers": [container], **spec}
    return {"metadata": {"name": name}, "spec": whole}


def claim(name: str) -> Json:
    """Of the class of its name."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": name,
    }
    return {"metadata": {"name": name}, "spec": spec}


def claiming(name: str) -> Json:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    return pod(f"claims-{name}", volumes=volumes)


class Occasions:
    """What a scheduler has to do with each of its permissions."""

    def __init__(self, audited: Audited) -> None:
        self._audited = audited
        self._plane = audited.plane

    def wait_for(self, *used: Used) -> None:
        wait_until(
            lambda: set(used) <= self._audited.asked("scheduler"),
            timeout_seconds=PATIENCE_SECONDS,
            what=f"it asks to {used}",
            every_seconds=0.2,
        )

    def rejections(self) -> None:
        """A pod that fits nowhere, tried again whenever another goes: the Event becomes a series
        when nothing of the pod has changed in between."""
        for number in range(2):
            self._plane.request("POST", PODS, pod(f"fills-{number}", "1500m"))
        self._placed("fills-0", "fills-1")
        self._plane.request("POST", PODS, pod("waits", "1"))
        self.wait_for(("patch", "", "pods/status"), ("create", "events.k8s.io", "events"))

        def is_a_series() -> bool:
            name = f"goes-{uuid.uuid4().hex[:8]}"
            self._plane.request("POST", PODS, pod(name))
            self._placed(name)
            self._plane.request("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
            return ("patch", "events.k8s.io", "events") in self._audited.asked("scheduler")

        what = "the Event's count is written"
        wait_until(is_a_series, timeout_seconds=PATIENCE_SECONDS, what=what, every_seconds=1.0)

    def eviction(self) -> None:
        group = "/apis/scheduling.k8s.io/v1/priorityclasses"
        self._plane.request("POST", group, {"metadata": {"name": "high"}, "value": 1000})
        self._plane.request("POST", PODS, pod("evicts", "1500m", priorityClassName="high"))
        self._placed("evicts")

    def volumes(self) -> None:
        """One volume that is there, and one that somebody would have to make."""
        for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "x.y/z")):
            given = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
            self._plane.request("POST", STORAGE, {"metadata": {"name": name}, **given})
        requirement = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["left"]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
        volume = {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": terms},
        }
        body = {"metadata": {"name": "on-left"}, "spec": volume}
        self._plane.request("POST", "/api/v1/persistentvolumes", body)
        for name in ("local", "made"):
            self._plane.request("POST", CLAIMS, claim(name))
            self._plane.request("POST", PODS, claiming(name))
        self._placed("claims-local")
        self.wait_for(("patch", "", "persistentvolumeclaims"))
        self._plane.request("DELETE", f"{PODS}/claims-made?gracePeriodSeconds=0")

    def conflicts(self) -> None:
        """Somebody else binds pods at the same moment, until one binding comes too late."""

        def came_too_late() -> bool:
            name = f"contested-{uuid.uuid4().hex[:8]}"
            self._plane.request("POST", PODS, pod(name, "0"))
            target = {"target": {"kind": "Node", "name": "right"}, "metadata": {"name": name}}
            with suppress(ApiError):
                self._plane.request("POST", f"{PODS}/{name}/binding", target)
            return ("get", "", "pods") in self._audited.asked("scheduler")

        wait_until(came_too_late, timeout_seconds=PATIENCE_SECONDS, what="a binding is contested")

    def _placed(self, *names: str) -> None:
        def are_placed() -> bool:
            pods = [self._plane.request("GET", f"{PODS}/{name}") for name in names]
            return all(each["spec"].get("nodeName") for each in pods)

        wait_until(are_placed, timeout_seconds=PATIENCE_SECONDS, what=f"{names} are placed")


def test_a_scheduler_uses_every_right_and_no_other(audited: Audited) -> None:
    kubeconfig, granted = audited.granted("scheduler")
    scheduler, url = running_process(audited, "scheduler", kubeconfig)
    try:
        assert ask(url, "/metrics", STRANGER.token) == 403
        occasions = Occasions(audited)
        occasions.rejections()
        occasions.volumes()
        occasions.eviction()
        occasions.conflicts()
    finally:
        assert scheduler.stop() == 0
    assert audited.asked("scheduler", is_forbidden=True) == set()
    assert audited.asked("scheduler") == granted


def test_an_extender_that_binds_uses_every_right_and_no_other(audited: Audited) -> None:
    kubeconfig, granted = audited.granted("extender")
    extender, url = running_process(audited, "extender", kubeconfig)
    try:
        assert ask(url, "/metrics", STRANGER.token) == 403
        created = audited.plane.request("POST", PODS, pod("bound", "0", schedulerName="other"))
        for node_name in ("left", "right"):  # the second is a conflict, which it looks into
            binding = {
                "PodName": "bound",
                "PodNamespace": "default",
                "PodUID": created["metadata"]["uid"],
                "Node": node_name,
            }
            assert ask(url, "/scheduler/bind", body=binding) == 200
    finally:
        assert extender.stop() == 0
    assert audited.asked("extender", is_forbidden=True) == set()
    assert audited.asked("extender") == granted


def test_a_shadow_that_serves_others_uses_every_right_and_no_other(audited: Audited) -> None:
    flag, user = "--bind-address=0.0.0.0", "shadow-for-others"
    kubeconfig, granted = audited.granted("shadow", flag, user=user)
    shadow, url = running_process(audited, "shadow", kubeconfig)
    try:
        assert ask(url, "/metrics", STRANGER.token) == 403
        wait_until(
            lambda: audited.asked(user) >= granted,
            timeout_seconds=PATIENCE_SECONDS,
            what="every right is used",
        )
    finally:
        assert shadow.stop() == 0
    assert audited.asked(user, is_forbidden=True) == set()
    assert audited.asked(user) == granted


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        pytest.param("shadow", ["--for=5s"], id="shadow"),
        pytest.param("record", ["--for=5s", "recording.lowtide"], id="record"),
        pytest.param("doctor", [], id="doctor"),
    ],
)
def test_who_only_looks_uses_every_right_and_no_other(
    audited: Audited, mode: str, words: list[str]
) -> None:
    kubeconfig, granted = audited.granted(mode)
    command = [LOWTIDE, mode, f"--config={audited.config_file}", f"--kubeconfig={kubeconfig}"]
    done = subprocess.run(
        [*command, *words], cwd=audited.folder, capture_output=True, text=True, timeout=60
    )
    assert "Traceback" not in done.stderr
    assert audited.asked(mode, is_forbidden=True) == set()
    assert audited.asked(mode) == granted - NOT_TRIED.get(mode, set())
