"""`lowtide explain` through the API server: which pods and ports it asks, and what it is told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from tests.server.conftest import running

from lowtide.app.explain import ExplainError, explanation_through_api_server
from lowtide.kube.kubeconfig import plain_access
from lowtide.server.http import Server
from lowtide.testing import ManualClock

PODS = "/api/v1/namespaces/{namespace}/pods/{pod}/proxy/api/explain/{of}/{name}"
REFUSED = {"kind": "Status", "message": "error trying to reach service: connection refused"}


class FakeApiServer:
    """Stands before pods of Lowtide; `answers` has what each says, by its name in the proxy."""

    def __init__(self, answers: dict[str, tuple[int, dict[str, object]]]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def pods(self, request: web.Request) -> web.Response:
        assert request.query["labelSelector"] == "app.kubernetes.io/name=lowtide"
        names = dict.fromkeys(each.split(":")[-2] for each in self._answers)
        metadata = [{"metadata": {"namespace": "kube-system", "name": name}} for name in names]
        return web.json_response({"items": metadata})

    async def proxy(self, request: web.Request) -> web.Response:
        pod = request.match_info["pod"]
        self.asked.append(pod)
        status, body = self._answers.get(pod, (503, REFUSED))
        return web.json_response(body, status=status)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        routes = [web.get("/api/v1/pods", self.pods), web.get(PODS, self.proxy)]
        server = Server(routes, port=0)
        async with running(server):
            yield server.address.url


async def explained(server: FakeApiServer, port: int | None = None) -> str:
    async with server.serving() as url:
        found = await explanation_through_api_server(
            plain_access(url),
            "default/web",
            None,
            through=None,
            port=port,
            wall_clock=ManualClock(),
        )
    return found.pod


FOUND: tuple[int, dict[str, object]] = (200, {"pod": "default/web", "records": []})
UNKNOWN: tuple[int, dict[str, object]] = (404, {"error": "nothing is known of pod default/web"})


async def test_an_extender_is_found_at_its_own_port() -> None:
    server = FakeApiServer({"lowtide-extender-0:8001": FOUND})
    assert await explained(server) == "default/web"
    assert server.asked == [
        "https:lowtide-extender-0:10259",
        "lowtide-extender-0:10259",
        "https:lowtide-extender-0:8001",
        "lowtide-extender-0:8001",
    ]


async def test_a_port_that_is_named_is_the_only_one_asked() -> None:
    server = FakeApiServer({"https:lowtide-0:7000": FOUND})
    assert await explained(server, port=7000) == "default/web"
    assert server.asked == ["https:lowtide-0:7000"]


async def test_the_first_pod_that_knows_tells() -> None:
    server = FakeApiServer({"https:lowtide-0:10259": UNKNOWN, "https:lowtide-1:10259": FOUND})
    assert await explained(server) == "default/web"
    assert server.asked == ["https:lowtide-0:10259", "https:lowtide-1:10259"]


async def test_what_each_says_is_told_once() -> None:
    server = FakeApiServer({"https:lowtide-0:10259": UNKNOWN, "lowtide-1:1": FOUND})
    with pytest.raises(ExplainError) as raised:
        await explained(server)
    assert str(raised.value).splitlines() == [
        "pod kube-system/lowtide-0: nothing is known of pod default/web",
        "pod kube-system/lowtide-1: error trying to reach service: connection refused",
    ]
