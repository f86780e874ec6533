"""Files and answers are read up to a limit and no further."""

import gzip
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from tests.hostile import Pieces, announced, endless, endless_chunks, gzip_bomb, hostile_server

from lowtide.input_limits import Intake, TooLargeError, read_file

LIMIT = 10_000
HEAD = b"HTTP/1.1 200 OK\r\n"


def packed(body: bytes) -> Pieces:
    content = gzip.compress(body)
    head = b"%bContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % (HEAD, len(content))
    return lambda: iter([head, content])


def plain(body: bytes) -> Pieces:
    return lambda: iter([HEAD + b"Content-Length: %d\r\n\r\n" % len(body), body])


def packed_nothing() -> Iterator[bytes]:
    """Blocks of gzip that unpack to nothing, and then a byte."""
    head, empty = b"\x1f\x8b\x08\0\0\0\0\0\0\xff", b"\0\0\0\xff\xff"
    yield HEAD + b"Content-Encoding: gzip\r\n\r\n" + head + empty * 50_000
    yield b"\0\1\0\xfe\xffx" + empty * 50_000


@asynccontextmanager
async def answered(answer: Pieces) -> AsyncIterator[aiohttp.ClientResponse]:
    async with hostile_server(answer) as url, aiohttp.ClientSession() as session:
        yield await session.get(url)


@pytest.mark.parametrize("form", [plain, packed])
async def test_an_answer_of_exactly_the_limit_is_read(form: Callable[[bytes], Pieces]) -> None:
    intake = Intake()
    async with answered(form(b"x" * LIMIT)) as response:
        assert await intake.read(response, LIMIT) == b"x" * LIMIT
    assert intake.rejected == 0


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(plain(b"x" * (LIMIT + 1)), id="one byte longer"),
        pytest.param(packed(b"x" * (LIMIT + 1)), id="one byte longer when unpacked"),
        pytest.param(packed_nothing, id="longer than what it unpacks to"),
        pytest.param(gzip_bomb, id="packed without an end"),
        pytest.param(endless, id="without an end"),
        pytest.param(endless_chunks, id="in chunks without an end"),
        pytest.param(announced, id="announced"),
    ],
)
async def test_a_larger_answer_is_rejected_and_its_connection_closed(answer: Pieces) -> None:
    intake = Intake()
    async with answered(answer) as response:
        with pytest.raises(TooLargeError, match=r"^more than 10000 bytes, the limit$"):
            await intake.read(response, LIMIT)
        assert response.connection is None
        assert response.closed
    assert intake.rejected == 1


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 10)
    assert read_file(tmp_path / "file", 10) == b"x" * 10


@pytest.mark.parametrize(
    ("most_bytes", "want"),
    [
        pytest.param(9, "more than 9 bytes, the limit", id="one byte longer"),
        pytest.param(1 << 20, "more than 1 MiB, the limit", id="without an end"),
    ],
)
def test_a_larger_file_is_rejected(tmp_path: Path, most_bytes: int, want: str) -> None:
    (tmp_path / "file").write_bytes(b"x" * 10)
    path = tmp_path / "file" if most_bytes < 10 else Path("/dev/zero")
    with pytest.raises(TooLargeError) as caught:
        read_file(path, most_bytes)
    assert str(caught.value) == want
