"""Node names as a request has them: many, and seldom looked at one by one.

Thousands of them come with each question to an extender. They are kept as bytes, and become strings
only where somebody wants strings."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

_OPEN, _BETWEEN, _CLOSE = b'["', b'","', b'"]'


class NodeNames(Sequence[str]):
    """Made of a JSON list of strings without escapes and spaces, as Go writes it."""

    def __init__(self, json: bytes, parts: list[bytes]) -> None:
        self.json = json
        self.parts = parts

    @classmethod
    def of(cls, json: bytes) -> "NodeNames | None":
        """None where it is not of that form; it is UTF-8 already."""
        if not (json.startswith(_OPEN) and json.endswith(_CLOSE)) or b"\\" in json:
            return None
        parts = json[len(_OPEN) : -len(_CLOSE)].split(_BETWEEN)
        return cls(json, parts) if json.count(b'"') == 2 * len(parts) else None

    def json_of(self, positions: Sequence[int]) -> bytes:
        """Of some of them, as a JSON list."""
        if not positions:
            return b"[]"
        return _OPEN + _BETWEEN.join([self.parts[at] for at in positions]) + _CLOSE

    def __len__(self) -> int:
        return len(self.parts)

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
