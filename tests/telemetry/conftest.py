"""A Prometheus of a page, with or without TLS, that remembers what it was asked and shown."""

import asyncio
import datetime
import io
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from multidict import CIMultiDictProxy

from lowtide.logs import LineHandler, TextFormatter
from realparts.certificates import Authority

EMPTY = '{"status":"success","data":{"resultType":"vector","result":[]}}'


@dataclass(frozen=True)
class Said:
    """One prepared answer."""

    body: str = EMPTY
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class FakePrometheus:
    """Answers every request by `answer`, which a test may change at any time."""

    answer: Said | Callable[[web.Request], Said] = Said()
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    shown: list[CIMultiDictProxy[str]] = field(default_factory=list)

    def header(self, name: str) -> list[str]:
        """What each request had of it, however often and in whichever spelling."""
        return [", ".join(headers.getall(name, ())) for headers in self.shown]

    async def handle(self, request: web.Request) -> web.Response:
        given = request.query if request.method == "GET" else await request.post()
        self.asked.append((request.method, request.path, str(given.get("query"))))
        self.shown.append(request.headers)
        said = self.answer if isinstance(self.answer, Said) else self.answer(request)
        return web.Response(text=said.body, status=said.status, headers=said.headers)

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
            yield f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


def authority(folder: Path) -> Authority:
    """A certificate authority with a folder of its own."""
    folder.mkdir()
    made = Authority(folder, now=datetime.datetime.now(datetime.UTC))
    made.write_own_certificate()
    return made


@pytest.fixture
async def silent_address() -> AsyncIterator[str]:
    """A server that takes queries and never answers; it has to be asked."""
    left = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        left.set()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    async with server:
        yield "http://{}:{}".format(*server.sockets[0].getsockname())
        await left.wait()


@pytest.fixture
def log_lines() -> Iterator[Callable[[], list[str]]]:
    """The lines of telemetry so far: the letter of their severity, and what they say."""
    stream = io.StringIO()
    handler = LineHandler(stream)
    handler.setFormatter(TextFormatter(clock=lambda: 0.0, pid=1))
    logger = logging.getLogger("telemetry")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lambda: [
        f"{line[0]} {line.partition('] ')[2]}" for line in stream.getvalue().splitlines()
    ]
    logger.removeHandler(handler)
    logger.setLevel(before)
