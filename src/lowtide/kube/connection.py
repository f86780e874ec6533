"""One keep-alive HTTP session with the API server, on which everything else in kube stands.

`request` answers or raises; `stream` yields the lines of a watch. Made and closed by app."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

import aiohttp
import msgspec
from yarl import URL

from lowtide.kube.credentials import Credentials, Presented
from lowtide.kube.decoding import AnswerDecoder
from lowtide.kube.errors import ApiError, NoAnswer, NotConnected, NotTrusted, Unreadable
from lowtide.kube.kubeconfig import Access
from lowtide.kube.rate_limit import RateLimit

JSON = "application/json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
MERGE_PATCH = "application/merge-patch+json"

DEFAULT_RETRY_AFTER_SECONDS = 1.0
LONGEST_RETRY_AFTER_SECONDS = 30.0
# Less than the five seconds between the renew deadline of a lease and its end.
CHECKED_CONNECT_SECONDS = 4.0
# Lists of a hundred thousand pods arrive in few pieces with a large buffer.
READ_BUFFER_BYTES = 1 << 20


class Response(msgspec.Struct, frozen=True, gc=False):
    status: int
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Sending:
    """One request as it is sent, as often as that is needed."""

    method: str
    url: URL
    body: bytes | None
    content_type: str | None
    timeout: aiohttp.ClientTimeout
    check: Callable[[], None] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class _Status(msgspec.Struct):
    """The API server's answer to a request that failed."""

    message: str = ""
    reason: str = ""


class Connection:
    """`clock` is the wall clock: credentials say until when they are good.

    `limit` is how many requests are under way at once; watches are not counted."""

    def __init__(
        self,
        access: Access,
        clock: Callable[[], float],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        limit: int = 64,
        rate_limit: RateLimit | None = None,
        attempts: int = 10,
    ) -> None:
        self._cluster = access.cluster
        self._credentials = Credentials(access, clock, os.environ)
        self._sleep = sleep
        self._slots = asyncio.Semaphore(limit)
        self._rate_limit = rate_limit
        self._attempts = attempts
        self._session: aiohttp.ClientSession | None = None
        self._headers: dict[tuple[str | None, str | None], dict[str, str]] = {}

    @property
    def server(self) -> str:
        return self._cluster.server

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, socket_factory=_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER_BYTES,
            headers={
                "User-Agent": f"lowtide/{_version()}",
                "Accept": JSON,
                # Unpacking costs more than loopback or a data centre's network saves.
                "Accept-Encoding": "identity",
            },
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def check_credentials(self) -> None:
        """CredentialsError when a certificate, a token file or a plugin cannot be used at all."""
        await self._credentials.current()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
        timeout_seconds: float = 30.0,
        attempts: int | None = None,
        check: Callable[[], None] | None = None,
    ) -> Response:
        """Sends it, and again when the server asks to wait (429, or 503 with Retry-After).

        Names in `path` are Kubernetes names, which need no quoting. `check` is called each time
        right before sending, after all waiting for a turn; what it raises ends the request."""
        url = self._url(path, params)
        left = self._attempts if attempts is None else attempts
        # A check is only as fresh as the connection is quick to come about.
        connect_seconds = timeout_seconds if check is None else CHECKED_CONNECT_SECONDS
        sending = _Sending(
            method,
            url,
            body,
            content_type if body is not None else None,
            aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=connect_seconds),
            check,
        )
        while True:
            left -= 1
            try:
                return await self._renewing(sending)
            except ApiError as error:
                if error.retry_after_seconds is None or left <= 0:
                    raise
                await self._sleep(error.retry_after_seconds)

    async def pass_on(
        self,
        path: str,
        *,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        timeout_seconds: float,
    ) -> Response:
        """A GET of a path behind which another server answers: whatever it says is the response.

        The headers are sent beside our own, which they do not replace."""
        return await self._answered(
            _Sending(
                "GET",
                self._url(path, params),
                None,
                None,
                aiohttp.ClientTimeout(total=timeout_seconds),
                headers=headers,
            )
        )

    async def stream(
        self, path: str, *, params: Mapping[str, str], silence_seconds: float
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a watch; NoAnswer when it is cut or silent for `silence_seconds`.

        A line that was cut in the middle is not yielded. Close it with `contextlib.aclosing`."""
        url = self._url(path, params)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30.0, sock_read=silence_seconds)
        try:
            response = await self._open_stream(url, timeout)
            try:
                rest = b""
                async for piece in response.content.iter_any():
                    lines = (rest + piece if rest else piece).split(b"\n")
                    rest = lines.pop()
                    for line in lines:
                        if line:
                            yield line
            finally:
                response.close()
        except (aiohttp.ClientError, OSError) as error:
            raise self._no_answer("GET", url, error) from None

    async def _renewing(self, sending: _Sending) -> Response:
        response = await self._answered(sending)
        if response.status >= 400:
            raise _api_error(response.status, response.body, response.headers)
        return response

    async def _answered(self, sending: _Sending) -> Response:
        await self._wait_for_turn()
        presented = await self._credentials.current()
        async with self._slots:
            response = await self._send(sending, presented)
        if response.status == 401 and await self._credentials.renew(presented):
            presented = await self._credentials.current()
            async with self._slots:
                response = await self._send(sending, presented)
        return response

    async def _send(self, sending: _Sending, presented: Presented) -> Response:
        session = self._open_session()
        if sending.check is not None:
            sending.check()
        try:
            async with session.request(
                sending.method,
                sending.url,
                data=sending.body,
                headers={
                    **sending.headers,
                    **self._headers_for(presented.authorization, sending.content_type),
                },
                ssl=presented.tls or True,
                server_hostname=self._cluster.tls_server_name,
                proxy=self._cluster.proxy_url,
                timeout=sending.timeout,
                allow_redirects=False,
            ) as response:
                return Response(response.status, await response.read(), response.headers)
        except (aiohttp.ClientError, OSError) as error:
            raise self._no_answer(sending.method, sending.url, error) from None

    async def _open_stream(
        self, url: URL, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        await self._wait_for_turn()
        presented = await self._credentials.current()
        response = await self._start(url, timeout, presented)
        if response.status == 401 and await self._credentials.renew(presented):
            response.close()
            response = await self._start(url, timeout, await self._credentials.current())
        if response.status >= 400:
            async with response:
                raise _api_error(response.status, await response.read(), response.headers)
        return response

    async def _start(
        self, url: URL, timeout: aiohttp.ClientTimeout, presented: Presented
    ) -> aiohttp.ClientResponse:
        return await self._open_session().request(
            "GET",
            url,
            headers=self._headers_for(presented.authorization, None),
            ssl=presented.tls or True,
            server_hostname=self._cluster.tls_server_name,
            proxy=self._cluster.proxy_url,
            timeout=timeout,
            allow_redirects=False,
        )

    async def _wait_for_turn(self) -> None:
        if self._rate_limit is not None:
            wait_seconds = self._rate_limit.reserve_seconds()
            if wait_seconds > 0:
                await self._sleep(wait_seconds)

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError(
                f"The connection to {self.server} is not open; use it inside `async with`"
            )
        return self._session

    def _url(self, path: str, params: Mapping[str, str] | None) -> URL:
        query = f"?{urlencode(params)}" if params else ""
        return URL(f"{self._cluster.server}{path}{query}", encoded=True)

    def _headers_for(self, authorization: str | None, content_type: str | None) -> dict[str, str]:
        headers = self._headers.get((authorization, content_type))
        if headers is None:
            headers = {}
            if authorization is not None:
                headers["Authorization"] = authorization
            if content_type is not None:
                headers["Content-Type"] = content_type
            if len(self._headers) > 16:  # tokens that were renewed
                self._headers.clear()
            self._headers[authorization, content_type] = headers
        return headers

    def _no_answer(self, method: str, url: URL, error: Exception) -> NoAnswer:
        authority = self._cluster.certificate_authority
        trusted = f"CA {authority}" if authority is not None else "CAs of the system"
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            cause = error.certificate_error
            problem = getattr(cause, "verify_message", None) or str(cause)
            return NotTrusted(
                f"The certificate of {self.server} is not accepted with the {trusted}: {problem}"
            )
        if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
            return NotTrusted(f"No TLS connection to {self.server} with the {trusted}: {error}")
        if isinstance(error, aiohttp.ClientConnectorError):
            # asyncio's own text repeats the address in a form of its own.
            cause_text = os.strerror(error.errno) if error.errno else str(error.os_error)
        else:
            cause_text = "it took too long" if isinstance(error, TimeoutError) else str(error)
        kind = NotConnected if isinstance(error, aiohttp.ClientConnectorError) else NoAnswer
        return kind(
            f"No answer from {self.server} to {method} {url.path}: "
            f"{cause_text or type(error).__name__}"
        )


def _version() -> str:
    try:
        return version("lowtide")
    except PackageNotFoundError:  # run from a source tree that was not installed
        return "0"


def _socket(address: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
    """Probes idle connections, so that a server that vanished is noticed within 30 seconds."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


def _api_error(status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    try:
        said = AnswerDecoder(_Status).decode(body, "The error")
    except Unreadable:
        said = _Status(message=body[:200].decode(errors="replace").strip())
    retry_after_seconds: float | None = None
    if status == 429 or (status == 503 and "Retry-After" in headers):
        retry_after_seconds = _retry_after_seconds(headers.get("Retry-After", ""))
    return ApiError(
        status,
        said.reason or "Unknown",
        said.message or "the server gave no message",
        retry_after_seconds,
    )


def _retry_after_seconds(text: str) -> float:
    if text.isascii() and text.isdigit():
        return min(float(text), LONGEST_RETRY_AFTER_SECONDS)
    return DEFAULT_RETRY_AFTER_SECONDS
