"""Large bodies in and out without needless copies, and no more of them at once than there is
memory for; the routes of the extender use it."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

_MIB = 1024 * 1024
# Larger pieces are no faster; with TLS each is encrypted in one go, while the loop waits.
_PIECE_BYTES = _MIB
# By far longer than any scheduler waits for its answer.
_WITHIN_SECONDS = 30.0
_IN_LINE_SECONDS = 1.0

Part = bytes | bytearray | memoryview


class BodyError(Exception):
    """A request's body cannot be had; its text is one sentence for whoever sent it."""

    status = 400
    reason = "broken-off"  # a word for /metrics


class BodyTooLargeError(BodyError):
    status = 413
    reason = "too-large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"the request's body is larger than {_size_text(limit_bytes)}, "
            "the limit that --max-body-mib sets"
        )


class BodyTooSlowError(BodyError):
    status = 408
    reason = "too-slow"


class BodyEncodedError(BodyError):
    status = 415
    reason = "content-encoding"


class TooManyBodiesError(BodyError):
    status = 503
    reason = "busy"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"requests under way hold {_size_text(limit_bytes)} already, the limit that "
            "--max-body-mib sets for all of them at once; ask again"
        )


class BodyBudget:
    """How many bytes all bodies that are read or answered may have at once.

    Who wants more than there is left waits in line for a while, in the order of coming.
    """

    def __init__(self, most_bytes: int, *, in_line_seconds: float = _IN_LINE_SECONDS) -> None:
        self.most_bytes = most_bytes
        self._in_line_seconds = in_line_seconds
        self._held_bytes = 0
        self._held_in_line_bytes = 0
        self._line: deque[tuple[int, asyncio.Future[None]]] = deque()

    @contextmanager
    def share(self) -> Iterator["BodyShare"]:
        """Nothing to begin with; it is given back in the end."""
        share = BodyShare(self)
        try:
            yield share
        finally:
            self.give_back(share.held_bytes)

    async def take(self, size_bytes: int, *, held_bytes: int) -> None:
        """TooManyBodiesError where they are not to be had in time by who holds some already."""
        if not self._line and self._fits(size_bytes):
            self._held_bytes += size_bytes
            return
        if self._held_in_line_bytes + held_bytes == self._held_bytes:
            # All that is held is held by those who wait: without this one the others can go on.
            raise TooManyBodiesError(self.most_bytes)
        granted = asyncio.get_running_loop().create_future()
        place = (size_bytes, granted)
        self._line.append(place)
        self._held_in_line_bytes += held_bytes
        try:
            async with asyncio.timeout(self._in_line_seconds):
                await granted
        except TimeoutError:
            self._leave(place)
            raise TooManyBodiesError(self.most_bytes) from None
        except BaseException:
            self._leave(place)
            raise
        finally:
            self._held_in_line_bytes -= held_bytes

    def keep(self, size_bytes: int) -> None:
        """For what is there already: whoever comes next waits for it."""
        self._held_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        self._held_bytes -= size_bytes
        while self._line and self._fits(self._line[0][0]):
            next_bytes, granted = self._line.popleft()
            if not granted.cancelled():
                self._held_bytes += next_bytes
                granted.set_result(None)

    def _fits(self, size_bytes: int) -> bool:
        return self._held_bytes + size_bytes <= self.most_bytes

    def _leave(self, place: tuple[int, asyncio.Future[None]]) -> None:
        size_bytes, granted = place
        if granted.done() and not granted.cancelled():
            self.give_back(size_bytes)
            return
        with suppress(ValueError):
            self._line.remove(place)
        self.give_back(0)  # those behind may fit


class BodyShare:
    """What one request holds of a budget."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self.held_bytes = 0

    async def grow(self, size_bytes: int) -> None:
        await self._budget.take(size_bytes, held_bytes=self.held_bytes)
        self.held_bytes += size_bytes

    def become(self, size_bytes: int) -> None:
        """The request is let go of, and its answer is there, which waits for nobody."""
        before, self.held_bytes = self.held_bytes, size_bytes
        self._budget.keep(size_bytes)
        self._budget.give_back(before)


async def read_body(
    request: web.Request,
    limit_bytes: int,
    share: BodyShare,
    *,
    within_seconds: float = _WITHIN_SECONDS,
) -> bytearray:
    """The whole body, in one piece of memory, or a BodyError.

    It grows with what arrives, for a Content-Length too: large blocks grow without being
    copied, so that costs nothing, and nobody gets memory for bytes that were only announced.
    Over the limit, the rest is not read.
    """
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise BodyEncodedError(
            f"the request's body has the Content-Encoding {encoding}; expected none"
        )
    if request.content_length is not None and request.content_length > limit_bytes:
        raise BodyTooLargeError(limit_bytes)
    body = bytearray()
    try:
        async with asyncio.timeout(within_seconds):
            while piece := await request.content.readany():
                if len(body) + len(piece) > limit_bytes:
                    raise BodyTooLargeError(limit_bytes)
                await share.grow(len(piece))
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


async def write_response(
    request: web.Request, response: web.StreamResponse, *, within_seconds: float = _WITHIN_SECONDS
) -> None:
    """Returns when the last byte is written, or its client is gone or does not read it; once more
    does nothing."""
    try:
        async with asyncio.timeout(within_seconds):
            with suppress(ConnectionError):  # aiohttp sees that by itself
                await response.prepare(request)
                await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()


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
