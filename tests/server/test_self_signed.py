import time

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from tests.server.conftest import running

from lowtide.server.http import Server
from lowtide.server.self_signed import SelfSigned


async def _hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


def test_a_certificate_is_for_the_addresses_of_this_machine() -> None:
    own = SelfSigned("192.0.2.7", now=time.time())
    pem = own.files.certificate.read_bytes()
    own.close()
    names = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert "localhost" in names.value.get_values_for_type(x509.DNSName)
    assert {str(each) for each in names.value.get_values_for_type(x509.IPAddress)} == {
        *("127.0.0.1", "::1", "192.0.2.7")
    }


def test_nothing_is_left_of_it() -> None:
    own = SelfSigned("0.0.0.0", now=time.time())
    path = own.files.private_key
    own.close()
    with pytest.raises(OSError):
        path.read_bytes()


async def test_a_server_without_files_is_asked_by_https() -> None:
    server = Server([web.get("/", _hello)], port=0, is_self_signed=True)
    async with (
        running(server) as url,
        aiohttp.ClientSession() as session,
        session.get(url, ssl=False) as response,
    ):
        assert url.startswith("https://127.0.0.1:")
        assert await response.text() == "hello"
