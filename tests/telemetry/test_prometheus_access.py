"""Credentials that rotate: tokens, passwords and certificates in files that are replaced."""

import os
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.telemetry.conftest import authority

from lowtide.readings.access import PrometheusAccess
from lowtide.telemetry.prometheus_access import (
    Credentials,
    CredentialsError,
    basic_authorization,
    quoter,
)


def access(**settings: object) -> PrometheusAccess:
    return PrometheusAccess(addresses=("https://x",), **settings)  # type: ignore[arg-type]


def replace(file: Path, text: str) -> None:
    """As a mounted Secret changes: all at once, by another file of the same name."""
    new = file.with_name("new")
    new.write_text(text)
    new.replace(file)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("one\n")
    return file


def test_nobody_shows_nothing() -> None:
    assert Credentials(access()).authorization() is None


def test_a_token_that_rotates_is_read_again(token_file: Path) -> None:
    credentials = Credentials(access(bearer_token_file=str(token_file)))
    seen = [credentials.authorization()]
    replace(token_file, "two")
    seen.append(credentials.authorization())
    assert seen == ["Bearer one", "Bearer two"]


def test_a_token_of_the_same_length_and_time_is_read_again(token_file: Path) -> None:
    credentials = Credentials(access(bearer_token_file=str(token_file)))
    before = token_file.stat()
    seen = [credentials.authorization()]
    replace(token_file, "two\n")
    os.utime(token_file, ns=(before.st_atime_ns, before.st_mtime_ns))
    seen.append(credentials.authorization())
    assert seen == ["Bearer one", "Bearer two"]


def test_after_a_rejection_a_file_that_looks_the_same_is_read_again(token_file: Path) -> None:
    credentials = Credentials(access(bearer_token_file=str(token_file)))
    before = token_file.stat()
    seen = [credentials.authorization()]
    token_file.write_text("two\n")
    os.utime(token_file, ns=(before.st_atime_ns, before.st_mtime_ns))
    seen += [credentials.authorization(), credentials.authorization(is_rejected=True)]
    assert seen == ["Bearer one", "Bearer one", "Bearer two"]


def test_a_password_that_rotates_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("löw tide\n")
    credentials = Credentials(access(username="u", password_file=str(file)))
    seen = [credentials.authorization()]
    replace(file, "p")
    seen.append(credentials.authorization())
    # base64 of "u:löw tide" in UTF-8, and of "u:p"
    assert seen == ["Basic dTpsw7Z3IHRpZGU=", "Basic dTpw"]


def test_a_user_without_a_password_file_has_an_empty_one() -> None:
    assert Credentials(access(username="u")).authorization() == "Basic dTo="


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(None, "No such file or directory", id="names a missing file"),
        pytest.param(b" \n", "it is empty", id="names an empty file"),
        pytest.param(b"\xff", "it is not text", id="names a file that is no text"),
        pytest.param(
            b"x" * 1_048_577, "it holds more than 1 MiB, the limit", id="names a large file"
        ),
        pytest.param(
            b"secret\nsecret",
            "it should hold the bearer token on one line and nothing else",
            id="names a file of several lines and does not repeat them",
        ),
    ],
)
def test_a_token_file_that_was_never_good(tmp_path: Path, content: bytes | None, why: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CredentialsError) as caught:
        Credentials(access(bearer_token_file=str(file))).authorization()
    assert str(caught.value) == f"the bearer token file {file} cannot be used: {why}"


def test_a_token_file_that_vanished_leaves_the_token_in_use(
    token_file: Path, log_lines: Callable[[], list[str]]
) -> None:
    credentials = Credentials(access(bearer_token_file=str(token_file)))
    credentials.authorization()
    token_file.unlink()
    assert [credentials.authorization() for _ in range(2)] == ["Bearer one"] * 2
    problem = (
        f"the bearer token file {token_file} cannot be used: No such file or directory; "
        "the bearer token read before is used"
    )
    line = f'W "Credentials for Prometheus cannot be renewed" err="{problem}"'
    assert log_lines() == [line]  # once
    token_file.write_text("two")
    assert credentials.authorization() == "Bearer two"
    token_file.unlink()
    credentials.authorization()
    assert log_lines() == [line, line]  # it had been good in between


def test_the_context_is_made_anew_only_when_a_file_changed(tmp_path: Path) -> None:
    first, second = authority(tmp_path / "first"), authority(tmp_path / "second")
    pair = first.sign_client("tide", [])
    credentials = Credentials(
        access(
            ca_file=str(first.ca_file),
            cert_file=str(pair.certificate_file),
            key_file=str(pair.key_file),
        )
    )
    contexts = [credentials.tls(), credentials.tls()]
    old = first.ca_file.read_bytes()
    second.ca_file.replace(first.ca_file)
    contexts.append(credentials.tls())
    assert [context is contexts[0] for context in contexts] == [True, True, False]
    assert [context.get_ca_certs(binary_form=True) for context in contexts[1:]] == [
        [ssl.PEM_cert_to_DER_cert(old.decode())],
        [ssl.PEM_cert_to_DER_cert(first.ca_file.read_text())],
    ]


def test_half_a_pair_leaves_the_one_before_in_use(
    tmp_path: Path, log_lines: Callable[[], list[str]]
) -> None:
    signer = authority(tmp_path / "ca")
    pair, other = signer.sign_client("tide", []), signer.sign_client("other", [])
    cert, key = str(pair.certificate_file), str(pair.key_file)
    credentials = Credentials(access(cert_file=cert, key_file=key))
    before = credentials.tls()
    other.certificate_file.replace(pair.certificate_file)
    assert [credentials.tls() is before for _ in range(2)] == [True, True]
    assert log_lines() == [
        'W "Credentials for Prometheus cannot be renewed" '
        f'err="the TLS files {cert}, {key} cannot be used: KEY_VALUES_MISMATCH; '
        'those loaded before are used"'
    ]
    other.key_file.replace(pair.key_file)
    assert credentials.tls() is not before


def test_a_ca_file_that_was_never_good(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    with pytest.raises(CredentialsError) as caught:
        Credentials(access(ca_file=str(file))).tls()
    assert str(caught.value) == f"the TLS files {file} cannot be used: No such file or directory"
    for text, why in (
        ("secret", "cadata does not contain a certificate"),
        ("x" * 1_048_577, "more than 1 MiB, the limit"),
    ):
        file.write_text(text)
        with pytest.raises(CredentialsError) as caught:
            Credentials(access(ca_file=str(file))).tls()
        assert str(caught.value).startswith(f"the TLS files {file} cannot be used: ")
        assert why in str(caught.value)


def test_without_verification_any_server_will_do() -> None:
    context = Credentials(access(insecure_skip_verify=True)).tls()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


def test_without_files_the_system_is_trusted() -> None:
    context = Credentials(access()).tls()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("sent", "said", "want"),
    [
        pytest.param(
            [("Authorization", "Bearer abc")],
            "bad token abc in Bearer abc",
            "bad token [hidden] in [hidden]",
            id="hides a token",
        ),
        pytest.param(
            [("Authorization", basic_authorization("tide", "low"))],
            "tide with low, tide:low, dGlkZTpsb3c=",
            "tide with [hidden], [hidden], [hidden]",
            id="hides a password in each of its forms",
        ),
        pytest.param(
            [("authorization", "Basic !!!")],
            "what is !!!?",
            "what is [hidden]?",
            id="hides a header of the user's own that is no base64",
        ),
        pytest.param(
            [("X-Api-Key", "k1"), ("Cookie", "s=2"), ("X-Scope-OrgID", "team-a"), ("X-Token", "")],
            "team-a sent k1 and s=2",
            "team-a sent [hidden] and [hidden]",
            id="hides headers that are named like secrets, and no others",
        ),
        pytest.param([], "a\n  b\tc", "a b c", id="makes one line of several"),
        pytest.param([], "x" * 201, "x" * 200 + "…", id="shortens"),
        pytest.param(
            [("X-Key", "y" * 9)],
            "x" * 195 + "y" * 9,
            "x" * 195 + "[hidd…",
            id="hides before it shortens",
        ),
    ],
)
def test_quotes(sent: list[tuple[str, str]], said: str, want: str) -> None:
    assert quoter(sent)(said) == want
