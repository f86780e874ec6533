"""Large bodies in and out without needless copies; the routes of the extender use it."""

import asyncio

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

_MIB = 1024 * 1024
# Larger pieces are no faster; with TLS each is encrypted in one go, while the loop waits.
_PIECE_BYTES = _MIB
# By far longer than any scheduler waits for its answer.
_WITHIN_SECONDS = 30.0

Part = bytes | bytearray | memoryview


class BodyError(Exception):
    """A request's body cannot be had; its text is one sentence for whoever sent it."""

    status = 400


class BodyTooLargeError(BodyError):
    status = 413

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"the request's body is larger than {_size_text(limit_bytes)}, "
            "the limit that --max-body-mib sets"
        )


class BodyTooSlowError(BodyError):
    status = 408


async def read_body(
    request: web.Request, limit_bytes: int, *, within_seconds: float = _WITHIN_SECONDS
) -> bytearray:
    """The whole body, in one piece of memory, or a BodyError.

    It grows with what arrives, for a Content-Length too: large blocks grow without being
    copied, so that costs nothing, and nobody gets memory for bytes that were only announced.
    Over the limit, the rest is not read.
    """
    if request.content_length is not None and request.content_length > limit_bytes:
        raise BodyTooLargeError(limit_bytes)
    body = bytearray()
    try:
        async with asyncio.timeout(within_seconds):
            while piece := await request.content.readany():
                if len(body) + len(piece) > limit_bytes:
                    raise BodyTooLargeError(limit_bytes)
                body += piece
    except TimeoutError:
        raise BodyTooSlowError(
            f"of the request's body only {len(body)} bytes arrived within {within_seconds:g} s"
        ) from None
    except (web.RequestPayloadError, ConnectionError) as failure:
        raise BodyError(f"the request's body broke off after {len(body)} bytes") from failure
    return body


def body_response(
    *parts: Part, status: int = 200, content_type: str = "application/json"
) -> web.Response:
    """Answers with the parts one after the other, as they are: none is copied or joined."""
    body = Parts(parts, content_type)
    return web.Response(body=body, status=status)


class Parts(Payload):
    """What is written piece by piece, no faster than the client reads.

    As one `bytes`, aiohttp would copy it behind the headers, and TLS would encrypt all of it
    into memory first.
    """

    def __init__(self, parts: tuple[Part, ...], content_type: str) -> None:
        super().__init__(parts, content_type=content_type)
        self._size = sum(memoryview(part).nbytes for part in parts)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        # A kept connection holds its last response: let go of the memory once it is written.
        parts, self._value = self._value, ()
        for part in parts:
            whole = memoryview(part)
            for start in range(0, whole.nbytes, _PIECE_BYTES):
                await writer.write(whole[start : start + _PIECE_BYTES])


def _size_text(size_bytes: int) -> str:
    mib, rest = divmod(size_bytes, _MIB)
    return f"{size_bytes} bytes" if rest else f"{mib} MiB"
