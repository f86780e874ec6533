"""Rests between the pieces of long work, for whoever else wants the interpreter meanwhile.

Reading an answer about thousands of nodes takes a tenth of a second in all. Threads of one process
take turns, so that whoever answers requests would wait for it at every turn; after a short piece
and a rest longer than that, hardly anybody has to. App hands a rest in; nobody rests by default."""

from collections.abc import Callable

Rest = Callable[[], None]


def no_rest() -> None:
    """Goes on at once."""
