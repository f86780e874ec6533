"""Many small requests to the API server over kept connections, at little CPU each.

Drains create their objects with it; run as a program it posts bindings as fast as the API server
takes them, which is the limit that schedulers are compared with."""

import argparse
import asyncio
import json
import ssl
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import uvloop

# 3000 bindings at 5000 nodes on two cores, a second: 800 with 8 at once, 710 to 1170 with 16, 990
# to 1080 with 32, 950 with 64, 830 with 128.
AT_ONCE = 32
_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = b"content-length: "
_LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Server:
    """Where requests go, and in whose name."""

    url: str
    ca_file: str
    token: str

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 443

    def request(self, method: str, path: str, body: Mapping[str, Any]) -> bytes:
        content = json.dumps(body, separators=(",", ":")).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\n"
            f"Host: {urlsplit(self.url).netloc}\r\n"
            f"Authorization: Bearer {self.token}\r\n"
            "Content-Type: application/json\r\n"
            "Accept: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        return head.encode() + content


class RejectedError(Exception):
    """The API server's answer was not a success."""


def send_all(server: Server, requests: Iterable[bytes], at_once: int = AT_ONCE) -> None:
    """Returns when all are answered; raises RejectedError for an answer that is no success."""
    uvloop.run(_send_all(server, deque(requests), at_once))


async def _send_all(server: Server, waiting: deque[bytes], at_once: int) -> None:
    loop = asyncio.get_running_loop()
    tls = ssl.create_default_context(cafile=server.ca_file)
    senders: list[_Sender] = []
    try:
        for _ in range(min(at_once, len(waiting))):
            make = partial(_Sender, waiting, loop.create_future())
            _, sender = await loop.create_connection(make, server.host, server.port, ssl=tls)
            senders.append(sender)
        await asyncio.gather(*(sender.end for sender in senders))
    finally:
        for sender in senders:
            sender.abort()
        await asyncio.sleep(0)  # the loop rejects to close over what is still being closed


class _Sender(asyncio.Protocol):
    """One connection: takes the next waiting request when the last is answered."""

    def __init__(self, waiting: deque[bytes], end: asyncio.Future[None]) -> None:
        self._waiting = waiting
        self.end = end
        self._answer = b""
        self._request = b""
        self._is_done = False
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._next()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if not is_whole(self._answer):
            return
        if self._answer[9:10] != b"2":
            self._fail(f"{self._request.split(b' HTTP', 1)[0]!r} was answered {self._answer!r}")
            return
        self._answer = b""
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._is_done:
            self._fail(f"the connection ended before {self._request[:200]!r}: {error!r}")
        elif not self.end.done():
            self.end.set_result(None)

    def _next(self) -> None:
        assert self._transport is not None
        if self._waiting:
            self._request = self._waiting.popleft()
            self._transport.write(self._request)
            return
        self._is_done = True
        self.abort()

    def _fail(self, message: str) -> None:
        if not self.end.done():
            self.end.set_exception(RejectedError(message))


def is_whole(answer: bytes) -> bool:
    """Of the API server's answers, which state their length or come in chunks."""
    head, found, content = answer.partition(_END_OF_HEAD)
    if not found:
        return False
    lower = head.lower()
    begin = lower.find(_LENGTH)
    if begin < 0:
        return content.endswith(_LAST_CHUNK)
    length, _, _ = lower[begin + len(_LENGTH) :].partition(b"\r\n")
    return len(content) >= int(length)


def bindings(
    server: Server, namespace: str, pod_names: Sequence[str], node_names: Sequence[str]
) -> Iterator[bytes]:
    """Each pod to the next node."""
    for number, name in enumerate(pod_names):
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace},
            "target": {"kind": "Node", "name": node_names[number % len(node_names)]},
        }
        yield server.request("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--ca-file", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--names", type=Path, required=True, help="JSON: pods and nodes, by name")
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    options = parser.parse_args()
    server = Server(options.url, options.ca_file, options.token)
    names = json.loads(options.names.read_text())
    requests = list(bindings(server, options.namespace, names["pods"], names["nodes"]))
    begin, cpu_begin = time.monotonic(), time.process_time()
    send_all(server, requests, options.at_once)
    seconds, cpu_seconds = time.monotonic() - begin, time.process_time() - cpu_begin
    print(
        f"{len(requests)} bindings in {seconds:.2f} s, {len(requests) / seconds:.0f} a second, "
        f"{cpu_seconds * 1000 / len(requests):.3f} ms of CPU each",
        flush=True,
    )
    # The one who started this reads its CPU time while it is there, and ends it.
    while True:
        time.sleep(60.0)


if __name__ == "__main__":
    main()
