"""Rejects what a web page could make a browser send here, on every path of every listener:
`http.Server` asks before any route does.

A page reaches a server in a user's network through that user's browser: by the server's address, or
by a name of its own that it lets resolve to that address (DNS rebinding)."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web

from lowtide.server.loopback import host_of, is_loopback

JSON = "application/json"
_READING = ("GET", "HEAD")
_OTHER_SITES = ("cross-site", "same-site")  # the latter: another port or name of one domain
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


@dataclass(frozen=True, slots=True)
class RejectedRequest:
    """`reason` is a word for /metrics, `error` a sentence for whoever asked."""

    status: int
    reason: str
    error: str


def rejection_of(request: web.BaseRequest, *, is_on_loopback: bool) -> RejectedRequest | None:
    """None: the request is answered."""
    host = request.headers.get("Host", "")
    if is_on_loopback and not is_loopback(host_of(host)):
        return RejectedRequest(403, "host", wrong_host(host))
    origin = request.headers.get("Origin")
    if origin is not None and not (request.method in _READING and _is_own(origin, host)):
        error = f"a web page of {origin!r} sent this {request.method} request; only requests of "
        return RejectedRequest(
            403, "origin", error + "the page served here, or of no web page, are allowed"
        )
    site = request.headers.get("Sec-Fetch-Site", "")
    if site in _OTHER_SITES and not _opens_the_page(request):
        error = f"a web page of another site sent this request (Sec-Fetch-Site: {site}); "
        return RejectedRequest(403, "origin", error + f"open {request.path} in a window of its own")
    if request.method == "POST" and request.content_type != JSON:
        given = request.headers.get("Content-Type", "")
        error = f"the request has the Content-Type {given!r}; expected {JSON}"
        return RejectedRequest(415, "content-type", error)
    return None


def wrong_host(host: str) -> str:
    return (
        f"the request is for the host {host!r}; a server on loopback answers to localhost, "
        "127.0.0.1 and [::1] in the Host header"
    )


def _is_own(origin: str, host: str) -> bool:
    """By host and port alone: TLS may end at a proxy before us."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    default_port = _DEFAULT_PORTS.get(parts.scheme)
    if default_port is None:
        return False
    own, given = (each.lower().removesuffix(default_port) for each in (host, parts.netloc))
    return bool(own) and own == given


def _opens_the_page(request: web.BaseRequest) -> bool:
    """A link on another site that a user follows; what it opens is not shown to that site."""
    return (
        request.method in _READING
        and request.path == "/"
        and request.headers.get("Sec-Fetch-Mode") == "navigate"
        and request.headers.get("Sec-Fetch-Dest") == "document"
    )
