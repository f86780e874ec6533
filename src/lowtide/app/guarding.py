"""What a mode serves, and the guard of it, who asks the API server of that mode, or the one of a
flag. Scheduler, extender and shadow start their server here."""

import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from aiohttp import web

from lowtide.app.clocks import Clock
from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import Access, load_access
from lowtide.kube.reviews import Reviews
from lowtide.server.api_routes import Ask, Shown
from lowtide.server.guard import Guard
from lowtide.server.http import DEFAULT_DRAIN, Drain, Server
from lowtide.server.serving import Serving, make_server, page_and_api

# Nobody can make us ask the API server more than this at once.
_REVIEWS_AT_ONCE = 8


async def started_server(
    stack: AsyncExitStack,
    serving: Serving,
    access: Access,
    *,
    shown: Shown,
    ask: Ask,
    routes: Iterable[web.RouteDef],
    verbs: Iterable[web.RouteDef] = (),
    clock: Clock,
    wall_clock: Clock,
    drain: Drain = DEFAULT_DRAIN,
    on_rejected: Callable[[str], None] = lambda reason: None,
) -> Server:
    """Of the page, those routes, and the verbs that other schedulers ask; the stack stops it."""
    guard = await stack.enter_async_context(
        _guard_for(serving, access, clock=clock, wall_clock=wall_clock)
    )
    server = make_server(
        serving,
        [*page_and_api(serving, shown, ask), *routes],
        verbs=verbs,
        guard=guard,
        drain=drain,
        on_rejected=on_rejected,
    )
    await server.start()
    stack.push_async_callback(server.stop)
    return server


@asynccontextmanager
async def _guard_for(
    serving: Serving, access: Access, *, clock: Clock, wall_clock: Clock
) -> AsyncIterator[Guard | None]:
    """None where only this machine can ask, or where it cannot be told who does."""
    if not serving.is_guarded:
        yield None
        return
    async with AsyncExitStack() as stack:

        async def reached(kubeconfig: Path | None) -> Connection:
            connection = Connection(
                access if kubeconfig is None else _access_of(kubeconfig),
                wall_clock,
                limit=_REVIEWS_AT_ONCE,
            )
            return await stack.enter_async_context(connection)

        reviews = Reviews(
            await reached(serving.authentication_kubeconfig),
            await reached(serving.authorization_kubeconfig),
            clock=clock,
        )
        yield Guard(reviews, serving.always_allowed_paths)


def _access_of(kubeconfig: Path) -> Access:
    return load_access(
        kubeconfig=str(kubeconfig), master=None, environment=os.environ, home=Path.home()
    )
