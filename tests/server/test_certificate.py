import asyncio
import io
import os
import socket
import ssl
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from tests.server.conftest import messages, running, tls_files, write_pair

from lowtide.server.certificate import Certificate, TlsFiles
from lowtide.server.errors import ServerError
from lowtide.server.health import health_routes
from lowtide.server.http import Server
from lowtide.server.serving import Serving, make_server
from lowtide.testing import ManualClock


async def hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


HELLO = web.get("/hello", hello)
HEALTH = health_routes(healthz=[], livez=[], readyz=[])
ROUTES = [HELLO, *HEALTH]


async def get_text(url: str, trusted: Path | None = None) -> str:
    """The body, over a connection of its own; over TLS only if `trusted` signed the server's."""
    context = ssl.create_default_context(cafile=trusted) if trusted else None
    connector = aiohttp.TCPConnector(ssl=context or True)
    async with aiohttp.ClientSession(connector=connector) as session, session.get(url) as response:
        return await response.text()


async def served_name(port: int, server_name: str | None) -> str:
    """The common name in the certificate that a new client is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    _, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname=server_name
    )
    connection: ssl.SSLObject = writer.get_extra_info("ssl_object")
    shown = connection.getpeercert(binary_form=True)
    assert shown is not None
    writer.close()
    await writer.wait_closed()
    (attribute,) = x509.load_der_x509_certificate(shown).subject
    return str(attribute.value)


async def test_serves_https(tmp_path: Path) -> None:
    files = tls_files(tmp_path)
    write_pair(files, name="first")
    server = Server(ROUTES, port=0, tls=files)
    async with running(server) as url:
        assert url == f"https://127.0.0.1:{server.address.port}"
        assert await get_text(f"{url}/hello", trusted=files.certificate) == "hello"


@pytest.mark.parametrize(
    "server_name",
    [
        pytest.param("localhost", id="shows it to a client that names the server"),
        pytest.param("127.0.0.1", id="shows it to a client that gives only an address"),
    ],
)
async def test_a_changed_certificate(
    tmp_path: Path, server_name: str, log_lines: io.StringIO
) -> None:
    files = tls_files(tmp_path)
    write_pair(files, name="first")
    server = Server(ROUTES, port=0, tls=files)
    async with running(server) as url:
        before = await served_name(server.address.port, server_name)
        write_pair(files, name="second")
        after = await served_name(server.address.port, server_name)
        assert (before, after) == ("first", "second")
        assert await get_text(f"{url}/hello", trusted=files.certificate) == "hello"
    assert messages(log_lines) == [f'"Reloaded the certificate" file="{files.certificate}"']


async def test_a_renewal_half_done_keeps_the_certificate_in_use(
    tmp_path: Path, log_lines: io.StringIO
) -> None:
    files = tls_files(tmp_path)
    write_pair(files, name="first")
    newer = TlsFiles(certificate=tmp_path / "new.crt", private_key=tmp_path / "new.key")
    write_pair(newer, name="second")
    server = Server(ROUTES, port=0, tls=files)
    async with running(server):
        port = server.address.port
        newer.certificate.replace(files.certificate)
        half_done = [await served_name(port, "localhost") for _ in range(3)]
        newer.private_key.replace(files.private_key)
        done = await served_name(port, "localhost")
    assert (half_done, done) == (["first"] * 3, "second")
    kept, reloaded = messages(log_lines)
    assert kept.startswith('"Keeping the certificate in use" err="cannot use certificate ')
    assert reloaded.startswith('"Reloaded the certificate" file=')


async def test_removed_files_keep_the_certificate_in_use(
    tmp_path: Path, log_lines: io.StringIO
) -> None:
    files = tls_files(tmp_path)
    write_pair(files, name="first")
    server = Server(ROUTES, port=0, tls=files)
    async with running(server):
        files.certificate.unlink()
        files.private_key.unlink()
        assert await served_name(server.address.port, "localhost") == "first"
    assert len(messages(log_lines)) == 1


@pytest.mark.parametrize(
    ("password", "is_written"),
    [
        pytest.param(None, False, id="rejects files that are not there"),
        pytest.param(b"secret", True, id="rejects a key with a password, and asks nobody for it"),
    ],
)
async def test_files_that_cannot_be_used(
    tmp_path: Path, password: bytes | None, is_written: bool
) -> None:
    files = tls_files(tmp_path)
    if is_written:
        write_pair(files, name="first", password=password)
    with pytest.raises(ServerError) as caught:
        await Server(ROUTES, port=0, tls=files).start()
    text = str(caught.value)
    assert text.startswith(
        f"cannot use certificate {files.certificate} with private key {files.private_key}: "
    )
    assert text.endswith(
        "; they must be readable PEM files of one pair, the key without a password"
    )


async def test_a_file_that_differs_in_nothing_but_its_place_on_disk_is_read_again(
    tmp_path: Path,
) -> None:
    files, newer = tls_files(tmp_path), tls_files(tmp_path, "new")
    write_pair(files, name="first")
    write_pair(newer, name="other")
    pairs = [(files.certificate, newer.certificate), (files.private_key, newer.private_key)]
    for old, new in pairs:
        size_bytes = max(old.stat().st_size, new.stat().st_size)
        for path in (old, new):
            path.write_bytes(path.read_bytes().ljust(size_bytes, b"\n"))
            os.utime(path, ns=(0, 0))
    server = Server(ROUTES, port=0, tls=files)
    async with running(server):
        before = await served_name(server.address.port, "localhost")
        for old, new in pairs:
            new.replace(old)
        after = await served_name(server.address.port, "localhost")
    assert (before, after) == ("first", "other")


@pytest.mark.parametrize(
    ("ends_in", "want"),
    [
        pytest.param(timedelta(days=-1), "has expired", id="that has expired"),
        pytest.param(timedelta(days=6, hours=23), "ends at ", id="that ends in a week"),
        pytest.param(timedelta(days=7, hours=1), None, id="that ends later, not"),
    ],
)
async def test_is_warned_of_a_certificate(
    tmp_path: Path, ends_in: timedelta, want: str | None, log_lines: io.StringIO
) -> None:
    files, ca = tls_files(tmp_path), tls_files(tmp_path, "ca")
    write_pair(ca, name="ca")
    write_pair(files, name="first", signed_by=ca, ends_in=ends_in)
    server = Server(ROUTES, port=0, tls=files)
    async with running(server):
        at_load = messages(log_lines)
        write_pair(files, name="second", ends_in=ends_in)
        await served_name(server.address.port, "localhost")
        reloaded, *at_reload = messages(log_lines)[len(at_load) :]
    assert reloaded == f'"Reloaded the certificate" file="{files.certificate}"'
    for told in (at_load, at_reload):
        if want is None:
            assert told == []
        else:
            (line,) = told
            start = f'"The certificate needs to be renewed" err="{want}'
            assert line.startswith(start)
            assert line.endswith(f' file="{files.certificate}"')


# Certificates of clients.


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """The two ends of one connection, by turns; an error where the server does not want it."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(5):
        for end in (asking, answering):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()


class Site:
    """A server's certificate, two CAs, and the certificate that each has signed for a client."""

    def __init__(self, folder: Path) -> None:
        self.server = tls_files(folder, "server")
        self.ca = tls_files(folder, "ca")
        self.other_ca = tls_files(folder, "other-ca")
        self.client = tls_files(folder, "client")
        self.other_client = tls_files(folder, "other-client")
        for files in (self.server, self.ca, self.other_ca):
            write_pair(files, name=files.certificate.stem)
        write_pair(self.client, name="client", signed_by=self.ca)
        write_pair(self.other_client, name="other-client", signed_by=self.other_ca)
        # A file of its own, which tests change.
        self.client_ca = folder / "client-ca.crt"
        self.trust(self.ca)

    def trust(self, *authorities: TlsFiles) -> None:
        self.client_ca.write_bytes(b"".join(each.certificate.read_bytes() for each in authorities))

    def make_server(self) -> Server:
        """Of a verb, and health, with nobody to ask who somebody is."""
        serving = Serving(port=0, tls=self.server, client_ca=self.client_ca)
        return make_server(serving, HEALTH, verbs=[HELLO])

    def client_context(self, shown: TlsFiles | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.server.certificate)
        if shown is not None:
            context.load_cert_chain(shown.certificate, shown.private_key)
        return context

    async def ask(self, url: str, shown: TlsFiles | None) -> tuple[int, str] | None:
        """Status and body, over a connection of its own; None where the handshake failed."""
        connector = aiohttp.TCPConnector(ssl=self.client_context(shown))
        async with aiohttp.ClientSession(connector=connector) as session:
            try:
                async with session.get(url) as response:
                    return response.status, await response.text()
            except (aiohttp.ClientError, ssl.SSLError):
                return None


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def no_certificate(path: str) -> tuple[int, str]:
    return 401, (
        f'{{"error": "{path} is answered only to clients that show a certificate signed by '
        'the CA of --client-ca-file"}'
    )


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/hello", no_certificate("/hello"), id="rejects a verb"),
        pytest.param("/nowhere", (404, "404: Not Found"), id="has no other paths"),
        pytest.param(
            "/healthz/ping", no_certificate("/healthz/ping"), id="rejects the checks of health"
        ),
        pytest.param("/healthz", (200, "ok"), id="answers /healthz"),
        pytest.param("/livez", (200, "ok"), id="answers /livez"),
        pytest.param(
            "/readyz?verbose", (200, "[+]ping ok\nreadyz check passed\n"), id="answers /readyz"
        ),
    ],
)
async def test_without_a_certificate_the_server(
    site: Site, path: str, want: tuple[int, str]
) -> None:
    async with running(site.make_server()) as url:
        assert await site.ask(f"{url}{path}", None) == want


async def test_a_certificate_of_the_ca_opens_every_path(site: Site) -> None:
    async with running(site.make_server()) as url:
        answers = [await site.ask(f"{url}/{path}", site.client) for path in ("hello", "readyz")]
    assert answers == [(200, "hello"), (200, "ok")]


async def test_a_certificate_of_another_ca_fails_the_handshake(
    site: Site, log_lines: io.StringIO
) -> None:
    async with running(site.make_server()) as url:
        answers = [
            await site.ask(f"{url}/{path}", site.other_client) for path in ("hello", "livez")
        ]
    rejected = (
        '"The certificate of a client is rejected" err="unable to get local issuer certificate"'
    )
    assert answers == [None, None]
    assert messages(log_lines) == [f'{rejected} ca="{site.client_ca}"']


async def test_rejected_certificates_are_told_of_every_10_seconds(
    site: Site, log_lines: io.StringIO
) -> None:
    clock = ManualClock()
    certificate = Certificate(site.server, site.client_ca, clock=clock, wall_clock=time.time)
    context = certificate.serving_context()
    counts = []
    for seconds in (0.0, 9.0, 1.0):
        clock.advance(seconds)
        with pytest.raises(ssl.SSLCertVerificationError):
            shake_hands(site.client_context(site.other_client), context)
        counts.append(len(messages(log_lines)))
    assert counts == [1, 1, 2]


async def test_a_changed_ca_counts_for_the_next_client(site: Site, log_lines: io.StringIO) -> None:
    async def ask_both() -> list[tuple[int, str] | None]:
        return [await site.ask(f"{url}/hello", shown) for shown in (site.client, site.other_client)]

    async with running(site.make_server()) as url:
        before = await ask_both()
        site.trust(site.ca, site.other_ca)
        both = await ask_both()
        site.trust(site.other_ca)
        after = await ask_both()
    hello_to = (200, "hello")
    assert (before, both, after) == ([hello_to, None], [hello_to, hello_to], [None, hello_to])
    told = f'"Reloaded the CA of clients" file="{site.client_ca}"'
    assert [line for line in messages(log_lines) if "is rejected" not in line] == [told, told]


async def test_a_broken_ca_file_keeps_the_ca_in_use(site: Site, log_lines: io.StringIO) -> None:
    async with running(site.make_server()) as url:
        site.client_ca.write_text("half a fi")
        answers = [await site.ask(f"{url}/hello", shown) for shown in (site.client, None)]
    assert answers == [(200, "hello"), no_certificate("/hello")]
    (kept,) = messages(log_lines)
    assert kept.startswith(
        f'"Keeping the certificate in use" err="cannot use {site.client_ca} as the CA of clients: '
    )


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(ssl.TLSVersion.TLSv1_2, id="of TLS 1.2"),
        pytest.param(ssl.TLSVersion.TLSv1_3, id="of TLS 1.3"),
    ],
)
async def test_a_session_of_a_replaced_ca_is_not_resumed(
    site: Site, version: ssl.TLSVersion
) -> None:
    context = site.client_context(site.client)
    context.minimum_version = context.maximum_version = version

    def ask(port: int, session: ssl.SSLSession | None) -> ssl.SSLSession | None:
        """The session, to come back with; an error where there is no answer."""
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost", session=session) as connection,
        ):
            connection.sendall(b"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if not connection.recv(100).startswith(b"HTTP/1.1 200 OK"):
                raise ConnectionError("not answered")
            return connection.session

    server = site.make_server()
    async with running(server):
        port = server.address.port
        session = None
        with suppress(OSError):  # a version that is not spoken has no sessions either
            session = await asyncio.to_thread(ask, port, None)
        site.trust(site.other_ca)
        with pytest.raises(OSError):
            await asyncio.to_thread(ask, port, session)


async def test_a_ca_file_that_is_missing_is_one_sentence(site: Site) -> None:
    site.client_ca.unlink()
    with pytest.raises(ServerError) as caught:
        await site.make_server().start()
    assert str(caught.value) == (
        f"cannot use {site.client_ca} as the CA of clients: [Errno 2] No such file or directory; "
        "it must be a readable PEM file of certificates"
    )
