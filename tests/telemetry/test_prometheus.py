"""The client against small real servers: what they say well, badly, late or not at all."""

import asyncio
import io
import logging
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port

from lowtide.logs import LineHandler, TextFormatter
from lowtide.readings.series import Series
from lowtide.telemetry.prometheus import Prometheus, PrometheusError, query_url

VECTOR = '{"status":"success","data":{"resultType":"vector","result":[%s]}}'
ONE_ROW = '{"metric":{"instance":"a:9100","device":"eth0"},"value":[1435781451.781,"%s"]}'


class FakePrometheus:
    """Answers every request with the same text, and remembers what it was asked."""

    def __init__(
        self,
        body: str = VECTOR % "",
        *,
        status: int = 200,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
        methods: tuple[str, ...] = ("POST",),
    ) -> None:
        self.asked: list[tuple[str, str, str | None]] = []
        self.headers_seen: list[str | None] = []
        self._body = body
        self._status = status
        self._content_type = content_type
        self._headers = headers
        self._methods = methods

    async def answer(self, request: web.Request) -> web.Response:
        given = request.query if request.method == "GET" else await request.post()
        self.asked.append((request.method, request.path, str(given.get("query"))))
        self.headers_seen.append(request.headers.get("X-Scope-OrgID"))
        if request.method not in self._methods:
            return web.Response(status=405, text="Method Not Allowed")
        return web.Response(
            text=self._body,
            status=self._status,
            content_type=self._content_type,
            headers=self._headers,
        )

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self.answer)
        async with TestServer(application) as server:
            yield str(server.make_url("")).rstrip("/")


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = LineHandler(stream)
    handler.setFormatter(TextFormatter(clock=lambda: 0.0, pid=1))
    logger = logging.getLogger("telemetry")
    logger.addHandler(handler)
    yield stream
    logger.removeHandler(handler)


async def failure(address: str, *, timeout_seconds: float = 5.0) -> str:
    async with Prometheus(address, timeout_seconds=timeout_seconds) as prometheus:
        with pytest.raises(PrometheusError) as caught:
            await prometheus.query("up")
    return str(caught.value)


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param("1.5", 1.5, id="reads a number"),
        pytest.param("1.51099652057e+11", 151099652057.0, id="reads an exponent"),
        pytest.param("+Inf", math.inf, id="reads an infinity"),
        pytest.param("-Inf", -math.inf, id="reads a negative infinity"),
    ],
)
async def test_values(written: str, want: float) -> None:
    fake = FakePrometheus(VECTOR % (ONE_ROW % written))
    async with fake.serving() as address, Prometheus(address) as prometheus:
        found = await prometheus.query("up")
    assert found == [Series({"instance": "a:9100", "device": "eth0"}, want, 1435781451.781)]


async def test_nan_is_handed_on() -> None:
    fake = FakePrometheus(VECTOR % (ONE_ROW % "NaN"))
    async with fake.serving() as address, Prometheus(address) as prometheus:
        found = await prometheus.query("up")
    assert [math.isnan(one.value) for one in found] == [True]


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
async def test_addresses(scheme: str, suffix: str, path: str) -> None:
    fake = FakePrometheus()
    async with fake.serving() as address:
        written = scheme + address.removeprefix("http://") + suffix
        async with Prometheus(written) as prometheus:
            await prometheus.query('up{a="&=+é"}')
    assert fake.asked == [("POST", path, 'up{a="&=+é"}')]


async def test_headers_are_sent() -> None:
    fake = FakePrometheus()
    tenant = {"X-Scope-OrgID": "team"}
    async with fake.serving() as address, Prometheus(address, headers=tenant) as prometheus:
        await prometheus.query("up")
    assert fake.headers_seen == ["team"]


async def test_get_is_used_once_post_was_refused() -> None:
    fake = FakePrometheus(methods=("GET",))
    async with fake.serving() as address, Prometheus(address) as prometheus:
        await prometheus.query("up")
        await prometheus.query('x{a="&"}')
    assert fake.asked == [
        ("POST", "/api/v1/query", "up"),
        ("GET", "/api/v1/query", "up"),
        ("GET", "/api/v1/query", 'x{a="&"}'),
    ]


async def test_a_server_that_is_down() -> None:
    address = f"http://127.0.0.1:{unused_port()}"
    found = await failure(address)
    assert found == f"Prometheus at {address} is unreachable: Connection refused"


async def test_a_server_that_never_answers() -> None:
    arrived = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        arrived.set()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    async with server:
        address = "http://{}:{}".format(*server.sockets[0].getsockname())
        found = await failure(address, timeout_seconds=0.05)
        await arrived.wait()
    assert found == f"Prometheus at {address} did not answer within 0.05 s"


@pytest.mark.parametrize(
    ("fake", "want"),
    [
        pytest.param(
            FakePrometheus(
                "<!DOCTYPE html><html><head><style>p {}</style><title>Log in</title></head>\n"
                "<body><p>to go on</p></body></html>",
                content_type="text/html",
            ),
            'answered HTTP 200 OK with HTML ("Log in to go on") instead of JSON; '
            "the address or its path prefix may be that of something else",
            id="says that it met HTML",
        ),
        pytest.param(
            FakePrometheus("404 page not found\n", status=404, content_type="text/plain"),
            'answered HTTP 404 Not Found with "404 page not found" instead of Prometheus\'s JSON',
            id="says that it met a plain 404",
        ),
        pytest.param(
            FakePrometheus("", status=599),
            'answered HTTP 599 with "" instead of Prometheus\'s JSON',
            id="says that it met an empty answer",
        ),
        pytest.param(
            FakePrometheus('{"message":"no such route"}', status=404),
            'answered HTTP 404 Not Found with "{"message":"no such route"}" '
            "instead of Prometheus's JSON",
            id="says that it met another's JSON",
        ),
        pytest.param(
            FakePrometheus("x" * 300, content_type="text/plain"),
            f'answered HTTP 200 OK with "{"x" * 200}…" instead of Prometheus\'s JSON',
            id="does not quote at length",
        ),
        pytest.param(
            FakePrometheus(
                '{"status":"error","errorType":"bad_data","error":"parse error:\\n unexpected"}',
                status=400,
            ),
            "refused the query up with HTTP 400: bad_data: parse error: unexpected",
            id="passes on what Prometheus finds wrong",
        ),
        pytest.param(
            FakePrometheus(
                '{"status":"success","data":{"resultType":"scalar","result":[1.0,"1"]}}'
            ),
            "answered a scalar to the query up, which should give a vector",
            id="refuses a scalar",
        ),
        pytest.param(
            FakePrometheus('{"status":"success","data":{"resultType":"matrix","result":[]}}'),
            "answered a matrix to the query up, which should give a vector",
            id="refuses a matrix",
        ),
        pytest.param(
            FakePrometheus('{"status":"success"}'),
            "answered nothing to the query up, which should give a vector",
            id="refuses an answer without data",
        ),
        pytest.param(
            FakePrometheus(VECTOR % (ONE_ROW % "many")),
            "answered a vector that cannot be read to the query up: "
            "could not convert string to float: 'many'",
            id="refuses a value that is no number",
        ),
        pytest.param(
            FakePrometheus(VECTOR % '{"metric":{},"histogram":[1.0,{}]}'),
            "answered a vector that cannot be read to the query up: "
            "Object missing required field `value` - at `$[0]`",
            id="refuses a histogram",
        ),
        pytest.param(
            FakePrometheus("", status=302, headers={"Location": "https://login.example/?secret=1"}),
            "answered HTTP 302, a redirect to https://login.example/; "
            "the address should be the one that answers queries itself",
            id="does not follow a redirect",
        ),
    ],
)
async def test_bad_answers(fake: FakePrometheus, want: str) -> None:
    async with fake.serving() as address:
        assert await failure(address) == f"Prometheus at {address} {want}"


async def test_a_password_in_the_address_is_sent_and_not_shown() -> None:
    seen: list[str | None] = []

    async def refuse(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return web.Response(status=401, text="no")

    application = web.Application()
    application.router.add_post("/api/v1/query", refuse)
    async with TestServer(application) as server:
        found = await failure(f"http://tide:low@127.0.0.1:{server.port}")
        assert found == (
            f"Prometheus at http://127.0.0.1:{server.port} answered HTTP 401 Unauthorized "
            'with "no" instead of Prometheus\'s JSON'
        )
    assert seen == ["Basic dGlkZTpsb3c="]


async def test_a_warning_is_logged_once_per_text(log_lines: io.StringIO) -> None:
    body = (
        '{"status":"success","warnings":["one store\\nis away"],'
        '"data":{"resultType":"vector","result":[]}}'
    )
    async with FakePrometheus(body).serving() as address, Prometheus(address) as prometheus:
        await prometheus.query("up")
        await prometheus.query("up")
    lines = [line.partition("] ")[2] for line in log_lines.getvalue().splitlines()]
    assert lines == [f'"Prometheus warns" address="{address}" warning="one store is away"']


@pytest.mark.parametrize(
    ("address", "want"),
    [
        pytest.param(
            "",
            "the Prometheus address (prometheusAddress) is missing",
            id="refuses an empty address",
        ),
        pytest.param("http://", "the Prometheus address 'http://' is", id="refuses no host"),
        pytest.param("ftp://x", "the Prometheus address 'ftp://x' is", id="refuses other schemes"),
        pytest.param("a b:9090", "the Prometheus address 'a b:9090' is", id="refuses a space"),
        pytest.param(
            "http://u:secret@x:99999",
            "the Prometheus address 'http://x:99999' is malformed (Port out of range",
            id="refuses an impossible port and hides the password",
        ),
    ],
)
def test_malformed_addresses(address: str, want: str) -> None:
    with pytest.raises(PrometheusError) as caught:
        query_url(address)
    assert str(caught.value).startswith(want)
    assert str(caught.value).endswith("; it should look like http://prometheus.example:9090")


def test_what_the_address_asks_for_besides_is_kept() -> None:
    found = query_url("vm.example:8428/select?extra_label=cluster%3Deast")
    assert str(found) == "http://vm.example:8428/select/api/v1/query?extra_label=cluster%3Deast"
