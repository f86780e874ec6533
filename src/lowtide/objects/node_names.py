"""The node names in a request to the extender: thousands each time, in changing order.

They stay in the bytes of the request and are compared as arrays of 8-byte numbers. They become
strings only when a caller asks for strings."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, overload

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Spans = npt.NDArray[np.intp]

_OPEN, _BETWEEN, _CLOSE = b'["', b'","', b'"]'
_QUOTE: Final = ord('"')
_COMMA: Final = ord(",")
_WORD_BYTES: Final = 8
# Masks for a word by the number of bytes, 0 to 8, that are left of the name.
_PART_OF_WORD: Final = np.array([(1 << 8 * left) - 1 for left in range(9)], np.uint64)
_ODD: Final = 0x9E3779B97F4A7C15
_LARGEST: Final = 2**64 - 1


class NodeNames(Sequence[str]):
    """Names in a JSON list of strings without escapes and spaces, as Go writes it."""

    def __init__(self, json: bytes, starts: Spans, lengths: Spans) -> None:
        self.json = json
        self.lengths = lengths  # in bytes
        self._starts = starts

    @classmethod
    def from_json(cls, json: bytes) -> "NodeNames | None":
        """Read a JSON list that is valid UTF-8; None if it is not in the form above."""
        if not (json.startswith(_OPEN) and json.endswith(_CLOSE)) or b"\\" in json:
            return None
        symbols = np.frombuffer(json, np.uint8)
        quotes = np.flatnonzero(symbols == _QUOTE)
        opening, closing = quotes[0::2], quotes[1::2]
        if len(opening) != len(closing) or (opening[1:] - closing[:-1] != len(_BETWEEN) - 1).any():
            return None
        if (symbols[closing[:-1] + 1] != _COMMA).any():
            return None
        return cls(json, opening + 1, closing - opening - 1)

    @classmethod
    def made_of(cls, names: Iterable[str]) -> "NodeNames":
        """Build from any names. `json` is valid JSON only if no name needs an escape."""
        parts = [name.encode() for name in names]
        lengths = np.fromiter(map(len, parts), np.intp, len(parts))
        starts = np.cumsum(lengths + len(_BETWEEN)) - lengths - len(_BETWEEN) + len(_OPEN)
        return cls(_OPEN + _BETWEEN.join(parts) + _CLOSE, starts, lengths)

    @cached_property
    def parts(self) -> list[bytes]:
        return self.json[len(_OPEN) : -len(_CLOSE)].split(_BETWEEN)

    @cached_property
    def words(self) -> tuple[Words, ...]:
        """Each name as numbers: an array of its first 8 bytes, one of the second 8, and so on.
        Shorter names are padded with zeros."""
        longest = int(self.lengths.max(initial=0))
        padded = self.json + bytes(_WORD_BYTES + longest)
        # A number that starts at each byte, because names do not start at multiples of 8.
        numbers: Words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
        return tuple(
            numbers[self._starts + begin]
            & _PART_OF_WORD[np.clip(self.lengths - begin, 0, _WORD_BYTES)]
            for begin in range(0, longest, _WORD_BYTES)
        )

    def hashes(self, seed: int = 0) -> Words:
        """A 64-bit hash of each name, which depends on the seed."""
        total = np.zeros(len(self), np.uint64)
        for at, word in enumerate(self.words):
            mixed = word * np.uint64(_odd(seed, 2 * at))
            total += (mixed ^ (mixed >> np.uint64(32))) * np.uint64(_odd(seed, 2 * at + 1))
        return total

    @property
    def may_repeat(self) -> bool:
        """True if two names have the same hash, so that a name may repeat; else none does."""
        ordered = np.sort(self.hashes())
        return bool((ordered[1:] == ordered[:-1]).any())

    def json_of(self, positions: Sequence[int]) -> bytes:
        """The names at these positions as a JSON list."""
        if not positions:
            return b"[]"
        return _OPEN + _BETWEEN.join([self.parts[at] for at in positions]) + _CLOSE

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        return self._strings[at]

    def __iter__(self) -> Iterator[str]:
        return iter(self._strings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._strings == list(other)

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def _strings(self) -> list[str]:
        return [part.decode() for part in self.parts]


class NameTable:
    """Finds the positions of names in a list. The names in the list must be distinct: with a
    duplicate, the constructor would not end."""

    def __init__(self, names: NodeNames) -> None:
        self._names = names
        self._seed = 0
        while True:
            hashes = names.hashes(self._seed)
            order = np.argsort(hashes)
            ordered = hashes[order]
            if not (ordered[1:] == ordered[:-1]).any():
                break
            self._seed += 1  # two names have the same hash
        # A sentinel at which every search stops. It is compared in full, like all others.
        self._order = np.append(order, 0)
        self._ordered = np.append(ordered, np.uint64(_LARGEST))
        # For the highest bits of a hash, the position at which to start the search.
        bits = max(4, (4 * len(names)).bit_length())
        self._shift = np.uint64(64 - bits)
        begins = np.arange(1 << bits, dtype=np.uint64) << self._shift
        self._first = np.searchsorted(ordered, begins)

    def __len__(self) -> int:
        return len(self._names)

    def find(self, names: NodeNames) -> Spans:
        """The position of each name in the table; -1 for names that are not in it."""
        if not len(self):
            return np.full(len(names), -1, np.intp)
        hashes = names.hashes(self._seed)
        places = self._first[hashes >> self._shift]
        behind = np.flatnonzero(self._ordered[places] < hashes)
        while len(behind):
            places[behind] += 1
            behind = behind[self._ordered[places[behind]] < hashes[behind]]
        found = self._order[places]
        is_it = self._names.lengths[found] == names.lengths
        for ours, asked in zip(self._names.words, names.words, strict=False):
            is_it &= ours[found] == asked
        return np.where(is_it, found, -1)


def _odd(seed: int, number: int) -> int:
    """A pseudo-random odd number for the hash."""
    mixed = (seed * 1_000_003 + number + 1) * _ODD % 2**64
    mixed = (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9 % 2**64
    return mixed | 1
