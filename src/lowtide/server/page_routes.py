"""The page that shows a browser what the scheduler sees and decides: its files, and nothing else.

Every mode that serves adds these routes beside the API, which the page asks for all data."""

from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from aiohttp import web
from aiohttp.typedefs import Handler

_INDEX = "index.html"
_CONTENT_TYPES = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
_HEADERS = {
    # The last three do not follow from the first.
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # To be asked each time, so that a new version is seen at once; the ETag makes that cheap.
    "Cache-Control": "no-cache",
}


def page_routes() -> list[web.RouteDef]:
    """`/` and `/page/NAME` for each file of the page, read once.

    The page names its files and the API by relative addresses, so it also works behind a proxy
    that serves it under another path."""
    page = {file.name: file for file in (files("lowtide.server") / "page").iterdir()}
    index = page.pop(_INDEX)
    return [
        web.get("/", _answer_with(index)),
        *(web.get(f"/page/{name}", _answer_with(file)) for name, file in sorted(page.items())),
    ]


def _answer_with(file: Traversable) -> Handler:
    body = file.read_bytes()
    content_type = _CONTENT_TYPES[file.name.rpartition(".")[2]]
    tag = sha256(body).hexdigest()[:32]

    async def answer(request: web.Request) -> web.Response:
        response = web.Response(headers=_HEADERS)
        response.etag = tag
        if any(known.value in (tag, "*") for known in request.if_none_match or ()):
            response.set_status(304)
        else:
            response.content_type = content_type
            response.charset = "utf-8"
            response.body = body
        return response

    return answer
