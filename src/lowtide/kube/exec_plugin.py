"""Runs a kubeconfig's exec plugin and reads the ExecCredential it prints; called by credentials."""

import asyncio
import base64
import datetime
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from lowtide.input_limits import CREDENTIAL_BYTES, TooLargeError
from lowtide.kube.decoding import AnswerDecoder
from lowtide.kube.errors import CredentialsError, Unreadable
from lowtide.kube.kubeconfig import Cluster, ExecPlugin
from lowtide.secret_files import TOKEN

TIMEOUT_SECONDS = 60.0
_LONGEST_COMPLAINT = 500
_PIECE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """A token, a client certificate, or both; `expires_at` is None when the plugin did not say."""

    token: str | None
    certificate: bytes | None
    key: bytes | None
    expires_at: float | None


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime.datetime | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str = "ExecCredential"
    status: _Status | None = None


async def run_exec_plugin(
    plugin: ExecPlugin, cluster: Cluster, environment: Mapping[str, str]
) -> ExecCredential:
    output = await _output(plugin, cluster, environment)
    try:
        answer = AnswerDecoder(_Answer).decode(
            output, f"The exec plugin {plugin.command} printed no ExecCredential"
        )
    except Unreadable as error:
        raise CredentialsError(str(error)) from None
    if answer.api_version != plugin.api_version:
        raise CredentialsError(
            f"The exec plugin {plugin.command} answered with apiVersion {answer.api_version}; "
            f"the kubeconfig asks for {plugin.api_version}"
        )
    status = answer.status or _Status()
    has_pair = bool(status.client_certificate_data and status.client_key_data)
    if not status.token and not has_pair:
        raise CredentialsError(
            f"The exec plugin {plugin.command} printed neither a token nor a client certificate "
            f"with its key; one of them is needed"
        )
    if status.token and TOKEN.fullmatch(status.token) is None:
        raise CredentialsError(
            f"The exec plugin {plugin.command} printed a token with line breaks, spaces or other "
            "characters that a header cannot hold; it must be one word"
        )
    expires = status.expiration_timestamp
    return ExecCredential(
        token=status.token or None,
        certificate=(status.client_certificate_data or "").encode() if has_pair else None,
        key=(status.client_key_data or "").encode() if has_pair else None,
        expires_at=None if expires is None else expires.timestamp(),
    )


async def _output(plugin: ExecPlugin, cluster: Cluster, environment: Mapping[str, str]) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # a process group of its own, so that all of it can be killed
            env={
                **environment,
                **plugin.environment,
                "KUBERNETES_EXEC_INFO": _info(plugin, cluster),
            },
        )
    except OSError as error:
        hint = f"; {plugin.install_hint.strip()}" if plugin.install_hint else ""
        raise CredentialsError(
            f"The exec plugin {plugin.command} cannot be started: {error.strerror}{hint}"
        ) from None
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            output, complaint = await _ended(process)
    except TimeoutError:
        raise CredentialsError(
            f"The exec plugin {plugin.command} did not end within {TIMEOUT_SECONDS:g} seconds"
        ) from None
    except TooLargeError as error:
        raise CredentialsError(
            f"The exec plugin {plugin.command} printed {error}, and was killed; "
            "it should print one ExecCredential"
        ) from None
    if process.returncode:
        last_line = complaint.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        raise CredentialsError(
            f"The exec plugin {plugin.command} ended with code {process.returncode}: "
            f"{last_line[0][:_LONGEST_COMPLAINT]}"
        )
    return output


async def _ended(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    """What it printed. Where it prints too much or nobody waits any more, it is killed with all
    that it has started."""
    assert process.stdout is not None
    assert process.stderr is not None
    reading = [asyncio.create_task(_read_all(each)) for each in (process.stdout, process.stderr)]
    try:
        output, complaint = await asyncio.gather(*reading)
        await process.wait()
    except BaseException:
        for each in reading:
            each.cancel()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.gather(*reading, return_exceptions=True)
        await process.wait()
        raise
    return output, complaint


async def _read_all(stream: asyncio.StreamReader) -> bytes:
    read = bytearray()
    while piece := await stream.read(_PIECE_BYTES):
        read += piece
        if len(read) > CREDENTIAL_BYTES:
            raise TooLargeError(CREDENTIAL_BYTES)
    return bytes(read)


def _info(plugin: ExecPlugin, cluster: Cluster) -> str:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.gets_cluster:
        about: dict[str, Any] = {"server": cluster.server}
        if cluster.tls_server_name:
            about["tls-server-name"] = cluster.tls_server_name
        if not cluster.is_verified:
            about["insecure-skip-tls-verify"] = True
        if cluster.certificate_authority:
            encoded = base64.b64encode(cluster.certificate_authority.read()).decode()
            about["certificate-authority-data"] = encoded
        if cluster.proxy_url:
            about["proxy-url"] = cluster.proxy_url
        if cluster.exec_config is not None:
            about["config"] = cluster.exec_config
        spec["cluster"] = about
    document = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return msgspec.json.encode(document).decode()
