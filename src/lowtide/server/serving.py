"""What a user says about serving, and the server made of it; app and the command line use it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from lowtide.server.api_routes import Shown, api_routes
from lowtide.server.certificate import TlsFiles
from lowtide.server.debug import debug_routes
from lowtide.server.errors import ServerError
from lowtide.server.http import DEFAULT_DRAIN, DEFAULT_MAX_BODY_BYTES, Address, Drain, Server
from lowtide.server.loopback import for_loopback, is_loopback
from lowtide.server.page_routes import page_routes


@dataclass(frozen=True, slots=True)
class Serving:
    """Where and how to serve; a port below 0 serves nothing."""

    bind_address: str = "127.0.0.1"
    port: int = 10259
    tls: TlsFiles | None = None
    client_ca: Path | None = None
    is_debug: bool = False
    has_page: bool | None = None  # None: where only this machine can ask

    @property
    def url(self) -> str:
        """As a client on this machine asks."""
        scheme = "http" if self.tls is None else "https"
        return Address(scheme, self.bind_address, self.port).url

    @property
    def shows_page(self) -> bool:
        return is_loopback(self.bind_address) if self.has_page is None else self.has_page

    def check(self) -> None:
        """ServerError where parts of it do not go together."""
        if self.client_ca is not None and self.tls is None:
            raise ServerError(
                "--client-ca-file is for HTTPS: give --tls-cert-file and --tls-private-key-file too"
            )
        if self.is_debug and not is_loopback(self.bind_address):
            raise ServerError(
                f"--debug is not for --bind-address {self.bind_address}: who reaches the debug "
                "endpoints can see and slow down the process, so they are served on loopback "
                "only, such as 127.0.0.1"
            )


NOT_SERVING = Serving(port=-1)


def page_and_api(serving: Serving, shown: Shown) -> list[web.RouteDef]:
    """The page and what it asks for, where they are wanted."""
    if not serving.shows_page:
        return []
    routes = [*page_routes(), *api_routes(shown)]
    if not is_loopback(serving.bind_address):
        return routes
    return [
        web.get(each.path, for_loopback(each.handler, "the page and its API")) for each in routes
    ]


def make_server(
    serving: Serving,
    routes: Iterable[web.AbstractRouteDef],
    *,
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
    drain: Drain = DEFAULT_DRAIN,
) -> Server:
    """The server of those routes, and of the debug endpoints where they are wanted."""
    serving.check()
    return Server(
        [*routes, *(debug_routes() if serving.is_debug else ())],
        bind_address=serving.bind_address,
        port=serving.port,
        tls=serving.tls,
        client_ca=serving.client_ca,
        max_body_bytes=max_body_bytes,
        drain=drain,
    )
