"""The real extender's HTTP and plugins, all default plugins and more, on the cluster that was
recorded; and a client that sends it anything."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Self

import msgspec
from tests.properties.request_mutations import Mutator
from tests.server.recorded_extender import Recorded, recorded_requests

from lowtide.advisor.advising import Advising, Listening
from lowtide.advisor.advisor import Advisor
from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder
from lowtide.objects.events import Added, Listed
from lowtide.objects.extender import (
    BindingResult,
    FilterResult,
    HostPriority,
    NodesNamed,
    PreemptionResult,
)
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.server.extender import extender_routes
from lowtide.server.http import Server

ANSWER_SECONDS = 5.0
MOST_BODY_BYTES = 300_000
STATUSES = frozenset({200, 400, 404, 405, 413})  # 503 would tell of a bug: it is ready
CORPUS = recorded_requests()
_VERBS = ("filter", "filter", "filter", "prioritize", "prioritize", "preempt", "preempt", "bind")
_CORPUS_OF = {verb: recorded_requests(verb) for verb in _VERBS}

# A budget so long that no answer is neutral for the sake of a busy machine.
CONFIG = msgspec.json.encode(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {
                    "multiPoint": {
                        "enabled": [{"name": "NodeLabel"}, {"name": "NodeUsage", "weight": 2}]
                    }
                },
                "pluginConfig": [
                    {"name": "NodeLabel", "args": {"label": "kubernetes.io/hostname"}},
                    {
                        "name": "Extender",
                        "args": {"namesBudget": "4s", "nodesBudget": "4s", "bookFor": "1s"},
                    },
                ],
            }
        ],
    }
).decode()

_ANSWERS: dict[str, Any] = {
    "filter": FilterResult[NodesNamed],
    "prioritize": list[HostPriority],
    "preempt": PreemptionResult,
    "bind": BindingResult,
}
_DECODERS = {verb: msgspec.json.Decoder(kind).decode for verb, kind in _ANSWERS.items()}
_decode_rejection = msgspec.json.Decoder(dict[str, str]).decode


@dataclass
class Counts:
    requests: Counter[str] = field(default_factory=Counter)
    rejections: Counter[str] = field(default_factory=Counter)
    neutral: Counter[str] = field(default_factory=Counter)
    plugin_errors: Counter[str] = field(default_factory=Counter)

    def observe(self, verb: str, status: str, seconds: float) -> None:
        self.requests[f"{verb} {status}"] += 1

    def neutral_answer(self, verb: str, reason: str) -> None:
        self.neutral[f"{verb} {reason}"] += 1

    def rejected(self, reason: str) -> None:
        self.rejections[reason] += 1

    def plugin_error(self, plugin_name: str) -> None:
        self.plugin_errors[plugin_name] += 1


class RealAsking(Advising):
    """As in the extender mode, but a binding ends at once."""

    async def bind(self, pod: Pod, node_name: str) -> str:
        return "" if node_name == "tide-east" else f"no node {node_name}"


class Connection:
    """One connection that is kept, one request after the other."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer; TimeoutError where there is none in time."""
        async with asyncio.timeout(ANSWER_SECONDS):
            if self._streams is None:
                self._streams = await asyncio.open_connection(self._host, self._port)
            reader, writer = self._streams
            writer.write(
                f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\n"
                "Content-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            answer = await reader.readexactly(length)
        status = int(head.split(b" ", 2)[1])
        if b"connection: close" in head or status == 413:
            await self.close()
        return status, answer

    async def close(self) -> None:
        if self._streams is not None:
            _, writer = self._streams
            self._streams = None
            writer.close()
            await writer.wait_closed()


class UnderFire:
    """What is asked of it, and what has to hold of every answer."""

    def __init__(self, server: Server, counts: Counts, clock: "Clock") -> None:
        self.counts = counts
        self.statuses: Counter[int] = Counter()
        self._clock = clock
        address = server.address
        self._connections = [Connection(address.host, address.port) for _ in range(4)]

    @classmethod
    @asynccontextmanager
    async def started(cls) -> AsyncIterator[Self]:
        counts, clock = Counts(), Clock()
        built = make_registry({}).build(load_config(CONFIG, file="fuzz.yaml"), {Binder: NoBinder()})
        advisor = Advisor(built.profiles, built.extender_settings, Listening(counts, clock))
        asking = RealAsking(advisor, counts=counts, clock=clock, wall_clock=time.time)
        asking.start()
        for event in _recorded_cluster(advisor):
            asking.handle(event)
        async with asyncio.timeout(ANSWER_SECONDS):
            while asking.why_not_ready() is not None:
                await asyncio.sleep(0)
        routes = extender_routes(
            asking,
            metrics=counts,
            clock=clock,
            most_body_bytes=MOST_BODY_BYTES,
            prefix="/scheduler",
            serves_bind=True,
        )
        server = Server(routes, port=0)
        await server.start()
        fired_at = cls(server, counts, clock)
        try:
            yield fired_at
        finally:
            for connection in fired_at._connections:
                await connection.close()
            await server.stop()
            asking.stop()

    async def answers_to_the_corpus(self) -> dict[str, bytes]:
        """What it says to the requests as they were recorded, each without traces of others."""
        answers: dict[str, bytes] = {}
        for recorded in CORPUS:
            self._clock.ahead_seconds += 60  # no booking lasts so long
            connection = self._connections[0]
            status, answer = await connection.ask("POST", _path(recorded), recorded.body)
            check(recorded, status, answer)
            assert status == 200, (recorded.name, answer)
            answers[recorded.name] = answer
        return answers

    async def fill_what_is_kept(self, signatures: int) -> None:
        """Verdicts are kept up to a bound: with so many signatures of pods it is reached."""
        bodies = {
            verb: next(each.data for each in _CORPUS_OF[verb] if each.is_by_name)
            for verb in ("filter", "prioritize")
        }
        for number in range(signatures):
            for verb, data in bodies.items():
                data["Pod"]["metadata"]["labels"] = {"signature": str(number)}
                body = msgspec.json.encode(data)
                status, _ = await self._connections[0].ask("POST", f"/scheduler/{verb}", body)
                assert status == 200

    async def batch(self, seed: int, count: int) -> None:
        """So many mutated requests on several connections at once."""
        random = Random(seed)
        share = count // len(self._connections)
        seeds = [random.getrandbits(64) for _ in self._connections]
        await asyncio.gather(
            *(
                self._fire(connection, Random(each), share)
                for connection, each in zip(self._connections, seeds, strict=True)
            )
        )

    async def _fire(self, connection: Connection, random: Random, count: int) -> None:
        mutator = Mutator(random)
        for _ in range(count):
            recorded = random.choice(_CORPUS_OF[random.choice(_VERBS)])
            body = mutator.mutated(recorded.body)
            method, path = "POST", _path(recorded)
            if random.random() < 0.02:
                method = random.choice(("GET", "PUT", "PATCH"))
            elif random.random() < 0.02:
                path = random.choice(("/", "/scheduler/", "/scheduler/filter/x", "/scheduler/%2e"))
            elif random.random() < 0.002:
                body += b" " * MOST_BODY_BYTES
            try:
                status, answer = await connection.ask(method, path, body)
                check(recorded, status, answer)
            except Exception as error:
                error.add_note(f"asked by {method} {path}: {body[:20_000]!r}")
                raise
            self.statuses[status] += 1


@dataclass
class Clock:
    ahead_seconds: float = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead_seconds


def check(recorded: Recorded, status: int, answer: bytes) -> None:
    """The answer is one that kube-scheduler can read, or a sentence that people can."""
    assert status in STATUSES, (status, answer[:1000])
    if status != 200:
        said = _decode_rejection(answer)
        assert list(said) == ["error"]
        assert said["error"]
        return
    said = _DECODERS[recorded.verb](answer)
    if recorded.verb == "prioritize":
        assert all(0 <= each.score <= 10 for each in said), said


def _path(recorded: Recorded) -> str:
    return f"/scheduler/{recorded.verb}"


def _recorded_cluster(advisor: Advisor) -> list[Any]:
    """Nodes and victims as they are in the recorded requests."""
    nodes: dict[str, Node] = {}
    pods: dict[str, Pod] = {}
    for recorded in CORPUS:
        if recorded.verb == "bind" or recorded.is_by_name:
            continue
        data = recorded.data
        for item in (data.get("Nodes") or {}).get("items", ()):
            node = msgspec.convert(item, Node)
            nodes[node.name] = node
        for victims in (data.get("NodeNameToVictims") or {}).values():
            for pod in msgspec.convert(victims["Pods"], list[Pod]):
                pods[pod.uid] = pod
    assert nodes
    assert pods
    listed = [Listed(kind) for kind in advisor.unlisted]
    return [*map(Added, nodes.values()), *map(Added, pods.values()), *listed]
