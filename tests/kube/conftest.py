"""Stand-ins shared by the tests of kube: a clock that is set by hand and an API server of a page.

The server answers each request with the next prepared answer and keeps what it was asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import plain_access
from lowtide.kube.rate_limit import RateLimit

Answer = web.StreamResponse | Callable[[web.Request], Awaitable[web.StreamResponse]]


class ManualClock:
    """Time that moves by `advance`, or by whoever sleeps with `sleep`."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.slept: list[float] = []
        self._waiting: list[tuple[float, asyncio.Event]] = []

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for until, event in self._waiting:
            if until <= self.now:
                event.set()

    async def sleep(self, seconds: float) -> None:
        """Returns soon, with the time moved on."""
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)

    async def wait(self, seconds: float) -> None:
        """Returns once somebody advanced the clock far enough."""
        event = asyncio.Event()
        self._waiting.append((self.now + seconds, event))
        await event.wait()


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class ApiServer:
    """Answers in order; the last prepared answer is for every further request."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(
            Asked(
                request.method,
                request.path,
                dict(request.query),
                dict(request.headers),
                await request.read(),
            )
        )
        self.changed.set()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, web.StreamResponse) else await answer(request)

    async def asked_times(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.asked) < count:
                self.changed.clear()
                await self.changed.wait()

    def requests(self) -> list[tuple[str, str]]:
        return [(asked.method, asked.path) for asked in self.asked]


def status(code: int, reason: str, message: str, **headers: str) -> Answer:
    """A failure as the API server spells it; made anew for each request."""

    async def answer(_: web.Request) -> web.StreamResponse:
        document = {"kind": "Status", "code": code, "reason": reason, "message": message}
        spelled = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response(document, status=code, headers=spelled)

    return answer


async def redirect(_: web.Request) -> web.StreamResponse:
    """A proxy before the server wants a login; made anew for each request."""
    return web.Response(status=302, headers={"Location": "https://login.example/?next=here"})


def document(value: object, code: int = 200) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(value, status=code)

    return answer


async def cut(request: web.Request) -> web.StreamResponse:
    """Closes the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    raise asyncio.CancelledError


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def server(stack: AsyncExitStack) -> ApiServer:
    made = ApiServer()
    made.url = await serve(stack, made.handle)
    return made


async def serve(
    stack: AsyncExitStack,
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    **site_options: Any,
) -> str:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, "127.0.0.1", 0, **site_options)
    await site.start()
    port = runner.addresses[0][1]
    return f"http{'s' if site_options else ''}://127.0.0.1:{port}"


@pytest.fixture
async def connection(stack: AsyncExitStack, server: ApiServer, clock: ManualClock) -> Connection:
    made = Connection(plain_access(server.url), clock, sleep=clock.sleep)
    return await stack.enter_async_context(made)


@pytest.fixture
async def limited_connection(
    stack: AsyncExitStack, server: ApiServer, clock: ManualClock
) -> Connection:
    rate_limit = RateLimit(per_second=10, burst=2, clock=clock)
    made = Connection(plain_access(server.url), clock, sleep=clock.sleep, rate_limit=rate_limit)
    return await stack.enter_async_context(made)
