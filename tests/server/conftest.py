"""What the tests of the server share: a server that runs, its log, certificates, a raw client."""

import asyncio
import io
import logging
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lowtide.logs import configure_logs
from lowtide.server.certificate import TlsFiles
from lowtide.server.http import Server


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


# A client that knows nothing of HTTP but its lines.


@dataclass(frozen=True, slots=True)
class RawAnswer:
    status: int
    headers: dict[str, str]  # by lower-case name
    body: bytes


class RawClient:
    """One connection, on which a test sends what it likes when it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connected(cls, port: int, tls: ssl.SSLContext | None = None) -> "RawClient":
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=tls))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def ask(self, path: str, host: str = "localhost") -> RawAnswer:
        await self.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        return await self.answer()

    async def answer(self) -> RawAnswer:
        head = await self.reader.readuntil(b"\r\n\r\n")
        status_line, *lines = head.decode().rstrip().split("\r\n")
        pairs = (line.split(": ", 1) for line in lines)
        headers = {name.lower(): value for name, value in pairs}
        body = await self.reader.readexactly(int(headers["content-length"]))
        return RawAnswer(int(status_line.split()[1]), headers, body)

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


# Certificates.


def tls_files(folder: Path, name: str = "tls") -> TlsFiles:
    return TlsFiles(certificate=folder / f"{name}.crt", private_key=folder / f"{name}.key")


def write_pair(
    files: TlsFiles,
    *,
    name: str,
    signed_by: TlsFiles | None = None,
    password: bytes | None = None,
    ends_in: timedelta = timedelta(days=30),
) -> None:
    """A certificate for 127.0.0.1 and localhost, and its key; its own CA unless told otherwise."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signing_key = key
    if signed_by is not None:
        issuer = x509.load_pem_x509_certificate(signed_by.certificate.read_bytes()).subject
        loaded = serialization.load_pem_private_key(signed_by.private_key.read_bytes(), None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signing_key = loaded
    addresses = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    constraints = x509.BasicConstraints(
        ca=signed_by is None, path_length=0 if signed_by is None else None
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=60))
        .not_valid_after(datetime.now(UTC) + ends_in)
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(constraints, critical=True)
        .sign(signing_key, hashes.SHA256())
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
