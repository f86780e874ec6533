"""The one HTTP(S) server of every mode; app has it made by `serving`, starts and stops it."""

import asyncio
import errno
import logging
import os
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from lowtide.logs import Log
from lowtide.server.bodies import write_response
from lowtide.server.certificate import Certificate, TlsFiles
from lowtide.server.connections import Connection, Connections
from lowtide.server.errors import ServerError
from lowtide.server.loopback import is_loopback
from lowtide.server.newcomers import ignore_newcomers
from lowtide.server.self_signed import SelfSigned
from lowtide.server.web_pages import RejectedRequest, rejection_of

_LOG = Log(__name__)
DEFAULT_MAX_BODY_BYTES = 1024 * 1024
_LOOK_SECONDS = 0.01
_BACKLOG = 1024
# What is left when the drain is over has had its time (0 would wait for ever).
_CUT_OFF_SECONDS = 0.1
# A client that is rejected may not have sent all of its body, and reads only after that.
_UNREAD_BODY_SECONDS = 2.0
# Half of the descriptors that a process has by default, so that it can still ask the API server. A
# kube-scheduler keeps a few dozen at the most.
_MOST_CONNECTIONS = 500
_LONGEST_HANDSHAKE_SECONDS = 10.0
# The head of a request is a few hundred bytes.
_HEAD_SECONDS = 30.0
# Longer than clients written in Go keep a connection that they do not use: whoever closes it first
# may cross with a request of the other.
_KEPT_SECONDS = 120.0
# When we stop to take more connections: for those in line, and for a handshake under way.
_IN_LINE_SECONDS = 0.5
_HANDSHAKE_SECONDS = 1.0
_LOGGED_AGAIN_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where a started server listens."""

    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"{self.scheme}://{_host_and_port(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class Drain:
    """How long a stopping server waits: for clients to hear that they had better go elsewhere,
    while it still takes connections; then for requests under way, and for one that may be on its
    way through a connection without any, as its client cannot know yet that we stop."""

    request_seconds: float = 5.0  # kube-scheduler's
    idle_seconds: float = 0.2
    accept_seconds: float = 0.0


DEFAULT_DRAIN = Drain()
# Of a server behind a Service, whose endpoints follow only after its /readyz has failed.
SERVICE_DRAIN = Drain(accept_seconds=3.0)


class Server:
    """Serves routes on one address, over TLS where files are given or a certificate of its own is
    wanted.

    Port 0 takes any free port; `address` says which. With `client_ca`, clients are asked for a
    certificate of it, and may show none: routes look at that themselves. What a web page of another
    site makes a browser send is rejected (`web_pages`), and `on_rejected` gets the reason.
    """

    def __init__(
        self,
        routes: Iterable[web.AbstractRouteDef],
        *,
        port: int,
        bind_address: str = "127.0.0.1",
        tls: TlsFiles | None = None,
        is_self_signed: bool = False,
        client_ca: Path | None = None,
        max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
        drain: Drain = DEFAULT_DRAIN,
        head_seconds: float = _HEAD_SECONDS,
        most_connections: int = _MOST_CONNECTIONS,
        on_rejected: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self._routes = tuple(routes)
        self._port = port
        self._bind_address = bind_address
        self._tls = tls
        self._is_self_signed = is_self_signed
        self._client_ca = client_ca
        self._max_body_bytes = max_body_bytes
        self._drain = drain
        self._head_seconds = head_seconds
        self._connections = Connections(time.monotonic, most_connections)
        self._started: _Started | None = None
        self._is_draining = False
        self._is_on_loopback = is_loopback(bind_address)
        self._on_rejected = on_rejected
        self._logged_at: float | None = None

    @property
    def routes(self) -> tuple[web.AbstractRouteDef, ...]:
        """What it serves, each as it is answered."""
        return self._routes

    @property
    def address(self) -> Address:
        if self._started is None:
            raise ServerError(f"the server on {self._wanted} has no address before it is started")
        host, port = self._started.listening.sockets[0].getsockname()[:2]
        is_encrypted = self._tls is not None or self._is_self_signed
        return Address("https" if is_encrypted else "http", host, port)

    async def start(self) -> None:
        if not 0 <= self._port <= 65535:
            raise ServerError(f"cannot serve on {self._wanted}: a port is a number from 0 to 65535")
        own = None
        if self._is_self_signed:
            own = SelfSigned(self._bind_address, now=time.time())
        tls = self._tls if own is None else own.files
        context = None
        if tls is not None:
            certificate = Certificate(
                tls, self._client_ca, clock=time.monotonic, wall_clock=time.time
            )
            context = certificate.serving_context()
        runner = web.AppRunner(
            self._make_application(),
            access_log=None,
            auto_decompress=False,  # nobody sends us such, and small ones can become large
            keepalive_timeout=_KEPT_SECONDS,
            lingering_time=_UNREAD_BODY_SECONDS,
            logger=_QuietAboutClients(logging.getLogger(__name__)),
            shutdown_timeout=_CUT_OFF_SECONDS,
        )
        await runner.setup()
        make_handler = runner.server
        assert make_handler is not None
        try:
            listening = await asyncio.get_running_loop().create_server(
                lambda: self._connections.accept(make_handler()),
                self._bind_address,
                self._port,
                ssl=context,
                backlog=_BACKLOG,
                ssl_handshake_timeout=None if context is None else _LONGEST_HANDSHAKE_SECONDS,
            )
        except OSError as failure:
            await runner.cleanup()
            if own is not None:
                own.close()
            raise ServerError(self._why_not_bound(failure)) from failure
        closing = asyncio.create_task(self._close_unfinished())
        self._started = _Started(runner, listening, closing, own)
        self._is_draining = False

    async def stop(self) -> None:
        """Takes new connections for a while, and answers what was asked before it closes the
        others."""
        if self._started is None:
            return
        started, self._started = self._started, None
        self._is_draining = True
        await asyncio.sleep(self._drain.accept_seconds)
        await self._stop_listening(started.listening)
        await self._drain_connections()
        started.closing.cancel()
        await started.runner.cleanup()
        if started.own_certificate is not None:
            started.own_certificate.close()

    # Parts of it.

    def _make_application(self) -> web.Application:
        application = web.Application(
            middlewares=[self._answer], client_max_size=self._max_body_bytes
        )
        application.on_response_prepare.append(self._part_when_draining)
        application.add_routes(self._routes)
        return application

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Knows of each request until its answer is written to the last byte."""
        with self._connections.asking(request):
            rejection = rejection_of(request, is_on_loopback=self._is_on_loopback)
            if rejection is None:
                response = await handler(request)
            else:
                response = self._reject(request, rejection)
            await write_response(request, response)
            return response

    def _reject(self, request: web.Request, rejection: RejectedRequest) -> web.Response:
        self._on_rejected(rejection.reason)
        now = self._connections.clock()
        said = {"path": request.path, "status": rejection.status, "err": rejection.error}
        if self._logged_at is None or now - self._logged_at >= _LOGGED_AGAIN_SECONDS:
            self._logged_at = now
            _LOG.warning("A request is rejected", **said)
        else:
            _LOG.v(4, "A request is rejected", **said)
        return web.json_response({"error": rejection.error}, status=rejection.status)

    async def _part_when_draining(self, _: web.Request, response: web.StreamResponse) -> None:
        if self._is_draining:
            part_after(response)

    async def _close_unfinished(self) -> None:
        """Those on which no request comes, or half a one."""
        while True:
            await asyncio.sleep(self._head_seconds / 10)
            now = self._connections.clock()
            for connection in self._connections.open:
                if connection.seconds_waited_for(now) >= self._head_seconds:
                    connection.close()

    async def _stop_listening(self, listening: asyncio.Server) -> None:
        """Once everybody is in who stands in line already."""
        connections = self._connections
        for each in listening.sockets:
            ignore_newcomers(each)
        begun = connections.clock()
        while True:
            accepted = connections.accepted
            await asyncio.sleep(_LOOK_SECONDS)
            is_late = connections.clock() - begun >= _IN_LINE_SECONDS
            if connections.accepted == accepted or is_late:
                break
        listening.close()

    async def _drain_connections(self) -> None:
        """aiohttp's own way stops reading at once, and loses requests with half a body."""
        connections = self._connections
        begun = connections.clock()
        silent_before: set[Connection] = set()
        while (opened := connections.open) or connections.are_arriving(_HANDSHAKE_SECONDS):
            now = connections.clock()
            if now - begun >= self._drain.request_seconds:
                asking = sum(each.is_asking for each in opened)
                _LOG.warning("Stopping without an answer to some", requests=asking)
                return
            silent = {each for each in opened if self._is_silent(each, now, begun)}
            # Twice: after a moment in which the loop was busy, what has come is not read yet.
            for connection in silent & silent_before:
                connection.close()
            silent_before = silent
            await asyncio.sleep(_LOOK_SECONDS)

    def _is_silent(self, connection: Connection, now: float, begun: float) -> bool:
        seconds = min(connection.seconds_silent(now), now - begun)
        return not connection.is_asking and seconds >= self._drain.idle_seconds

    @property
    def _wanted(self) -> str:
        return _host_and_port(self._bind_address, self._port)

    def _why_not_bound(self, failure: OSError) -> str:
        if failure.errno == errno.EADDRINUSE:
            return (
                f"cannot serve on {self._wanted}: another process listens there; "
                "choose another port or stop that process"
            )
        if failure.errno == errno.EACCES:
            return (
                f"cannot serve on {self._wanted}: this user may not open port {self._port}; "
                "choose a port above 1023"
            )
        is_lookup = isinstance(failure, socket.gaierror)
        reason = failure.strerror if is_lookup else os.strerror(failure.errno or errno.EINVAL)
        return (
            f"cannot serve on {self._wanted}: {reason}; "
            "the bind address must be an address of this machine, such as 127.0.0.1 or 0.0.0.0"
        )


def part_after(response: web.StreamResponse) -> None:
    """The connection ends with this answer, and its client is told so."""
    response.force_close()
    response.headers["Connection"] = "close"


@dataclass(frozen=True, slots=True)
class _Started:
    runner: web.AppRunner
    listening: asyncio.Server
    closing: asyncio.Task[None]
    own_certificate: SelfSigned | None


class _QuietAboutClients(logging.LoggerAdapter[logging.Logger]):
    """aiohttp's log, in which requests that are not HTTP would be errors of ours."""

    def log(self, level: int, msg: object, *args: object, **options: Any) -> None:
        failure = options.get("exc_info")
        if isinstance(failure, HttpProcessingError):
            _LOG.v(4, "A request is not HTTP", err=" ".join(failure.message.split()))
        else:
            super().log(level, msg, *args, **options)


def _host_and_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
