import asyncio
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from tests.server.conftest import RawClient, running

from lowtide.server.certificate import TlsFiles
from lowtide.server.errors import ServerError
from lowtide.server.health import health_routes
from lowtide.server.http import Drain
from lowtide.server.metrics import metrics_routes
from lowtide.server.serving import Serving, make_server

HEALTH = health_routes(healthz=[], livez=[], readyz=[])
TLS = TlsFiles(certificate=Path("tls.crt"), private_key=Path("tls.key"))
NO_TLS = "--client-ca-file is for HTTPS: give --tls-cert-file and --tls-private-key-file too"


def not_loopback(bind_address: str) -> str:
    return (
        f"--debug is not for --bind-address {bind_address}: who reaches the debug endpoints can "
        "see and slow down the process, so they are served on loopback only, such as 127.0.0.1"
    )


@pytest.mark.parametrize(
    ("is_debug", "want"),
    [
        pytest.param(True, [200, 200], id="serves debug endpoints that are asked for"),
        pytest.param(False, [200, 404], id="serves no debug endpoints by itself"),
    ],
)
async def test_the_server_that_is_made(is_debug: bool, want: list[int]) -> None:
    server = make_server(Serving(port=0, is_debug=is_debug), HEALTH)
    async with running(server):
        client = await RawClient.connected(server.address.port)
        answers = [await client.ask(path) for path in ("/healthz", "/debug/stacks")]
        await client.close()
    assert [answer.status for answer in answers] == want


@pytest.mark.parametrize(
    ("serving", "want"),
    [
        pytest.param(Serving(), "http://127.0.0.1:10259", id="HTTP where no address is named"),
        pytest.param(
            Serving("127.0.0.1"), "https://127.0.0.1:10259", id="HTTPS where loopback is named"
        ),
        pytest.param(Serving("10.0.0.5"), "https://10.0.0.5:10259", id="HTTPS beyond loopback"),
        pytest.param(
            Serving("127.0.0.1", is_plain=True), "http://127.0.0.1:10259", id="HTTP if told so"
        ),
        pytest.param(Serving(tls=TLS), "https://127.0.0.1:10259", id="HTTPS by a certificate"),
    ],
)
def test_it_serves(serving: Serving, want: str) -> None:
    assert serving.url == want


async def test_a_named_loopback_is_served_by_https() -> None:
    """As a stock manifest's probes ask; and to everybody on the machine, as without TLS."""
    routes = [*HEALTH, *metrics_routes(CollectorRegistry())]
    server = make_server(Serving("127.0.0.1", port=0), routes)
    statuses = []
    async with running(server) as url, aiohttp.ClientSession() as session:
        for path in ("/livez", "/metrics"):
            async with session.get(f"{url}{path}", ssl=False) as answer:
                statuses.append(answer.status)
    assert (url.partition(":")[0], statuses) == ("https", [200, 200])


async def test_the_server_stops_as_it_is_told() -> None:
    server = make_server(Serving(port=0), HEALTH, drain=Drain(accept_seconds=0.5))
    await server.start()
    port = server.address.port
    async with asyncio.TaskGroup() as tasks:
        stopping = tasks.create_task(server.stop())
        ended, _ = await asyncio.wait([stopping], timeout=0.2)
        assert not ended
        client = await RawClient.connected(port)
        answer = await client.ask("/healthz")
        await client.close()
    assert (answer.status, answer.headers["connection"]) == (200, "close")


@pytest.mark.parametrize(
    ("serving", "want"),
    [
        pytest.param(Serving(client_ca=Path("ca.crt")), NO_TLS, id="a client CA without TLS"),
        pytest.param(
            Serving(bind_address="0.0.0.0", is_debug=True),
            not_loopback("0.0.0.0"),
            id="debug endpoints for everybody",
        ),
        pytest.param(
            Serving(bind_address="::", tls=TLS, client_ca=Path("ca.crt"), is_debug=True),
            not_loopback("::"),
            id="debug endpoints for everybody with a certificate",
        ),
    ],
)
def test_rejects(serving: Serving, want: str) -> None:
    with pytest.raises(ServerError) as caught:
        make_server(serving, HEALTH)
    assert str(caught.value) == want
