"""Sees from outside when which pod was bound and when its Event was there; run by drain.

A process of its own that takes little from what it measures: it looks in ticks, finds what it needs
in the bytes of the watches without decoding them, and asks for bound pods only."""

import argparse
import json
import os
import socket
import ssl
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from machine_cpu import machine_cpu_seconds

MACHINE = "machine"
TICK_SECONDS = 0.01
# CPU is read this seldom once pods are being bound: only the last reading counts then.
CPU_SECONDS = 0.05
# kube-scheduler drops Events when too many wait: the last is the one that nothing follows.
NO_MORE_EVENTS_SECONDS = 2.0
_NAME = b'"name":"'
_VERSION = b'"resourceVersion":"'
_NODE_NAME = b'"nodeName":"'
_ADDED = b'{"type":"ADDED"'
_GONE = b'{"type":"DELETED"'


class Watch:
    """The lines of one watch, read without waiting; opened again where the server ends it.

    It asks as HTTP/1.0 does, so that the answer is the lines and nothing between them."""

    def __init__(self, url: str, ca_file: str, token: str, path: str) -> None:
        self._parts = urlsplit(url)
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._token = token
        self._path = path
        self._socket: ssl.SSLSocket | None = None
        self._rest = b""
        self._version = ""

    def open(self, version: str) -> None:
        """Blocks until the API server has begun to answer."""
        address = (self._parts.hostname or "", self._parts.port or 443)
        plain = socket.create_connection(address)
        self._socket = self._tls.wrap_socket(plain, server_hostname=self._parts.hostname)
        path = f"{self._path}&watch=true&resourceVersion={version}"
        words = f"GET {path} HTTP/1.0\r\nAuthorization: Bearer {self._token}\r\n\r\n"
        self._socket.sendall(words.encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = self._socket.recv(1 << 16)
            if not piece:
                raise ConnectionError(f"GET {path} was answered {answer!r}")
            answer += piece
        head, _, self._rest = answer.partition(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise ConnectionError(f"GET {path} was answered {answer!r}")
        self._version = version
        self._socket.setblocking(False)

    def lines(self) -> Iterator[bytes]:
        pieces, is_over = self._read()
        if pieces:
            *whole, self._rest = b"".join([self._rest, *pieces]).split(b"\n")
            yield from whole
            if whole:
                self._version = _after(_VERSION, whole[-1])
        if is_over:
            self.open(self._version)
            print(
                "the API server ended a watch of the benchmark's observer, which goes on where it "
                f"was: nothing is missed ({self._path.partition('?')[0]})",
                file=sys.stderr,
            )

    def _read(self) -> tuple[list[bytes], bool]:
        assert self._socket is not None
        pieces: list[bytes] = []
        while True:
            try:
                piece = self._socket.recv(1 << 18)
            except (ssl.SSLWantReadError, BlockingIOError):
                return pieces, False
            if not piece:
                return pieces, True
            pieces.append(piece)


class Cpu:
    """CPU seconds of processes, and of the machine, when they were last looked at, by name."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._files = {name: Path(f"/proc/{pid}/stat") for name, pid in pids.items()}
        self._ticks_per_second = os.sysconf("SC_CLK_TCK")

    def seconds(self) -> dict[str, float]:
        found = {name: self._of(file) for name, file in self._files.items()}
        return {**found, MACHINE: machine_cpu_seconds()}

    def _of(self, file: Path) -> float:
        fields = file.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / self._ticks_per_second


class Looking:
    """Looks until every pod is bound and no Event follows, or the time is over."""

    def __init__(self, pods: Watch, events: Watch, victims: Watch, wanted: int) -> None:
        self._pods = pods
        self._events = events
        self._victims = victims
        self._wanted = wanted
        # When the first pod was bound, or before that evicted to make room.
        self.begun_at = 0.0
        self.bound_at: dict[str, float] = {}
        self.node_of: dict[str, str] = {}
        self.event_at: list[float] = []
        self._last_at = 0.0
        self.cpu_before: dict[str, float] = {}
        self.cpu_after: dict[str, float] = {}

    def run(self, cpu: Cpu, longest_seconds: float, *, has_events: bool) -> None:
        """CPU counts from the last look before a deed was seen to the first look after the
        last Event: what a scheduler spends on its start is no part of a pod's cost."""
        ends_at = time.monotonic() + longest_seconds
        looks_again_at = 0.0
        self.cpu_before = self.cpu_after = cpu.seconds()
        while not self._is_done(time.monotonic(), ends_at, has_events=has_events):
            time.sleep(TICK_SECONDS)
            now = time.monotonic()
            before = len(self.bound_at), len(self.event_at)
            self._look(now)
            if not self.begun_at:
                self.cpu_before = cpu.seconds()
            elif before != (len(self.bound_at), len(self.event_at)) and now >= looks_again_at:
                looks_again_at = now + CPU_SECONDS
                self.cpu_after = cpu.seconds()
        if not has_events or len(self.event_at) == self._wanted:
            self.cpu_after = cpu.seconds()

    def _look(self, now: float) -> None:
        for line in self._pods.lines():
            if line.startswith(_GONE):
                continue
            name, node_name = _after(_NAME, line), _after(_NODE_NAME, line)
            before = self.node_of.setdefault(name, node_name)
            if before != node_name:
                raise AssertionError(f"pod {name} was bound to {before} and then to {node_name}")
            self.bound_at.setdefault(name, now)
            self.begun_at = self.begun_at or now
            self._last_at = now
        for line in self._events.lines():
            if line.startswith(_ADDED):
                self.event_at.append(now)
                self._last_at = now

        for _ in self._victims.lines():
            self.begun_at = self.begun_at or now

    def _is_done(self, now: float, ends_at: float, *, has_events: bool) -> bool:
        if now > ends_at:
            return True
        if len(self.bound_at) < self._wanted:
            return False
        if not has_events or len(self.event_at) >= self._wanted:
            return True
        return now > self._last_at + NO_MORE_EVENTS_SECONDS


def _after(mark: bytes, line: bytes) -> str:
    begin = line.index(mark) + len(mark)
    return line[begin : line.index(b'"', begin)].decode()


def main(arguments: Sequence[str]) -> None:
    """Says `{"watching": true}`, reads what to do, and says what was seen, each in one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--ca-file", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--victims-namespace", required=True, help="pods that may have to go")
    parser.add_argument("--pods-version", required=True)
    parser.add_argument("--events-version", required=True)
    options = parser.parse_args(arguments)
    access = options.url, options.ca_file, options.token
    folder = f"/api/v1/namespaces/{options.namespace}"
    pods = Watch(*access, f"{folder}/pods?fieldSelector=spec.nodeName!=")
    pods.open(options.pods_version)
    events = Watch(*access, f"{folder}/events?fieldSelector=reason=Scheduled")
    events.open(options.events_version)
    before = f"/api/v1/namespaces/{options.victims_namespace}"
    victims = Watch(*access, f"{before}/pods?fieldSelector=spec.nodeName!=")
    victims.open(options.pods_version)
    _say({"watching": True})
    order: dict[str, Any] = json.loads(sys.stdin.readline())
    looking = Looking(pods, events, victims, order["pods"])
    begin_cpu_seconds = time.process_time()
    looking.run(Cpu(order["pids"]), order["longest_seconds"], has_events=order["has_events"])
    _say(
        {
            "begun_at": looking.begun_at,
            "bound_at": looking.bound_at,
            "nodes_used": len(set(looking.node_of.values())),
            "event_at": looking.event_at,
            "cpu_seconds": {
                name: looking.cpu_after[name] - looking.cpu_before[name]
                for name in looking.cpu_before
            },
            "own_cpu_seconds": time.process_time() - begin_cpu_seconds,
        }
    )


def _say(answer: Mapping[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
