from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.server.conftest import running
from tests.server.test_certificate import Site

from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import plain_access
from lowtide.kube.reviews import Reviews
from lowtide.server.guard import Guard
from lowtide.server.http import Server
from lowtide.server.serving import Serving, make_server

Ask = Callable[..., Any]


@dataclass
class Reviewing:
    """An API server that knows one token, and lets some users see some paths."""

    allowed: set[tuple[str, str]] = field(default_factory=set)
    is_broken: bool = False

    async def answer(self, request: web.Request) -> web.Response:
        if self.is_broken:
            return web.json_response({"message": "no"}, status=500)
        spec = (await request.json())["spec"]
        if "token" in spec:
            user = {"username": "ann", "groups": ["ops"]}
            is_known = spec["token"] == "good"
            return web.json_response({"status": {"authenticated": is_known, "user": user}})
        wanted = spec["nonResourceAttributes"]
        assert wanted["verb"] == "get"
        is_allowed = (spec["user"], wanted["path"]) in self.allowed
        return web.json_response({"status": {"allowed": is_allowed}})


@pytest.fixture
def reviewing() -> Reviewing:
    return Reviewing()


@pytest.fixture
async def guard(reviewing: Reviewing) -> AsyncIterator[Guard]:
    api = Server([web.post("/{tail:.*}", reviewing.answer)], port=0)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(running(api))
        connection = Connection(plain_access(url), lambda: 0.0)
        await stack.enter_async_context(connection)
        reviews = Reviews(connection, connection, clock=lambda: 0.0)
        yield Guard(reviews, ["/metrics/resources", "/readyz/*"])


async def _hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


GUARDED = [web.get(path, _hello) for path in ("/metrics", "/metrics/resources", "/readyz/a")]


def served(guard: Guard, serving: Serving | None = None) -> Server:
    return make_server(
        serving or Serving(port=0), GUARDED, verbs=[web.get("/verb", _hello)], guard=guard
    )


async def asked(url: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": token} if token else {}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        if response.status == 200:
            return 200, await response.text()
        return response.status, (await response.json())["error"]


@pytest.mark.parametrize(
    ("path", "token", "want"),
    [
        pytest.param(
            "/metrics",
            "",
            (
                403,
                "system:anonymous may not get /metrics; a ClusterRole with nonResourceURLs: "
                '["/metrics"] and verbs: ["get"] would let him',
            ),
            id="rejects somebody unknown",
        ),
        pytest.param(
            "/metrics",
            "Bearer bad",
            (401, "/metrics is for known users; the token is not valid here"),
            id="rejects a token that is nobody's",
        ),
        pytest.param(
            "/metrics",
            "Basic good",
            (401, "/metrics is for known users; the token is not valid here"),
            id="rejects what is no token",
        ),
        pytest.param("/metrics", "bearer good", (200, "hello"), id="lets whom the API server lets"),
        pytest.param(
            "/metrics/resources", "", (200, "hello"), id="lets everybody see a path that is open"
        ),
        pytest.param("/readyz/a", "", (200, "hello"), id="lets everybody see what begins so"),
        pytest.param("/verb", "", (200, "hello"), id="does not stand before verbs"),
    ],
)
async def test_the_guard(
    guard: Guard, reviewing: Reviewing, path: str, token: str, want: tuple[int, str]
) -> None:
    reviewing.allowed.add(("ann", "/metrics"))
    async with running(served(guard)) as url:
        assert await asked(f"{url}{path}", token) == want


async def test_a_known_user_may_not_see_everything(guard: Guard) -> None:
    async with running(served(guard)) as url:
        status, error = await asked(f"{url}/metrics", "Bearer good")
    assert (status, error.partition(";")[0]) == (403, "ann may not get /metrics")


async def test_a_right_may_have_another_name_than_its_path(
    guard: Guard, reviewing: Reviewing
) -> None:
    reviewing.allowed.add(("ann", "/api/x"))
    server = Server([web.get("/api/x", guard.for_known(_hello, "/own"))], port=0)
    async with running(server) as url:
        status, error = await asked(f"{url}/api/x", "Bearer good")
    assert (status, error.partition(";")[0]) == (403, "ann may not get /own")


async def test_nobody_is_let_while_the_api_server_is_silent(
    guard: Guard, reviewing: Reviewing
) -> None:
    reviewing.is_broken = True
    async with running(served(guard)) as url:
        want = 503, "the API server does not say who may GET /metrics"
        assert await asked(f"{url}/metrics", "Bearer good") == want


async def test_a_certificate_names_its_owner(
    guard: Guard, reviewing: Reviewing, tmp_path: Path
) -> None:
    site = Site(tmp_path)
    reviewing.allowed.add(("client", "/metrics"))
    serving = Serving(port=0, tls=site.server, client_ca=site.client_ca)
    async with running(served(guard, serving)) as url:
        assert await site.ask(f"{url}/metrics", site.client) == (200, "hello")
        without = await site.ask(f"{url}/metrics", None)
        verb = await site.ask(f"{url}/verb", None)
    assert (without or (0, ""))[0] == 403  # by the guard, which also takes tokens
    assert (verb or (0, ""))[0] == 401  # for which a certificate is wanted


async def test_a_ca_for_clients_leaves_the_page_to_this_machine(
    guard: Guard, tmp_path: Path
) -> None:
    site = Site(tmp_path)
    serving = Serving(port=0, tls=site.server, client_ca=site.client_ca)
    routes = [web.get(path, _hello) for path in ("/", "/api/health")]
    async with running(make_server(serving, routes, guard=guard)) as url:
        answers = [await site.ask(f"{url}{each.path}", None) for each in routes]
    assert answers == [(200, "hello"), (200, "hello")]
