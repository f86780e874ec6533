"""Serves the page and an API about a made-up cluster on a thread of its own, by the project's own
server: as long as a test or `make bench ONLY=page` wants it."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web
from tests.browser.made_cluster import Json, MadeCluster

from lowtide.server.http import Drain, Server
from lowtide.server.page_routes import page_routes

AT_ONCE = Drain(request_seconds=0.5, idle_seconds=0.0)
ROUNDS = 8
Handler = Callable[[web.Request], Awaitable[web.Response]]


@dataclass(slots=True)
class PageServer:
    """`asked` counts requests by their kind; `most_at_once` is how many of a kind there ever were
    at a time. `moves` has the traffic change with each question, from answers made beforehand: to
    make one of thousands of nodes takes longer than the page should wait for others."""

    cluster: MadeCluster
    moves: bool = False
    delay_seconds: float = 0.0
    url: str = ""
    asked: Counter[str] = field(default_factory=Counter)
    most_at_once: Counter[str] = field(default_factory=Counter)
    _under_way: Counter[str] = field(default_factory=Counter)
    _made: dict[tuple[int, str | None], bytes] = field(default_factory=dict)

    @contextmanager
    def serve(self, port: int = 0) -> Iterator["PageServer"]:
        is_up, is_over = threading.Event(), threading.Event()
        thread = threading.Thread(
            target=lambda: asyncio.run(self._run(port, is_up, is_over)), daemon=True
        )
        thread.start()
        is_up.wait(10)
        try:
            yield self
        finally:
            is_over.set()
            thread.join(10)

    async def _run(self, port: int, is_up: threading.Event, is_over: threading.Event) -> None:
        server = Server([*page_routes(), *self._api_routes()], port=port, drain=AT_ONCE)
        await server.start()
        self.url = server.address.url
        is_up.set()
        await asyncio.to_thread(is_over.wait)
        await server.stop()

    def _api_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/cluster", self._counted("cluster", self._cluster)),
            web.get("/api/decisions", self._counted("decisions", self._decisions)),
            web.get("/api/decisions/{namespace}/{name}", self._counted("pod", self._pod)),
            web.get("/api/nodes/{name}", self._counted("node", self._node)),
            web.get("/api/health", self._counted("health", self._health)),
        ]

    def _counted(self, kind: str, answer: Callable[[web.Request], Json | bytes | None]) -> Handler:
        async def counted(request: web.Request) -> web.Response:
            self.asked[kind] += 1
            self._under_way[kind] += 1
            self.most_at_once[kind] = max(self.most_at_once[kind], self._under_way[kind])
            if self.delay_seconds:
                await asyncio.sleep(self.delay_seconds)
            body = answer(request)
            self._under_way[kind] -= 1
            if body is None:
                return web.json_response(
                    {"error": f"nothing is known of {request.path}"}, status=404
                )
            encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
            return web.Response(body=encoded, content_type="application/json")

        return counted

    def _cluster(self, request: web.Request) -> Json | bytes:
        known = request.query.get("known")
        if not self.moves:
            return self.cluster.cluster_answer(known)
        self.cluster.round = (self.cluster.round + 1) % ROUNDS
        made = (self.cluster.round, known)
        if made not in self._made:
            self._made[made] = json.dumps(self.cluster.cluster_answer(known)).encode()
        return self._made[made]

    def _decisions(self, request: web.Request) -> Json:
        after, limit = int(request.query["after"]), int(request.query["limit"])
        return self.cluster.decisions_answer(after, limit)

    def _pod(self, request: web.Request) -> Json | None:
        return self.cluster.pod_answer("{namespace}/{name}".format(**request.match_info))

    def _node(self, request: web.Request) -> Json | None:
        return self.cluster.node_answer(request.match_info["name"])

    def _health(self, _: web.Request) -> Json:
        return self.cluster.health_answer()
