"""What a user says about serving, and the server made of it; app and the command line use it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from lowtide.server.api_routes import Ask, Shown, api_routes
from lowtide.server.audiences import Audience, audience_of
from lowtide.server.certificate import TlsFiles, for_certified, has_certificate
from lowtide.server.debug import debug_routes
from lowtide.server.errors import ServerError
from lowtide.server.guard import Guard
from lowtide.server.health import HEALTH_PATHS
from lowtide.server.http import DEFAULT_DRAIN, DEFAULT_MAX_BODY_BYTES, Address, Drain, Server
from lowtide.server.loopback import host_of, is_from_this_machine, is_loopback
from lowtide.server.page_routes import page_routes
from lowtide.server.web_pages import wrong_host

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Serving:
    """Where and how to serve; a port below 0 serves nothing."""

    bind_address: str | None = None  # None: loopback, by HTTP
    port: int = 10259
    tls: TlsFiles | None = None
    client_ca: Path | None = None
    is_debug: bool = False
    has_page: bool | None = None  # None: for this machine, and whom the API server lets
    is_plain: bool = False  # no HTTPS, though an address is named
    always_allowed_paths: tuple[str, ...] = HEALTH_PATHS  # for everybody
    authentication_kubeconfig: Path | None = None  # where to ask who somebody is
    authorization_kubeconfig: Path | None = None  # and what he may

    @property
    def url(self) -> str:
        """As a client on this machine asks."""
        scheme = "https" if self.is_encrypted else "http"
        return Address(scheme, self.host, self.port).url

    @property
    def host(self) -> str:
        return _LOOPBACK if self.bind_address is None else self.bind_address

    @property
    def is_local(self) -> bool:
        """Whether nobody but this machine can ask."""
        return is_loopback(self.host)

    @property
    def is_encrypted(self) -> bool:
        """Where an address is named, be it loopback, unless a user says no; by a certificate of our
        own if need be. The probes of kubeadm's manifest ask so, on the loopback that it names."""
        return self.tls is not None or not (self.bind_address is None or self.is_plain)

    @property
    def is_guarded(self) -> bool:
        """Whether the API server is asked who may see what is not for everybody."""
        return self.is_encrypted and not self.is_local and self.port >= 0

    @property
    def what(self) -> str:
        """In words, but for what is a mode's own."""
        return "health and metrics" if self.has_page is False else "health, metrics and the page"

    def check(self) -> None:
        """ServerError where parts of it are nothing, or do not go together."""
        if self.bind_address == "":
            raise ServerError(
                "--bind-address is empty; name one, such as 127.0.0.1, or 0.0.0.0 for all"
            )
        if self.is_plain and self.tls is not None:
            raise ServerError("--plain-http and --tls-cert-file exclude each other: which is it?")
        if self.client_ca is not None and not self.is_encrypted:
            raise ServerError(
                "--client-ca-file is for HTTPS: give --tls-cert-file and --tls-private-key-file too"
            )
        if self.is_debug and not self.is_local:
            raise ServerError(
                f"--debug is not for --bind-address {self.host}: who reaches the debug "
                "endpoints can see and slow down the process, so they are served on loopback "
                "only, such as 127.0.0.1"
            )


NOT_SERVING = Serving(port=-1)
# Who may get this nonResourceURL may see the page and its API. Not by their own paths: every known
# user may get /api/* of any API server.
PAGE_RIGHT = "/lowtide"


def page_and_api(serving: Serving, shown: Shown, ask: Ask) -> list[web.RouteDef]:
    """The page and what it asks for, unless a user wants none."""
    return [] if serving.has_page is False else [*page_routes(), *api_routes(shown, ask)]


def make_server(
    serving: Serving,
    routes: Iterable[web.RouteDef],
    *,
    verbs: Iterable[web.RouteDef] = (),
    guard: Guard | None = None,
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
    drain: Drain = DEFAULT_DRAIN,
    on_rejected: Callable[[str], None] = lambda reason: None,
) -> Server:
    """The server of those routes, each for its audience, and of the debug endpoints where they are
    wanted. Verbs are what other schedulers ask, which show no token: they are for everybody who
    reaches them, and with a CA for clients, for those. Where there is no guard, what it would let
    some see is for everybody too, and with a CA for its clients alone."""
    serving.check()
    routes = [*routes, *(debug_routes() if serving.is_debug else ())]
    return Server(
        # Verbs come last: they take whatever is left.
        [
            *(_for_audience(each, serving, guard) for each in routes),
            *(_for_schedulers(each, serving) for each in verbs),
        ],
        bind_address=serving.host,
        port=serving.port,
        tls=serving.tls,
        is_self_signed=serving.is_encrypted and serving.tls is None,
        client_ca=serving.client_ca,
        max_body_bytes=max_body_bytes,
        drain=drain,
        on_rejected=on_rejected,
    )


def _for_audience(route: web.RouteDef, serving: Serving, guard: Guard | None) -> web.RouteDef:
    audience = audience_of(route.path)
    handler = _for(audience, route.handler, serving, guard)
    if audience is not Audience.EVERYBODY and guard is None and serving.client_ca is not None:
        handler = for_certified(handler)
    return _with(route, handler)


def _for_schedulers(verb: web.RouteDef, serving: Serving) -> web.RouteDef:
    return verb if serving.client_ca is None else _with(verb, for_certified(verb.handler))


def _with(route: web.RouteDef, handler: Handler) -> web.RouteDef:
    return web.route(route.method, route.path, handler, **route.kwargs)


def _for(audience: Audience, handler: Handler, serving: Serving, guard: Guard | None) -> Handler:
    match audience:
        case Audience.EVERYBODY:
            return handler
        case Audience.GRANTED:
            return handler if guard is None else guard.for_known(handler)
        case Audience.VIEWERS if serving.has_page and not serving.is_local:
            viewers = _for_viewers(handler, guard)
            return handler if serving.client_ca is None else _for_certified_or(viewers, handler)
        case Audience.VIEWERS:
            return _for_viewers(handler, guard)
        case Audience.MACHINE:
            return handler  # `check` lets nobody serve it beyond loopback


def _for_certified_or(others: Handler, handler: Handler) -> Handler:
    """Who needs no certificate as he is known otherwise is not asked for one."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await (handler if has_certificate(request) else others)(request)

    return answer


def _for_viewers(handler: Handler, guard: Guard | None) -> Handler:
    for_here = _by_a_local_name(handler)
    for_others = _reject if guard is None else guard.for_known(handler, PAGE_RIGHT)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await (for_here if is_from_this_machine(request) else for_others)(request)

    return answer


def _by_a_local_name(handler: Handler) -> Handler:
    """What is for this machine alone, also beyond loopback (a port-forward comes out here), is not
    for a web page that gave our address a name of its own."""

    async def answer(request: web.Request) -> web.StreamResponse:
        host = request.headers.get("Host", "")
        if is_loopback(host_of(host)):
            return await handler(request)
        return web.json_response({"error": wrong_host(host)}, status=403)

    return answer


async def _reject(_: web.Request) -> web.StreamResponse:
    why = "the page and its API are for this machine; --page serves them to everybody"
    return web.json_response({"error": why}, status=403)
