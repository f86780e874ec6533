"""`lowtide explain`: gets the explanation of a pod from where decisions are kept: a process on a
local port, pods of Lowtide behind the API server's proxy, or a record file."""

import ssl
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from lowtide.app.clocks import Clock
from lowtide.input_limits import Intake, TooLargeError
from lowtide.kube.connection import Connection
from lowtide.kube.errors import KubeError
from lowtide.kube.kubeconfig import Access
from lowtide.records.explaining import Explanation, explained, has_victim
from lowtide.records.journal import read_journal
from lowtide.server.loopback import is_loopback

LABEL = "app.kubernetes.io/name=lowtide"
PORTS = (10259, 8001)  # of a scheduler, of an extender
_ADDRESS = "https://127.0.0.1:10259"  # for instance
_TIMEOUT_SECONDS = 10.0
# What OpenSSL makes of plain text in its place, by version.
_ANSWERED_WITHOUT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_SHOWN_ELSEWHERE = (
    "start it with --page where it serves beyond loopback, "
    "or ask with --address through kubectl port-forward"
)


class ExplainError(Exception):
    """There is no explanation to be had; the sentence says why."""


class NotLowtideError(ExplainError):
    """Nobody answered, or somebody else."""


def pod_key(pod: str, namespace: str | None, default_namespace: str) -> str:
    """NAMESPACE/POD of what a user typed: POD or NAMESPACE/POD, and perhaps a namespace."""
    own, slash, name = pod.rpartition("/")
    if not name or "/" in own or (slash and not own):
        raise ExplainError(f"{pod or repr(pod)} is no pod: name it POD or NAMESPACE/POD")
    if own and namespace and own != namespace:
        raise ExplainError(f"{pod} is not in the namespace {namespace} that -n names")
    return f"{own or namespace or default_namespace}/{name}"


def explanation_from_file(path: Path, pod_key: str, node_name: str | None) -> Explanation:
    # Of the rest nothing is held: the files may be larger than memory.
    about = [
        each for each in read_journal(path) if each.pod == pod_key or has_victim(each, pod_key)
    ]
    if not about:
        raise ExplainError(f"{path}: no decision about pod {pod_key} is in it")
    about.reverse()
    own = [each for each in about if each.pod == pod_key]
    return explained(pod_key, own, about, node_name=node_name)


async def explanation_by_address(address: str, pod_key: str, node_name: str | None) -> Explanation:
    """Of a process that listens there, such as https://127.0.0.1:10259. On loopback any certificate
    will do: it is this machine, or the end of a port-forward, and nothing secret is sent."""
    if not _is_address(address):
        raise ExplainError(
            f"--address {address} is no address: it begins with http:// or https://, such as "
            f"{_ADDRESS}"
        )
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
    url = f"{address.rstrip('/')}/{_path(pod_key)}"
    try:
        is_here = is_loopback(urlsplit(address).hostname or "")
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(
                url,
                params=_params(node_name),
                ssl=not is_here,
                allow_redirects=not is_here,
            ) as response,
        ):
            body = await Intake().read(response)
            if _is_of_api_server(body):
                raise ExplainError(
                    f"{address} is an API server, not Lowtide: --address is where Lowtide serves, "
                    f"such as {_ADDRESS}; without it, pods of Lowtide are asked through the API "
                    "server of the kubeconfig"
                )
            return _explanation(response.status, body, address)
    except TooLargeError as error:
        raise ExplainError(
            f"{address} answers with {error}; --address is where Lowtide serves, such as {_ADDRESS}"
        ) from None
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        is_cut = isinstance(error, aiohttp.ServerDisconnectedError)
        if is_cut and address.lower().startswith("http://"):
            raise ExplainError(
                f"{address} ends the connection, as one does that serves HTTPS: use https://"
            ) from None
        if _is_without_tls(error):
            raise ExplainError(
                f"{address} speaks HTTP without TLS: use http://{address.partition('://')[2]}"
            ) from None
        raise ExplainError(
            f"{address} does not answer: {error or type(error).__name__}; "
            f"--address is where Lowtide serves, such as {_ADDRESS}"
        ) from None


async def explanation_through_api_server(
    access: Access,
    pod_key: str,
    node_name: str | None,
    *,
    through: str | None,
    port: int | None,
    wall_clock: Clock,
) -> Explanation:
    """Of the pods that carry Lowtide's label, or of this one; the first that has decided about the
    pod, else the first that knows of it, such as a standby."""
    async with Connection(access, wall_clock) as connection:
        pods = [through] if through else await _pods(connection)
        if not pods:
            raise ExplainError(
                f"no running pod has the label {LABEL}; name it with --through "
                "NAMESPACE/POD, or a local port with --address"
            )
        without_records = None
        said = []
        for each in pods:
            try:
                found = await _explanation_of_pod(
                    connection, each, pod_key, node_name, PORTS if port is None else (port,)
                )
            except ExplainError as error:
                said.append(str(error))
                continue
            if found.records or found.preempted_by is not None:
                return found
            without_records = without_records or found
        if without_records is None:
            raise ExplainError("\n".join(said))
        return without_records


async def _explanation_of_pod(
    connection: Connection,
    asked: str,
    pod_key: str,
    node_name: str | None,
    ports: Sequence[int],
) -> Explanation:
    """By HTTPS or not, whatever answers there as Lowtide does."""
    namespace, _, name = asked.rpartition("/")
    pods = f"/api/v1/namespaces/{quote(namespace or 'default')}/pods"
    said: list[str] = []
    silent: set[int] = set()
    for port, scheme in product(ports, ("https:", "")):
        if port in silent:
            continue
        try:
            response = await connection.pass_on(
                f"{pods}/{scheme}{quote(name)}:{port}/proxy/{_path(pod_key)}",
                params=_params(node_name),
                headers={},
                timeout_seconds=_TIMEOUT_SECONDS,
            )
            return _explanation(response.status, response.body, f"pod {asked}")
        except NotLowtideError as error:
            said.append(str(error))
        except KubeError as error:
            silent.add(port)
            said.append(f"pod {asked}: {error}")
    raise ExplainError("\n".join(dict.fromkeys(said)))


async def _pods(connection: Connection) -> list[str]:
    selected = {"labelSelector": LABEL, "fieldSelector": "status.phase=Running"}
    response = await connection.request("GET", "/api/v1/pods", params=selected)
    items: list[dict[str, Any]] = msgspec.json.decode(response.body)["items"]
    return [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in items]


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _is_without_tls(error: Exception) -> bool:
    below = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
    return isinstance(below, ssl.SSLError) and below.reason in _ANSWERED_WITHOUT_TLS


def _is_of_api_server(body: bytes) -> bool:
    """Kubernetes tells what went wrong in an object of its own."""
    try:
        said = msgspec.json.decode(body)
    except _UNREADABLE:
        return False
    return isinstance(said, dict) and said.get("kind") == "Status"


def _path(pod_key: str) -> str:
    namespace, _, name = pod_key.partition("/")
    return f"api/explain/{quote(namespace, safe='')}/{quote(name, safe='')}"


def _params(node_name: str | None) -> Mapping[str, str]:
    return {} if node_name is None else {"node": node_name}


def _explanation(status: int, body: bytes, whose: str) -> Explanation:
    if status == 200:
        try:
            return msgspec.json.decode(body, type=Explanation)
        except _UNREADABLE as error:
            raise ExplainError(f"{whose} answers with no explanation: {error}") from None
    try:
        said = msgspec.json.decode(body)
        own, text = said.get("error"), said.get("message")
    except (*_UNREADABLE, AttributeError):
        own = text = None
    if own is not None:
        raise ExplainError(f"{whose}: {own}")
    if text is None and status == 404:
        text = f"it serves no explanations; {_SHOWN_ELSEWHERE}"
    raise NotLowtideError(f"{whose}: {text or f'it answers with status {status}'}")
