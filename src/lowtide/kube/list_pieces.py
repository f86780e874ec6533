"""Takes a list apart while it arrives, so that its objects are read before its end is there.

Used by watch for every list."""

from typing import Final

from lowtide.input_limits import ANSWER_BYTES, TooLargeError

# A piece and what it becomes fit into the cache of a core.
PIECE_BYTES: Final = 1 << 18
# How one object ends and the next begins, as the API server spells it. Inside of an object the same
# may stand too, but not in a string, where quotes are escaped.
_BETWEEN: Final = b'},{"metadata":{'
_HEAD: Final = b'{"metadata":{},"items":['
_END: Final = b"]}"


class ListPieces:
    """`next_piece` is a list of its own, to be decoded; `drop_piece` says that it could be.

    Where it was cut inside of an object it is no JSON, because brackets stay open: the next is
    twice as long. A list that is spelled otherwise stays whole until its end, as long as it is no
    larger than an answer may be: then `add` raises TooLargeError."""

    def __init__(self, piece_bytes: int = PIECE_BYTES) -> None:
        self._piece_bytes = piece_bytes
        self._next_bytes = piece_bytes
        self._rest = bytearray()
        self._cut = -1

    def add(self, more: bytes) -> None:
        if len(self._rest) + len(more) > ANSWER_BYTES:
            raise TooLargeError(ANSWER_BYTES)
        self._rest += more

    def next_piece(self) -> bytearray | None:
        """The first objects; None until there is enough."""
        while len(self._rest) >= self._next_bytes:
            self._cut = self._rest.rfind(_BETWEEN, 0, self._next_bytes)
            self._next_bytes *= 2
            if self._cut >= 0:
                return self._rest[: self._cut + 1] + _END
        return None

    def drop_piece(self) -> None:
        self._rest[: self._cut + 2] = _HEAD
        self._next_bytes = self._piece_bytes

    def rest(self) -> bytearray:
        """What is left once all has arrived: the end of the list, or all of it."""
        return self._rest
