"""What the pollers have in common: the time between polls, backoff when nobody answers, and how
many nodes a log line names."""

from collections.abc import Awaitable, Callable
from typing import Final

NODES_NAMED_IN_A_LINE: Final = 5


class Outage:
    """The time in which nobody answers: its begin and its end are told once."""

    def __init__(self) -> None:
        self._since: float | None = None

    @property
    def is_on(self) -> bool:
        return self._since is not None

    def begins(self, now: float) -> bool:
        """Whether there was an answer before this failure."""
        is_first = self._since is None
        self._since = now if self._since is None else self._since
        return is_first

    def ends(self, now: float) -> float | None:
        """How many seconds it took; None where there was none."""
        since, self._since = self._since, None
        return None if since is None else round(now - since, 3)


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
