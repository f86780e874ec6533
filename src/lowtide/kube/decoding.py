"""Answers of the API server as objects; what cannot be decoded is a KubeError like any other.

Used by watch, writer, lease and connection for every answer they read."""

from typing import Generic, TypeVar

import msgspec

from lowtide.kube.errors import Unreadable
from lowtide.objects.decoding import ObjectDecoder

T = TypeVar("T")

UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class AnswerDecoder(Generic[T]):
    def __init__(self, kind: type[T]) -> None:
        self._decode = ObjectDecoder(kind).decode

    def decode(self, body: bytes | bytearray | msgspec.Raw, what: str) -> T:
        """`what` begins the sentence of the error, Unreadable."""
        try:
            return self._decode(body)
        except UNDECODABLE as error:
            raise Unreadable(f"{what}: {error}") from None
