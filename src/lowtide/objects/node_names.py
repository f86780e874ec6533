"""Node names as a request has them: many, and seldom looked at one by one.

Thousands of them come with each question to an extender, each time in another order. They are kept
as the bytes of the request, are compared as numbers of eight bytes, all of them at once, and become
strings only where somebody wants strings."""

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
# The bytes of a word that belong to a name of which so many are left.
_PART_OF_WORD: Final = np.array([(1 << 8 * left) - 1 for left in range(9)], np.uint64)
_ODD: Final = 0x9E3779B97F4A7C15
_LARGEST: Final = 2**64 - 1


class NodeNames(Sequence[str]):
    """Made of a JSON list of strings without escapes and spaces, as Go writes it."""

    def __init__(self, json: bytes, starts: Spans, lengths: Spans) -> None:
        self.json = json
        self.lengths = lengths  # in bytes
        self._starts = starts

    @classmethod
    def of(cls, json: bytes) -> "NodeNames | None":
        """None where it is not of that form; it is UTF-8 already."""
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
        """Whatever stands in them; `json` is then only JSON where nothing needs an escape."""
        parts = [name.encode() for name in names]
        lengths = np.fromiter(map(len, parts), np.intp, len(parts))
        starts = np.cumsum(lengths + len(_BETWEEN)) - lengths - len(_BETWEEN) + len(_OPEN)
        return cls(_OPEN + _BETWEEN.join(parts) + _CLOSE, starts, lengths)

    @cached_property
    def parts(self) -> list[bytes]:
        return self.json[len(_OPEN) : -len(_CLOSE)].split(_BETWEEN)

    @cached_property
    def words(self) -> tuple[Words, ...]:
        """The first eight bytes of each name as a number, the second eight, and so on until the
        longest ends; a name that has ended has zeros."""
        longest = int(self.lengths.max(initial=0))
        padded = self.json + bytes(_WORD_BYTES + longest)
        # A number at every byte of it: what is read of them need not lie at multiples of eight.
        numbers: Words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
        return tuple(
            numbers[self._starts + begin]
            & _PART_OF_WORD[np.clip(self.lengths - begin, 0, _WORD_BYTES)]
            for begin in range(0, longest, _WORD_BYTES)
        )

    def hashes(self, seed: int = 0) -> Words:
        """A number for each that others hardly have; by another seed another."""
        total = np.zeros(len(self), np.uint64)
        for at, word in enumerate(self.words):
            mixed = word * np.uint64(_odd(seed, 2 * at))
            total += (mixed ^ (mixed >> np.uint64(32))) * np.uint64(_odd(seed, 2 * at + 1))
        return total

    @property
    def may_repeat(self) -> bool:
        """Whether one of them perhaps stands there twice; if not, none does."""
        ordered = np.sort(self.hashes())
        return bool((ordered[1:] == ordered[:-1]).any())

    def json_of(self, positions: Sequence[int]) -> bytes:
        """Of some of them, as a JSON list."""
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
    """Finds names among some of which each is there once. Its copies lie side by side in memory."""

    def __init__(self, names: NodeNames) -> None:
        self._names = names
        self._seed = 0
        while True:
            hashes = names.hashes(self._seed)
            order = np.argsort(hashes)
            ordered = hashes[order]
            if not (ordered[1:] == ordered[:-1]).any():
                break
            self._seed += 1  # two names have one number
        # One more at the end, which a search stops at; it is compared in full as all are.
        self._order = np.append(order, 0)
        self._ordered = np.append(ordered, np.uint64(_LARGEST))
        # By the highest bits of a number: where in the order to begin with it.
        bits = max(4, (4 * len(names)).bit_length())
        self._shift = np.uint64(64 - bits)
        begins = np.arange(1 << bits, dtype=np.uint64) << self._shift
        self._first = np.searchsorted(ordered, begins)

    def __len__(self) -> int:
        return len(self._names)

    def find(self, names: NodeNames) -> Spans:
        """Where in the table each of them stands; -1 for those that are not there."""
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
    """As good as any other odd number."""
    mixed = (seed * 1_000_003 + number + 1) * _ODD % 2**64
    mixed = (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9 % 2**64
    return mixed | 1
