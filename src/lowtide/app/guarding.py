"""The guard of what a mode serves: it asks the API server of that mode, or the one of a flag."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from lowtide.app.clocks import Clock
from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import Access, load_access
from lowtide.kube.reviews import Reviews
from lowtide.server.guard import Guard
from lowtide.server.serving import Serving

# Nobody can make us ask the API server more than this at once.
_REVIEWS_AT_ONCE = 8


@asynccontextmanager
async def guard_for(
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
