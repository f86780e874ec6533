"""/api: what the page and `explain` ask of a running process, as JSON. App hands in what answers.

Only GET, and no CORS headers: pages of other origins cannot read it."""

import json
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

T = TypeVar("T")

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_DEFAULT_DECISIONS = 200


class Shown(Protocol):
    """Each answer is encoded as JSON; None: there is no such thing."""

    def cluster(self, known_version: int) -> Any: ...
    def decisions(self, after: int, limit: int) -> Any: ...
    def pod(self, key: str) -> Any: ...
    def explanation(self, key: str, node_name: str | None) -> Any:
        """ValueError says what is wrong with the question."""
        ...

    def node(self, name: str) -> Any: ...
    def health(self) -> Any: ...


class Ask(Protocol):
    """How to get at what is shown: it may belong to another thread."""

    async def __call__(self, look: Callable[[], T], /) -> T:
        """TimeoutError, with the reason, where nobody gets to it in time."""
        ...


async def at_once(look: Callable[[], T], /) -> T:
    """Where it belongs to the event loop."""
    return look()


def api_routes(shown: Shown, ask: Ask) -> list[web.RouteDef]:
    async def cluster(request: web.Request) -> web.Response:
        known = _number(request, "known", 0)
        return _json(await ask(lambda: shown.cluster(known)))

    async def decisions(request: web.Request) -> web.Response:
        after = _number(request, "after", 0)
        limit = _number(request, "limit", _DEFAULT_DECISIONS)
        return _json(await ask(lambda: shown.decisions(after, limit)))

    async def pod(request: web.Request) -> web.Response:
        key = "{namespace}/{name}".format(**request.match_info)
        missing = f"no decision about pod {key} is kept here; it was decided by another process, "
        return _found(await ask(lambda: shown.pod(key)), missing + "too long ago, or not yet")

    async def explanation(request: web.Request) -> web.Response:
        key = "{namespace}/{name}".format(**request.match_info)
        node_name = request.query.get("node")
        try:
            found = await ask(lambda: shown.explanation(key, node_name))
        except ValueError as error:
            return _json({"error": str(error)}, status=404)
        missing = f"nothing is known of pod {key} here: it is no pod that this process decides "
        return _found(found, missing + "about, was decided by another one, or too long ago")

    async def node(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return _found(await ask(lambda: shown.node(name)), f"no node is called {name}")

    async def health(_: web.Request) -> web.Response:
        return _json(await ask(shown.health))

    return [
        web.get("/api/cluster", _in_time(cluster)),
        web.get("/api/decisions", _in_time(decisions)),
        web.get("/api/decisions/{namespace}/{name}", _in_time(pod)),
        web.get("/api/explain/{namespace}/{name}", _in_time(explanation)),
        web.get("/api/nodes/{name}", _in_time(node)),
        web.get("/api/health", _in_time(health)),
    ]


def _in_time(handler: Handler) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except TimeoutError as error:
            return _json({"error": str(error)}, status=503)

    return handle


def _found(found: Any, missing: str) -> web.Response:
    return _json({"error": missing}, status=404) if found is None else _json(found)


def _json(answer: Any, *, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(answer),
        status=status,
        content_type="application/json",
        headers=_HEADERS,
    )


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, str(default))
    if not text.isdecimal() or len(text) > 18:
        error = {"error": f"{name} is a whole number from 0 up, not {text[:40]!r}"}
        raise web.HTTPBadRequest(
            text=json.dumps(error), content_type="application/json", headers=_HEADERS
        )
    return int(text)
