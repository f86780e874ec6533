"""The system's clocks; made here by the commands, handed to everything else."""

import time
from collections.abc import Callable

Clock = Callable[[], float]


def steady_clock(wall_clock: Clock = time.time, monotonic: Clock = time.monotonic) -> Clock:
    """Seconds since the epoch when it was made, which then only go on: for spans, not for dates."""
    offset_seconds = wall_clock() - monotonic()
    return lambda: offset_seconds + monotonic()
