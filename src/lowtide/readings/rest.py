"""Pauses between the pieces of long work, so that other threads get the interpreter lock.

Reading an answer about thousands of nodes takes about 0.1 seconds. Without pauses, a thread that
serves requests waits for the lock again and again. `app` passes a real pause; the default has none.
"""

from collections.abc import Callable

Rest = Callable[[], None]


def no_rest() -> None:
    """Return immediately."""
