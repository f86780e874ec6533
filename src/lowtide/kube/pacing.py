"""How writes that can wait give way to bindings: one at a time while bindings are under way.

Used by kube_events for Events, and by app's KubeWrites for conditions of pods."""

import asyncio
from collections.abc import Awaitable, Callable

PAUSE_WHILE_BUSY_SECONDS = 0.05


async def write_behind_bindings(
    *,
    has_work: asyncio.Event,
    is_busy: Callable[[], bool],
    write_next: Callable[[int], Awaitable[None]],
    at_once: int,
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    """For ever: `write_next(limit)` writes up to so many, and clears `has_work` with the last."""
    while True:
        await has_work.wait()
        if is_busy():
            await write_next(1)
            await sleep(PAUSE_WHILE_BUSY_SECONDS)
        else:
            await write_next(at_once)
