"""Requests to a Service through a small API server."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import unused_port
from tests.kube.conftest import ApiServer, ManualClock, document, status

from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import Access, Cluster, User, plain_access
from lowtide.kube.service_proxy import ServiceProxy

PATH = "/api/v1/namespaces/monitoring/services/https:prometheus:9090/proxy/prom/api/v1/query"


@pytest.fixture
def proxy(connection: Connection) -> ServiceProxy:
    return ServiceProxy(connection)


async def test_the_parameters_are_in_the_address(proxy: ServiceProxy, server: ApiServer) -> None:
    server.answers = [document({"status": "success"})]
    found = await proxy.get(
        PATH,
        params={"query": 'up{a="&=+é"}'},
        headers={"X-Scope-OrgID": "team"},
        timeout_seconds=5.0,
    )
    assert found == (200, b'{"status": "success"}')
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.query, asked.body) == (
        "GET",
        PATH,
        {"query": 'up{a="&=+é"}'},
        b"",
    )
    assert asked.headers["X-Scope-OrgID"] == "team"


@pytest.mark.parametrize("code", [400, 403, 422, 429, 503])
async def test_an_answer_of_any_status_is_handed_on_at_once(
    proxy: ServiceProxy, server: ApiServer, clock: ManualClock, code: int
) -> None:
    server.answers = [web.Response(status=code, text="no", headers={"Retry-After": "1"})]
    found = await proxy.get(PATH, params={}, headers={}, timeout_seconds=5.0)
    assert (found, len(server.asked), clock.slept) == ((code, b"no"), 1, [])


async def test_the_kubeconfigs_credentials_are_shown_and_renewed(
    stack: AsyncExitStack, server: ApiServer, clock: ManualClock, tmp_path: Path
) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("old")
    access = Access(Cluster(server.url), User(token_file=token_file), "default", "test")
    connection = await stack.enter_async_context(Connection(access, clock, sleep=clock.sleep))

    async def rotate(_: web.Request) -> web.StreamResponse:
        token_file.write_text("new")
        return web.json_response({}, status=401)

    server.answers = [rotate, document({})]
    headers = {"authorization": "Bearer of another"}
    found = await ServiceProxy(connection).get(
        PATH, params={}, headers=headers, timeout_seconds=5.0
    )
    assert found == (200, b"{}")
    shown = [
        value
        for asked in server.asked
        for name, value in asked.headers.items()
        if name.lower() == "authorization"
    ]
    assert shown == ["Bearer old", "Bearer new"]


async def test_without_an_answer_there_is_an_os_error(
    stack: AsyncExitStack, clock: ManualClock
) -> None:
    url = f"http://127.0.0.1:{unused_port()}"
    connection = await stack.enter_async_context(Connection(plain_access(url), clock))
    with pytest.raises(OSError) as caught:
        await ServiceProxy(connection).get("/x", params={}, headers={}, timeout_seconds=5.0)
    assert str(caught.value) == f"No answer from {url} to GET /x: Connection refused"


async def test_what_the_api_server_says_itself_is_an_answer_too(
    proxy: ServiceProxy, server: ApiServer
) -> None:
    server.answers = [status(404, "NotFound", 'services "prometheus" not found')]
    code, body = await proxy.get(PATH, params={}, headers={}, timeout_seconds=5.0)
    assert (code, b'services \\"prometheus\\" not found' in body) == (404, True)
