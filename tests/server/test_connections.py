"""Connections on which no request comes, or half a one; and more of them than a server takes."""

import io
import ssl
from contextlib import suppress

import pytest
from aiohttp import web
from tests.server.conftest import RawClient, messages, running
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


# More than it takes.


@pytest.mark.parametrize("is_self_signed", [False, True], ids=["over HTTP", "over HTTPS"])
async def test_who_never_asked_gives_way_to_a_newcomer(is_self_signed: bool) -> None:
    server = Server(ROUTES, port=0, is_self_signed=is_self_signed, most_connections=3)
    tls = ssl._create_unverified_context() if is_self_signed else None
    async with running(server):
        port = server.address.port
        kept, silent, half = clients = [await RawClient.connected(port, tls) for _ in range(3)]
        await half.send(b"GET /hel")
        answers = [await kept.ask("/hello")]
        ends = []
        for leaver in (silent, half):
            clients.append(await RawClient.connected(port, tls))
            ends.append(await leaver.reader.read())
            answers += [await client.ask("/hello") for client in (kept, clients[-1])]
        for client in clients:
            await client.close()
    assert ends == [b"", b""]
    assert [answer.body for answer in answers] == [b"hello"] * 5


async def test_who_was_answered_longest_ago_gives_way_where_all_have_asked() -> None:
    server = Server(ROUTES, port=0, most_connections=2)
    async with running(server):
        port = server.address.port
        first, second = clients = [await RawClient.connected(port) for _ in range(2)]
        for client in (first, second, first):
            await client.ask("/hello")
        clients.append(await RawClient.connected(port))
        end = await second.reader.read()
        answers = [await client.ask("/hello") for client in (first, clients[-1])]
        for client in clients:
            await client.close()
    assert end == b""
    assert [answer.body for answer in answers] == [b"hello", b"hello"]


async def test_newcomers_are_rejected_while_all_others_wait_for_answers(
    log_lines: io.StringIO,
) -> None:
    slow = SlowRoutes()
    server = Server(slow.routes, port=0, most_connections=2)
    async with running(server):
        port = server.address.port
        asking = [await RawClient.connected(port) for _ in range(2)]
        for client in asking:
            await client.send(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await slow.wait_until_asked(2)
        for _ in range(3):
            rejected = await RawClient.connected(port)
            with suppress(ConnectionResetError):
                assert await rejected.reader.read() == b""
            await rejected.close()
        slow.may_answer.set()
        bodies = [(await client.answer()).body for client in asking]
        for client in asking:
            await client.close()
    assert bodies == [b"nothing", b"nothing"]
    assert messages(log_lines) == [
        '"Too many connections; those that ask nothing are closed, or else new ones" most=2'
    ]
