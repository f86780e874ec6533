"""A real control plane on loopback: etcd, kube-apiserver, and if wanted the controllers and KWOK.

Used by the fixtures of tests/real and by bench; `kube_scheduler` starts the real one beside it."""

import datetime
import json
import shutil
import ssl
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

import yaml

from realparts import commands
from realparts.api_client import ApiClient
from realparts.certificates import Authority, write_signing_key
from realparts.parts import obtain
from realparts.process import Process, free_port, free_ports, wait_until
from realparts.users import ADMIN, KUBE_SCHEDULER, User, write_kubeconfig

KUBECTL_SECONDS = 60.0
STOP_ORDER = ("kwok", "kube-controller-manager", "kube-apiserver", "etcd")
OF_A_VERSION = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
DELETE_NOW = {
    "apiVersion": "v1",
    "kind": "DeleteOptions",
    "gracePeriodSeconds": 0,
    "propagationPolicy": "Background",
}
# What makes pods goes first, or it makes them anew.
EMPTIED_COLLECTIONS = (
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/apps/v1/namespaces/{}/statefulsets",
    "/apis/apps/v1/namespaces/{}/daemonsets",
    "/apis/apps/v1/namespaces/{}/replicasets",
    "/apis/batch/v1/namespaces/{}/jobs",
    "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "/api/v1/namespaces/{}/pods",
)


def of_version(name: str, kubernetes: str | None) -> str:
    """What the part of a cluster is called that runs this version of Kubernetes."""
    return f"{name}@{kubernetes}" if kubernetes and name in OF_A_VERSION else name


class KubectlError(Exception):
    """kubectl ended with an error; its own words are told."""


class ControlPlane:
    """Start it, ask it, stop it. The users are fixed at construction; admin may do everything.

    API server, controllers and scheduler are of the version `kubernetes`; None: as the table of
    parts has them. kubectl, KWOK and etcd are the table's at any rate."""

    def __init__(
        self,
        *,
        kubernetes: str | None = None,
        has_controllers: bool = True,
        has_kwok: bool = True,
        users: Iterable[User] = (),
        priority_and_fairness: bool = True,
        api_server_flags: Sequence[str] = (),
        audit_log: Path | None = None,
    ) -> None:
        self.kubernetes = kubernetes
        self.has_controllers = has_controllers
        self.has_kwok = has_kwok
        self.users = {user.name: user for user in (ADMIN, KUBE_SCHEDULER, *users)}
        self.priority_and_fairness = priority_and_fairness
        self.api_server_flags = tuple(api_server_flags)
        self.audit_log = audit_log
        self.admin_token = ADMIN.token
        self.processes: dict[str, Process] = {}
        self._paths: dict[str, Path] = {}
        self._site: commands.Site | None = None
        self._authority: Authority | None = None
        self._clients = threading.local()
        self._open_clients: list[ApiClient] = []
        self._schedulers_started = 0

    def start(self) -> None:
        """When this returns, the API server answers, pods may be created, KWOK watches."""
        self._paths = self._obtained(*self._part_names())
        self._site = self._prepare_site(Path(tempfile.mkdtemp(prefix="lowtide-control-plane-")))
        try:
            self._start_etcd()
            self._start_api_server()
            if self.has_controllers:
                self._start_controllers()
            if self.has_kwok:
                self._start_kwok()
            self._wait_for_controllers_and_kwok()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Who depends on others goes first: an API server without etcd hangs on every call."""
        schedulers = [name for name in self.processes if name not in STOP_ORDER]
        for name in (*schedulers, *STOP_ORDER):
            process = self.processes.pop(name, None)
            if process is not None:
                process.stop(grace_seconds=3.0)
        self._close_connections()
        if self._site is not None:
            shutil.rmtree(self._site.folder, ignore_errors=True)
            self._site = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def site(self) -> commands.Site:
        if self._site is None:
            raise RuntimeError("the control plane does not run; call start() first")
        return self._site

    @property
    def folder(self) -> Path:
        """Its temporary folder, with a log file for each server."""
        return self.site.folder

    @property
    def url(self) -> str:
        return self.site.url

    @property
    def ca_file(self) -> Path:
        return self.site.ca_file

    def kill_api_server(self) -> None:
        """As a crash would end it; `restart_api_server` brings it back on the same port."""
        self.processes["kube-apiserver"].kill()
        self._close_connections()

    def restart_api_server(self) -> None:
        self.processes["kube-apiserver"].stop(grace_seconds=3.0)
        self._close_connections()
        self._start_api_server()

    def request(
        self, method: str, path: str, body: Any = None, user: str = "admin"
    ) -> dict[str, Any]:
        """One JSON call; raises ApiError. PATCH sends a merge patch."""
        return self.client(user).request(method, path, body)

    def create_all(self, path: str, bodies: Iterable[Mapping[str, Any]], at_once: int = 8) -> None:
        """POSTs many objects over several connections."""
        idle: SimpleQueue[ApiClient] = SimpleQueue()

        def create(body: Mapping[str, Any]) -> None:
            client = idle.get()
            try:
                client.request("POST", path, body)
            finally:
                idle.put(client)

        with ExitStack() as opened, ThreadPoolExecutor(at_once) as threads:
            for _ in range(at_once):
                client = ApiClient(self.url, str(self.ca_file), ADMIN.token)
                opened.callback(client.close)
                idle.put(client)
            for _ in threads.map(create, bodies):
                pass  # taking each outcome raises what went wrong in its thread

    def client(self, user: str = "admin") -> ApiClient:
        """This thread's kept connection as that user."""
        kept: dict[str, ApiClient] = self._clients.__dict__.setdefault("by_user", {})
        if user not in kept:
            kept[user] = self._new_client(user)
        return kept[user]

    def kubeconfig(self, user: str = "admin") -> Path:
        """A kubeconfig file with that user's token."""
        return self._kubeconfig(user, {"token": self._user(user).token})

    def certificate_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig file with a client certificate in place of a token."""
        if self._authority is None:
            raise RuntimeError("the control plane does not run; call start() first")
        pair = self._authority.sign_client(user, list(groups))
        files = {
            "client-certificate": str(pair.certificate_file),
            "client-key": str(pair.key_file),
        }
        return self._kubeconfig(f"{user}-certificate", files)

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """A kubeconfig file with a token of that account: it may what its pods may."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        token = self.request("POST", path, {"spec": {}})["status"]["token"]
        return self._kubeconfig(f"{namespace}-{name}", {"token": token})

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002
        """What the real kubectl printed, run as admin; raises KubectlError."""
        command = [str(self._paths["kubectl"]), f"--kubeconfig={self.kubeconfig()}", *arguments]
        done = subprocess.run(
            command,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=KUBECTL_SECONDS,
            env={"HOME": str(self.folder)},
        )
        if done.returncode:
            words = " ".join(arguments)
            raise KubectlError(f"kubectl {words}: {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def empty_namespace(self, namespace: str, timeout_seconds: float = 60.0) -> None:
        """Deletes the pods, what makes them, and the Events; returns when no pod is left."""
        wait_until(
            lambda: self._is_empty_after_deleting(namespace),
            timeout_seconds=timeout_seconds,
            what=f"namespace {namespace} is empty",
        )
        self.request("DELETE", f"/api/v1/namespaces/{namespace}/events", DELETE_NOW)

    def kube_scheduler(self, config_yaml: str, kubeconfig: Path | None = None) -> Process:
        """The real kube-scheduler with this configuration, ready; its `url` is where it listens.

        It has kube-scheduler's usual permissions, or those of `kubeconfig`, which is filled into
        `clientConnection`. `stop` of the control plane stops it too."""
        self._schedulers_started += 1
        name = f"kube-scheduler-{self._schedulers_started}"
        kubeconfig = kubeconfig or self.kubeconfig(KUBE_SCHEDULER.name)
        config = yaml.safe_load(config_yaml)
        config.setdefault("clientConnection", {})["kubeconfig"] = str(kubeconfig)
        config_file = self.folder / f"{name}.yaml"
        config_file.write_text(yaml.safe_dump(config))
        port = free_port()
        program = self._obtained("kube-scheduler")["kube-scheduler"]
        command = commands.kube_scheduler(
            program, self.site, port=port, config_file=config_file, kubeconfig=kubeconfig
        )
        process = self._started(name, command, url=f"https://127.0.0.1:{port}")
        process.wait_until_ready(lambda: self._is_scheduler_ready(process.url))
        return process

    def _obtained(self, *names: str) -> dict[str, Path]:
        wanted = {name: of_version(name, self.kubernetes) for name in names}
        paths = obtain(*wanted.values())
        return {name: paths[wanted[name]] for name in names}

    def _part_names(self) -> list[str]:
        names = ["etcd", "kube-apiserver", "kubectl"]
        if self.has_controllers:
            names.append("kube-controller-manager")
        if self.has_kwok:
            names.append("kwok")
        return names

    def _prepare_site(self, folder: Path) -> commands.Site:
        self._authority = Authority(folder, now=datetime.datetime.now(datetime.UTC))
        self._authority.write_own_certificate()
        serving = self._authority.sign_server("serving", ["localhost"], ["127.0.0.1", "10.96.0.1"])
        site = commands.Site(
            folder, commands.Ports(*free_ports(4)), self._authority.ca_file, serving
        )
        lines = [user.token_file_line() for user in self.users.values()]
        site.token_file.write_text("\n".join(lines) + "\n")
        (folder / "audit-policy.yaml").write_text(json.dumps(AUDIT_POLICY))
        write_signing_key(site.service_account_key_file)
        return site

    def _start_etcd(self) -> None:
        process = self._started("etcd", commands.etcd(self._paths["etcd"], self.site))
        process.wait_until_ready(lambda: self._answers(f"{self.site.etcd_url}/health"))

    def _start_api_server(self) -> None:
        command = commands.api_server(
            self._paths["kube-apiserver"],
            self.site,
            priority_and_fairness=self.priority_and_fairness,
            has_controllers=self.has_controllers,
            audit_log=self.audit_log,
            extra_flags=self.api_server_flags,
        )
        process = self._started("kube-apiserver", command, url=self.url)
        process.wait_until_ready(lambda: self._answers(f"{self.url}/readyz"), timeout_seconds=60.0)

    def _start_controllers(self) -> None:
        program = self._paths["kube-controller-manager"]
        command = commands.controllers(program, self.site, self.kubeconfig())
        self._started("kube-controller-manager", command)

    def _start_kwok(self) -> None:
        command = commands.kwok(self._paths["kwok"], self.site, self.kubeconfig())
        self._started("kwok", command)

    def _wait_for_controllers_and_kwok(self) -> None:
        if self.has_kwok:
            health = f"https://127.0.0.1:{self.site.ports.kwok}/healthz"
            self.processes["kwok"].wait_until_ready(lambda: self._answers(health))
        if self.has_controllers:
            self.processes["kube-controller-manager"].wait_until_ready(self._takes_pods)

    def _takes_pods(self) -> bool:
        """Pods are rejected until the controllers made the default service account."""
        accounts = self.request("GET", "/api/v1/namespaces/default/serviceaccounts")["items"]
        return any(account["metadata"]["name"] == "default" for account in accounts)

    def _started(self, name: str, command: commands.Command, url: str = "") -> Process:
        process = Process(name, command, folder=self.folder, url=url)
        process.start()
        self.processes[name] = process
        return process

    def _is_scheduler_ready(self, url: str) -> bool:
        try:
            return self._answers(f"{url}/readyz")
        except urllib.error.HTTPError as rejection:
            if rejection.code != 404:
                raise
            return self._answers(f"{url}/healthz")  # all that older ones have

    def _answers(self, url: str) -> bool:
        """Whether a GET is answered 200; other answers are an OSError of urllib's."""
        context = ssl.create_default_context(cafile=str(self.ca_file))
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {ADMIN.token}"})
        with urllib.request.urlopen(request, timeout=5, context=context) as response:
            return bool(response.status == 200)

    def _is_empty_after_deleting(self, namespace: str) -> bool:
        is_empty = True
        for template in EMPTIED_COLLECTIONS:
            path = template.format(namespace)
            if self.request("GET", f"{path}?limit=1")["items"]:
                self.request("DELETE", path, DELETE_NOW)
                is_empty = False
        return is_empty

    def _user(self, name: str) -> User:
        if name not in self.users:
            raise KeyError(f"no user is called {name}; there are {', '.join(self.users)}")
        return self.users[name]

    def _kubeconfig(self, name: str, credentials: Mapping[str, str]) -> Path:
        file = self.folder / f"{name.replace(':', '-')}.kubeconfig"
        return write_kubeconfig(file, url=self.url, ca_file=self.ca_file, credentials=credentials)

    def _new_client(self, user: str) -> ApiClient:
        client = ApiClient(self.url, str(self.ca_file), self._user(user).token)
        self._open_clients.append(client)
        return client

    def _close_connections(self) -> None:
        for client in self._open_clients:
            client.close()
        self._open_clients.clear()
        self._clients = threading.local()
