"""Connections on which no request comes, or half a one."""

import asyncio
from contextlib import suppress

import pytest
from aiohttp import web
from tests.server.conftest import RawClient, running
from tests.server.slow_routes import HALF_A_REQUEST, SlowRoutes, hello

from lowtide.server.http import Server

ROUTES = [web.get("/hello", hello)]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="says nothing"),
        pytest.param(b"GET /hello HTTP/1.1\r\nHost: loc", id="sends half a head"),
    ],
)
async def test_a_connection_is_closed_that(sent: bytes) -> None:
    server = Server(ROUTES, port=0, head_seconds=0.1)
    async with running(server):
        kept, other = [await RawClient.connected(server.address.port) for _ in range(2)]
        await kept.ask("/hello")
        await other.send(sent)
        end = await other.reader.read()
        again = await kept.ask("/hello")
        for client in (kept, other):
            await client.close()
    assert (end, again.body) == (b"", b"hello")


async def test_half_a_head_on_a_kept_connection_closes_it() -> None:
    server = Server(ROUTES, port=0, head_seconds=0.1)
    async with running(server):
        client = await RawClient.connected(server.address.port)
        await client.ask("/hello")
        await client.send(b"GET /hel")
        assert await client.reader.read() == b""
        await client.close()


async def test_a_body_may_take_longer_than_a_head() -> None:
    slow = SlowRoutes()
    server = Server(slow.routes, port=0, head_seconds=0.1)
    async with running(server):
        silent, client = [await RawClient.connected(server.address.port) for _ in range(2)]
        await client.send(HALF_A_REQUEST)
        await slow.wait_until_asked(1)
        assert await silent.reader.read() == b""
        slow.may_answer.set()
        await client.send(b"other")
        answer = await client.answer()
        for each in (silent, client):
            await each.close()
    assert answer.body == b"firstother"


async def test_more_connections_than_there_may_be_are_closed_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server(ROUTES, port=0, most_connections=2)
    async with running(server):
        port = server.address.port
        first, second = [await RawClient.connected(port) for _ in range(2)]
        answers = [(await each.ask("/hello")).body for each in (first, second)]
        for _ in range(2):
            with pytest.raises(CLOSED):
                await asked_anew(port)
        answers.append((await first.ask("/hello")).body)
        await second.close()
        async with asyncio.timeout(10):
            answers.append(await asked_when_there_is_room(port))
        await first.close()
    assert answers == [b"hello"] * 4
    assert caplog.messages == ["Connections are refused: too many are open"]


CLOSED = (asyncio.IncompleteReadError, ConnectionResetError)


async def asked_anew(port: int) -> bytes:
    client = await RawClient.connected(port)
    try:
        return (await client.ask("/hello")).body
    finally:
        client.writer.close()


async def asked_when_there_is_room(port: int) -> bytes:
    while True:
        with suppress(*CLOSED):
            return await asked_anew(port)
