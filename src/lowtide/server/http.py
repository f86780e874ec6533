"""The one HTTP(S) server of every mode; app has it made by `serving`, starts and stops it."""

import asyncio
import errno
import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from lowtide.logs import Log
from lowtide.server.certificate import Certificate, TlsFiles, refuse_without_certificate
from lowtide.server.errors import ServerError

_LOG = Log(__name__)
DEFAULT_MAX_BODY_BYTES = 1024 * 1024
_LOOK_SECONDS = 0.01
# What is left when the drain is over has had its time (0 would wait for ever).
_CUT_OFF_SECONDS = 0.1
# A client that is refused may not have sent all of its body, and reads only after that.
_UNREAD_BODY_SECONDS = 2.0


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
    """How long a stopping server waits: for requests under way, and for one that may be on its
    way through a connection without any, as its client cannot know yet that we stop."""

    request_seconds: float = 5.0  # kube-scheduler's
    idle_seconds: float = 0.2


DEFAULT_DRAIN = Drain()


class Server:
    """Serves routes on one address, over TLS where files are given.

    Port 0 takes any free port; `address` says which. Without `client_ca`, whoever may connect
    may ask everything, so it listens on loopback unless told otherwise.
    """

    def __init__(
        self,
        routes: Iterable[web.AbstractRouteDef],
        *,
        port: int,
        bind_address: str = "127.0.0.1",
        tls: TlsFiles | None = None,
        client_ca: Path | None = None,
        max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
        drain: Drain = DEFAULT_DRAIN,
    ) -> None:
        self._routes = tuple(routes)
        self._port = port
        self._bind_address = bind_address
        self._tls = tls
        self._client_ca = client_ca
        self._max_body_bytes = max_body_bytes
        self._drain = drain
        self._runner: web.AppRunner | None = None
        self._is_draining = False
        self._asking: set[object] = set()  # connections with a request under way

    @property
    def address(self) -> Address:
        if self._runner is None or not self._runner.addresses:
            raise ServerError(f"the server on {self._wanted} has no address before it is started")
        host, port = self._runner.addresses[0][:2]
        return Address("https" if self._tls else "http", host, port)

    async def start(self) -> None:
        if not 0 <= self._port <= 65535:
            raise ServerError(f"cannot serve on {self._wanted}: a port is a number from 0 to 65535")
        context = None
        if self._tls is not None:
            context = Certificate(self._tls, self._client_ca).serving_context()
        runner = web.AppRunner(
            self._make_application(),
            access_log=None,
            auto_decompress=False,  # nobody sends us such, and small ones can become large
            lingering_time=_UNREAD_BODY_SECONDS,
            shutdown_timeout=_CUT_OFF_SECONDS,
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, self._bind_address, self._port, ssl_context=context).start()
        except OSError as failure:
            await runner.cleanup()
            raise ServerError(self._why_not_bound(failure)) from failure
        self._runner = runner
        self._is_draining = False

    async def stop(self) -> None:
        """Takes no new connections, and answers what was asked before it closes the others."""
        if self._runner is None:
            return
        runner, self._runner = self._runner, None
        await self._drain_connections(runner)
        await runner.cleanup()

    # Parts of it.

    def _make_application(self) -> web.Application:
        middlewares = [self._answer]
        if self._client_ca is not None:
            middlewares.append(refuse_without_certificate)
        application = web.Application(middlewares=middlewares, client_max_size=self._max_body_bytes)
        application.on_response_prepare.append(self._part_when_draining)
        application.add_routes(self._routes)
        return application

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Knows of each request until its answer is written to the last byte."""
        self._asking.add(request.protocol)
        try:
            response = await handler(request)
            with suppress(ConnectionError):  # the client is gone: aiohttp sees that by itself
                await response.prepare(request)
                await response.write_eof()
            return response
        finally:
            self._asking.discard(request.protocol)

    async def _part_when_draining(self, _: web.Request, response: web.StreamResponse) -> None:
        if self._is_draining:
            response.force_close()
            response.headers["Connection"] = "close"

    async def _drain_connections(self, runner: web.AppRunner) -> None:
        """aiohttp's own way stops reading at once, and loses requests with half a body."""
        assert runner.server is not None
        self._is_draining = True
        await asyncio.sleep(_LOOK_SECONDS)  # lets in who stands in line already
        for site in runner.sites:
            await site.stop()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while connections := runner.server.connections:
            waited_seconds = loop.time() - begun
            if waited_seconds >= self._drain.idle_seconds:
                for connection in connections:
                    if connection not in self._asking:
                        connection.force_close()
            if waited_seconds >= self._drain.request_seconds:
                _LOG.warning("Stopping without an answer to some", requests=len(self._asking))
                return
            await asyncio.sleep(_LOOK_SECONDS)

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


def _host_and_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
