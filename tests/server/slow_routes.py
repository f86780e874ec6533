"""Routes that answer when a test lets them, and half a request for them."""

import asyncio

from aiohttp import web

from lowtide.server.bodies import BodyBudget, body_response, read_body

HALF_A_REQUEST = (
    b"POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 10\r\n\r\nfirst"
)
LARGE = bytes(range(256)) * (16 * 4096)  # 16 MiB: more than sockets hold


async def hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


class SlowRoutes:
    """Answers what it was sent, once it may; and something large at once."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_asked = asyncio.Condition()
        self.may_answer = asyncio.Event()
        self.routes = [
            web.post("/slow", self._slow),
            web.get("/slow", self._slow),
            web.get("/hello", hello),
            web.get("/large", self._large),
        ]

    async def wait_until_asked(self, times: int) -> None:
        async with self.is_asked:
            await self.is_asked.wait_for(lambda: self.asked >= times)

    async def _slow(self, request: web.Request) -> web.Response:
        async with self.is_asked:
            self.asked += 1
            self.is_asked.notify_all()
        with BodyBudget(1000).share() as share:
            body = await read_body(request, 1000, share)
        await self.may_answer.wait()
        return body_response(body or b"nothing", content_type="text/plain")

    async def _large(self, _: web.Request) -> web.Response:
        return body_response(LARGE)
