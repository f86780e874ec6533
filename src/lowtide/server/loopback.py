"""Which names and addresses can only mean this machine; what is served there only."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_from_this_machine(request: web.Request) -> bool:
    """Or from its port-forward, which comes out on loopback."""
    peer = request.get_extra_info("peername")
    return bool(peer) and is_loopback(peer[0])


def for_loopback(handler: Handler, what: str) -> Handler:
    """Refuses what a web page could make a browser ask by giving our address its own name."""

    async def answer(request: web.Request) -> web.StreamResponse:
        host = request.headers.get("Host", "")
        if is_loopback(_without_port(host)):
            return await handler(request)
        return web.Response(
            text=f"{what} answer to localhost or 127.0.0.1 in the Host header, not to {host!r}\n",
            status=403,
        )

    return answer


def _without_port(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
