"""What the pollers have in common: their rhythm, and how many nodes a log line names."""

from collections.abc import Awaitable, Callable
from typing import Final

NODES_NAMED_IN_A_LINE: Final = 5


async def poll_for_ever(
    poll: Callable[[], Awaitable[None]],
    *,
    every_seconds: float,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    """At once and then at this interval, until cancelled."""
    while True:
        started = clock()
        await poll()
        elapsed_seconds = max(0.0, clock() - started)
        await sleep(max(0.0, every_seconds - elapsed_seconds))
