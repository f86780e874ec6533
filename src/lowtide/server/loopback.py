"""Which names and addresses can only mean this machine."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web


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


def host_of(authority: str) -> str:
    """Of a Host header, without the port; empty where it cannot be read."""
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return ""
