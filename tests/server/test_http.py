import asyncio
import io
import logging
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lowtide.logs import configure_logs
from lowtide.server.http import Address, Server, ServerError, TlsFiles


async def hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


ROUTES = [web.get("/hello", hello)]


@asynccontextmanager
async def running(server: Server) -> AsyncIterator[str]:
    await server.start()
    try:
        yield server.address.url
    finally:
        await server.stop()


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.StringIO()
    configure_logs(verbosity=0, format="text", stream=stream, clock=lambda: 0.0)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


def messages(log_lines: io.StringIO) -> list[str]:
    return [line.partition("] ")[2] for line in log_lines.getvalue().splitlines()]


def write_pair(files: TlsFiles, *, name: str, password: bytes | None = None) -> None:
    """A self-signed certificate for 127.0.0.1 and localhost, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    addresses = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    encryption = (
        serialization.NoEncryption()
        if password is None
        else serialization.BestAvailableEncryption(password)
    )
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.private_key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    )


def tls_files(folder: Path) -> TlsFiles:
    return TlsFiles(certificate=folder / "tls.crt", private_key=folder / "tls.key")


async def get_text(url: str, trusted: Path | None = None) -> str:
    """The body, over a connection of its own; over TLS only if `trusted` signed the server's."""
    context = ssl.create_default_context(cafile=trusted) if trusted else None
    connector = aiohttp.TCPConnector(ssl=context or True)
    async with aiohttp.ClientSession(connector=connector) as session, session.get(url) as response:
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


async def test_stopping_lets_an_open_request_finish() -> None:
    is_asked, may_answer = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        is_asked.set()
        await may_answer.wait()
        return web.Response(text="finished")

    server = Server([web.get("/slow", slow)], port=0)
    await server.start()
    async with asyncio.TaskGroup() as tasks:
        answer = tasks.create_task(get_text(f"{server.address.url}/slow"))
        await is_asked.wait()
        port = server.address.port
        tasks.create_task(server.stop())
        for _ in range(10):  # each turn lets the stopping server go on
            await refused_connection(port)
        may_answer.set()
    assert answer.result() == "finished"


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
            id="refuses a port that does not exist",
        ),
        pytest.param(
            "192.0.2.1",
            0,
            "cannot serve on 192.0.2.1:0: Cannot assign requested address; "
            "the bind address must be an address of this machine, such as 127.0.0.1 or 0.0.0.0",
            id="refuses the address of another machine",
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
        pytest.param(None, False, id="refuses files that are not there"),
        pytest.param(b"secret", True, id="refuses a key with a password, and asks nobody for it"),
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
