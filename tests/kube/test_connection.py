"""Requests to a small real server: retries, renewed credentials, and what failures look like."""

import asyncio
import datetime
import gzip
import ipaddress
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.hostile import Pieces, announced, endless, endless_chunks, gzip_bomb, hostile_server
from tests.kube.conftest import ApiServer, ManualClock, cut, document, serve, status

from lowtide.kube.connection import CHECKED_CONNECT_SECONDS, Connection
from lowtide.kube.errors import (
    ApiError,
    KubeError,
    NoAnswer,
    NotConnected,
    NotTrusted,
    Redirected,
    Unreadable,
)
from lowtide.kube.kubeconfig import Access, Cluster, Pem, User, plain_access


async def test_request_sends_what_it_was_given(connection: Connection, server: ApiServer) -> None:
    server.answers = [document({"ok": True})]
    response = await connection.request(
        "POST", "/api/v1/things", body=b'{"a":1}', params={"fieldSelector": "spec.x!=,y=z"}
    )
    asked = server.asked[0]
    assert (response.status, response.body) == (200, b'{"ok": true}')
    assert (asked.method, asked.path, asked.body) == ("POST", "/api/v1/things", b'{"a":1}')
    assert asked.query == {"fieldSelector": "spec.x!=,y=z"}
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.headers["User-Agent"].startswith("lowtide/")
    assert "Authorization" not in asked.headers


async def test_an_answer_of_400_or_above_is_an_api_error(
    connection: Connection, server: ApiServer
) -> None:
    server.answers = [status(409, "Conflict", "pod x is already assigned")]
    with pytest.raises(ApiError) as caught:
        await connection.request("POST", "/x", body=b"{}")
    error = caught.value
    assert (error.status, error.reason, error.message) == (
        409,
        "Conflict",
        "pod x is already assigned",
    )
    assert str(error) == "pod x is already assigned (HTTP 409 Conflict)"


async def test_an_error_page_that_is_no_json_is_quoted(
    connection: Connection, server: ApiServer
) -> None:
    server.answers = [web.Response(status=404, text="404 page not found\n")]
    with pytest.raises(ApiError, match=r"^404 page not found \(HTTP 404 Unknown\)$"):
        await connection.request("GET", "/x")


async def test_an_error_page_that_is_no_text_is_quoted(
    connection: Connection, server: ApiServer
) -> None:
    server.answers = [web.Response(status=404, body=b'{"message":"\xff"}')]
    with pytest.raises(ApiError) as caught:
        await connection.request("GET", "/x")
    assert str(caught.value) == '{"message":"\N{REPLACEMENT CHARACTER}"} (HTTP 404 Unknown)'


@pytest.mark.parametrize(
    ("answers", "want_slept"),
    [
        pytest.param([(429, {"Retry_After": "2"})], [2.0], id="waits as long as a 429 asks"),
        pytest.param([(429, {})], [1.0], id="waits a second after a 429 that asks for nothing"),
        pytest.param([(429, {"Retry_After": "900"})], [30.0], id="never waits above 30 seconds"),
        pytest.param([(429, {"Retry_After": "soon"})], [1.0], id="takes an unclear wait as one"),
        pytest.param(
            [(429, {"Retry_After": "Wed, 21 Oct 2099 07:28:00 GMT"})], [1.0], id="reads no dates"
        ),
        pytest.param([(429, {"Retry_After": "-3600"})], [1.0], id="never waits below zero"),
        pytest.param([(429, {"Retry_After": "nan"})], [1.0], id="waits for numbers only"),
        pytest.param([(429, {"Retry_After": "inf"})], [1.0], id="does not wait for ever"),
        pytest.param(
            [(503, {"Retry_After": "9" * 1000})], [30.0], id="reads numbers of any length"
        ),
        pytest.param(
            [(503, {"Retry_After": "3"}), (429, {"Retry_After": "1"})],
            [3.0, 1.0],
            id="waits again when asked again",
        ),
    ],
)
async def test_waits(
    connection: Connection,
    server: ApiServer,
    clock: ManualClock,
    answers: list[tuple[int, dict[str, str]]],
    want_slept: list[float],
) -> None:
    server.answers = [
        *(status(code, "Busy", "later", **headers) for code, headers in answers),
        document({}),
    ]
    response = await connection.request("GET", "/x")
    assert (response.status, clock.slept) == (200, want_slept)


async def test_a_503_without_retry_after_is_final(
    connection: Connection, server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [status(503, "ServiceUnavailable", "down"), document({})]
    with pytest.raises(ApiError, match="down"):
        await connection.request("GET", "/x")
    assert clock.slept == []


async def test_waiting_ends_after_ten_attempts(
    connection: Connection, server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [status(429, "TooManyRequests", "later", Retry_After="1")]
    with pytest.raises(ApiError, match="later"):
        await connection.request("GET", "/x")
    assert (len(server.asked), clock.slept) == (10, [1.0] * 9)


async def read(connection: Connection) -> None:
    await connection.request("GET", "/x")


async def write(connection: Connection) -> None:
    await connection.request("POST", "/x", body=b"{}")


async def watch(connection: Connection) -> None:
    async with aclosing(connection.stream("/x", params={}, silence_seconds=9)) as lines:
        assert [line async for line in lines] == []


async def list_all(connection: Connection) -> None:
    async with aclosing(connection.list_pieces("/x", params={}, timeout_seconds=9)) as pieces:
        assert [piece async for piece in pieces] == []


@pytest.mark.parametrize("ask", [read, write, watch, list_all])
@pytest.mark.parametrize(
    ("code", "location", "want"),
    [
        pytest.param(
            302,
            "https://me:secret@login.example/?token=1",
            "HTTP 302, a redirect to https://login.example",
            id="with an address, of which no more is told than where it is",
        ),
        pytest.param(307, "/login", "HTTP 307, a redirect", id="within the same server"),
        pytest.param(304, "", "HTTP 304, a redirect", id="without an address"),
        pytest.param(303, "http://[", "HTTP 303, a redirect", id="with one that is none"),
    ],
)
async def test_a_redirect_is_an_error_and_not_followed(
    connection: Connection,
    server: ApiServer,
    clock: ManualClock,
    ask: Callable[[Connection], Awaitable[None]],
    code: int,
    location: str,
    want: str,
) -> None:
    server.answers = [web.Response(status=code, headers={"Location": location} if location else {})]
    with pytest.raises(Redirected) as caught:
        await ask(connection)
    text = f"{server.url} answered {want}: is there a proxy that wants a login?"
    assert (str(caught.value), len(server.asked), clock.slept) == (text, 1, [])


async def test_what_is_passed_on_may_be_a_redirect(
    connection: Connection, server: ApiServer
) -> None:
    server.answers = [web.Response(status=302, headers={"Location": "/graph"})]
    response = await connection.pass_on("/x", params={}, headers={}, timeout_seconds=9)
    assert response.status == 302


async def test_a_cut_connection_is_no_answer(connection: Connection, server: ApiServer) -> None:
    server.answers = [cut]
    with pytest.raises(NoAnswer, match=rf"^No answer from {server.url} to POST /x: "):
        await connection.request("POST", "/x", body=b"{}")
    assert len(server.asked) == 1


async def test_a_timeout_is_no_answer(connection: Connection, server: ApiServer) -> None:
    async def hang(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    server.answers = [hang]
    with pytest.raises(NoAnswer, match=r"it took too long$"):
        await connection.request("POST", "/x", body=b"{}", timeout_seconds=0.05)


@pytest.mark.parametrize(
    "body", [pytest.param(None, id="to a read"), pytest.param(b"{}", id="to a write")]
)
async def test_a_rejected_connection_is_no_answer(clock: ManualClock, body: bytes | None) -> None:
    access = Access(Cluster("http://127.0.0.1:1"), User(), "default", "test")
    async with Connection(access, clock) as connection:
        with pytest.raises(NotConnected) as caught:
            await connection.request("PUT", "/x", body=body)
    want = "No answer from http://127.0.0.1:1 to PUT /x: Connection refused"
    assert str(caught.value) == want
    assert caught.value.why == "No answer from http://127.0.0.1:1: Connection refused"


async def test_a_401_is_tried_once_more_with_the_token_read_again(
    server: ApiServer, clock: ManualClock, tmp_path: Path
) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("first\n")
    access = Access(Cluster(server.url), User(token_file=token_file), "default", "test")
    async with Connection(access, clock) as connection:
        server.answers = [document({}), status(401, "Unauthorized", "no"), document({})]
        await connection.request("GET", "/x")
        token_file.write_text("second\n")
        await connection.request("GET", "/x")
    assert [asked.headers["Authorization"] for asked in server.asked] == [
        "Bearer first",
        "Bearer first",
        "Bearer second",
    ]


async def test_a_401_with_nothing_new_to_present_is_an_error(
    server: ApiServer, clock: ManualClock
) -> None:
    access = Access(Cluster(server.url), User(token="t"), "default", "test")
    async with Connection(access, clock) as connection:
        server.answers = [status(401, "Unauthorized", "no")]
        with pytest.raises(ApiError, match="no"):
            await connection.request("GET", "/x")
    assert len(server.asked) == 1


async def test_a_rate_limit_delays_what_comes_after_the_burst(
    limited_connection: Connection, server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [document({})]
    for _ in range(4):
        await limited_connection.request("GET", "/x")
    assert clock.slept == pytest.approx([0.1, 0.1])


async def test_a_check_is_made_when_a_slot_was_got_and_before_anything_is_sent(
    stack: AsyncExitStack, server: ApiServer, clock: ManualClock
) -> None:
    arrived, may_answer, may_send = asyncio.Event(), asyncio.Event(), True

    async def answer_late(_: web.Request) -> web.StreamResponse:
        arrived.set()
        await may_answer.wait()
        return web.Response()

    def check() -> None:
        if not may_send:
            raise ApiError(403, "NotLeader", "not any more")

    server.answers = [answer_late]
    connection = await stack.enter_async_context(
        Connection(Access(Cluster(server.url), User(), "default", "test"), clock, limit=1)
    )
    first = asyncio.create_task(connection.request("POST", "/first", body=b"{}", check=check))
    second = asyncio.create_task(connection.request("POST", "/second", body=b"{}", check=check))
    await asyncio.wait_for(arrived.wait(), 10)
    may_send = False
    may_answer.set()
    assert (await first).status == 200
    with pytest.raises(ApiError, match="not any more"):
        await second
    assert server.requests() == [("POST", "/first")]


async def test_a_check_is_made_again_before_a_request_is_sent_again(
    connection: Connection, server: ApiServer
) -> None:
    server.answers = [status(429, "TooManyRequests", "later"), document({})]
    checks: list[int] = []
    await connection.request("GET", "/x", check=lambda: checks.append(len(server.asked)))
    assert checks == [0, 1]


async def test_a_checked_request_waits_for_no_slow_proxy(clock: ManualClock) -> None:
    """The check was made before, and would be true no more."""
    is_left = asyncio.Event()

    async def open_no_tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        is_left.set()

    proxy = await asyncio.start_server(open_no_tunnel, "127.0.0.1", 0)
    proxy_url = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    access = Access(Cluster("https://cluster.test", proxy_url=proxy_url), User(), "default", "test")
    async with (
        proxy,
        Connection(access, clock) as connection,
        asyncio.timeout(4 * CHECKED_CONNECT_SECONDS),
    ):
        with pytest.raises(NoAnswer):
            await connection.request(
                "POST", "/x", body=b"{}", timeout_seconds=60.0, check=lambda: None
            )
        await is_left.wait()


async def test_a_check_is_made_when_the_connection_has_come_about(
    connection: Connection, server: ApiServer
) -> None:
    server.answers = [document({})]

    def check() -> None:
        raise ApiError(403, "NotLeader", "not any more")

    with pytest.raises(ApiError, match="not any more"):
        await connection.request("POST", "/x", body=b"{}", check=check)
    await connection.request("POST", "/y", body=b"{}")
    assert server.requests() == [("POST", "/y")]


async def test_a_server_behind_a_path_is_asked_under_it(
    server: ApiServer, clock: ManualClock
) -> None:
    server.answers = [document({})]
    access = Access(Cluster(f"{server.url}/clusters/a"), User(token="t"), "default", "test")
    async with Connection(access, clock) as connection:
        await connection.request("POST", "/x", body=b"{}")
        await connection.request("GET", "/x")
    seen = [(asked.path, asked.headers["Authorization"]) for asked in server.asked]
    assert seen == [("/clusters/a/x", "Bearer t")] * 2


async def test_a_long_answer_to_a_write_is_whole(connection: Connection, server: ApiServer) -> None:
    async def pieces(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for _ in range(50):
            await response.write(b"x" * 4000)
        return response

    server.answers = [pieces]
    response = await connection.request("PATCH", "/x", body=b"{}")
    assert response.body == b"x" * 200_000


async def test_stream_yields_whole_lines_only(connection: Connection, server: ApiServer) -> None:
    async def pieces(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in (b"one\ntw", b"o\n\nthree", b"\nfo", b"ur"):
            await response.write(piece)
        return response

    server.answers = [pieces]
    async with aclosing(connection.stream("/x", params={}, silence_seconds=9)) as lines:
        assert [line async for line in lines] == [b"one", b"two", b"three"]


@pytest.mark.timeout(40)  # where all of the line is copied with each piece, it takes minutes
async def test_a_long_line_of_a_stream_arrives_in_time(
    connection: Connection, server: ApiServer
) -> None:
    async def long_line(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(200):
            await response.write(bytes(2**20))
        await response.write(b"\n")
        return response

    server.answers = [long_line]
    async with aclosing(connection.stream("/x", params={}, silence_seconds=9)) as lines:
        with suppress(KubeError):  # it may also be rejected
            assert [len(line) async for line in lines] == [200 * 2**20]


async def test_a_stream_renews_credentials_after_401(
    server: ApiServer, clock: ManualClock, tmp_path: Path
) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("first")
    access = Access(Cluster(server.url), User(token_file=token_file), "default", "test")

    async def reject_and_rotate(_: web.Request) -> web.StreamResponse:
        token_file.write_text("second")
        return web.Response(status=401)

    server.answers = [reject_and_rotate, web.Response(text="line\n")]
    async with (
        Connection(access, clock) as connection,
        aclosing(connection.stream("/x", params={}, silence_seconds=9)) as lines,
    ):
        assert [line async for line in lines] == [b"line"]
    assert server.asked[1].headers["Authorization"] == "Bearer second"


async def test_a_list_is_asked_for_packed_and_comes_unpacked_in_pieces(
    connection: Connection, server: ApiServer
) -> None:
    text = bytes(range(32, 127)) * 40_000

    async def packed(_: web.Request) -> web.StreamResponse:
        return web.Response(body=gzip.compress(text), headers={"Content-Encoding": "gzip"})

    server.answers = [packed]
    answer = connection.list_pieces("/x", params={"limit": "7"}, timeout_seconds=9)
    async with aclosing(answer) as arriving:
        pieces = [piece async for piece in arriving]
    assert b"".join(pieces) == text
    assert len(pieces) > 1
    (asked,) = server.asked
    assert (asked.query, asked.headers["Accept-Encoding"]) == ({"limit": "7"}, "gzip")


@pytest.mark.parametrize(
    ("answers", "slept"),
    [
        pytest.param([429, 503, 200], [3.0, 3.0], id="as long as the server asks to wait"),
        pytest.param([500], [], id="not after an error that time will not fix"),
        pytest.param([429] * 10, [3.0] * 9, id="ten times at most"),
    ],
)
async def test_a_list_is_asked_for_again(
    connection: Connection,
    server: ApiServer,
    clock: ManualClock,
    answers: list[int],
    slept: list[float],
) -> None:
    server.answers = [
        document([1]) if code == 200 else status(code, "Later", "wait", Retry_After="3")
        for code in answers
    ]
    last = answers[-1]
    with nullcontext() if last == 200 else pytest.raises(ApiError, match="wait"):
        answer = connection.list_pieces("/x", params={}, timeout_seconds=9)
        async with aclosing(answer) as arriving:
            assert b"".join([piece async for piece in arriving]) == b"[1]"
    assert (len(server.asked), clock.slept) == (len(answers), slept)


async def test_a_list_waits_no_longer_than_30_seconds_at_a_time(
    connection: Connection, server: ApiServer, clock: ManualClock
) -> None:
    later = status(429, "TooManyRequests", "later", Retry_After="3600")
    server.answers = [later, later, document([1])]
    async with aclosing(connection.list_pieces("/x", params={}, timeout_seconds=9)) as pieces:
        assert b"".join([piece async for piece in pieces]) == b"[1]"
    assert clock.slept == [30.0, 30.0]


async def test_a_list_that_is_cut_is_no_answer(connection: Connection, server: ApiServer) -> None:
    async def begun(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"[1, ")
        assert request.transport is not None
        request.transport.close()
        return response

    server.answers = [begun]
    with pytest.raises(NoAnswer, match="GET /x"):
        async with aclosing(connection.list_pieces("/x", params={}, timeout_seconds=9)) as pieces:
            assert [piece async for piece in pieces] == [b"[1, "]


class Authority:
    """A certificate authority and server certificates made for one test."""

    def __init__(self, directory: Path, name: str) -> None:
        self.directory = directory
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self.sign(self.name, self.key, days=10, is_authority=True)
        self.file = directory / f"{name}.crt"
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def sign(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *, days: int, is_authority: bool
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=20))
            .not_valid_after(now + datetime.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .sign(self.key, hashes.SHA256())
        )

    def pair(self, name: str, *, days: int = 5) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self.sign(subject, key, days=days, is_authority=False)
        files = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return files


async def serve_tls(stack: AsyncExitStack, pair: tuple[Path, Path], clients: Path) -> str:
    async def name_of_client(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        certificate = request.transport.get_extra_info("peercert") or {}
        subject = [value for part in certificate.get("subject", ()) for _, value in part]
        return web.json_response(subject)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    context.load_verify_locations(clients)
    context.verify_mode = ssl.CERT_OPTIONAL
    return await serve(stack, name_of_client, ssl_context=context)


@pytest.mark.parametrize(
    "body", [pytest.param(None, id="for reads"), pytest.param(b"{}", id="for writes")]
)
async def test_client_certificates_are_loaded_again_when_their_files_change(
    stack: AsyncExitStack, clock: ManualClock, tmp_path: Path, body: bytes | None
) -> None:
    authority = Authority(tmp_path, "authority")
    url = await serve_tls(stack, authority.pair("server"), authority.file)
    first, second = authority.pair("first"), authority.pair("second")
    used = tmp_path / "client.pem", tmp_path / "client.key"
    for source, target in zip(first, used, strict=True):
        target.write_bytes(source.read_bytes())
    user = User(client_certificate=Pem(file=used[0]), client_key=Pem(file=used[1]))
    cluster = Cluster(url, certificate_authority=Pem(file=authority.file))
    seen = []
    async with Connection(Access(cluster, user, "default", "test"), clock) as connection:
        seen.append((await connection.request("PUT", "/x", body=body)).body)
        for source, target in zip(second, used, strict=True):
            target.write_bytes(source.read_bytes())
        seen.append((await connection.request("PUT", "/x", body=body)).body)
        clock.advance(61)
        seen.append((await connection.request("PUT", "/x", body=body)).body)
    assert seen == [b'["first"]', b'["first"]', b'["second"]']


@pytest.mark.parametrize(
    "body", [pytest.param(None, id="of a read"), pytest.param(b"{}", id="of a write")]
)
@pytest.mark.parametrize(
    ("problem", "want"),
    [
        pytest.param(
            "wrong CA", "self-signed certificate in certificate chain", id="names a wrong CA"
        ),
        pytest.param("expired", "certificate has expired", id="names an expired certificate"),
        pytest.param("other name", "Hostname mismatch", id="names a certificate of another host"),
    ],
)
async def test_certificate_problems(
    stack: AsyncExitStack,
    clock: ManualClock,
    tmp_path: Path,
    problem: str,
    want: str,
    body: bytes | None,
) -> None:
    authority, other = Authority(tmp_path, "authority"), Authority(tmp_path, "other")
    pair = authority.pair("server", days=-1 if problem == "expired" else 5)
    url = await serve_tls(stack, pair, authority.file)
    trusted = other.file if problem == "wrong CA" else authority.file
    cluster = Cluster(url, certificate_authority=Pem(file=trusted))
    if problem == "other name":
        cluster = replace(cluster, tls_server_name="kubernetes.example")
    async with Connection(Access(cluster, User(), "default", "test"), clock) as connection:
        with pytest.raises(NotTrusted) as caught:
            await connection.request("GET" if body is None else "POST", "/x", body=body)
    sentence = str(caught.value)
    assert sentence.startswith(f"The certificate of {url} is not accepted with the CA {trusted}: ")
    assert want in sentence


async def test_verification_can_be_switched_off(
    stack: AsyncExitStack, clock: ManualClock, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, "authority")
    url = await serve_tls(stack, authority.pair("server"), authority.file)
    access = Access(Cluster(url, is_verified=False), User(), "default", "test")
    async with Connection(access, clock) as connection:
        assert (await connection.request("GET", "/x")).status == 200


async def test_the_lines_of_a_stream_are_whole_however_they_arrive(
    connection: Connection, server: ApiServer
) -> None:
    sent = b"one\n" + b"x" * 300_000 + b"\n\n" + b"y" * 70_000 + b"\nthree\n"

    async def pieces(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for start in range(0, len(sent), 9_999):
            await response.write(sent[start : start + 9_999])
        return response

    server.answers = [pieces]
    async with aclosing(connection.stream("/x", params={}, silence_seconds=9)) as lines:
        assert [line async for line in lines] == [each for each in sent.split(b"\n") if each]


async def asked_of(answer: Pieces, ask: Callable[[Connection], Awaitable[object]]) -> str:
    """Why there is no answer; one rejection is counted."""
    async with (
        hostile_server(answer) as url,
        Connection(plain_access(url), lambda: 0.0) as connection,
    ):
        with pytest.raises(Unreadable) as caught:
            await ask(connection)
        assert connection.intake.rejected == 1
        return str(caught.value).removeprefix(url)


async def get(connection: Connection) -> None:
    await connection.request("GET", "/x", params={"a": "b"})


async def get_beside(connection: Connection) -> None:
    await connection.pass_on("/x", params={}, headers={}, timeout_seconds=60)


async def write(connection: Connection) -> None:
    await connection.request("POST", "/x", body=b"{}")


async def follow(connection: Connection) -> None:
    async with aclosing(connection.stream("/x", params={}, silence_seconds=60)) as lines:
        async for _ in lines:
            pass


@pytest.mark.parametrize(
    ("ask", "answer", "want"),
    [
        pytest.param(get, gzip_bomb, "GET /x with more than 256 MiB", id="a packed answer"),
        pytest.param(get, announced, "GET /x with more than 256 MiB", id="announced"),
        pytest.param(get_beside, gzip_bomb, "GET /x with more than 256 MiB", id="passed on"),
        pytest.param(write, endless, "POST /x with more than 16 MiB", id="a write"),
        pytest.param(write, endless_chunks, "POST /x with more than 16 MiB", id="a write, chunks"),
        pytest.param(write, announced, "POST /x with more than 16 MiB", id="a write, announced"),
        pytest.param(follow, endless, "GET /x with more than 16 MiB", id="a line of a watch"),
        pytest.param(follow, gzip_bomb, "GET /x with more than 16 MiB", id="a packed line"),
        pytest.param(
            follow,
            partial(gzip_bomb, b"500 Internal"),
            "GET /x with more than 1 MiB",
            id="a rejection of a watch",
        ),
    ],
)
async def test_too_large_an_answer(
    ask: Callable[[Connection], Awaitable[None]], answer: Pieces, want: str
) -> None:
    hint = "whatever answers there should send less"
    assert await asked_of(answer, ask) == f" answered {want}, the limit; {hint}"


async def test_a_message_of_an_error_is_cut(connection: Connection, server: ApiServer) -> None:
    server.answers = [status(400, "Bad", "a" * 10_000)]
    with pytest.raises(ApiError) as caught:
        await connection.request("GET", "/x")
    assert caught.value.message == "a" * 4096 + "…"
