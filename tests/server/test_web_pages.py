"""What a web page could make a browser send is rejected; what others send is answered."""

import json

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from tests.server.conftest import RawAnswer, RawClient, running

from lowtide.server.http import Server
from lowtide.server.web_pages import RejectedRequest, rejection_of

JSON = {"Content-Type": "application/json"}
BROWSER = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
FOLLOWED = {
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Dest": "document",
}


def rejected(
    method: str,
    path: str,
    headers: dict[str, str],
    *,
    host: str = "127.0.0.1:8001",
    is_on_loopback: bool = True,
) -> RejectedRequest | None:
    request = make_mocked_request(method, path, headers={"Host": host, **headers})
    return rejection_of(request, is_on_loopback=is_on_loopback)


@pytest.mark.parametrize(
    ("method", "path", "headers", "host"),
    [
        pytest.param("GET", "/livez", {}, "127.0.0.1:10259", id="the kubelet's probe on loopback"),
        pytest.param("POST", "/scheduler/bind", JSON, "localhost:8001", id="kube-scheduler"),
        pytest.param("POST", "/x", JSON, "[::1]:8001", id="kube-scheduler by IPv6"),
        pytest.param(
            "POST",
            "/x",
            {"Content-Type": "Application/JSON; charset=utf-8"},
            "localhost",
            id="more",
        ),
        pytest.param("GET", "/metrics", {}, "127.0.0.1:10259", id="Prometheus"),
        pytest.param("GET", "/", {"Sec-Fetch-Site": "none"}, "localhost", id="a typed address"),
        pytest.param("GET", "/", FOLLOWED, "localhost:8001", id="a link to the page"),
        pytest.param("GET", "/api/cluster", BROWSER, "localhost:8001", id="the page's own request"),
        pytest.param(
            "GET",
            "/api/cluster",
            {**BROWSER, "Origin": "http://localhost:8001"},
            "localhost:8001",
            id="the page's own request with its origin",
        ),
        pytest.param(
            "GET", "/", {"Origin": "http://localhost"}, "localhost:80", id="the default port"
        ),
    ],
)
@pytest.mark.parametrize("is_on_loopback", [True, False], ids=["on loopback", "beyond loopback"])
def test_is_answered(
    method: str, path: str, headers: dict[str, str], host: str, *, is_on_loopback: bool
) -> None:
    assert rejected(method, path, headers, host=host, is_on_loopback=is_on_loopback) is None


@pytest.mark.parametrize(
    ("method", "headers", "host"),
    [
        pytest.param("GET", {}, "10.0.0.5:10259", id="the kubelet's probe of a pod's address"),
        pytest.param(
            "POST", JSON, "lowtide.kube-system.svc:8001", id="kube-scheduler by a Service"
        ),
        pytest.param(
            "GET",
            {**BROWSER, "Origin": "https://tide.example.com"},
            "tide.example.com",
            id="the page behind a proxy that ends TLS",
        ),
    ],
)
def test_is_answered_beyond_loopback(method: str, headers: dict[str, str], host: str) -> None:
    assert rejected(method, "/x", headers, host=host, is_on_loopback=False) is None


@pytest.mark.parametrize("path", ["/livez", "/metrics", "/scheduler/bind", "/", "/nothing"])
@pytest.mark.parametrize("host", ["rebound.example:8001", "", "10.0.0.5", "[::1", "a@b"])
def test_on_loopback_another_host_is_rejected(path: str, host: str) -> None:
    found = rejected("GET", path, {}, host=host)
    assert found == RejectedRequest(
        403,
        "host",
        f"the request is for the host {host!r}; a server on loopback answers to localhost, "
        "127.0.0.1 and [::1] in the Host header",
    )


@pytest.mark.parametrize(
    ("method", "origin"),
    [
        pytest.param("GET", "http://evil.example", id="of another site"),
        pytest.param("GET", "http://127.0.0.1:3000", id="of another port"),
        pytest.param("GET", "null", id="of a sandboxed frame or a file"),
        pytest.param("GET", "", id="that is empty"),
        pytest.param("GET", "ftp://127.0.0.1:8001", id="of another scheme"),
        pytest.param("GET", "http://[::1", id="that is no address"),
        pytest.param("POST", "http://evil.example", id="of another site that posts"),
        pytest.param(
            "POST", "http://127.0.0.1:8001", id="of our own that posts: our page never does"
        ),
    ],
)
@pytest.mark.parametrize("is_on_loopback", [True, False], ids=["on loopback", "beyond loopback"])
def test_an_origin_is_rejected(method: str, origin: str, *, is_on_loopback: bool) -> None:
    found = rejected(method, "/livez", {**JSON, "Origin": origin}, is_on_loopback=is_on_loopback)
    assert found == RejectedRequest(
        403,
        "origin",
        f"a web page of {origin!r} sent this {method} request; only requests of the page served "
        "here, or of no web page, are allowed",
    )


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        pytest.param("GET", "/metrics", FOLLOWED, id="a link to something else"),
        pytest.param("POST", "/", {**FOLLOWED, **JSON}, id="a form that posts"),
        pytest.param(
            "GET", "/", {**FOLLOWED, "Sec-Fetch-Dest": "iframe"}, id="the page in a frame"
        ),
        pytest.param("GET", "/", {**FOLLOWED, "Sec-Fetch-Mode": "no-cors"}, id="an image"),
        pytest.param(
            "GET", "/api/health", {**BROWSER, "Sec-Fetch-Site": "same-site"}, id="a neighbour"
        ),
    ],
)
def test_a_request_of_another_site_is_rejected(
    method: str, path: str, headers: dict[str, str]
) -> None:
    found = rejected(method, path, headers)
    site = headers["Sec-Fetch-Site"]
    assert found == RejectedRequest(
        403,
        "origin",
        f"a web page of another site sent this request (Sec-Fetch-Site: {site}); "
        f"open {path} in a window of its own",
    )


@pytest.mark.parametrize(
    "given", ["text/plain", "", "application/x-www-form-urlencoded", "application/jsonx"]
)
def test_what_is_posted_has_to_be_json(given: str) -> None:
    found = rejected("POST", "/scheduler/bind", {"Content-Type": given} if given else {})
    assert found == RejectedRequest(
        415,
        "content-type",
        f"the request has the Content-Type {given!r}; expected application/json",
    )


async def _answer(_: web.Request) -> web.Response:
    return web.Response(text="asked")


async def asked(head: str) -> tuple[RawAnswer, list[str]]:
    """The answer of a server to a request, and why it was rejected."""
    reasons: list[str] = []
    server = Server([web.route("*", "/x", _answer)], port=0, on_rejected=reasons.append)
    async with running(server):
        client = await RawClient.connected(server.address.port)
        await client.send(f"{head}\r\n\r\n".encode())
        answer = await client.answer()
        await client.close()
    return answer, reasons


@pytest.mark.parametrize("path", ["/x", "/nothing"])
async def test_a_server_rejects_on_every_path_and_tells_why(path: str) -> None:
    answer, reasons = await asked(f"GET {path} HTTP/1.1\r\nHost: rebound.example")
    assert (answer.status, reasons) == (403, ["host"])
    assert json.loads(answer.body)["error"].startswith("the request is for the host 'rebound.")


async def test_a_server_answers_others() -> None:
    answer, reasons = await asked("GET /x HTTP/1.1\r\nHost: localhost")
    assert (answer.status, answer.body, reasons) == (200, b"asked", [])


async def test_a_page_that_posts_text_gets_no_further() -> None:
    """As browsers send it without asking first."""
    answer, reasons = await asked(
        "POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: 0"
    )
    assert (answer.status, reasons) == (415, ["content-type"])
