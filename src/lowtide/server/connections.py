"""The connections of a server: how many there are, which of them ask something at the moment, and
for how long the others have said nothing. `http.Server` listens with it, and closes by it."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakSet

from aiohttp import web

from lowtide.logs import Log

Clock = Callable[[], float]

_LOG = Log(__name__)
_TOLD_AGAIN_SECONDS = 60.0


class Connection(asyncio.Protocol):
    """Stands between a transport and aiohttp's handler of it: takes note, and changes nothing."""

    def __init__(self, connections: "Connections", handler: web.RequestHandler) -> None:
        self._connections = connections
        self._handler = handler
        self.accepted_at = self.idle_since = connections.clock()
        self.heard_at: float | None = None  # the first byte of a request that is not read yet
        self.has_asked = False
        self.is_asking = False
        self.is_lost = False
        self._is_rejected = False

    def seconds_silent(self, now: float) -> float:
        return now - (self.accepted_at if self.heard_at is None else self.heard_at)

    def seconds_waited_for(self, now: float) -> float:
        """Since a request has begun to come, or ought to have; one that is kept may be silent."""
        if self.is_asking or (self.has_asked and self.heard_at is None):
            return 0.0
        return self.seconds_silent(now)

    def close(self) -> None:
        self._handler.force_close()

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not self._connections.opened(self._handler, self):
            self._is_rejected = True
            assert isinstance(transport, asyncio.WriteTransport)
            transport.abort()
            return
        self._handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._is_rejected:
            return
        if not self.is_asking and self.heard_at is None:
            self.heard_at = self._connections.clock()
        self._handler.data_received(data)

    def eof_received(self) -> None:
        self._handler.eof_received()

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._is_rejected:
            return
        self._handler.connection_lost(exc)
        self.is_lost = True
        self._connections.lost(self._handler, self)


class Connections:
    """`clock` never jumps. At most `most` are open; handshakes of TLS, which are bounded in time,
    do not count."""

    def __init__(self, clock: Clock, most: int) -> None:
        self.clock = clock
        self._most = most
        self._reported_at: float | None = None
        self.accepted = 0  # since the start
        # Nobody tells of a TLS handshake that fails: then the loop just lets go of it.
        self._arriving: WeakSet[Connection] = WeakSet()
        self._open: dict[web.RequestHandler, Connection] = {}

    def accept(self, handler: web.RequestHandler) -> Connection:
        """The protocol of a new connection."""
        self.accepted += 1
        connection = Connection(self, handler)
        self._arriving.add(connection)
        return connection

    @contextmanager
    def asking(self, request: web.BaseRequest) -> Iterator[None]:
        """While this lasts, the request is under way."""
        handler = request.protocol
        connection = self._open.get(handler)
        if connection is None:  # lost before anybody looked at the request
            yield
            return
        connection.heard_at = None
        connection.has_asked = connection.is_asking = True
        try:
            yield
        finally:
            connection.is_asking = False
            connection.idle_since = self.clock()
            if connection.is_lost:
                self.lost(handler, connection)

    @property
    def open(self) -> list[Connection]:
        """Also those that were lost, while what they asked is under way: a binding, say."""
        return list(self._open.values())

    def are_arriving(self, within_seconds: float) -> bool:
        """Whether any is in the middle of a TLS handshake that is not older than that."""
        since = self.clock() - within_seconds
        return any(each.accepted_at > since for each in list(self._arriving))

    def opened(self, handler: web.RequestHandler, connection: Connection) -> bool:
        """Whether there is room for it, if need be after another one was closed."""
        self._arriving.discard(connection)
        if len(self._open) >= self._most and not self._makes_room():
            return False
        self._open[handler] = connection
        return True

    def _makes_room(self) -> bool:
        """Who takes up all of them without asking must not keep out the kubelet's probes; nor those
        who do ask, as another scheduler: its connections are the last to go."""
        self._log_that_it_is_full()
        idle = [each for each in self._open.items() if not each[1].is_asking]
        if not idle:
            return False
        handler, connection = min(idle, key=lambda each: (each[1].has_asked, each[1].idle_since))
        del self._open[handler]
        connection.close()
        return True

    def _log_that_it_is_full(self) -> None:
        now = self.clock()
        if self._reported_at is None or now - self._reported_at >= _TOLD_AGAIN_SECONDS:
            self._reported_at = now
            _LOG.warning(
                "Too many connections; those that ask nothing are closed, or else new ones",
                most=self._most,
            )

    def lost(self, handler: web.RequestHandler, connection: Connection) -> None:
        if not connection.is_asking:
            self._open.pop(handler, None)
