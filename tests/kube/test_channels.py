"""Kept connections for writes: which are used again, and how a request on one of them ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from yarl import URL

from lowtide.input_limits import Intake
from lowtide.kube.channels import LONGEST_IDLE_SECONDS, Channels

ASKED = b"POST /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class RawServer:
    """Sends its answer, as it stands, for whatever comes; an empty answer closes the connection."""

    answer: bytes = ANSWER
    connections: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        while await reader.read(1 << 16):
            if not self.answer:
                break
            writer.write(self.answer)
        writer.close()


@asynccontextmanager
async def served() -> AsyncIterator[RawServer]:
    made = RawServer()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        for writer in made.writers:
            writer.close()
        server.close()
        await asyncio.sleep(0)


def channels_to(server: RawServer) -> Channels:
    return Channels(URL(f"http://127.0.0.1:{server.port}"), None, Intake())


async def ask(channels: Channels, timeout_seconds: float = 10.0) -> bytes:
    channel = await channels.take(None, 10.0)
    try:
        return (await channel.ask(ASKED, timeout_seconds)).body
    finally:
        channels.give_back(channel, None)


async def test_a_connection_is_used_again() -> None:
    async with served() as server:
        channels = channels_to(server)
        assert [await ask(channels) for _ in range(3)] == [b"{}"] * 3
        assert server.connections == 1
        channels.close()


async def test_requests_side_by_side_have_connections_of_their_own() -> None:
    async with served() as server:
        channels = channels_to(server)
        assert await asyncio.gather(*(ask(channels) for _ in range(3))) == [b"{}"] * 3
        assert server.connections == 3
        channels.close()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            ANSWER.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), id="says close"
        ),
        pytest.param(ANSWER + b"more", id="sends more than was asked for"),
    ],
)
async def test_no_second_request_after_a_server(answer: bytes) -> None:
    async with served() as server:
        channels = channels_to(server)
        server.answer = answer
        assert [await ask(channels) for _ in range(2)] == [b"{}"] * 2
        assert server.connections == 2
        channels.close()


async def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    async with served() as server:
        channels = channels_to(server)
        await ask(channels)
        channel = await channels.take(None, 10.0)
        channels.give_back(channel, None)
        server.writers[0].close()
        async with asyncio.timeout(10):
            while channel.is_open:
                await asyncio.sleep(0)
        assert (await ask(channels), server.connections) == (b"{}", 2)
        channels.close()


async def test_a_connection_that_was_idle_for_long_is_not_used_again() -> None:
    async with served() as server:
        channels = channels_to(server)
        channel = await channels.take(None, 10.0)
        channels.give_back(channel, None)
        channel.idle_since -= LONGEST_IDLE_SECONDS
        assert (await ask(channels), server.connections) == (b"{}", 2)
        channels.close()


async def test_an_end_without_an_answer_is_an_error_and_nothing_is_sent_again() -> None:
    async with served() as server:
        channels = channels_to(server)
        server.answer = b""
        with pytest.raises(ConnectionError, match="closed the connection"):
            await ask(channels)
        assert server.connections == 1
        channels.close()


async def test_half_an_answer_is_an_error() -> None:
    async with served() as server:
        channels = channels_to(server)
        server.answer = ANSWER[:-1]
        asking = asyncio.create_task(ask(channels))
        async with asyncio.timeout(10):
            while not server.writers:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
        server.writers[0].write_eof()
        with pytest.raises(ConnectionError):
            await asking
        channels.close()


async def test_what_is_no_http_is_an_error() -> None:
    async with served() as server:
        channels = channels_to(server)
        server.answer = b"SSH-2.0-x\r\n\r\n"
        with pytest.raises(ConnectionError, match="not with HTTP"):
            await ask(channels)
        channels.close()


async def test_an_answer_that_comes_late_is_taken_for_no_other() -> None:
    async with served() as server:
        channels = channels_to(server)
        server.answer = b"HTTP/1.1 201 "
        with pytest.raises(TimeoutError):
            await ask(channels, timeout_seconds=0.05)
        server.answer = ANSWER
        assert (await ask(channels), server.connections) == (b"{}", 2)
        channels.close()


@pytest.mark.parametrize(
    "earlier_seconds",
    [
        pytest.param(10.0, id="longer than its own"),
        pytest.param(0.05, id="shorter than its own"),
    ],
)
async def test_a_request_has_its_own_time_whatever_an_earlier_one_had(
    earlier_seconds: float,
) -> None:
    async with served() as server:
        channels = channels_to(server)
        await ask(channels, timeout_seconds=earlier_seconds)
        server.answer = b"HTTP/1.1 201 "
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        async with asyncio.timeout(5):
            with pytest.raises(TimeoutError):
                await ask(channels, timeout_seconds=0.1)
        assert loop.time() - began_at >= 0.099  # timers count in milliseconds
        assert server.connections == 1
        channels.close()


async def test_a_request_that_is_cancelled_gives_up_its_connection() -> None:
    async with served() as server:
        channels = channels_to(server)
        server.answer = b"HTTP/1.1 201 "
        asking = asyncio.create_task(ask(channels))
        async with asyncio.timeout(10):
            while not server.writers:
                await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        server.answer = ANSWER
        assert (await ask(channels), server.connections) == (b"{}", 2)
        channels.close()
