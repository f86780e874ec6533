"""One answer in HTTP/1.1, read from the bytes that have come so far. Used by channels."""

from collections.abc import Mapping

import msgspec
from multidict import CIMultiDict

from lowtide.input_limits import OBJECT_BYTES, TooLargeError

MOST_HEAD_BYTES = 1 << 16
# All of them are looked at each time that more has come.
MOST_CHUNKS = 1 << 14

_WITHOUT_BODY = (204, 304)
_END_OF_LINE = b"\r\n"
_END_OF_HEAD = b"\r\n\r\n"


class MalformedAnswerError(ConnectionError):
    """What came is not HTTP/1.1."""


class Answer(msgspec.Struct, frozen=True, gc=False):
    status: int
    head: bytes
    body: bytes
    is_last: bool  # nothing more can be asked on this connection

    def headers(self) -> Mapping[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return CIMultiDict(_header(line) for line in lines)


def read_answer(received: bytes | bytearray, *, is_ended: bool = False) -> Answer | None:
    """None while more has to come; `is_ended` tells that nothing will. TooLargeError when the body
    is larger than an object may be."""
    begin = 0
    while True:
        end = received.find(_END_OF_HEAD, begin)
        if end < 0 or end > MOST_HEAD_BYTES:
            if len(received) > MOST_HEAD_BYTES:
                raise MalformedAnswerError(f"no end of the headers in {len(received)} bytes")
            return None
        head, begin = bytes(received[begin:end]), end + len(_END_OF_HEAD)
        if not head.startswith(b"HTTP/1."):
            raise MalformedAnswerError(f"it begins with {head[:40]!r}, not with HTTP/1.1")
        status = _number(head[9:12], 10, "status")
        if not 100 <= status < 200:  # else it is only a word before the answer
            break
    lowered = head.lower()
    found = _body(status, lowered, received, begin, is_ended=is_ended)
    if len(received) - begin > OBJECT_BYTES:
        raise TooLargeError(OBJECT_BYTES)
    if found is None:
        return None
    body, stop = found
    says_close = b"close" in _value(lowered, b"connection") or head.startswith(b"HTTP/1.0")
    return Answer(status, head, body, says_close or is_ended or stop != len(received))


def _body(
    status: int, head: bytes, received: bytes | bytearray, begin: int, *, is_ended: bool
) -> tuple[bytes, int] | None:
    """With where it stops; None while it is not whole."""
    if status in _WITHOUT_BODY:
        return b"", begin
    if b"chunked" in _value(head, b"transfer-encoding"):
        return _chunks(received, begin)
    length = _value(head, b"content-length")
    if not length:
        return (bytes(received[begin:]), len(received)) if is_ended else None
    stop = begin + _number(length, 10, "Content-Length")
    if stop - begin > OBJECT_BYTES:
        raise TooLargeError(OBJECT_BYTES)
    return (bytes(received[begin:stop]), stop) if len(received) >= stop else None


def _chunks(received: bytes | bytearray, at: int) -> tuple[bytes, int] | None:
    chunks: list[bytes | bytearray] = []
    while (end := received.find(_END_OF_LINE, at)) >= 0:
        size = _number(received[at:end].partition(b";")[0], 16, "chunk size")
        if size == 0:
            # Headers after the body tell nothing that anybody asks for.
            stop = received.find(_END_OF_HEAD, end)
            return None if stop < 0 else (b"".join(chunks), stop + len(_END_OF_HEAD))
        if size > OBJECT_BYTES or len(chunks) >= MOST_CHUNKS:
            raise TooLargeError(OBJECT_BYTES)
        begin = end + len(_END_OF_LINE)
        at = begin + size + len(_END_OF_LINE)
        if len(received) < at:
            return None
        chunks.append(received[begin : begin + size])
    return None


def _value(head: bytes, name: bytes) -> bytes:
    """Of a header in a head that is all in small letters; empty where there is none."""
    at = head.find(b"\r\n%b:" % name)
    if at < 0:
        return b""
    begin = at + len(name) + 3
    stop = head.find(_END_OF_LINE, begin)
    return head[begin : stop if stop >= 0 else len(head)].strip()


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name, value.strip()


def _number(text: bytes | bytearray, base: int, what: str) -> int:
    try:
        number = int(text, base)
    except ValueError:
        number = -1
    if number < 0:
        raise MalformedAnswerError(f"its {what} is {text[:40]!r}, which is no number")
    return number
