"""Servers that answer with far more than anybody wants, and programs that ask them in a process of
their own, whose memory is limited: what goes wrong ends that process and not the tests."""

import asyncio
import gzip
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import chain, repeat

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_MIB = 1 << 20
_MOST_MEMORY_BYTES = 3 << 30
_SECONDS = 120

Pieces = Callable[[], Iterator[bytes]]

_PROGRAM_BEGINS = f"""
import asyncio, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({_MOST_MEMORY_BYTES}, {_MOST_MEMORY_BYTES}))

def peak_mib():
    with open("/proc/self/status") as told:
        return next(int(line.split()[1]) for line in told if line.startswith("VmHWM")) / 1024

def resident_mib():
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * resource.getpagesize() / 2**20

"""


def gzip_bomb(status: bytes = b"200 OK") -> Iterator[bytes]:
    """Unpacks to a thousand times as much, without an end."""
    head = _HEAD.replace(b"200 OK", status)
    piece = gzip.compress(b" " * 16 * _MIB)
    return chain([head + b"Content-Encoding: gzip\r\n\r\n"], repeat(piece, 1000))


def endless(status: bytes = b"200 OK") -> Iterator[bytes]:
    """Spaces: JSON may begin with any number of them."""
    return chain([_HEAD.replace(b"200 OK", status) + b"\r\n"], repeat(b" " * _MIB, 16_000))


def endless_chunks() -> Iterator[bytes]:
    chunk = b"100000\r\n" + b" " * _MIB + b"\r\n"
    return chain([_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"], repeat(chunk, 16_000))


def announced() -> Iterator[bytes]:
    """Only says how much there is."""
    return iter([_HEAD + b"Content-Length: 1000000000000\r\n\r\n"])


def nested(depth: int = 100_000) -> Iterator[bytes]:
    body = b'{"a":' * depth + b"1" + b"}" * depth
    return iter([_HEAD + b"Content-Length: %d\r\n\r\n" % len(body), body])


def whole(body: bytes) -> Pieces:
    return lambda: iter([_HEAD + b"Content-Length: %d\r\n\r\n" % len(body), body])


@asynccontextmanager
async def hostile_server(answer: Pieces) -> AsyncIterator[str]:
    """Answers every request so, whatever it asks."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await reader.readuntil(b"\r\n\r\n")
            for piece in answer():
                writer.write(piece)
                await writer.drain()
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_limited(program: str, *args: str) -> str:
    """What the program prints; `peak_mib()` and `resident_mib()` are at its hand."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _PROGRAM_BEGINS + program,
        *args,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_SECONDS):
            output, complaint = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, complaint.decode()[-2000:]
    return output.decode()
