"""Decodes objects from JSON in which null may mean that a field is not set.

Used by kube for the API server's answers, and by scenario for users' files."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

import msgspec

T = TypeVar("T")

# The API server accepts objects nested 10,000 levels deep; Python's recursion limit is 1000.
_DEEPER: Final = 10_100


class ObjectDecoder(Generic[T]):
    """Decodes straight into the type. Only if that fails, it decodes again without nulls."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode

    def decode(self, body: bytes | bytearray | msgspec.Raw) -> T:
        """Decode one object. Raises msgspec's errors, UnicodeDecodeError for bytes that are not
        UTF-8, and RecursionError for objects nested deeper than the API server accepts."""
        try:
            return self._decode_deep(body)
        except msgspec.ValidationError:
            return msgspec.convert(without_nulls(msgspec.json.decode(body)), self._kind)

    def _decode_deep(self, body: bytes | bytearray | msgspec.Raw) -> T:
        try:
            return self._decode(body)
        except RecursionError:
            with _deeper():
                return self._decode(body)


@contextmanager
def _deeper() -> Iterator[None]:
    """Raise the recursion limit for a moment. Decoding uses small frames; elsewhere, for example in
    a plugin, an endless recursion must not use up the whole stack."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + _DEEPER)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def without_nulls(data: Any) -> Any:
    """The data without fields that are null, at every level."""
    if isinstance(data, dict):
        return {key: without_nulls(value) for key, value in data.items() if value is not None}
    if isinstance(data, list):
        return [without_nulls(value) for value in data]
    return data
