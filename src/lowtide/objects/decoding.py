"""Objects from JSON, where a null may stand for a field that is not set.

Used by kube for what the API server sends, and by scenario for what users write."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

import msgspec

T = TypeVar("T")

# The API server reads and stores objects that are nested 10,000 deep; Python stops at 1000.
_DEEPER: Final = 10_100


class ObjectDecoder(Generic[T]):
    """Decodes straight into the type; only what does not fit is read once more without nulls."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode

    def decode(self, body: bytes | bytearray | msgspec.Raw) -> T:
        """Raises what msgspec does, UnicodeDecodeError for bytes that are not UTF-8, and
        RecursionError for what is nested deeper than the API server takes it."""
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
    """Only here, where each level is a small frame: an endless recursion elsewhere, in a rule for
    instance, would take the whole stack."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + _DEEPER)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def without_nulls(data: Any) -> Any:
    """A null under a name means that the field is not set."""
    if isinstance(data, dict):
        return {key: without_nulls(value) for key, value in data.items() if value is not None}
    if isinstance(data, list):
        return [without_nulls(value) for value in data]
    return data
