"""A certificate for this process alone, where nobody gave one: what is sent cannot be read on the
way, but who we are is not proven. kube-scheduler does the same; the kubelet's probes accept it."""

import os
import socket
import tempfile
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

from lowtide.server.certificate import TlsFiles

_GOOD_FOR: Final = timedelta(days=365)
_BEGINS_BEFORE: Final = timedelta(hours=1)  # clocks differ


class SelfSigned:
    """Kept in memory, so that no folder has to be writable; until `close`."""

    def __init__(self, bind_address: str, *, now: float) -> None:
        self._descriptor, self._path = _file_to_write()
        with os.fdopen(self._descriptor, "wb", closefd=False) as file:
            file.write(_pem(bind_address, datetime.fromtimestamp(now, UTC)))

    @property
    def files(self) -> TlsFiles:
        return TlsFiles(self._path, self._path)

    def close(self) -> None:
        os.close(self._descriptor)
        if self._path.parent.name != "fd":
            self._path.unlink(missing_ok=True)


def _file_to_write() -> tuple[int, Path]:
    """One that has a path, as OpenSSL reads certificates from files only."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("lowtide-certificate")
        return descriptor, Path(f"/proc/self/fd/{descriptor}")
    descriptor, name = tempfile.mkstemp(prefix="lowtide-", suffix=".pem")
    return descriptor, Path(name)


def _pem(bind_address: str, now: datetime) -> bytes:
    # Here: it takes a while to load, and most processes are given a certificate, or need none.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    host = socket.gethostname()
    key = ec.generate_private_key(ec.SECP256R1())
    # A common name has at most 64 characters.
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host[:64] or "lowtide")])
    addresses = {_address("127.0.0.1"), _address("::1"), _address(bind_address)} - {None}
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.DNSName(host)]
    names += [x509.IPAddress(each) for each in addresses if each is not None]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEGINS_BEFORE)
        .not_valid_after(now + _GOOD_FOR)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
