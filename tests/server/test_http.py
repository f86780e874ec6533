import asyncio
import io
import socket
import ssl
from collections import Counter
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from tests.server.conftest import RawAnswer, RawClient, messages, running, tls_files, write_pair
from tests.server.slow_routes import HALF_A_REQUEST, LARGE, SlowRoutes, hello

from lowtide.logs import configure_logs
from lowtide.server.errors import ServerError
from lowtide.server.http import Address, Drain, Server

ROUTES = [web.get("/hello", hello)]


async def get_text(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return await response.text()


async def refused_connection(port: int) -> None:
    """Returns once nobody listens on the port."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            return
        except ConnectionResetError:  # closed while we stood in line
            continue
        writer.close()


async def test_serves_http_on_loopback_and_any_free_port() -> None:
    server = Server(ROUTES, port=0)
    async with running(server) as url:
        address = server.address
        assert (address.scheme, address.host, await get_text(f"{url}/hello")) == (
            "http",
            "127.0.0.1",
            "hello",
        )
        assert url == f"http://127.0.0.1:{address.port}"


async def test_a_stopped_server_gives_its_port_back() -> None:
    first = Server(ROUTES, port=0)
    async with running(first):
        port = first.address.port
    async with running(Server(ROUTES, port=port)) as url:
        assert await get_text(f"{url}/hello") == "hello"


async def test_a_server_that_is_not_started_may_be_stopped() -> None:
    await Server(ROUTES, port=0).stop()


def test_an_address_of_version_6_is_bracketed_in_a_url() -> None:
    assert Address("http", "::1", 80).url == "http://[::1]:80"


async def test_a_port_in_use_is_one_sentence() -> None:
    holder = Server(ROUTES, port=0)
    async with running(holder):
        port = holder.address.port
        with pytest.raises(ServerError) as caught:
            await Server(ROUTES, port=port).start()
    assert str(caught.value) == (
        f"cannot serve on 127.0.0.1:{port}: another process listens there; "
        "choose another port or stop that process"
    )


@pytest.mark.parametrize(
    ("bind_address", "port", "want"),
    [
        pytest.param(
            "127.0.0.1",
            65536,
            "cannot serve on 127.0.0.1:65536: a port is a number from 0 to 65535",
            id="rejects a port that does not exist",
        ),
        pytest.param(
            "192.0.2.1",
            0,
            "cannot serve on 192.0.2.1:0: Cannot assign requested address; "
            "the bind address must be an address of this machine, such as 127.0.0.1 or 0.0.0.0",
            id="rejects the address of another machine",
        ),
    ],
)
async def test_where_nobody_can_serve(bind_address: str, port: int, want: str) -> None:
    with pytest.raises(ServerError) as caught:
        await Server(ROUTES, bind_address=bind_address, port=port).start()
    assert str(caught.value) == want


def test_a_server_has_no_address_before_it_is_started() -> None:
    with pytest.raises(ServerError, match="has no address before it is started"):
        _ = Server(ROUTES, port=0).address


# What is no request, and what is a bug.


@pytest.mark.parametrize(
    ("sent", "want"),
    [
        pytest.param(b"\x16\x03\x01\r\n\r\n", "Received HTTPS traffic", id="TLS"),
        pytest.param(
            b"GET / HTTP/9.9\r\n\r\n", "Bad status line: Invalid HTTP version", id="version"
        ),
        pytest.param(
            b"GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
            "Invalid character in Content-Length",
            id="a length that is no number",
        ),
        pytest.param(b"GET /hello HTTP/1.1\r\n\r\n", "Missing 'Host' header", id="no host"),
    ],
)
async def test_what_is_not_http_is_one_line_for_who_wants_it(
    sent: bytes, want: str, log_lines: io.StringIO
) -> None:
    server = Server(ROUTES, port=0)
    async with running(server):
        lines = []
        for verbosity in (3, 4):
            configure_logs(verbosity=verbosity, format="text", stream=log_lines, clock=lambda: 0.0)
            client = await RawClient.connected(server.address.port)
            await client.send(sent)
            answer = await client.reader.read()
            assert answer.startswith(b"HTTP/1.0 400 Bad Request\r\n")
            await client.close()
            lines.append(messages(log_lines))
    (line,) = lines[1]
    assert lines[0] == []
    assert line.startswith(f'"A request is not HTTP" err="{want}')


async def test_a_bug_of_ours_is_told_with_its_stack(log_lines: io.StringIO) -> None:
    async def fail(_: web.Request) -> web.Response:
        raise KeyError("row 7")

    server = Server([web.get("/bug", fail)], port=0)
    async with running(server):
        client = await RawClient.connected(server.address.port)
        answer = await client.ask("/bug")
        await client.close()
    assert answer.status == 500
    assert "KeyError: 'row 7'" in log_lines.getvalue()


# Stopping.

PATIENT = Drain(request_seconds=60.0, idle_seconds=60.0)
NOTHING_IS_IDLE = Drain(request_seconds=60.0, idle_seconds=0.0)


def outcome(answer: RawAnswer) -> tuple[int, str | None, bytes]:
    return answer.status, answer.headers.get("connection"), answer.body


async def test_every_request_under_way_is_answered_when_the_server_stops() -> None:
    slow = SlowRoutes()
    server = Server(slow.routes, port=0, drain=PATIENT)
    await server.start()
    port = server.address.port
    clients = [await RawClient.connected(port) for _ in range(20)]
    for client in clients:
        await client.send(HALF_A_REQUEST)
    await slow.wait_until_asked(20)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.stop())
        await refused_connection(port)
        for client in clients:
            await client.send(b"other")
        slow.may_answer.set()
        answers = [await client.answer() for client in clients]
    assert [outcome(answer) for answer in answers] == [(200, "close", b"firstother")] * 20
    for client in clients:
        assert await client.reader.read() == b""
        await client.close()


async def test_requests_that_nobody_has_read_yet_are_answered_when_the_server_stops() -> None:
    server = Server(ROUTES, port=0, drain=PATIENT)
    await server.start()
    # Without a turn of the loop: the server has not even accepted them.
    sockets = [socket.create_connection(("127.0.0.1", server.address.port)) for _ in range(20)]
    for each in sockets:
        each.sendall(b"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await server.stop()
    clients = [RawClient(*await asyncio.open_connection(sock=each)) for each in sockets]
    answers = [await client.answer() for client in clients]
    assert [outcome(answer) for answer in answers] == [(200, "close", b"hello")] * 20
    for client in clients:
        await client.close()


async def test_a_kept_connection_may_ask_once_more_while_the_server_stops() -> None:
    slow = SlowRoutes()
    server = Server(slow.routes, port=0, drain=PATIENT)
    await server.start()
    port = server.address.port
    kept, other = await RawClient.connected(port), await RawClient.connected(port)
    before = await kept.ask("/hello")
    await other.send(HALF_A_REQUEST)
    await slow.wait_until_asked(1)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.stop())
        await refused_connection(port)
        while_stopping = [await kept.ask("/hello"), await kept.reader.read()]
        slow.may_answer.set()
        await other.send(b"other")
    assert outcome(before) == (200, None, b"hello")
    assert isinstance(while_stopping[0], RawAnswer)
    assert (outcome(while_stopping[0]), while_stopping[1]) == ((200, "close", b"hello"), b"")
    for client in (kept, other):
        await client.close()


async def test_what_is_not_found_ends_the_connection_too_while_the_server_stops() -> None:
    server = Server(ROUTES, port=0, drain=PATIENT)
    await server.start()
    port = server.address.port
    kept = await RawClient.connected(port)
    await kept.ask("/hello")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.stop())
        await refused_connection(port)
        answer = await kept.ask("/nowhere")
    assert outcome(answer) == (404, "close", b"404: Not Found")
    await kept.close()


async def test_connections_without_a_request_are_closed_first_when_the_server_stops() -> None:
    slow = SlowRoutes()
    server = Server(slow.routes, port=0, drain=NOTHING_IS_IDLE)
    await server.start()
    port = server.address.port
    kept, silent, busy = [await RawClient.connected(port) for _ in range(3)]
    await kept.ask("/hello")
    await busy.send(HALF_A_REQUEST)
    await slow.wait_until_asked(1)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.stop())
        ends = [await kept.reader.read(), await silent.reader.read()]
        slow.may_answer.set()
        await busy.send(b"other")
        answer = await busy.answer()
    assert (ends, outcome(answer)) == ([b"", b""], (200, "close", b"firstother"))
    for client in (kept, silent, busy):
        await client.close()


async def test_an_answer_under_way_is_written_to_its_end_when_the_server_stops() -> None:
    slow = SlowRoutes()
    server = Server(slow.routes, port=0, drain=NOTHING_IS_IDLE)
    await server.start()
    port = server.address.port
    client = await RawClient.connected(port)
    await client.send(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await client.reader.readuntil(b"HTTP/1.1 200 OK\r\n")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.stop())
        await refused_connection(port)
        head, _, body = (await client.reader.read()).partition(b"\r\n\r\n")
    assert (b"Content-Length: %d" % len(LARGE) in head, body == LARGE) == (True, True)
    await client.close()


async def test_a_request_that_takes_too_long_is_cut_off(log_lines: io.StringIO) -> None:
    slow = SlowRoutes()
    server = Server(slow.routes, port=0, drain=Drain(request_seconds=0.05, idle_seconds=0.0))
    await server.start()
    client = await RawClient.connected(server.address.port)
    await client.send(HALF_A_REQUEST)
    await slow.wait_until_asked(1)
    await server.stop()
    assert await client.reader.read() == b""
    assert messages(log_lines) == ['"Stopping without an answer to some" requests=1']
    await client.close()


async def test_a_client_that_goes_away_is_no_error_of_ours(log_lines: io.StringIO) -> None:
    slow = SlowRoutes()
    server = Server(slow.routes, port=0, drain=PATIENT)
    await server.start()
    client = await RawClient.connected(server.address.port)
    await client.send(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await client.reader.readuntil(b"HTTP/1.1 200 OK\r\n")
    client.writer.transport.abort()
    await server.stop()
    assert messages(log_lines) == []


async def test_new_connections_are_answered_for_a_while_when_the_server_stops() -> None:
    server = Server(ROUTES, port=0, drain=Drain(accept_seconds=0.5))
    await server.start()
    port = server.address.port
    kept = await RawClient.connected(port)
    before = await kept.ask("/hello")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.stop())
        await asyncio.sleep(0)  # it has begun
        clients = [await RawClient.connected(port) for _ in range(3)]
        answers = [await client.ask("/hello") for client in (kept, *clients)]
        ends = [await client.reader.read() for client in (kept, *clients)]
    assert outcome(before) == (200, None, b"hello")
    assert [outcome(answer) for answer in answers] == [(200, "close", b"hello")] * 4
    assert ends == [b""] * 4
    for client in (kept, *clients):
        await client.close()


@pytest.mark.parametrize(
    "is_tls", [pytest.param(False, id="over HTTP"), pytest.param(True, id="over HTTPS")]
)
async def test_nobody_who_came_in_is_lost_when_the_server_stops(
    tmp_path: Path, is_tls: bool
) -> None:
    """Connections without end, until one is rejected; each asks one thing."""
    tls = tls_files(tmp_path)
    write_pair(tls, name="server")
    client_tls = ssl.create_default_context(cafile=tls.certificate) if is_tls else None
    server = Server(ROUTES, port=0, tls=tls if is_tls else None)
    await server.start()
    port = server.address.port
    outcomes: Counter[str] = Counter()

    async def hurry() -> None:
        while True:
            try:
                client = await RawClient.connected(port, client_tls)
            except ConnectionRefusedError:
                return
            try:
                outcomes[(await client.ask("/hello")).body.decode()] += 1
            except (ConnectionError, asyncio.IncompleteReadError) as failure:
                outcomes[type(failure).__name__] += 1
            await client.close()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(20):
            tasks.create_task(hurry())
        while outcomes.total() < 100:
            await asyncio.sleep(0)
        await server.stop()
    assert list(outcomes) == ["hello"]


async def test_a_handshake_under_way_is_waited_for_when_the_server_stops(tmp_path: Path) -> None:
    tls = tls_files(tmp_path)
    write_pair(tls, name="server")
    client_tls = ssl.create_default_context(cafile=tls.certificate)
    server = Server(ROUTES, port=0, tls=tls)
    await server.start()
    plain = socket.create_connection(("127.0.0.1", server.address.port))
    async with asyncio.TaskGroup() as tasks:
        stopping = tasks.create_task(server.stop())
        ended, _ = await asyncio.wait([stopping], timeout=0.1)
        client = RawClient(
            *await asyncio.open_connection(sock=plain, ssl=client_tls, server_hostname="localhost")
        )
        answer = await client.ask("/hello")
    assert (ended, outcome(answer)) == (set(), (200, "close", b"hello"))
    await client.close()


async def test_what_a_client_asked_who_is_gone_is_ended_when_the_server_stops(
    log_lines: io.StringIO,
) -> None:
    """A binding, say."""
    slow = SlowRoutes()
    server = Server(slow.routes, port=0, drain=PATIENT)
    await server.start()
    port = server.address.port
    client = await RawClient.connected(port)
    await client.send(HALF_A_REQUEST + b"other")
    await slow.wait_until_asked(1)
    client.writer.transport.abort()
    async with asyncio.TaskGroup() as tasks:
        stopping = tasks.create_task(server.stop())
        await refused_connection(port)
        assert not stopping.done()
        slow.may_answer.set()
    assert messages(log_lines) == []
