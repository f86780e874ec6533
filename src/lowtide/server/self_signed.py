"""A certificate for this process alone, where nobody gave one: what is sent cannot be read on the
way, but who we are is not proven. kube-scheduler does the same; the kubelet's probes accept it."""

import socket
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from lowtide.pem_files import PemFile
from lowtide.server.certificate import TlsFiles

_GOOD_FOR: Final = timedelta(days=365)
_BEGINS_BEFORE: Final = timedelta(hours=1)  # clocks differ


class SelfSigned:
    """Kept in memory, until `close`."""

    def __init__(self, bind_address: str, *, now: float) -> None:
        self._file = PemFile(_pem(bind_address, datetime.fromtimestamp(now, UTC)))

    @property
    def files(self) -> TlsFiles:
        return TlsFiles(self._file.path, self._file.path)

    def close(self) -> None:
        self._file.close()


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
