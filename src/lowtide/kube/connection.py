"""Kept HTTP connections with the API server, on which everything else in kube stands.

`request` answers or raises; `stream` yields the lines of a watch. Made and closed by app."""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

import aiohttp
import msgspec
from yarl import URL

from lowtide.input_limits import ERROR_BYTES, OBJECT_BYTES, Intake
from lowtide.kube.channels import Channels, probed_socket
from lowtide.kube.credentials import Credentials, Presented
from lowtide.kube.errors import ApiError, Redirected
from lowtide.kube.failures import no_answer, not_connected, not_done
from lowtide.kube.kubeconfig import Access
from lowtide.kube.rate_limit import RateLimit
from lowtide.kube.user_agent import user_agent

JSON = "application/json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
MERGE_PATCH = "application/merge-patch+json"
SUCCESS = range(200, 300)

# Less than the five seconds between the renew deadline of a lease and its end.
CHECKED_CONNECT_SECONDS = 4.0
# Lists of a hundred thousand pods arrive in few pieces with a large buffer.
READ_BUFFER_BYTES = 1 << 20
# Tokens are renewed, and those that were are of no use.
MOST_KEPT_HEADERS = 16
# To pack a list into a twentieth costs an API server, and to unpack it us, less than to bring the
# rest through TLS and the kernel.
_PACKED = {"Accept-Encoding": "gzip"}


class Response(msgspec.Struct, frozen=True, gc=False):
    status: int
    body: bytes
    headers: Mapping[str, str]


class _Sending(msgspec.Struct, frozen=True, gc=False):
    """One request as it is sent, as often as that is needed."""

    method: str
    target: str  # path and query
    body: bytes | None
    content_type: str | None
    timeout_seconds: float
    connect_seconds: float
    check: Callable[[], None] | None = None
    headers: Mapping[str, str] | None = None


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
        self.intake = Intake()
        self._session: aiohttp.ClientSession | None = None
        self._server_url = URL(access.cluster.server)
        self._path = self._server_url.raw_path.rstrip("/")
        self._channels: Channels | None = None
        self._own_headers = {
            "User-Agent": user_agent(),
            "Accept": JSON,
            "Accept-Encoding": "identity",
        }
        self._heads: dict[tuple[str | None, str | None], bytes] = {}
        self._headers: dict[tuple[str | None, str | None], dict[str, str]] = {}

    @property
    def server(self) -> str:
        return self._cluster.server

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, socket_factory=probed_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER_BYTES,
            headers=self._own_headers,
        )
        if self._cluster.proxy_url is None:
            self._channels = Channels(self._server_url, self._cluster.tls_server_name, self.intake)
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
        if self._channels is not None:
            self._channels.close()
            self._channels = None
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
        left = self._attempts if attempts is None else attempts
        sending = _Sending(
            method,
            _target(path, params),
            body,
            content_type if body is not None else None,
            timeout_seconds,
            # A check is only as fresh as the connection is quick to come about.
            timeout_seconds if check is None else CHECKED_CONNECT_SECONDS,
            check,
        )
        while True:
            left -= 1
            response = await self._answered(sending)
            if response.status in SUCCESS:
                return response
            error = not_done(self._cluster, response.status, response.body, response.headers)
            if isinstance(error, Redirected) or error.retry_after_seconds is None or left <= 0:
                raise error
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
                _target(path, params),
                None,
                None,
                timeout_seconds,
                timeout_seconds,
                headers=headers,
            )
        )

    async def stream(
        self,
        path: str,
        *,
        params: Mapping[str, str],
        silence_seconds: float,
        opened: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a watch; NoAnswer when it is cut or silent for `silence_seconds`. Calls
        `opened` when the answer begins, which may be long before the first line.

        A line that was cut in the middle is not yielded; Unreadable where one is longer than an
        object may be. Close it with `contextlib.aclosing`."""
        target = _target(path, params)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30.0, sock_read=silence_seconds)
        rest = bytearray()
        async with aclosing(self._pieces(target, timeout, {}, opened)) as pieces:
            async for piece in pieces:
                *lines, begun = piece.split(b"\n")
                if lines:
                    lines[0] = bytes(rest) + lines[0]
                    rest.clear()
                rest += begun
                if any(len(each) > OBJECT_BYTES for each in (rest, *lines)):
                    error = self.intake.rejection(OBJECT_BYTES)
                    raise no_answer(self._cluster, "GET", target, error)
                for line in lines:
                    if line:
                        yield line

    async def list_pieces(
        self, path: str, *, params: Mapping[str, str], timeout_seconds: float
    ) -> AsyncGenerator[bytes, None]:
        """A long answer as it arrives; waits as `request` does where the server asks for that.

        Close it with `contextlib.aclosing`."""
        timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=timeout_seconds)
        for attempts_left in reversed(range(self._attempts)):
            try:
                async with (
                    self._slots,
                    aclosing(self._pieces(_target(path, params), timeout, _PACKED)) as pieces,
                ):
                    async for piece in pieces:
                        yield piece
                return
            except ApiError as error:
                if error.retry_after_seconds is None or attempts_left == 0:
                    raise
                wait_seconds = error.retry_after_seconds
            await self._sleep(wait_seconds)

    async def _pieces(
        self,
        target: str,
        timeout: aiohttp.ClientTimeout,
        headers: Mapping[str, str],
        opened: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[bytes, None]:
        try:
            response = await self._open_stream(self._url(target), timeout, headers)
            opened()
            try:
                async for piece in response.content.iter_any():
                    yield piece
            finally:
                response.close()
        except (aiohttp.ClientError, OSError) as error:
            raise no_answer(self._cluster, "GET", target, error) from None

    async def _answered(self, sending: _Sending) -> Response:
        if self._rate_limit is not None:
            await self._wait_for_turn(self._rate_limit)
        presented = await self._credentials.current()
        async with self._slots:
            response = await self._send(sending, presented)
        if response.status == 401 and await self._credentials.renew(presented):
            presented = await self._credentials.current()
            async with self._slots:
                response = await self._send(sending, presented)
        return response

    async def _send(self, sending: _Sending, presented: Presented) -> Response:
        if sending.body is not None and self._channels is not None:
            return await self._write(self._channels, sending, sending.body, presented)
        session = self._open_session()
        if sending.check is not None:
            sending.check()
        try:
            async with session.request(
                sending.method,
                self._url(sending.target),
                data=sending.body,
                headers={
                    **(sending.headers or {}),
                    **self._headers_for(presented.authorization, sending.content_type),
                },
                ssl=presented.tls or True,
                server_hostname=self._cluster.tls_server_name,
                proxy=self._cluster.proxy_url,
                timeout=aiohttp.ClientTimeout(
                    total=sending.timeout_seconds, connect=sending.connect_seconds
                ),
                allow_redirects=False,
            ) as response:
                body = await self.intake.read(response)
                return Response(response.status, body, response.headers)
        except (aiohttp.ClientError, OSError) as error:
            raise no_answer(self._cluster, sending.method, sending.target, error) from None

    async def _write(
        self, channels: Channels, sending: _Sending, body: bytes, presented: Presented
    ) -> Response:
        try:
            channel = await channels.take(presented.tls, sending.connect_seconds)
        except OSError as error:
            raise not_connected(self._cluster, sending.method, sending.target, error) from None
        try:
            if sending.check is not None:
                sending.check()
            request = self._bytes_of(sending, body, presented)
            answer = await channel.ask(request, sending.timeout_seconds)
        except OSError as error:
            raise no_answer(self._cluster, sending.method, sending.target, error) from None
        finally:
            channels.give_back(channel, presented.tls)
        # Only those of an error tell something; to read them takes as long as all the rest.
        headers = {} if answer.status in SUCCESS else answer.headers()
        return Response(answer.status, answer.body, headers)

    def _bytes_of(self, sending: _Sending, body: bytes, presented: Presented) -> bytes:
        shown = presented.authorization, sending.content_type
        head = self._heads.get(shown)
        if head is None:
            head = self._head(*shown)
            if len(self._heads) > MOST_KEPT_HEADERS:
                self._heads.clear()
            self._heads[shown] = head
        request = f"{sending.method} {self._path}{sending.target} HTTP/1.1\r\n".encode()
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (request, head, len(body), body)

    def _head(self, authorization: str | None, content_type: str | None) -> bytes:
        headers = {
            "Host": self._server_url.raw_authority,
            **self._own_headers,
            **self._headers_for(authorization, content_type),
        }
        return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()

    async def _open_stream(
        self, url: URL, timeout: aiohttp.ClientTimeout, headers: Mapping[str, str]
    ) -> aiohttp.ClientResponse:
        if self._rate_limit is not None:
            await self._wait_for_turn(self._rate_limit)
        presented = await self._credentials.current()
        response = await self._start(url, timeout, headers, presented)
        if response.status == 401 and await self._credentials.renew(presented):
            response.close()
            presented = await self._credentials.current()
            response = await self._start(url, timeout, headers, presented)
        if response.status not in SUCCESS:
            async with response:
                body = await self.intake.read(response, ERROR_BYTES)
                raise not_done(self._cluster, response.status, body, response.headers)
        return response

    async def _start(
        self,
        url: URL,
        timeout: aiohttp.ClientTimeout,
        headers: Mapping[str, str],
        presented: Presented,
    ) -> aiohttp.ClientResponse:
        return await self._open_session().request(
            "GET",
            url,
            headers={**headers, **self._headers_for(presented.authorization, None)},
            ssl=presented.tls or True,
            server_hostname=self._cluster.tls_server_name,
            proxy=self._cluster.proxy_url,
            timeout=timeout,
            allow_redirects=False,
        )

    async def _wait_for_turn(self, rate_limit: RateLimit) -> None:
        wait_seconds = rate_limit.reserve_seconds()
        if wait_seconds > 0:
            await self._sleep(wait_seconds)

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError(
                f"The connection to {self.server} is not open; use it inside `async with`"
            )
        return self._session

    def _url(self, target: str) -> URL:
        return URL(f"{self._cluster.server}{target}", encoded=True)

    def _headers_for(self, authorization: str | None, content_type: str | None) -> dict[str, str]:
        headers = self._headers.get((authorization, content_type))
        if headers is None:
            headers = {}
            if authorization is not None:
                headers["Authorization"] = authorization
            if content_type is not None:
                headers["Content-Type"] = content_type
            if len(self._headers) > MOST_KEPT_HEADERS:
                self._headers.clear()
            self._headers[authorization, content_type] = headers
        return headers


def _target(path: str, params: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(params)}" if params else path
