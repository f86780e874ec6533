"""How much Lowtide reads of what others send or write, and reading no further.

The clients of the API server, Prometheus and extenders read answers with it; credentials read
files with it."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import aiohttp

_MIB: Final = 1 << 20

# One answer, unpacked: 390,000 series of 250 bytes are 93 MiB, the pods of a node 15 KiB.
ANSWER_BYTES: Final = 256 * _MIB
# One object: a line of a watch, or the answer to a write. etcd takes 1.5 MB, JSON may be longer.
OBJECT_BYTES: Final = 16 * _MIB
# What a server says to a watch or a list that it rejects.
ERROR_BYTES: Final = 1 * _MIB
# A token, password or certificate in a file, and what an exec plugin prints.
CREDENTIAL_BYTES: Final = 1 * _MIB

# Of answers that are larger than this, a client reads one at a time.
_LARGE_BYTES: Final = 16 * _MIB


class TooLargeError(OSError):
    """There is more than is read. The text names the limit: "more than 16 MiB"."""

    def __init__(self, most_bytes: int) -> None:
        amount = f"{most_bytes // _MIB} MiB" if most_bytes >= _MIB else f"{most_bytes} bytes"
        super().__init__(f"more than {amount}, the limit")


class Intake:
    """Reads the answers that one client gets, and counts those that it rejects for their size."""

    def __init__(self) -> None:
        self.rejected = 0
        self._large = asyncio.Lock()

    def rejection(self, most_bytes: int) -> TooLargeError:
        self.rejected += 1
        return TooLargeError(most_bytes)

    async def read(self, response: aiohttp.ClientResponse, most_bytes: int = ANSWER_BYTES) -> bytes:
        """The whole body; TooLargeError, with the connection closed, where there is more.

        aiohttp unpacks what is compressed in small pieces, and only as fast as they are read. So
        counting the unpacked pieces stops a small answer that would unpack to a large one."""
        # One piece of memory that grows, and is given back whole: many pieces would leave holes.
        body = bytearray()
        try:
            if (response.content_length or 0) > most_bytes:
                raise self.rejection(most_bytes)
            async with AsyncExitStack() as turn:
                async for piece in response.content.iter_any():
                    size = len(body) + len(piece)
                    if len(body) <= _LARGE_BYTES < size:
                        await turn.enter_async_context(self._large)
                    if max(size, response.content.total_raw_bytes) > most_bytes:
                        raise self.rejection(most_bytes)
                    body += piece
                return bytes(body)
        except BaseException:
            response.close()
            raise
        finally:
            body.clear()  # whoever keeps an error keeps this frame


def read_file(path: Path, most_bytes: int = CREDENTIAL_BYTES) -> bytes:
    """All of it; TooLargeError where there is more."""
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise TooLargeError(most_bytes)
    return content
