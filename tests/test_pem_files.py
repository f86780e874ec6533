"""Pairs that are loaded out of memory, where no folder can be written."""

import ssl
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from lowtide.pem_files import PemFile, load_pair
from realparts.certificates import Authority, KeyPair


def signed_in(folder: Path) -> KeyPair:
    authority = Authority(folder, datetime.now(UTC))
    authority.write_own_certificate()
    return authority.sign_client("lowtide", [])


@pytest.fixture
def pair(tmp_path: Path) -> KeyPair:
    return signed_in(tmp_path)


def test_nothing_is_written_to_a_folder(
    pair: KeyPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_pair(context, pair.certificate_file.read_bytes(), pair.key_file.read_bytes())


def test_a_key_of_another_certificate_is_rejected(pair: KeyPair, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    key = signed_in(other).key_file.read_bytes()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with pytest.raises(ssl.SSLError, match="KEY_VALUES_MISMATCH"):
        load_pair(context, pair.certificate_file.read_bytes(), key)


def test_a_key_with_a_password_is_rejected_and_nobody_is_asked_for_it(pair: KeyPair) -> None:
    key = serialization.load_pem_private_key(pair.key_file.read_bytes(), password=None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with pytest.raises(ssl.SSLError):
        load_pair(context, pair.certificate_file.read_bytes(), locked)


def test_nothing_is_left_of_a_file_that_is_closed() -> None:
    file = PemFile(b"a key")
    assert file.path.read_bytes() == b"a key"
    file.close()
    with pytest.raises(OSError):
        file.path.read_bytes()
