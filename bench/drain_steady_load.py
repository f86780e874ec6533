"""Creates pods at a steady pace and sees by a watch how long each waits for a node; run by steady.

One process and one clock: a pod is created when the watch says so, and bound when the watch says
so. The pace is kept however slow the answers are."""

import argparse
import asyncio
import json
import ssl
import sys
import time
from collections import deque
from typing import Any, cast

import uvloop

from drain_posting import Server, is_whole
from workloads import MEASURED, make_pod, requests

CONNECTIONS = 8
_NAME = b'"name":"'
_NODE_NAME = b'"nodeName":"'


class Connection(asyncio.Protocol):
    """Sends one request at a time; says when it is free again."""

    def __init__(self, free: deque["Connection"], waiting: deque[bytes]) -> None:
        self._free = free
        self._waiting = waiting
        self._answer = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._free.append(self)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if not is_whole(self._answer):
            return
        if self._answer[9:10] != b"2":
            sys.exit(f"a pod was answered {self._answer!r}")
        self._answer = b""
        if self._waiting:
            self.send(self._waiting.popleft())
        else:
            self._free.append(self)

    def send(self, request: bytes) -> None:
        assert self._transport is not None
        self._transport.write(request)


class Watch(asyncio.Protocol):
    """When each pod was there, and when it had a node."""

    def __init__(self, request: bytes) -> None:
        self.created_at: dict[bytes, float] = {}
        self.bound_at: dict[bytes, float] = {}
        self.is_open = asyncio.Event()
        self.has_ended = False
        self._request = request
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.WriteTransport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        *lines, self._rest = (self._rest + data).split(b"\n")
        if lines:
            self.is_open.set()
        for line in lines:
            if line.startswith(b'{"type":"'):
                self._seen(line, now)

    def connection_lost(self, error: Exception | None) -> None:
        self.has_ended = True

    def _seen(self, line: bytes, now: float) -> None:
        begin = line.index(_NAME) + len(_NAME)
        name = line[begin : line.index(b'"', begin)]
        self.created_at.setdefault(name, now)
        if _NODE_NAME in line:
            self.bound_at.setdefault(name, now)


async def run(server: Server, options: argparse.Namespace) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    tls = ssl.create_default_context(cafile=server.ca_file)
    path = f"/api/v1/namespaces/{MEASURED}/pods"
    words = f"GET {path}?watch=true&resourceVersion={options.version} HTTP/1.0\r\n"
    asked = f"{words}Authorization: Bearer {server.token}\r\n\r\n".encode()
    _, watch = await loop.create_connection(lambda: Watch(asked), server.host, server.port, ssl=tls)
    await watch.is_open.wait()
    free: deque[Connection] = deque()
    waiting: deque[bytes] = deque()
    for _ in range(CONNECTIONS):
        await loop.create_connection(
            lambda: Connection(free, waiting), server.host, server.port, ssl=tls
        )
    bodies = [
        server.request(
            "POST", path, make_pod(f"pod-{each:05}", MEASURED, requests("100m", "500Mi"))
        )
        for each in range(options.pods)
    ]
    begin = time.monotonic()
    for number, body in enumerate(bodies):
        await asyncio.sleep(begin + number / options.pods_per_second - time.monotonic())
        if free:
            free.popleft().send(body)
        else:
            waiting.append(body)
    ends_at = time.monotonic() + options.longest_seconds
    while len(watch.bound_at) < options.pods and time.monotonic() < ends_at:
        await asyncio.sleep(0.05)
    if watch.has_ended:
        raise ConnectionError("the API server ended the watch; the load is not measured")
    return _told(watch, options.warm_up)


def _told(watch: Watch, warm_up: int) -> dict[str, Any]:
    """Seconds from creation to binding in the order of creation, but for the first pods."""
    names = sorted(watch.created_at)[warm_up:]
    bound = [name for name in names if name in watch.bound_at]
    waited = [watch.bound_at[name] - watch.created_at[name] for name in bound]
    span = max(watch.bound_at.values(), default=0.0) - min(watch.bound_at.values(), default=0.0)
    return {
        "waited_seconds": waited,
        "unbound": len(names) - len(bound),
        "pods_per_second": len(watch.bound_at) / span if span else 0.0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--ca-file", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--version", required=True, help="the resourceVersion to watch from")
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--pods-per-second", type=float, required=True)
    parser.add_argument("--warm-up", type=int, required=True, help="pods that do not count")
    parser.add_argument("--longest-seconds", type=float, default=60.0)
    options = parser.parse_args()
    server = Server(options.url, options.ca_file, options.token)
    print(json.dumps(uvloop.run(run(server, options))), flush=True)


if __name__ == "__main__":
    main()
