"""Requests at fixed times, whether or not earlier ones are answered, over a few kept connections;
and large ones one after the other. One thread, no event loop: the client has to cost little.

The benchmark of the extender measures with it."""

import gc
import re
import select
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

Part = bytes | memoryview

_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_PIECE_BYTES = 1024 * 1024
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Shot:
    """A request, and when it is due, in seconds from the first."""

    due_seconds: float
    kind: str
    to: Address
    parts: Sequence[Part]  # head and body
    is_kept: bool = False  # whether its answer is of interest


@dataclass(frozen=True, slots=True)
class Hit:
    """An answer; the time is counted from when the request was due."""

    shot: Shot
    status: int
    body_bytes: int
    seconds: float
    late_seconds: float  # of it, until the request was begun to be sent
    body: bytes  # empty where it is not kept


def request_parts(to: Address, path: str, body: Sequence[Part]) -> tuple[Part, ...]:
    """As kube-scheduler sends it."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {to.host}:{to.port}\r\nUser-Agent: Go-http-client/1.1\r\n"
        f"Content-Length: {sum(map(len, body))}\r\nContent-Type: application/json\r\n"
        "Accept-Encoding: gzip\r\n\r\n"
    )
    return head.encode(), *body


def open_loop(shots: Sequence[Shot], *, connections: int) -> list[Hit]:
    """Each request is sent when it is due, or as soon as one of the connections is free."""
    by_address = {
        to: [_Connection(to) for _ in range(connections)] for to in {each.to for each in shots}
    }
    everyone = [each for those in by_address.values() for each in those]
    idle = {to: deque(those) for to, those in by_address.items()}
    waiting: dict[Address, deque[Shot]] = {to: deque() for to in by_address}
    upcoming = deque(shots)
    hits: list[Hit] = []
    try:
        with _without_garbage_collection():
            start = time.perf_counter()
            while len(hits) < len(shots):
                now = time.perf_counter() - start
                while upcoming and upcoming[0].due_seconds <= now:
                    shot = upcoming.popleft()
                    waiting[shot.to].append(shot)
                for to, queue in waiting.items():
                    while queue and idle[to]:
                        idle[to].popleft().begin(queue.popleft(), time.perf_counter() - start)
                busy = [each for each in everyone if each.shot is not None]
                due_in = upcoming[0].due_seconds - now if upcoming else _PATIENCE_SECONDS
                if not busy and not upcoming:
                    raise RuntimeError(f"{len(hits)} of {len(shots)} requests are answered")
                # Neither poll nor epoll waits for less than a millisecond.
                readable, writable, _ = select.select(
                    busy, [each for each in busy if each.is_sending], [], max(0.0, due_in)
                )
                for connection in writable:
                    connection.send()
                for connection in readable:
                    hit = connection.receive(start)
                    if hit is not None:
                        hits.append(hit)
                        idle[hit.shot.to].append(connection)
    finally:
        for connection in everyone:
            connection.close()
    return hits


def one_by_one(shots: Sequence[Shot]) -> list[Hit]:
    """Each after the answer to the last; when they are due does not matter."""
    connections = {to: _Connection(to) for to in {each.to for each in shots}}
    hits: list[Hit] = []
    try:
        for shot in shots:
            start = time.perf_counter() - shot.due_seconds
            connection = connections[shot.to]
            connection.begin(shot, shot.due_seconds)
            hit = None
            while hit is None:
                readable, writable, _ = select.select(
                    [connection], [connection] if connection.is_sending else [], [], None
                )
                if writable:
                    connection.send()
                if readable:
                    hit = connection.receive(start)
            hits.append(hit)
    finally:
        for connection in connections.values():
            connection.close()
    return hits


class _Connection:
    """One request at a time."""

    def __init__(self, to: Address) -> None:
        self._to = to
        self._socket = socket.create_connection((to.host, to.port), timeout=_PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self._piece = bytearray(_PIECE_BYTES)
        self.shot: Shot | None = None
        self._unsent: deque[memoryview] = deque()

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    @property
    def is_sending(self) -> bool:
        return bool(self._unsent)

    def begin(self, shot: Shot, now: float) -> None:
        self.shot = shot
        self._unsent = deque(memoryview(part) for part in shot.parts)
        self._late_seconds = now - shot.due_seconds
        self._head = b""
        self._status = 0
        self._wanted = 0
        self._received = 0
        self._kept: list[bytes] = []
        self.send()

    def send(self) -> None:
        while self._unsent:
            try:
                sent = self._socket.sendmsg(self._unsent)
            except BlockingIOError:
                return
            while self._unsent and sent >= len(self._unsent[0]):
                sent -= len(self._unsent.popleft())
            if sent:
                self._unsent[0] = self._unsent[0][sent:]

    def receive(self, start: float) -> Hit | None:
        """What has arrived; the hit when that is all."""
        assert self.shot is not None
        try:
            count = self._socket.recv_into(self._piece)
        except BlockingIOError:
            return None
        if not count:
            raise ConnectionError(f"{self._to} closed the connection in the middle of an answer")
        data = memoryview(self._piece)[:count]
        if not self._status:
            data = self._after_head(data)
        self._received += len(data)
        if self.shot.is_kept:
            self._kept.append(bytes(data))
        if not self._status or self._received < self._wanted:
            return None
        seconds = time.perf_counter() - start - self.shot.due_seconds
        body = b"".join(self._kept)
        hit = Hit(self.shot, self._status, self._wanted, seconds, self._late_seconds, body)
        self.shot = None
        return hit

    def _after_head(self, data: memoryview) -> memoryview:
        self._head += bytes(data)
        end = self._head.find(_HEAD_END)
        if end < 0:
            return data[:0]
        length = _LENGTH.search(self._head, 0, end)
        if length is None:
            raise ConnectionError(f"{self._to} answers without a Content-Length: {self._head!r}")
        self._status = int(self._head.split(b" ", 2)[1])
        self._wanted = int(length[1])
        before = len(self._head) - len(data)
        return data[end + len(_HEAD_END) - before :]


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
