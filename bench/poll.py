"""What a poll of Prometheus costs the scheduler with many nodes: from the request to the reading
that plugins see. The answers come from another process; the CPU time of this one is measured. They
have the labels that a real Prometheus leaves in them: the queries ask for no others."""

import asyncio
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import uvloop

from lowtide.objects.events import Added, Modified
from lowtide.objects.node import Node
from lowtide.readings.columns import published
from lowtide.readings.meter import LINKS_EVERY_SECONDS, PODS_EVERY_SECONDS, TrafficMeter
from lowtide.readings.reading import TrafficReading
from lowtide.readings.request import TrafficRequest
from lowtide.scheduler.events import ReadingPublished
from lowtide.scheduler.machine import Machine
from lowtide.telemetry.poller import TrafficPoller
from lowtide.telemetry.prometheus import Prometheus
from lowtide.testing import ManualClock
from many_nodes import NODES, answer_rows, make_machine, make_running_pods, nodes_of, request_of
from realparts.process import Process, free_port

HERE = Path(__file__).resolve().parent
# By Prometheus's clock; the values are the same each time.
ANSWERED_AT = 2_000_000_000.0

EVERYTHING, PODS_TOO, TRAFFIC = "everything (the first)", "traffic and pods", "traffic"


@dataclass(frozen=True, slots=True)
class PollResult:
    """`asked` is what the poll asked for: traffic every time, the others now and then."""

    workload: str
    nodes: int
    scheduler: str
    asked: str
    round: int
    cpu_ms: float


class Poll:
    """The polls of five minutes, after which links are asked for again."""

    def run(self) -> Iterator[PollResult]:
        port = free_port()
        machine = make_machine(f"http://127.0.0.1:{port}")
        for pod in make_running_pods():
            machine.step(Added(pod), now=0.0)
        folder = Path(tempfile.mkdtemp(prefix="lowtide-bench-"))
        program = HERE / "canned_prometheus.py"
        server = Process(
            "canned-prometheus",
            [
                sys.executable,
                program,
                folder,
                f"--port={port}",
                f"--answered-at={ANSWERED_AT}",
                f"--every-seconds={request_of(machine).every_seconds}",
            ],
            folder=folder,
        )
        try:
            write_answers(folder, request_of(machine), nodes_of(machine))
            server.start()
            server.wait_until_ready(lambda: listens(port))
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                yield from runner.run(measured(machine))
        finally:
            server.stop()
            shutil.rmtree(folder, ignore_errors=True)


async def measured(machine: Machine) -> list[PollResult]:
    request, clock = request_of(machine), ManualClock()
    results: list[PollResult] = []

    async def publish(reading: TrafficReading) -> None:
        assert reading.is_fresh.all()
        machine.step(ReadingPublished(request, published(reading)), clock())

    async with Prometheus(request.access, clock=clock) as prometheus:
        poller = TrafficPoller(
            request=request,
            prometheus=prometheus,
            nodes=lambda: nodes_of(machine),
            pods=machine.state.placed_pods,
            publish=publish,
            clock=clock,
            steady_clock=clock,
            sleep=asyncio.sleep,
        )
        for number in range(int(LINKS_EVERY_SECONDS // request.every_seconds)):
            heartbeats(machine, number, clock())
            begin = time.process_time()
            await poller.poll()
            cpu_ms = (time.process_time() - begin) * 1e3
            asked = asked_at(number * request.every_seconds)
            results.append(PollResult("poll", NODES, "lowtide", asked, number + 1, cpu_ms))
            clock.advance(request.every_seconds)
    return results


def heartbeats(machine: Machine, number: int, now: float) -> None:
    """Every node reports in five minutes: the watch then hands over a new object."""
    polls = int(LINKS_EVERY_SECONDS // request_of(machine).every_seconds)
    for node in nodes_of(machine)[number::polls]:
        machine.step(Modified(msgspec.structs.replace(node)), now)


def asked_at(seconds: float) -> str:
    if seconds == 0:
        return EVERYTHING
    return TRAFFIC if seconds % PODS_EVERY_SECONDS else PODS_TOO


def write_answers(folder: Path, request: TrafficRequest, nodes: Sequence[Node]) -> None:
    """One file for each query of the first poll, which asks for everything."""
    chance = np.random.default_rng(1)
    queries = TrafficMeter(request).due(ANSWERED_AT, nodes)
    for name in queries:
        result = [
            {"metric": row.labels, "value": (ANSWERED_AT, repr(row.value))}
            for row in answer_rows(name, chance)
        ]
        answer = {"status": "success", "data": {"resultType": "vector", "result": result}}
        (folder / f"{name}.json").write_bytes(msgspec.json.encode(answer))
    files = {promql: f"{name}.json" for name, promql in queries.items()}
    (folder / "queries.json").write_bytes(msgspec.json.encode(files))


def listens(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
