"""Evictions of the machine, against a small real API server."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from lowtide.app.kube_evictions import KubeEvictions
from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import plain_access
from lowtide.kube.writer import Writer
from lowtide.scheduler.actions import Evict
from lowtide.scheduler.events import EvictionEnded
from lowtide.testing import ManualClock, make_pod

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
BIG = make_pod("big", priority=10)
A, B, C = (make_pod(name, on="node-a") for name in ("a", "b", "c"))
GONE = 404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "no such pod"}
BROKEN = 500, {"kind": "Status", "code": 500, "reason": "InternalError", "message": "etcd"}


CONFLICT = 409, {"kind": "Status", "code": 409, "reason": "Conflict", "message": "try again"}


class ApiServer:
    """Answers by method and pod; keeps what it was asked, in order."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], tuple[int, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.bodies: dict[tuple[str, str], Any] = {}

    async def handle(self, request: web.Request) -> web.Response:
        key = request.method, request.path.removesuffix("/status").rpartition("/")[2]
        self.asked.append(key)
        self.bodies[key] = json.loads(await request.read() or b"null")
        status, answer = self.answers.get(key, (200, {}))
        return web.json_response(answer, status=status)

    def times(self, method: str, name: str) -> int:
        return self.asked.count((method, name))


@pytest.fixture
def server() -> ApiServer:
    return ApiServer()


@pytest.fixture
async def evictions(server: ApiServer) -> AsyncIterator[KubeEvictions]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    clock = ManualClock(NOW)

    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    async with (
        TestServer(application) as served,
        Connection(
            plain_access(f"http://127.0.0.1:{served.port}"), clock, sleep=sleep
        ) as connection,
    ):
        yield KubeEvictions(Writer(connection, may_write=lambda: True, sleep=sleep), clock)


async def test_a_victim_is_told_why_and_then_deleted(
    evictions: KubeEvictions, server: ApiServer
) -> None:
    assert await evictions.evict(Evict(BIG, "node-a", (A,))) == EvictionEnded(BIG.uid, evicted=(A,))
    assert server.asked == [("PATCH", "a"), ("DELETE", "a")]
    assert server.bodies["PATCH", "a"]["status"]["conditions"] == [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "lowtide: preempting to accommodate a higher priority pod",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]
    assert server.bodies["DELETE", "a"]["preconditions"] == {"uid": A.uid}


async def test_the_last_victim_goes_after_all_others(
    evictions: KubeEvictions, server: ApiServer
) -> None:
    ended = await evictions.evict(Evict(BIG, "node-a", (A, B, C)))
    assert ended == EvictionEnded(BIG.uid, evicted=(A, B, C))
    assert server.asked[-2:] == [("PATCH", "c"), ("DELETE", "c")]
    assert sorted(server.asked[:-2]) == sorted(
        (method, name) for method in ("PATCH", "DELETE") for name in ("a", "b")
    )


@pytest.mark.parametrize(
    "method",
    [pytest.param("PATCH", id="told so"), pytest.param("DELETE", id="deleted")],
)
async def test_a_victim_that_is_gone_cannot_be(
    evictions: KubeEvictions, server: ApiServer, method: str
) -> None:
    server.answers[method, "a"] = GONE
    ended = await evictions.evict(Evict(BIG, "node-a", (A, B)))
    assert ended == EvictionEnded(BIG.uid, evicted=(B,), gone=frozenset({A.uid}))


@pytest.mark.parametrize(
    "method",
    [pytest.param("PATCH", id="told so"), pytest.param("DELETE", id="deleted")],
)
async def test_the_last_victim_stays_when_another_cannot_be(
    evictions: KubeEvictions, server: ApiServer, method: str
) -> None:
    server.answers[method, "a"] = BROKEN
    assert await evictions.evict(Evict(BIG, "node-a", (A, B, C))) == EvictionEnded(
        BIG.uid,
        evicted=(B,),
        error="pod default/a was not evicted: etcd (HTTP 500 InternalError)",
    )
    assert (server.times(method, "a"), server.times("DELETE", "c")) == (4, 0)


async def test_nominations_of_pods_that_matter_less_are_taken_back(
    evictions: KubeEvictions, server: ApiServer
) -> None:
    middle = make_pod("middle", nominated="node-a")
    not_seen = make_pod("not-seen")  # it may be written all the same
    ended = await evictions.evict(Evict(BIG, "node-a", (A,), (middle, not_seen)))
    assert ended == EvictionEnded(BIG.uid, evicted=(A,))
    assert sorted(server.asked[:2]) == [("PATCH", "middle"), ("PATCH", "not-seen")]
    assert server.asked[2:] == [("PATCH", "a"), ("DELETE", "a")]
    for name in ("middle", "not-seen"):
        assert server.bodies["PATCH", name]["status"] == {"nominatedNodeName": None}


async def test_a_nomination_that_stays_keeps_no_victim(
    evictions: KubeEvictions, server: ApiServer
) -> None:
    server.answers["PATCH", "middle"] = BROKEN
    middle = make_pod("middle", nominated="node-a")
    assert await evictions.evict(Evict(BIG, "node-a", (A,), (middle,))) == EvictionEnded(
        BIG.uid,
        evicted=(A,),
        error="the nomination of pod default/middle was not taken back: "
        "etcd (HTTP 500 InternalError)",
    )


@pytest.mark.parametrize(
    ("found", "gone", "error"),
    [
        pytest.param(A.uid, frozenset(), "pod default/a was not evicted: ", id="is still there"),
        pytest.param("another", frozenset({A.uid}), None, id="has made room for another"),
    ],
)
async def test_a_conflict_is_looked_into_where_the_victim(
    server: ApiServer,
    evictions: KubeEvictions,
    found: str,
    gone: frozenset[str],
    error: str | None,
) -> None:
    server.answers["PATCH", "a"] = CONFLICT
    metadata = {"name": "a", "namespace": "default", "uid": found}
    server.answers["GET", "a"] = 200, {"metadata": metadata, "spec": {}}
    ended = await evictions.evict(Evict(BIG, "node-a", (A,)))
    assert (ended.evicted, ended.gone) == ((), gone)
    assert (ended.error or "").startswith(error or "")
    assert (ended.error is None) == (error is None)
    assert server.times("DELETE", "a") == 0
