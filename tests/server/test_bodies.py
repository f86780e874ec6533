import asyncio
import io
import ssl
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web
from tests.server.conftest import RawAnswer, RawClient, messages, running, tls_files, write_pair

from lowtide.server.bodies import (
    BodyBudget,
    BodyError,
    TooManyBodiesError,
    body_response,
    read_body,
    write_response,
)
from lowtide.server.certificate import TlsFiles
from lowtide.server.http import Server

LIMIT_BYTES = 3 * 1024 * 1024
POST = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


def with_length(body: bytes, *headers: bytes) -> bytes:
    lines = [b"Content-Length: %d" % len(body), *headers]
    return POST + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def in_chunks(body: bytes, size: int) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in [*pieces, b""])


class Echo:
    """Sends back what it gets; a body that it cannot get, as a sentence."""

    def __init__(
        self,
        *,
        limit_bytes: int = LIMIT_BYTES,
        within_seconds: float = 60.0,
        in_line_seconds: float = 60.0,
    ) -> None:
        self._limit_bytes = limit_bytes
        self._within_seconds = within_seconds
        self._budget = BodyBudget(limit_bytes, in_line_seconds=in_line_seconds)
        self.failures: asyncio.Queue[BodyError] = asyncio.Queue()

    def make_server(self, tls: TlsFiles | None = None) -> Server:
        return Server([web.post("/echo", self._echo)], port=0, tls=tls)

    async def _echo(self, request: web.Request) -> web.Response:
        with self._budget.share() as share:
            try:
                body = await read_body(
                    request, self._limit_bytes, share, within_seconds=self._within_seconds
                )
            except BodyError as failure:
                self.failures.put_nowait(failure)
                return web.Response(text=str(failure), status=failure.status)
        return body_response(body)


async def echoed(echo: Echo, request: bytes) -> tuple[RawAnswer, RawAnswer]:
    """What is answered, and what to a good request on the same connection after it."""
    server = echo.make_server()
    async with running(server):
        client = await RawClient.connected(server.address.port)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.send(request))
            answer = await client.answer()
        await client.send(with_length(b"again"))
        again = await client.answer()
        await client.close()
    return answer, again


EXACT = bytes(range(256)) * (LIMIT_BYTES // 256)


@pytest.mark.parametrize(
    ("request_bytes", "want"),
    [
        pytest.param(with_length(b""), b"", id="nothing"),
        pytest.param(with_length(b"a few bytes"), b"a few bytes", id="a few bytes"),
        pytest.param(in_chunks(b"a few bytes", 3), b"a few bytes", id="a few bytes in chunks"),
        pytest.param(with_length(EXACT), EXACT, id="as much as the limit"),
        pytest.param(in_chunks(EXACT, 10_000), EXACT, id="as much as the limit in chunks"),
        pytest.param(
            with_length(b"a few bytes", b"Content-Encoding: Identity"),
            b"a few bytes",
            id="what is said to be as it is",
        ),
    ],
)
async def test_comes_back_as_it_was_sent(request_bytes: bytes, want: bytes) -> None:
    answer, again = await echoed(Echo(), request_bytes)
    assert (answer.status, answer.body == want, again.body) == (200, True, b"again")
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(with_length(EXACT + b"!"), id="by its length"),
        pytest.param(in_chunks(EXACT + b"!", 10_000), id="in chunks"),
    ],
)
async def test_a_body_over_the_limit_is_rejected(request_bytes: bytes) -> None:
    answer, again = await echoed(Echo(), request_bytes)
    assert (answer.status, answer.body.decode(), again.body) == (
        413,
        "the request's body is larger than 3 MiB, the limit that --max-body-mib sets",
        b"again",
    )


async def test_a_body_over_the_limit_is_rejected_before_it_is_sent() -> None:
    server = Echo(limit_bytes=1000).make_server()
    async with running(server):
        client = await RawClient.connected(server.address.port)
        await client.send(POST + b"Content-Length: 1001\r\n\r\n")
        answer = await client.answer()
        await client.send(b"x" * 1001)
        await client.close()
    assert (answer.status, answer.body.decode()) == (
        413,
        "the request's body is larger than 1000 bytes, the limit that --max-body-mib sets",
    )


async def test_a_body_that_is_encoded_is_rejected() -> None:
    answer, again = await echoed(Echo(), with_length(b"zipped", b"Content-Encoding: gzip"))
    assert (answer.status, answer.body.decode(), again.body) == (
        415,
        "the request's body has the Content-Encoding gzip; expected none",
        b"again",
    )


async def test_a_body_that_does_not_come_is_given_up() -> None:
    server = Echo(within_seconds=0.01).make_server()
    async with running(server):
        client = await RawClient.connected(server.address.port)
        await client.send(POST + b"Content-Length: 10\r\n\r\nfirst")
        answer = await client.answer()
        await client.send(b"other")
        await client.close()
    assert (answer.status, answer.body.decode()) == (
        408,
        "of the request's body only 5 bytes arrived within 0.01 s",
    )


async def test_a_body_that_breaks_off_is_no_error_of_ours(log_lines: io.StringIO) -> None:
    echo = Echo()
    server = echo.make_server()
    async with running(server):
        client = await RawClient.connected(server.address.port)
        await client.send(POST + b"Content-Length: 10\r\n\r\nfirst")
        await client.close()
        failure = await echo.failures.get()
    assert (failure.status, str(failure)) == (400, "the request's body broke off after 5 bytes")
    assert messages(log_lines) == []


async def test_bytes_that_were_only_announced_take_no_memory() -> None:
    server = Echo(limit_bytes=1 << 30).make_server()
    async with running(server):
        client = await RawClient.connected(server.address.port)
        tracemalloc.start()
        try:
            await client.send(POST + b"Content-Length: 500000000\r\nExpect: 100-continue\r\n\r\n")
            assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            for _ in range(10):  # each turn lets the handler go on
                await asyncio.sleep(0)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        await client.close()
    assert peak_bytes < 10_000_000


@pytest.mark.parametrize(
    "is_tls", [pytest.param(False, id="over HTTP"), pytest.param(True, id="over HTTPS")]
)
async def test_a_large_body_goes_in_and_out_without_copies(tmp_path: Path, is_tls: bool) -> None:
    size_bytes = 32 * 1024 * 1024
    tls = tls_files(tmp_path)
    write_pair(tls, name="server")
    client_tls = ssl.create_default_context(cafile=tls.certificate)
    body = b"x" * size_bytes
    echo = Echo(limit_bytes=size_bytes)
    server = echo.make_server(tls if is_tls else None)
    async with running(server):
        port = server.address.port
        client = await RawClient.connected(port, client_tls if is_tls else None)
        tracemalloc.start()
        try:
            client.writer.write(POST + b"Content-Length: %d\r\n\r\n" % size_bytes)
            for start in range(0, size_bytes, 1 << 20):
                await client.send(body[start : start + (1 << 20)])
            await client.reader.readuntil(b"\r\n\r\n")
            received_bytes = 0
            while received_bytes < size_bytes:
                received_bytes += len(await client.reader.read(1 << 20))
            _, peak_bytes = tracemalloc.get_traced_memory()
            for _ in range(10):  # each turn lets the server go on
                await asyncio.sleep(0)
            left_bytes, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        await client.close()
    assert received_bytes == size_bytes
    assert peak_bytes < 1.5 * size_bytes
    assert left_bytes < 0.1 * size_bytes


async def test_parts_are_one_body() -> None:
    async def answer(_: web.Request) -> web.Response:
        words = memoryview(b"one two three")
        parts = (b"[", words[4:7], bytearray(b","), b"", words[:3], b"]")
        return body_response(*parts, status=201, content_type="text/plain")

    server = Server([web.get("/parts", answer)], port=0)
    async with running(server):
        client = await RawClient.connected(server.address.port)
        got = await client.ask("/parts")
        await client.close()
    assert (got.status, got.headers["content-type"], got.body) == (201, "text/plain", b"[two,one]")


async def test_an_answer_that_nobody_reads_is_given_up() -> None:
    is_given_up = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        response = body_response(bytes(64 * 1024 * 1024))  # more than sockets hold
        await write_response(request, response, within_seconds=0.01)
        is_given_up.set()
        return response

    server = Server([web.get("/large", answer)], port=0)
    async with running(server):
        client = await RawClient.connected(server.address.port)
        await client.send(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await is_given_up.wait()
        with suppress(ConnectionError):
            while await client.reader.read(1 << 20):
                pass
        assert client.reader.at_eof() or client.reader.exception() is not None
        with suppress(ConnectionError):
            await client.close()


# All bodies at once.

TOO_MANY = (
    "requests under way hold 100 bytes already, the limit that --max-body-mib sets for all of "
    "them at once; ask again"
)


async def turns() -> None:
    """Lets the other tasks go on until they wait."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_who_does_not_fit_waits_in_the_order_of_coming() -> None:
    budget = BodyBudget(100, in_line_seconds=60.0)
    came_in: list[str] = []

    async def hold(name: str, size_bytes: int, until: asyncio.Event) -> None:
        with budget.share() as share:
            await share.grow(size_bytes)
            came_in.append(name)
            await until.wait()

    ends = {name: asyncio.Event() for name in ("first", "large", "small")}
    async with asyncio.TaskGroup() as tasks:
        for name, size_bytes in (("first", 60), ("large", 100), ("small", 40)):
            tasks.create_task(hold(name, size_bytes, ends[name]))
            await turns()
        looks = [list(came_in)]
        for end in ends.values():
            end.set()
            await turns()
            looks.append(list(came_in))
    assert looks == [
        ["first"],
        ["first", "large"],
        ["first", "large", "small"],
        ["first", "large", "small"],
    ]


async def test_who_waits_too_long_is_rejected_and_holds_up_nobody() -> None:
    budget = BodyBudget(100, in_line_seconds=0.01)
    with budget.share() as first, budget.share() as large, budget.share() as small:
        await first.grow(60)
        with pytest.raises(TooManyBodiesError) as caught:
            await large.grow(41)
        await small.grow(40)
    assert (caught.value.status, str(caught.value)) == (503, TOO_MANY)
    with budget.share() as every:
        await every.grow(100)


async def test_who_leaves_the_line_lets_in_those_behind() -> None:
    budget = BodyBudget(100, in_line_seconds=60.0)
    with budget.share() as first, budget.share() as large, budget.share() as small:
        await first.grow(60)
        leaving = asyncio.create_task(large.grow(41))
        await turns()
        staying = asyncio.create_task(small.grow(40))
        await turns()
        assert not staying.done()
        leaving.cancel()
        await staying
        with pytest.raises(asyncio.CancelledError):
            await leaving
    with budget.share() as every:
        await every.grow(100)


async def test_where_everybody_waits_for_the_others_the_last_is_rejected_at_once() -> None:
    budget = BodyBudget(100, in_line_seconds=60.0)
    with budget.share() as first:
        await first.grow(50)
        with budget.share() as second:
            await second.grow(50)
            waiting = asyncio.create_task(first.grow(50))
            await turns()
            with pytest.raises(TooManyBodiesError):
                await second.grow(1)
        await waiting
        assert first.held_bytes == 100


async def test_an_answer_is_held_instead_of_its_request() -> None:
    budget = BodyBudget(100, in_line_seconds=0.0)
    with budget.share() as large, budget.share() as small:
        await large.grow(100)
        large.become(30)
        await small.grow(70)
        with pytest.raises(TooManyBodiesError):
            await small.grow(1)


async def test_a_body_under_way_keeps_out_others_until_it_is_over() -> None:
    echo = Echo(limit_bytes=100, in_line_seconds=0.01)
    server = echo.make_server()
    async with running(server):
        port = server.address.port
        silent = [await RawClient.connected(port) for _ in range(3)]
        for client in silent:
            await client.send(POST + b"Content-Length: 100\r\n\r\n")  # only announced
        half, other = await RawClient.connected(port), await RawClient.connected(port)
        await half.send(POST + b"Content-Length: 100\r\n\r\n" + b"x" * 50)
        while True:  # until the half is there
            await other.send(with_length(b"y" * 51))
            rejected = await other.answer()
            if rejected.status == 503:
                break
        await half.send(b"x" * 50)
        whole = await half.answer()
        await other.send(with_length(b"y" * 100))
        after = await other.answer()
        for client in (*silent, half, other):
            await client.close()
    assert (rejected.status, rejected.body.decode()) == (503, TOO_MANY)
    assert (whole.status, whole.body) == (200, b"x" * 100)
    assert (after.status, after.body) == (200, b"y" * 100)
