"""Kept connections to one server for writes, which are many and small: a channel carries one
request at a time, as bytes that were made beforehand.

Used by connection: what a general HTTP client does for each request takes three times the CPU."""

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import cast

from yarl import URL

from lowtide.input_limits import OBJECT_BYTES, Intake, TooLargeError
from lowtide.kube.http_answer import Answer, MalformedAnswerError, read_answer

# Shorter than servers and what stands before them wait: a write on a connection that is just
# being closed would leave a doubt.
LONGEST_IDLE_SECONDS = 15.0


class Channel(asyncio.Protocol):
    def __init__(self, loop: asyncio.AbstractEventLoop, intake: Intake) -> None:
        self._loop = loop
        self._intake = intake
        self._transport: asyncio.Transport | None = None
        self._answered: asyncio.Future[Answer] | None = None
        self._received = bytearray()  # of an answer that is not whole yet
        self._give_up_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.is_open = False
        self.idle_since = 0.0

    async def ask(self, request: bytes, timeout_seconds: float) -> Answer:
        """OSError when the connection or the time ends before the answer does."""
        assert self._transport is not None
        if not self.is_open:
            raise ConnectionResetError("the connection was closed")
        self._answered = self._loop.create_future()
        self._give_up_after(timeout_seconds)
        self._transport.write(request)
        try:
            answer = await self._answered
        except BaseException:  # also when nobody waits any more: the answer may come yet
            self.abort()
            raise
        finally:
            self._answered = None
        if answer.is_last:
            self.close()
        return answer

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True
        _probe_when_idle(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        if self._received:
            self._received += data
        self._take(self._received or data, is_ended=False)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._timer is not None:
            self._timer.cancel()
        self._take(self._received, is_ended=True)
        self._fail(error or ConnectionResetError("the server closed the connection"))

    def _take(self, received: bytes | bytearray, *, is_ended: bool) -> None:
        if self._answered is None or self._answered.done():
            self.close()  # nothing was asked: whatever this is, it is no answer
            return
        try:
            answer = read_answer(received, is_ended=is_ended)
        except MalformedAnswerError as error:
            self._fail(error)
            return
        except TooLargeError:
            self._fail(self._intake.rejection(OBJECT_BYTES))
            return
        if answer is not None:
            self._received.clear()
            self._answered.set_result(answer)
        elif not self._received:
            self._received += received

    def _give_up_after(self, seconds: float) -> None:
        """The timer of an earlier request will do unless it ends later: to start one and stop it
        for each would cost more than the answer takes to read."""
        self._give_up_at = self._loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._give_up_at:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_later(seconds, self._look_at_time)

    def _look_at_time(self) -> None:
        self._timer = None
        seconds_left = self._give_up_at - self._loop.time()
        if seconds_left <= 0:
            self._fail(TimeoutError())
        elif self._answered is not None:
            self._give_up_after(seconds_left)

    def _fail(self, error: Exception) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(error)


class Channels:
    """`server_name` is whom the certificate has to name, where that is not the URL's host."""

    def __init__(self, server: URL, server_name: str | None, intake: Intake) -> None:
        self._server = server
        self._server_name = server_name
        self._intake = intake
        self._loop = asyncio.get_running_loop()
        self._idle: list[Channel] = []
        self._tls: ssl.SSLContext | None = None
        self._is_closed = False

    async def take(self, tls: ssl.SSLContext | None, timeout_seconds: float) -> Channel:
        """An idle one, or a new one; OSError when there is no connection."""
        if tls is not self._tls:  # another certificate is to be shown
            self._drop_idle()
            self._tls = tls
        while self._idle:
            channel = self._idle.pop()
            if channel.is_open and self._loop.time() - channel.idle_since < LONGEST_IDLE_SECONDS:
                return channel
            channel.close()
        is_https = self._server.scheme == "https"
        async with asyncio.timeout(timeout_seconds):
            _, channel = await self._loop.create_connection(
                lambda: Channel(self._loop, self._intake),
                self._server.host or "",
                self._server.port or 0,
                ssl=(tls or True) if is_https else None,
                server_hostname=(self._server_name or self._server.host) if is_https else None,
            )
        return channel

    def give_back(self, channel: Channel, tls: ssl.SSLContext | None) -> None:
        if self._is_closed or tls is not self._tls:
            channel.close()
        elif channel.is_open:
            channel.idle_since = self._loop.time()
            self._idle.append(channel)

    def close(self) -> None:
        """Those under way close when they are given back."""
        self._is_closed = True
        self._drop_idle()

    def _drop_idle(self) -> None:
        for channel in self._idle:
            channel.abort()
        self._idle.clear()


def probed_socket(address: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
    """As aiohttp has them made, by what getaddrinfo says."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    _probe_when_idle(made)
    return made


def _probe_when_idle(made: socket.socket) -> None:
    """So that a server that vanished is noticed within 30 seconds."""
    with suppress(OSError):  # it is closed already
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
