"""Where the API server is and who we are there, read from a kubeconfig or the pod's own account.

`load_access` is called once at start by app; credentials.py keeps what it names up to date."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from yarl import URL

from lowtide.input_limits import OBJECT_BYTES, read_file
from lowtide.readings.address import shown_address
from lowtide.secret_files import PASSWORD, TOKEN, reason_of

ACCOUNT_DIRECTORY = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXEC_CONFIG_EXTENSION = "client.authentication.k8s.io/exec"


class KubeconfigError(Exception):
    """A kubeconfig that cannot be used, said in one sentence."""


@dataclass(frozen=True, slots=True)
class Pem:
    """A certificate or key: in a file that may change, or given as it is."""

    file: Path | None = None
    data: bytes | None = None

    def read(self) -> bytes:
        if self.file is not None:
            return read_file(self.file)
        return self.data or b""

    def __str__(self) -> str:
        return str(self.file) if self.file is not None else "the data in the kubeconfig"


@dataclass(frozen=True, slots=True)
class Cluster:
    server: str
    certificate_authority: Pem | None = None
    is_verified: bool = True
    tls_server_name: str | None = None
    proxy_url: str | None = None
    exec_config: Any = None


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    command: str
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    api_version: str = EXEC_API_VERSIONS[0]
    gets_cluster: bool = False
    install_hint: str = ""


@dataclass(frozen=True, slots=True)
class User:
    client_certificate: Pem | None = None
    client_key: Pem | None = None
    token: str | None = None
    token_file: Path | None = None
    username: str | None = None
    password: str | None = None
    exec_plugin: ExecPlugin | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """One cluster, one user, and the file or place that named them."""

    cluster: Cluster
    user: User
    namespace: str
    source: str


def plain_access(server: str) -> Access:
    """A server without credentials, such as the embedded cluster."""
    return Access(_checked(Cluster(server), "--master"), User(), "default", "--master")


def load_access(
    *,
    kubeconfig: str | None,
    master: str | None,
    environment: Mapping[str, str],
    home: Path,
    account_directory: Path = ACCOUNT_DIRECTORY,
) -> Access:
    """The flag's file, else the pod's account, else $KUBECONFIG, else ~/.kube/config.

    With a master the pod's account is left out: its token is for its own cluster only."""
    if kubeconfig:
        return _with_master(_from_files([Path(kubeconfig)], required=True), master)
    host, port = (environment.get(f"KUBERNETES_SERVICE_{part}") for part in ("HOST", "PORT"))
    if host and port and not master and (account_directory / "token").exists():
        return _in_cluster(host, port, account_directory)
    if environment.get("KUBECONFIG"):
        paths = [Path(part) for part in environment["KUBECONFIG"].split(":") if part]
        return _with_master(_from_files(paths, required=False), master)
    default_path = home / ".kube" / "config"
    if default_path.exists():
        return _with_master(_from_files([default_path], required=True), master)
    if master:
        return plain_access(master)
    raise KubeconfigError(
        f"No API server is known: --kubeconfig and $KUBECONFIG are not set, {default_path} does "
        f"not exist, and this is not a pod with a service account in {account_directory}"
    )


def _with_master(access: Access, master: str | None) -> Access:
    if not master:
        return access
    cluster = _checked(replace(access.cluster, server=master), "--master")
    return replace(access, cluster=cluster)


def _in_cluster(host: str, port: str, directory: Path) -> Access:
    authority = directory / "ca.crt"
    return Access(
        cluster=Cluster(
            server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
            certificate_authority=Pem(file=authority) if authority.exists() else None,
        ),
        user=User(token_file=directory / "token"),
        namespace=_namespace(directory / "namespace"),
        source=f"the service account in {directory}",
    )


def _namespace(file: Path) -> str:
    try:
        return read_file(file).decode().strip() if file.exists() else "default"
    except (OSError, ValueError) as error:
        raise KubeconfigError(f"{file} cannot be used: {reason_of(error)}") from None


@dataclass(frozen=True, slots=True)
class _Entry:
    """One named cluster, user or context, and the file it stood in."""

    name: str
    path: Path
    fields: Mapping[str, Any]

    @property
    def directory(self) -> Path:
        return self.path.resolve().parent

    def text(self, key: str) -> str | None:
        value = self.fields.get(key)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise KubeconfigError(
                f"{self.path}: {key} of {self.name!r} is {value!r}; it must be a string"
            )
        return value

    def file(self, key: str) -> Path | None:
        value = self.text(key)
        return None if value is None else self.directory / value

    def pem(self, key: str) -> Pem | None:
        encoded = self.text(f"{key}-data")
        if encoded is not None:
            try:
                return Pem(data=base64.b64decode(encoded, validate=True))
            except binascii.Error:
                raise KubeconfigError(
                    f"{self.path}: {key}-data of {self.name!r} is not base64; "
                    f"it must be a PEM block encoded in base64"
                ) from None
        path = self.file(key)
        return None if path is None else Pem(file=path)


def _from_files(paths: list[Path], *, required: bool) -> Access:
    """Merges as kubectl does: the first file that names a thing wins."""
    named: dict[str, dict[str, _Entry]] = {"clusters": {}, "users": {}, "contexts": {}}
    current = ""
    for path in paths:
        if not required and not path.exists():
            continue
        document = _read(path)
        current = current or str(document.get("current-context") or "")
        for section, entries in named.items():
            for entry in _entries(document, section, path):
                entries.setdefault(entry.name, entry)
    source = ":".join(str(path) for path in paths)
    if not current:
        known = ", ".join(sorted(named["contexts"])) or "none"
        raise KubeconfigError(
            f"{source}: current-context is not set; set it to one of the contexts ({known})"
        )
    context = _named(named, "contexts", current, source)
    cluster = _named(named, "clusters", context.text("cluster") or "", source)
    user_name = context.text("user")
    return Access(
        cluster=_cluster(cluster),
        user=_user(_named(named, "users", user_name, source)) if user_name else User(),
        namespace=context.text("namespace") or "default",
        source=source,
    )


def _read(path: Path) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(read_file(path, OBJECT_BYTES))
    except OSError as error:
        raise KubeconfigError(f"{path} cannot be read: {reason_of(error)}") from None
    except RecursionError:
        raise KubeconfigError(f"{path} is nested too deep to be a kubeconfig") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "unknown problem"
        raise KubeconfigError(f"{path} is not YAML{line}: {problem}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise KubeconfigError(
            f"{path} holds a {type(document).__name__}; a kubeconfig is a mapping with clusters, "
            f"users and contexts"
        )
    return document


def _entries(document: Mapping[str, Any], section: str, path: Path) -> list[_Entry]:
    items = document.get(section) or []
    if not isinstance(items, list):
        raise KubeconfigError(f"{path}: {section} is {items!r}; it must be a list")
    found = []
    for item in items:
        fields = item.get(section[:-1]) if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(fields or {}, dict):
            raise KubeconfigError(
                f"{path}: {section} holds {item!r}; each must have a name and a {section[:-1]}"
            )
        found.append(_Entry(str(item.get("name", "")), path, fields or {}))
    return found


def _named(
    named: Mapping[str, Mapping[str, _Entry]], section: str, name: str, source: str
) -> _Entry:
    entry = named[section].get(name)
    if entry is None:
        known = ", ".join(sorted(named[section])) or "none"
        raise KubeconfigError(
            f"{source}: there is no {section[:-1]} named {name!r}; the {section} are: {known}"
        )
    return entry


def _cluster(entry: _Entry) -> Cluster:
    extensions = entry.fields.get("extensions") or []
    exec_configs = [
        extension.get("extension")
        for extension in extensions
        if isinstance(extension, dict) and extension.get("name") == EXEC_CONFIG_EXTENSION
    ]
    cluster = Cluster(
        server=entry.text("server") or "",
        certificate_authority=entry.pem("certificate-authority"),
        is_verified=entry.fields.get("insecure-skip-tls-verify") is not True,
        tls_server_name=entry.text("tls-server-name"),
        proxy_url=entry.text("proxy-url"),
        exec_config=exec_configs[0] if exec_configs else None,
    )
    return _checked(cluster, f"{entry.path}: cluster {entry.name!r}")


def _checked(cluster: Cluster, where: str) -> Cluster:
    server = cluster.server
    if server and "://" not in server:
        server = f"http://{server}"
    if not _is_usable(server):
        raise KubeconfigError(
            f"{where} has the server {shown_address(cluster.server)!r}; "
            f"it must be a url such as https://127.0.0.1:6443"
        )
    if "@" in server:
        raise KubeconfigError(
            f"{where} has a user in the server {shown_address(cluster.server)!r}; "
            f"users and passwords belong under users in a kubeconfig"
        )
    if cluster.proxy_url and not _is_usable(cluster.proxy_url):
        raise KubeconfigError(
            f"{where} has the proxy-url {shown_address(cluster.proxy_url)!r}; "
            f"it must be a url of http or https such as http://127.0.0.1:3128"
        )
    return replace(cluster, server=server.rstrip("/"))


def _is_usable(address: str) -> bool:
    try:
        url = URL(address)
    except ValueError:
        return False
    return url.scheme in ("http", "https") and bool(url.host)


def _user(entry: _Entry) -> User:
    if entry.fields.get("auth-provider"):
        provider = entry.fields["auth-provider"]
        name = provider.get("name") if isinstance(provider, dict) else provider
        raise KubeconfigError(
            f"{entry.path}: user {entry.name!r} uses the auth-provider {name!r}, which Kubernetes "
            f"no longer has; use an exec plugin (users[].user.exec) instead"
        )
    certificate, key = entry.pem("client-certificate"), entry.pem("client-key")
    if (certificate is None) != (key is None):
        missing = "client-key" if key is None else "client-certificate"
        raise KubeconfigError(
            f"{entry.path}: user {entry.name!r} has no {missing}; certificate and key go together"
        )
    exec_fields = entry.fields.get("exec")
    token, username = entry.text("token"), entry.text("username")
    for field_name, value, form in (("token", token, TOKEN), ("username", username, PASSWORD)):
        if value is not None and form.fullmatch(value) is None:
            # A token is not repeated: it is a secret.
            raise KubeconfigError(
                f"{entry.path}: {field_name} of user {entry.name!r} has line breaks or other "
                f"characters that cannot be sent; it must be one "
                f"{'word' if form is TOKEN else 'line'}"
            )
    return User(
        client_certificate=certificate,
        client_key=key,
        token=token,
        token_file=entry.file("tokenFile"),
        username=username,
        password=entry.text("password"),
        exec_plugin=_exec_plugin(entry, exec_fields) if exec_fields else None,
    )


def _exec_plugin(user: _Entry, fields: Any) -> ExecPlugin:
    where = f"{user.path}: user {user.name!r}"
    if not isinstance(fields, dict) or not fields.get("command"):
        raise KubeconfigError(f"{where} has an exec plugin without a command; name the program")
    entry = _Entry(f"{user.name}.exec", user.path, fields)
    api_version = entry.text("apiVersion") or ""
    if api_version not in EXEC_API_VERSIONS:
        raise KubeconfigError(
            f"{where} has an exec plugin with apiVersion {api_version!r}; "
            f"it must be {' or '.join(EXEC_API_VERSIONS)}"
        )
    if entry.text("interactiveMode") == "Always":
        raise KubeconfigError(
            f"{where} has an exec plugin with interactiveMode Always; "
            f"a scheduler has no terminal, so it must be Never or IfAvailable"
        )
    command = entry.text("command") or ""
    return ExecPlugin(
        # A bare name is looked for on the PATH; one with a slash is relative to the file.
        command=str(entry.directory / command) if "/" in command else command,
        args=tuple(str(arg) for arg in fields.get("args") or ()),
        environment={str(each["name"]): str(each["value"]) for each in fields.get("env") or ()},
        api_version=api_version,
        gets_cluster=fields.get("provideClusterInfo") is True,
        install_hint=entry.text("installHint") or "",
    )
