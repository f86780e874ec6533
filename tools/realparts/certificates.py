"""A certificate authority for one test run, and what it signs.

Used by control_plane for the API server, for clients with certificates, and for KWOK."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=7)
# Clocks of a virtual machine may step back a little after a test began.
BACKDATED = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class KeyPair:
    certificate_file: Path
    key_file: Path


class Authority:
    """Signs certificates; writes `ca.crt` and each pair into `folder`."""

    def __init__(self, folder: Path, now: datetime.datetime) -> None:
        self.folder = folder
        self.ca_file = folder / "ca.crt"
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lowtide-tests")])

    def write_own_certificate(self) -> None:
        usage = _key_usage(signs_certificates=True)
        builder = (
            self._begin(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        certificate = builder.sign(self._key, hashes.SHA256())
        self.ca_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def sign_server(self, name: str, host_names: list[str], addresses: list[str]) -> KeyPair:
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        answers_to = x509.SubjectAlternativeName(
            [
                *(x509.DNSName(host_name) for host_name in host_names),
                *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
            ]
        )
        return self._sign(name, subject, ExtendedKeyUsageOID.SERVER_AUTH, answers_to)

    def sign_client(self, user: str, groups: list[str]) -> KeyPair:
        """A client certificate as Kubernetes reads it: the name is the user, O the groups."""
        subject = [
            x509.NameAttribute(NameOID.COMMON_NAME, user),
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
        ]
        return self._sign(user.replace(":", "-"), subject, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _sign(
        self,
        file_name: str,
        subject: list[x509.NameAttribute[str]],
        purpose: x509.ObjectIdentifier,
        answers_to: x509.SubjectAlternativeName | None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._begin(x509.Name(subject), key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        )
        if answers_to is not None:
            builder = builder.add_extension(answers_to, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        pair = KeyPair(self.folder / f"{file_name}.crt", self.folder / f"{file_name}.key")
        pair.certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        pair.key_file.write_bytes(_pem(key))
        return pair

    def _begin(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        own_key = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - BACKDATED)
            .not_valid_after(self._now + LIFETIME)
            # Python 3.13 rejects chains without the two key identifiers.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(own_key), critical=False
            )
        )


def write_signing_key(file: Path) -> None:
    """A private key that the API server signs service account tokens with."""
    file.write_bytes(_pem(ec.generate_private_key(ec.SECP256R1())))


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,  # the API server rejects PKCS 8 here
        serialization.NoEncryption(),
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
