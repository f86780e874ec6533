"""Objects from JSON, where a null may stand for a field that is not set.

Used by kube for what the API server sends, and by scenario for what users write."""

from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")


class ObjectDecoder(Generic[T]):
    """Decodes straight into the type; only what does not fit is read once more without nulls."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode

    def decode(self, body: bytes | bytearray | msgspec.Raw) -> T:
        """Raises what msgspec does, and UnicodeDecodeError for bytes that are not UTF-8."""
        try:
            return self._decode(body)
        except msgspec.ValidationError:
            return msgspec.convert(without_nulls(msgspec.json.decode(body)), self._kind)


def without_nulls(data: Any) -> Any:
    """A null under a name means that the field is not set."""
    if isinstance(data, dict):
        return {key: without_nulls(value) for key, value in data.items() if value is not None}
    if isinstance(data, list):
        return [without_nulls(value) for value in data]
    return data
