"""One address against small real servers: TLS, credentials that are rejected, methods, proxies."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import unused_port
from tests.telemetry.conftest import EMPTY, FakePrometheus, Said, authority

from lowtide.input_limits import Intake
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.address import ServiceAddress, UrlAddress, parse_address
from lowtide.telemetry.errors import AddressFailure, Fault
from lowtide.telemetry.prometheus_access import Credentials
from lowtide.telemetry.prometheus_endpoints import ServiceEndpoint, UrlEndpoint
from realparts.certificates import Authority, KeyPair

UNAUTHORIZED = Said("no", 401)


class Site:
    """Endpoints that share a session, as the client makes them."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    def endpoint(self, address: str, **settings: object) -> UrlEndpoint:
        access = PrometheusAccess(addresses=(address,), **settings)  # type: ignore[arg-type]
        parsed = parse_address(address)
        assert isinstance(parsed, UrlAddress)
        return UrlEndpoint(
            parsed,
            access,
            credentials=Credentials(access),
            session=lambda: self._session,
            intake=Intake(),
        )


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with aiohttp.ClientSession() as session:
        yield Site(session)


async def failure(endpoint: UrlEndpoint | ServiceEndpoint) -> tuple[str, Fault]:
    with pytest.raises(AddressFailure) as caught:
        await endpoint.ask("up")
    return caught.value.text, caught.value.fault


@pytest.mark.parametrize(
    ("suffix", "path"),
    [
        pytest.param("", "/api/v1/query", id="asks below the address"),
        pytest.param("/", "/api/v1/query", id="does not mind a slash at the end"),
        pytest.param("/prom/eu", "/prom/eu/api/v1/query", id="keeps a path prefix"),
        pytest.param("/prom/", "/prom/api/v1/query", id="keeps a path prefix with a slash"),
    ],
)
@pytest.mark.parametrize("scheme", ["http://", ""], ids=["with http://", "without http://"])
async def test_addresses(site: Site, scheme: str, suffix: str, path: str) -> None:
    fake = FakePrometheus()
    async with fake.serving() as address:
        endpoint = site.endpoint(scheme + address.removeprefix("http://") + suffix)
        answer = await endpoint.ask('up{a="&=+é"}')
        assert endpoint.address == address + suffix.rstrip("/")
    assert fake.asked == [("POST", path, 'up{a="&=+é"}')]
    assert (answer.status, answer.body) == (200, EMPTY.encode())


async def test_headers_are_sent(site: Site) -> None:
    fake = FakePrometheus()
    async with fake.serving() as address:
        await site.endpoint(address, headers=(("X-Scope-OrgID", "team"),)).ask("up")
    assert fake.header("X-Scope-OrgID") == ["team"]


async def test_get_is_used_once_post_was_rejected(site: Site) -> None:
    fake = FakePrometheus(
        lambda request: Said() if request.method == "GET" else Said("Method Not Allowed", 405)
    )
    async with fake.serving() as address:
        endpoint = site.endpoint(f"{address}?extra_label=a")
        # At the same time, as the poller asks: all of them learn it.
        answers = await asyncio.gather(*(endpoint.ask("up") for _ in range(3)))
        answers.append(await endpoint.ask('x{a="&"}'))
    assert [answer.status for answer in answers] == [200] * 4
    assert sorted(fake.asked[:-1]) == [
        *[("GET", "/api/v1/query", "up")] * 3,
        *[("POST", "/api/v1/query", "up")] * 3,
    ]
    assert fake.asked[-1] == ("GET", "/api/v1/query", 'x{a="&"}')


async def test_a_redirect_is_not_followed(site: Site) -> None:
    fake = FakePrometheus(Said("", 302, {"Location": "/elsewhere"}))
    async with fake.serving() as address:
        answer = await site.endpoint(address).ask("up")
    assert (answer.status, answer.location, len(fake.asked)) == (302, "/elsewhere", 1)


async def test_a_server_that_is_down(site: Site) -> None:
    found = await failure(site.endpoint(f"http://127.0.0.1:{unused_port()}"))
    assert found == ("is unreachable: Connection refused", Fault.UNREACHABLE)


async def test_a_server_that_never_answers(site: Site, silent_address: str) -> None:
    found = await failure(site.endpoint(silent_address, timeout_seconds=0.05))
    assert found == ("did not answer within 0.05 s", Fault.TIMEOUT)


async def test_a_connection_that_is_closed_under_a_query_is_made_anew(site: Site) -> None:
    asked = 0

    def answer(request: web.Request) -> Said:
        nonlocal asked
        asked += 1
        if asked == 2:
            assert request.transport is not None
            request.transport.abort()
        return Said()

    async with FakePrometheus(answer).serving() as address:
        endpoint = site.endpoint(address)
        answers = [await endpoint.ask("up") for _ in range(2)]
    assert ([one.status for one in answers], asked) == ([200, 200], 3)


@pytest.mark.parametrize(
    ("address", "settings"),
    [
        pytest.param("http://HERE?token=h1dden", {}, id="in the address"),
        pytest.param("http://user:h1dden@HERE", {}, id="as a password in the address"),
        pytest.param("http://HERE", {"headers": (("X-Api-Key", "h1dden"),)}, id="in a header"),
    ],
)
async def test_a_server_that_speaks_no_http_does_not_reveal_a_secret(
    site: Site, address: str, settings: dict[str, object]
) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n")
        writer.write(b"NO h1dden HTTP\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        here = "{}:{}".format(*server.sockets[0].getsockname())
        found = await failure(site.endpoint(address.replace("HERE", here), **settings))
    said = "Bad status line: Expected HTTP/, RTSP/ or ICE/: b'NO [hidden] HTTP' ^"
    assert found == (f"is unreachable: {said}", Fault.UNREACHABLE)


# Credentials.


def lets_in(authorization: str) -> FakePrometheus:
    return FakePrometheus(
        lambda request: (
            Said() if request.headers.get("Authorization") == authorization else UNAUTHORIZED
        )
    )


async def test_a_password_in_the_address_is_sent(site: Site) -> None:
    fake = lets_in("Basic dGlkZTpsb3c=")
    async with fake.serving() as address:
        endpoint = site.endpoint(
            address.replace("//", "//tide:low@"), headers=(("authorization", "other"),)
        )
        answer = await endpoint.ask("up")
        assert endpoint.address == address
    assert (answer.status, fake.header("Authorization")) == (200, ["Basic dGlkZTpsb3c="])


async def test_a_token_that_was_replaced_is_read_at_once_after_a_401(
    site: Site, tmp_path: Path
) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("old")

    def rotate(request: web.Request) -> Said:
        if request.headers["Authorization"] == "Bearer new":
            return Said()
        token_file.write_text("new")
        return UNAUTHORIZED

    fake = FakePrometheus(rotate)
    async with fake.serving() as address:
        answer = await site.endpoint(address, bearer_token_file=str(token_file)).ask("up")
    assert answer.status == 200
    assert fake.header("Authorization") == ["Bearer old", "Bearer new"]


async def test_a_token_that_is_rejected_is_not_sent_twice(site: Site, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("old")
    fake = FakePrometheus(UNAUTHORIZED)
    async with fake.serving() as address:
        answer = await site.endpoint(address, bearer_token_file=str(token_file)).ask("up")
    assert (answer.status, fake.header("Authorization")) == (401, ["Bearer old"])


async def test_a_token_file_that_is_missing(site: Site, tmp_path: Path) -> None:
    found = await failure(site.endpoint("http://x", bearer_token_file=str(tmp_path / "token")))
    assert found == (
        f"cannot be asked: the bearer token file {tmp_path / 'token'} cannot be used: "
        "No such file or directory",
        Fault.CREDENTIALS,
    )


# TLS.


def serving_context(pair: KeyPair, clients: Authority | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate_file, pair.key_file)
    if clients is not None:
        context.load_verify_locations(clients.ca_file)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.fixture
def signer(tmp_path: Path) -> Authority:
    return authority(tmp_path / "signer")


@pytest.fixture
def stranger(tmp_path: Path) -> Authority:
    return authority(tmp_path / "stranger")


@pytest.fixture
def server_pair(signer: Authority) -> KeyPair:
    return signer.sign_server("prometheus", [], ["127.0.0.1"])


async def test_a_ca_that_rotates(
    site: Site, signer: Authority, stranger: Authority, server_pair: KeyPair
) -> None:
    async with FakePrometheus().serving(serving_context(server_pair)) as address:
        endpoint = site.endpoint(address, ca_file=str(stranger.ca_file))
        rejected = await failure(endpoint)
        signer.ca_file.replace(stranger.ca_file)
        answer = await endpoint.ask("up")
    assert answer.status == 200
    assert rejected == (
        f"has a certificate that is not accepted with the CA in {stranger.ca_file}: "
        "unable to get local issuer certificate; caFile should name the CA that signed it",
        Fault.TLS,
    )


async def test_the_system_does_not_trust_a_ca_of_ours(site: Site, server_pair: KeyPair) -> None:
    async with FakePrometheus().serving(serving_context(server_pair)) as address:
        text, fault = await failure(site.endpoint(address))
        answer = await site.endpoint(address, insecure_skip_verify=True).ask("up")
    assert (answer.status, fault) == (200, Fault.TLS)
    assert text == (
        "has a certificate that is not accepted with the CAs of the system: "
        "unable to get local issuer certificate; caFile should name the CA that signed it"
    )


async def test_a_certificate_of_another_name(site: Site, signer: Authority) -> None:
    pair = signer.sign_server("other", ["other.example"], [])
    async with FakePrometheus().serving(serving_context(pair)) as address:
        found = await failure(site.endpoint(address, ca_file=str(signer.ca_file)))
    assert found == (
        f"has a certificate that is not accepted with the CA in {signer.ca_file}: IP address "
        "mismatch, certificate is not valid for '127.0.0.1'; "
        "the address should be one that the certificate names",
        Fault.TLS,
    )


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(ssl.TLSVersion.TLSv1_2, id="with TLS 1.2"),
        pytest.param(ssl.TLSVersion.TLSv1_3, id="with TLS 1.3"),
    ],
)
async def test_a_client_certificate_that_rotates(
    site: Site,
    signer: Authority,
    stranger: Authority,
    server_pair: KeyPair,
    version: ssl.TLSVersion,
) -> None:
    tls = serving_context(server_pair, clients=signer)
    tls.maximum_version = version
    wrong, right = stranger.sign_client("tide", []), signer.sign_client("tide", [])
    async with FakePrometheus().serving(tls) as address:
        ca_file = str(signer.ca_file)
        failures = [await failure(site.endpoint(address, ca_file=ca_file))]
        endpoint = site.endpoint(
            address,
            ca_file=ca_file,
            cert_file=str(wrong.certificate_file),
            key_file=str(wrong.key_file),
        )
        failures.append(await failure(endpoint))
        right.certificate_file.replace(wrong.certificate_file)
        right.key_file.replace(wrong.key_file)
        answer = await endpoint.ask("up")
    # asyncio's server says nothing before it goes.
    hint = "; certFile and keyFile should be a pair that it accepts"
    assert [(text.partition(":")[0], text.endswith(hint), fault) for text, fault in failures] == [
        ("broke the TLS connection off", True, Fault.TLS)
    ] * 2
    assert answer.status == 200


async def test_a_server_without_tls_is_asked_with_it(site: Site) -> None:
    async with FakePrometheus().serving() as address:
        text, fault = await failure(site.endpoint(address.replace("http:", "https:")))
    assert (text.endswith("; it may be one of http://"), fault) == (True, Fault.TLS)


async def test_tls_files_are_not_read_where_there_is_no_tls(site: Site, tmp_path: Path) -> None:
    async with FakePrometheus().serving() as address:
        answer = await site.endpoint(address, ca_file=str(tmp_path / "missing")).ask("up")
    assert answer.status == 200


# The API server's service proxy.


@dataclass
class FakeProxy:
    """Answers every request alike, or fails."""

    answer: tuple[int, bytes] | OSError = (200, EMPTY.encode())
    asked: list[tuple[str, dict[str, str], dict[str, str], float]] = field(default_factory=list)

    async def get(
        self,
        path: str,
        *,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        timeout_seconds: float,
    ) -> tuple[int, bytes]:
        self.asked.append((path, dict(params), dict(headers), timeout_seconds))
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer


def service_endpoint(proxy: FakeProxy | None, **settings: object) -> ServiceEndpoint:
    written = "kube-service://monitoring/https:prometheus:9090/prom"
    access = PrometheusAccess(addresses=(written,), **settings)  # type: ignore[arg-type]
    parsed = parse_address(written)
    assert isinstance(parsed, ServiceAddress)
    return ServiceEndpoint(parsed, access, proxy=proxy)


async def test_a_service_is_asked_through_the_proxy() -> None:
    proxy = FakeProxy((422, b"{}"))
    endpoint = service_endpoint(
        proxy,
        headers=(("Authorization", "secret"), ("X-Scope-OrgID", "team")),
        timeout_seconds=3.0,
    )
    answer = await endpoint.ask("up")
    assert (answer.address, answer.status, answer.body) == (
        "kube-service://monitoring/https:prometheus:9090/prom",
        422,
        b"{}",
    )
    assert proxy.asked == [
        (
            "/api/v1/namespaces/monitoring/services/https:prometheus:9090/proxy/prom/api/v1/query",
            {"query": "up"},
            {"X-Scope-OrgID": "team"},  # the Authorization there is the kubeconfig's
            3.0,
        )
    ]


@pytest.mark.parametrize(
    ("proxy", "want"),
    [
        pytest.param(
            None,
            (
                "cannot be asked without the API server; here it should be an http:// address",
                Fault.ADDRESS,
            ),
            id="says that there is no API server",
        ),
        pytest.param(
            FakeProxy(TimeoutError()),
            ("did not answer within 10 s", Fault.TIMEOUT),
            id="says that it took too long",
        ),
        pytest.param(
            FakeProxy(OSError("No answer from https://k: Connection refused")),
            ("is unreachable: No answer from https://k: Connection refused", Fault.UNREACHABLE),
            id="says what keeps it from the API server",
        ),
    ],
)
async def test_a_service_that_is_not_reached(
    proxy: FakeProxy | None, want: tuple[str, Fault]
) -> None:
    assert await failure(service_endpoint(proxy)) == want


async def test_a_service_that_is_not_reached_does_not_reveal_a_secret() -> None:
    proxy = FakeProxy(OSError("the header h1dden is not allowed"))
    found = await failure(service_endpoint(proxy, headers=(("X-Api-Key", "h1dden"),)))
    assert found == ("is unreachable: the header [hidden] is not allowed", Fault.UNREACHABLE)


async def test_a_proxy_that_makes_wait() -> None:
    class Waiting(FakeProxy):
        async def get(self, *_: object, **__: object) -> tuple[int, bytes]:
            await asyncio.Event().wait()
            raise AssertionError

    found = await failure(service_endpoint(Waiting(), timeout_seconds=0.01))
    assert found == ("did not answer within 0.01 s", Fault.TIMEOUT)
