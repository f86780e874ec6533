"""Tokens from files and exec plugins (small real programs), renewed while the clock is moved."""

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.kube.conftest import ManualClock

from lowtide.kube.credentials import Credentials
from lowtide.kube.errors import CredentialsError
from lowtide.kube.kubeconfig import Access, Cluster, ExecPlugin, Pem, User
from lowtide.kube.timestamps import second_time

V1 = "client.authentication.k8s.io/v1"


def credentials_for(user: User, clock: ManualClock, server: str = "http://x") -> Credentials:
    return Credentials(Access(Cluster(server), user, "default", "test"), clock, {})


class Plugin:
    """A program that prints a prepared answer and counts how often it was run."""

    def __init__(self, directory: Path) -> None:
        self.answer = directory / "answer"
        self.runs = directory / "runs"
        program = directory / "plugin.py"
        program.write_text(
            "import os, sys\n"
            f"open({str(self.runs)!r}, 'a').write(os.environ['KUBERNETES_EXEC_INFO'] + '\\n')\n"
            f"text = open({str(self.answer)!r}).read()\n"
            "print(text) if text.startswith('{') else sys.exit(text)\n"
        )
        self.user = User(exec_plugin=ExecPlugin(sys.executable, ("-S", "-E", str(program))))

    def answers(self, **status: Any) -> None:
        self.answer.write_text(json.dumps({"apiVersion": V1, "status": status}))

    def count(self) -> int:
        return len(self.runs.read_text().splitlines()) if self.runs.exists() else 0


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


@pytest.mark.parametrize(
    ("user", "want"),
    [
        pytest.param(User(), None, id="presents nothing for nobody"),
        pytest.param(User(token="t"), "Bearer t", id="presents a token"),
        pytest.param(
            User(username="u", password="p"), "Basic dTpw", id="presents name and password"
        ),
    ],
)
async def test_fixed_credentials(clock: ManualClock, user: User, want: str | None) -> None:
    credentials = credentials_for(user, clock)
    presented = await credentials.current()
    clock.advance(1000)
    assert (presented.authorization, await credentials.current()) == (want, presented)
    assert not await credentials.renew(presented)


async def test_a_token_file_is_read_again_after_a_minute(
    clock: ManualClock, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    credentials = credentials_for(User(token="ignored", token_file=file), clock)
    seen = [(await credentials.current()).authorization]
    file.write_text("three")
    clock.advance(59)
    seen.append((await credentials.current()).authorization)
    clock.advance(1)
    seen.append((await credentials.current()).authorization)
    assert seen == ["Bearer one", "Bearer one", "Bearer three"]


async def test_a_token_file_of_the_same_length_and_time_is_read_again(
    clock: ManualClock, tmp_path: Path
) -> None:
    file, new = tmp_path / "token", tmp_path / "new"
    for each in (file, new):
        each.write_text(each.name[:3])
        os.utime(each, ns=(0, 0))
    credentials = credentials_for(User(token_file=file), clock)
    seen = [(await credentials.current()).authorization]
    new.replace(file)
    clock.advance(60)
    seen.append((await credentials.current()).authorization)
    assert seen == ["Bearer tok", "Bearer new"]


async def test_a_token_file_is_read_at_once_after_a_401(clock: ManualClock, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    credentials = credentials_for(User(token_file=file), clock)
    presented = await credentials.current()
    assert not await credentials.renew(presented)
    file.write_text("two")
    assert await credentials.renew(presented)
    assert await credentials.renew(presented)  # another request that was rejected earlier
    assert (await credentials.current()).authorization == "Bearer two"


async def test_a_token_file_that_vanished_leaves_the_token_in_use(
    clock: ManualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    credentials = credentials_for(User(token_file=file), clock)
    await credentials.current()
    file.unlink()
    clock.advance(60)
    with caplog.at_level(logging.WARNING):
        assert (await credentials.current()).authorization == "Bearer one"
    assert [record.getMessage() for record in caplog.records] == [
        f"The token file {file} cannot be used: No such file or directory; "
        f"the token read before is used"
    ]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(None, "No such file or directory", id="names a missing file"),
        pytest.param(b" \n", "it is empty", id="names an empty file"),
        pytest.param(b"to\xffken", "it is not text", id="names a file that is no text"),
        pytest.param(
            b"two\nlines",
            "it should hold the token on one line and nothing else",
            id="names a file with a line break",
        ),
        pytest.param(
            b"x" * 1_048_577, "it holds more than 1 MiB, the limit", id="names a large file"
        ),
    ],
)
async def test_a_token_file_that_was_never_good(
    clock: ManualClock, tmp_path: Path, text: bytes | None, want: str
) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(CredentialsError) as caught:
        await credentials_for(User(token_file=file), clock).current()
    assert str(caught.value) == f"The token file {file} cannot be used: {want}"


@pytest.mark.parametrize("text", [b"\xff", b"two\nlines", b"", b"x" * 1_048_577])
async def test_a_token_file_that_goes_bad_leaves_the_token_in_use(
    clock: ManualClock, tmp_path: Path, text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    credentials = credentials_for(User(token_file=file), clock)
    await credentials.current()
    file.write_bytes(text)
    clock.advance(60)
    with caplog.at_level(logging.WARNING):
        assert (await credentials.current()).authorization == "Bearer one"
    assert all(each.getMessage().endswith("before is used") for each in caplog.records)
    assert len(caplog.records) == 1
    file.write_text("two")
    clock.advance(60)
    assert (await credentials.current()).authorization == "Bearer two"


async def test_an_exec_credential_is_renewed_before_it_expires(
    clock: ManualClock, plugin: Plugin
) -> None:
    plugin.answers(token="one", expirationTimestamp=second_time(clock.now + 600))
    credentials = credentials_for(plugin.user, clock)
    seen = [(await credentials.current()).authorization]
    plugin.answers(token="two", expirationTimestamp=second_time(clock.now + 1200))
    clock.advance(539)
    seen.append((await credentials.current()).authorization)
    clock.advance(1)
    seen.append((await credentials.current()).authorization)
    assert (seen, plugin.count()) == (["Bearer one", "Bearer one", "Bearer two"], 2)


async def test_an_exec_credential_that_lives_shortly_is_not_renewed_for_each_request(
    clock: ManualClock, plugin: Plugin
) -> None:
    plugin.answers(token="one", expirationTimestamp=second_time(clock.now + 50))
    credentials = credentials_for(plugin.user, clock)
    for _ in range(39):
        await credentials.current()
        clock.advance(1)
    assert plugin.count() == 1
    clock.advance(1)
    await credentials.current()
    assert plugin.count() == 2  # 50 - 50 / 5 = 40 seconds


async def test_an_exec_credential_is_renewed_after_a_401_but_not_over_and_over(
    clock: ManualClock, plugin: Plugin
) -> None:
    plugin.answers(token="one")
    credentials = credentials_for(plugin.user, clock)
    presented = await credentials.current()
    clock.advance(1000)
    plugin.answers(token="two")
    assert await credentials.renew(presented)
    presented = await credentials.current()
    assert presented.authorization == "Bearer two"
    for _ in range(3):
        assert not await credentials.renew(presented)
    assert plugin.count() == 2


async def test_a_401_for_a_credential_that_was_replaced_does_not_run_the_plugin_again(
    clock: ManualClock, plugin: Plugin
) -> None:
    plugin.answers(token="one")
    credentials = credentials_for(plugin.user, clock)
    presented = await credentials.current()
    clock.advance(10)
    plugin.answers(token="two")
    assert await credentials.renew(presented)
    clock.advance(10)
    assert await credentials.renew(presented)
    assert plugin.count() == 2


async def test_requests_at_the_same_time_run_the_plugin_once(
    clock: ManualClock, plugin: Plugin
) -> None:
    plugin.answers(token="one")
    credentials = credentials_for(plugin.user, clock)
    shown = await asyncio.gather(*(credentials.current() for _ in range(5)))
    assert (len(set(shown)), plugin.count()) == (1, 1)


async def test_a_plugin_that_fails_leaves_the_credential_in_use_until_it_expires(
    clock: ManualClock, plugin: Plugin, caplog: pytest.LogCaptureFixture
) -> None:
    plugin.answers(token="one", expirationTimestamp=second_time(clock.now + 600))
    credentials = credentials_for(plugin.user, clock)
    await credentials.current()
    plugin.answer.write_text("the vault is closed")
    clock.advance(545)
    with caplog.at_level(logging.WARNING):
        assert (await credentials.current()).authorization == "Bearer one"
        assert (await credentials.current()).authorization == "Bearer one"
    assert (len(caplog.records), plugin.count()) == (1, 2)
    clock.advance(55)
    with pytest.raises(CredentialsError, match="ended with code 1: the vault is closed"):
        await credentials.current()


async def test_certificates_that_cannot_be_loaded_are_named(
    clock: ManualClock, tmp_path: Path
) -> None:
    pair = Pem(file=tmp_path / "c.pem"), Pem(file=tmp_path / "c.key")
    for pem in pair:
        assert pem.file is not None
        pem.file.write_text("no certificate")
    user = User(client_certificate=pair[0], client_key=pair[1])
    with pytest.raises(CredentialsError) as caught:
        await credentials_for(user, clock, "https://127.0.0.1:6443").current()
    assert str(caught.value).startswith(
        f"The certificates for https://127.0.0.1:6443 cannot be loaded "
        f"(client certificate from {pair[0]}, client key from {pair[1]}): "
    )


async def test_a_clock_set_back_delays_neither_a_token_file_nor_a_plugin(
    clock: ManualClock, plugin: Plugin, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    from_file = credentials_for(User(token_file=file), clock)
    plugin.answers(token="one")
    from_plugin = credentials_for(plugin.user, clock)
    await from_file.current()
    presented = await from_plugin.current()
    file.write_text("two-longer")
    plugin.answers(token="two")
    clock.now -= 3600
    assert (await from_file.current()).authorization == "Bearer two-longer"
    assert await from_plugin.renew(presented)
