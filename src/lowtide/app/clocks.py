"""The system's clocks; made here by the commands, handed to everything else."""

import time
from collections.abc import Callable

Clock = Callable[[], float]

_REST_SECONDS = 0.005


def steady_clock(wall_clock: Clock = time.time, monotonic: Clock = time.monotonic) -> Clock:
    """Seconds since the epoch when it was made, which then only go on: for spans, not for dates."""
    offset_seconds = wall_clock() - monotonic()
    return lambda: offset_seconds + monotonic()


def short_rest() -> None:
    """Longer than the piece of work before it, so that another thread has the larger share."""
    time.sleep(_REST_SECONDS)
