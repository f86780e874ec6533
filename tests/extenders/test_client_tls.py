"""How an extender behind TLS is trusted, by each way of saying so."""

import datetime
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from lowtide.config.types import Extender, ExtenderTls
from lowtide.extenders.client import ExtenderCallError, ExtenderClient
from realparts.certificates import Authority

NODES = {"one": msgspec.Raw(b'{"metadata":{"name":"one"}}')}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path, now=datetime.datetime.now(datetime.UTC))
    made.write_own_certificate()
    return made


@pytest.fixture
async def url(authority: Authority) -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response([{"Host": "one", "Score": 3}])

    pair = authority.sign_server("extender", ["localhost"], ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate_file, pair.key_file)
    app = web.Application()
    app.router.add_post("/{verb}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def priorities(url: str, **fields: Any) -> dict[str, int]:
    extender = Extender(url_prefix=url, prioritize_verb="prioritize", weight=1, **fields)
    async with ExtenderClient(extender) as client:
        return await client.priorities(msgspec.Raw(b"{}"), NODES)


async def test_it_is_trusted_by_its_authority_in_a_file(url: str, authority: Authority) -> None:
    tls = ExtenderTls(ca_file=str(authority.ca_file))
    assert await priorities(url, enable_https=True, tls_config=tls) == {"one": 3}


async def test_it_is_trusted_by_its_authority_in_the_configuration(
    url: str, authority: Authority
) -> None:
    tls = ExtenderTls(ca_data=Path(authority.ca_file).read_bytes(), ca_file="/nowhere")
    assert await priorities(url, tls_config=tls) == {"one": 3}


async def test_without_an_authority_enable_https_checks_nobody(url: str) -> None:
    assert await priorities(url, enable_https=True) == {"one": 3}


async def test_it_is_not_trusted_by_chance(url: str) -> None:
    with pytest.raises(ExtenderCallError, match=r"cannot be reached: .*certificate verify failed"):
        await priorities(url)


async def test_a_client_certificate_may_be_given_as_data(url: str, authority: Authority) -> None:
    pair = authority.sign_client("lowtide", [])
    tls = ExtenderTls(
        ca_file=str(authority.ca_file),
        cert_data=Path(pair.certificate_file).read_bytes(),
        key_data=Path(pair.key_file).read_bytes(),
    )
    assert await priorities(url, tls_config=tls) == {"one": 3}


async def test_files_that_cannot_be_used_are_told(url: str) -> None:
    with pytest.raises(
        ExtenderCallError, match=r"the TLS files /nowhere/ca.pem of the extender .* cannot be used"
    ):
        await priorities(url, tls_config=ExtenderTls(ca_file="/nowhere/ca.pem"))
