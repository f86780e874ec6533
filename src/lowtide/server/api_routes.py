"""/api: what the page and `explain` ask of a running process, as JSON. App hands in what answers.

Only GET, and no CORS headers: pages of other origins cannot read it."""

import json
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from aiohttp import web

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


def api_routes(shown: Shown) -> list[web.RouteDef]:
    async def cluster(request: web.Request) -> web.Response:
        return _json(shown.cluster(_number(request, "known", 0)))

    async def decisions(request: web.Request) -> web.Response:
        after = _number(request, "after", 0)
        return _json(shown.decisions(after, _number(request, "limit", _DEFAULT_DECISIONS)))

    async def pod(request: web.Request) -> web.Response:
        key = f"{request.match_info['namespace']}/{request.match_info['name']}"
        missing = f"no decision about pod {key} is kept here; it was decided by another process, "
        return _found(lambda: shown.pod(key), missing + "too long ago, or not yet")

    async def explanation(request: web.Request) -> web.Response:
        key = f"{request.match_info['namespace']}/{request.match_info['name']}"
        try:
            found = shown.explanation(key, request.query.get("node"))
        except ValueError as error:
            return _json({"error": str(error)}, status=404)
        missing = f"nothing is known of pod {key} here: it is no pod of this scheduler, was "
        return _found(lambda: found, missing + "decided by another process, or too long ago")

    async def node(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return _found(lambda: shown.node(name), f"no node is called {name}")

    async def health(_: web.Request) -> web.Response:
        return _json(shown.health())

    return [
        web.get("/api/cluster", cluster),
        web.get("/api/decisions", decisions),
        web.get("/api/decisions/{namespace}/{name}", pod),
        web.get("/api/explain/{namespace}/{name}", explanation),
        web.get("/api/nodes/{name}", node),
        web.get("/api/health", health),
    ]


def _found(find: Callable[[], Any], missing: str) -> web.Response:
    found = find()
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
