"""What a kubelet makes of a pod, without containers: each container's command is started as a
process with exactly the arguments, files, account and user that the pod's spec says.

A mount namespace of its own has the pod's files where the spec mounts them, and a root that cannot
be written. Used by the tests of deploy/."""

import base64
import re
import shutil
import ssl
import stat
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from realparts.control_plane import ControlPlane, of_version
from realparts.parts import obtain
from realparts.process import Process

Json = dict[str, Any]
ACCOUNT = "run/secrets/kubernetes.io/serviceaccount"
PROMETHEUS_HOSTS = ("prometheus.monitoring.svc",)


class Deployed:
    """The containers of one pod. `host_files` are what its hostPath volumes hold, by path; `hosts`
    are names that lead to this machine; `root` holds what an image does, or is this machine's."""

    def __init__(
        self,
        plane: ControlPlane,
        namespace: str,
        spec: Json,
        *,
        folder: Path,
        host_files: Mapping[str, str] | None = None,
        hosts: Sequence[str] = PROMETHEUS_HOSTS,
        root: Path = Path("/"),
    ) -> None:
        self._plane = plane
        self._namespace = namespace
        self._spec = spec
        self._folder = folder
        self._host_files = dict(host_files or {})
        self._hosts = hosts
        self._root = root
        self.processes: dict[str, Process] = {}

    def start(self) -> None:
        self._make_files()
        for container in self._spec["containers"]:
            process = Process(container["name"], self._command(container), folder=self._folder)
            process.start()
            self.processes[container["name"]] = process

    def stop(self) -> dict[str, int | None]:
        """The exit code of each that still ran."""
        return {
            name: process.stop() for name, process in self.processes.items() if process.is_running()
        }

    def logs(self) -> str:
        return "".join(process.log() for process in self.processes.values())

    def is_ready(self) -> bool:
        return self.passes("readinessProbe")

    def passes(self, probe: str) -> bool:
        """Whether every probe of that name, sent as it is written, is answered well."""
        probes = (each.get(probe) for each in self._spec["containers"])
        return all(self._answers(each["httpGet"]) for each in probes if each)

    def metrics(self, port: int) -> str:
        """As somebody who may see them."""
        url = f"https://127.0.0.1:{port}/metrics"
        token = {"Authorization": f"Bearer {self._plane.admin_token}"}
        request = urllib.request.Request(url, headers=token)
        with urllib.request.urlopen(request, timeout=5, context=trusting()) as response:
            return str(response.read().decode())

    def _answers(self, get: Json) -> bool:
        ports = {
            each["name"]: each["containerPort"]
            for container in self._spec["containers"]
            for each in container.get("ports", ())
        }
        scheme, port = get.get("scheme", "HTTP").lower(), get["port"]
        host = get.get("host", "127.0.0.1")
        url = f"{scheme}://{host}:{ports.get(port, port)}{get['path']}"
        with urllib.request.urlopen(url, timeout=5, context=trusting()) as response:
            return bool(response.status == 200)

    # Its files.

    def _make_files(self) -> None:
        etc = self._folder / "etc"
        shutil.copytree(self._root / "etc", etc, symlinks=True, ignore_dangling_symlinks=True)
        hosts = "".join(f"127.0.0.1 {name}\n" for name in ("localhost", *self._hosts))
        (etc / "hosts").unlink(missing_ok=True)
        (etc / "hosts").write_text(hosts)
        volumes = {each["name"]: each for each in self._spec.get("volumes", ())}
        for container in self._spec["containers"]:
            for mount in container.get("volumeMounts", ()):
                self._fill(self._folder / mount["mountPath"].lstrip("/"), volumes[mount["name"]])
        account = self._folder / ACCOUNT
        account.mkdir(parents=True)
        name = self._spec.get("serviceAccountName") or self._spec.get("serviceAccount")
        if name:
            path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{name}/token"
            token = self._plane.request("POST", path, {"spec": {}})["status"]["token"]
            (account / "token").write_text(token)
            (account / "ca.crt").write_bytes(self._plane.ca_file.read_bytes())
            (account / "namespace").write_text(self._namespace)

    def _fill(self, place: Path, volume: Json) -> None:
        match volume:
            case {"configMap": {"name": name}}:
                data = self._object("configmaps", name)["data"]
                files = {key: text.encode() for key, text in data.items()}
            case {"secret": {"secretName": name}}:
                data = self._object("secrets", name)["data"]
                files = {key: base64.b64decode(text) for key, text in data.items()}
            case {"hostPath": {"path": path}}:
                files = {
                    file.removeprefix(path).lstrip("/"): text.encode()
                    for file, text in self._host_files.items()
                    if file.startswith(path)
                }
            case _:
                raise AssertionError(f"a volume that no manifest of ours has: {volume}")
        for name, content in files.items():
            file = place / name if name else place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def _object(self, plural: str, name: str) -> Json:
        return self._plane.request("GET", f"/api/v1/namespaces/{self._namespace}/{plural}/{name}")

    # Its processes.

    def _command(self, container: Json) -> list[str]:
        if self._root != Path("/"):
            return self._command_in_root(container)
        words = [*container.get("command", ()), *container.get("args", ())]
        programs = self._folder / "run" / "bin"
        programs.mkdir(parents=True, exist_ok=True)
        mounts = [f"mount --bind {self._folder / part} /{part}" for part in ("etc", "run")]
        if words[0] == "kube-scheduler":
            (programs / words[0]).touch()
            name = of_version(words[0], self._plane.kubernetes)
            program = obtain(name)[name]
            mounts.insert(0, f"mount --bind {program} {programs / words[0]}")
            mounts[-1] = mounts[-1].replace("--bind", "--rbind")
        (self._folder / "run" / "python").mkdir(exist_ok=True)
        script = [*mounts, *_python_for_everybody(), "mount -o remount,bind,ro /", "cd /"]
        return [
            *_after(script),
            *self._environment(f"{Path(sys.executable).parent}:/run/bin:/usr/bin:/bin"),
            *("setpriv", "--pdeathsig=KILL", "--no-new-privs"),
            *self._user(container),
            *words,
        ]

    def _command_in_root(self, container: Json) -> list[str]:
        root, user = self._root, self._spec["securityContext"]["runAsUser"]
        script = [
            f"mount --bind {root} {root}",
            *(f"mount --bind {self._folder / part} {root / part}" for part in ("etc", "run")),
            *(f"mount --rbind /{part} {root / part}" for part in ("dev", "proc")),
            f"mount -o remount,bind,ro {root}",
        ]
        return [
            *_after(script),
            *self._environment("/opt/lowtide/bin:/usr/bin:/usr/sbin"),
            *("setpriv", "--no-new-privs", "chroot", f"--userspec={user}:{user}", "--groups="),
            *(str(root), *container["command"]),
        ]

    def _environment(self, path: str) -> list[str]:
        server = urlsplit(self._plane.url)
        return [
            *("env", "-i", f"PATH={path}"),
            f"KUBERNETES_SERVICE_HOST={server.hostname}",
            f"KUBERNETES_SERVICE_PORT={server.port}",
        ]

    def _user(self, container: Json) -> list[str]:
        said = self._spec.get("securityContext", {}) | container.get("securityContext", {})
        user = said.get("runAsUser")
        if user is None:
            return []
        numbers = [f"--reuid={user}", f"--regid={said.get('runAsGroup', user)}", "--clear-groups"]
        return [*numbers, "--inh-caps=-all", "--bounding-set=-all"]


def _after(script: Sequence[str]) -> list[str]:
    """What follows these words runs in a mount namespace that the script has set up."""
    lines = "; ".join([*script, 'exec "$@"'])
    return ["unshare", "--mount", "--propagation=private", "sh", "-ec", lines, "sh"]


def trusting() -> ssl.SSLContext:
    """Kubelets believe every certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _python_for_everybody() -> list[str]:
    """The interpreter may be in a home that only its owner can enter: then all else is hidden."""
    prefix = Path(sys.base_prefix)
    if all(parent.stat().st_mode & stat.S_IXOTH for parent in prefix.parents):
        return []
    top = Path(*prefix.parts[:2])
    return [
        f"mount --bind {prefix} /run/python",
        f"mount -t tmpfs -o mode=755 tmpfs {top}",
        f"mkdir -p {prefix}",
        f"mount --bind /run/python {prefix}",
    ]


def template_of(plane: ControlPlane, namespace: str, name: str) -> Json:
    """The pod spec of a Deployment, as the API server has it."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    spec: Json = plane.request("GET", path)["spec"]["template"]["spec"]
    return spec


def forbidden_in(log: str) -> list[str]:
    """What the lines of a log say it may not do, each as `verb resource`."""
    said = re.findall(r'cannot (\w+) resource \\?"([^"\\]+)', log)
    return [f"{verb} {resource}" for verb, resource in said]
